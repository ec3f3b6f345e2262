"""UnsyncedFiles: the operating system's files without fsync, for temporary data.

A crash of the process loses nothing, but a crash of the machine may. Without fsync a broker on a temporary directory
starts in a few milliseconds instead of a few dozen.
"""

from __future__ import annotations

from tailrace.log.disk.files import DiskFile, DiskFiles
from tailrace.records.batch import Buffer


class UnsyncedFile(DiskFile):
    __slots__ = ()

    def sync(self) -> None:
        """Do nothing: the operating system writes the data later."""


class UnsyncedFiles(DiskFiles):
    def _new_file(self, path: str, flags: int) -> DiskFile:
        return UnsyncedFile(path, flags)

    def write(self, path: str, data: Buffer, *, sync: bool) -> None:
        super().write(path, data, sync=False)

    def sync_directory(self, path: str) -> None:
        """Do nothing, as for files."""
