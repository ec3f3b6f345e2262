"""Blobs: the objects of a bucket, by name. DiskBlobs is the same in a folder."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from tailrace.log.disk.files import Files, join
from tailrace.records.batch import Buffer

UNFINISHED = ".tmp"


class Blobs(Protocol):
    """Errors are OSError with one sentence; a missing object is FileNotFoundError."""

    @property
    def place(self) -> str:
        """The address of the bucket or folder, for messages."""

    def write(self, key: str, pieces: Iterable[Buffer], remaining_ms: Callable[[], int]) -> None:
        """Write a new object, which appears when it is complete. Raise TimeoutError if the time is over."""

    def read(self, key: str, start: int = 0, end: int | None = None) -> bytes: ...
    def delete(self, keys: Sequence[str]) -> None:
        """Delete objects that may not exist."""


class DiskBlobs:
    """A folder with objects as files. A file is written under another name and then renamed."""

    def __init__(self, directory: str, files: Files) -> None:
        self.place = directory
        self._files = files

    def write(self, key: str, pieces: Iterable[Buffer], remaining_ms: Callable[[], int]) -> None:
        path = join(self.place, key)
        folder = path.rpartition("/")[0]
        self._files.make_directory(folder)
        self._files.write(path + UNFINISHED, b"", sync=False)
        file = self._files.open(path + UNFINISHED)
        try:
            position = 0
            for piece in pieces:
                if remaining_ms() <= 0:
                    raise TimeoutError(errno.ETIMEDOUT, "the time for the copy is over", path)
                file.write(position, piece)
                position += len(piece)
            file.sync()
        finally:
            file.close()
        self._files.replace(path + UNFINISHED, path)
        self._files.sync_directory(folder)

    def read(self, key: str, start: int = 0, end: int | None = None) -> bytes:
        file = self._files.open(join(self.place, key), read_only=True)
        try:
            return file.read(start, max((file.size() if end is None else end) - start, 0))
        finally:
            file.close()

    def delete(self, keys: Sequence[str]) -> None:
        for key in keys:
            path = join(self.place, key)
            self._files.remove(path + UNFINISHED)
            self._files.remove(path)
