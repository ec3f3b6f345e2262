"""UnsyncedFiles: the operating system's files without waiting for the disk, for data that nobody keeps.

A crash of the process loses nothing, one of the machine may. A broker on a temporary directory starts in a few
milliseconds with it instead of a few dozen, nearly all of which are spent in fsync.
"""

from __future__ import annotations

from tailrace.log.disk.files import DiskFile, DiskFiles
from tailrace.records.batch import Buffer


class UnsyncedFile(DiskFile):
    __slots__ = ()

    def sync(self) -> None:
        """Nothing: the operating system writes when it likes."""


class UnsyncedFiles(DiskFiles):
    def _new_file(self, path: str, flags: int) -> DiskFile:
        return UnsyncedFile(path, flags)

    def write(self, path: str, data: Buffer, *, sync: bool) -> None:
        super().write(path, data, sync=False)

    def sync_directory(self, path: str) -> None:
        """Nothing, as for files."""
