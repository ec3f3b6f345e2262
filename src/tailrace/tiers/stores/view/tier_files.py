"""TierFiles: remote segments with the interface of the log's files, as a read-only data directory.

A partition is a folder `topic-N` with the names of a log on disk. The folder has these segments only, each up to
the offset where the next one begins. The list of segments is fixed when the view is made, and is pickled with it.
`opening.py` has chosen the segments.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from tailrace.log.disk.files import Entry, File, Files, RemoteFiles, Space
from tailrace.records.batch import Buffer
from tailrace.tiers.stores.aiven.chunk_index import ChunkIndex
from tailrace.tiers.stores.view.part_files import (
    CompressedFile,
    MemoryFile,
    RangeFile,
    Source,
    read_only_error,
)


@dataclass(frozen=True, slots=True)
class StoredRange:
    """A range of a stored file."""

    stored_path: str
    start: int
    size: int

    def open(self, files: Files, path: str) -> File:
        return RangeFile(path, files.open(self.stored_path, read_only=True), self.start, self.size)


@dataclass(frozen=True, slots=True)
class StoredChunks:
    """The first `size` bytes of a log that is stored in compressed chunks; `size` is uncompressed."""

    stored_path: str
    chunks: ChunkIndex
    size: int

    def open(self, files: Files, path: str) -> File:
        return CompressedFile(path, files.open(self.stored_path, read_only=True), self.chunks, self.size)


@dataclass(frozen=True, slots=True)
class Content:
    """Content made in memory, such as a checkpoint file: no stored file has these bytes."""

    data: bytes

    @property
    def size(self) -> int:
        return len(self.data)

    def open(self, files: Files, path: str) -> File:
        return MemoryFile(path, self.data)


class TierFiles:
    def __init__(self, files: Files, root: str, folders: Mapping[str, Mapping[str, Source]]) -> None:
        self.root = root
        self.store_files = files
        self._folders = folders  # by path

    def only(self, folder: str, is_wanted: Callable[[str], bool]) -> TierFiles:
        """Return the view of a part of one folder, to send it to a task."""
        chosen = {name: source for name, source in self._folders[folder].items() if is_wanted(name)}
        return TierFiles(self.store_files, self.root, {folder: chosen})

    def run_together(self, work: Iterable[Callable[[], object]]) -> None:
        """Run functions that mostly wait for the store, in parallel if the store is remote."""
        if isinstance(self.store_files, RemoteFiles):
            self.store_files.run_together(work)
        else:
            for one in work:
                one()

    # Reading

    def entries(self, path: str) -> list[Entry]:
        if path == self.root:
            return [Entry(folder.rpartition("/")[2], is_directory=True) for folder in self._folders]
        if path not in self._folders:
            raise FileNotFoundError(errno.ENOENT, "no such folder in the view of remote segments", path)
        return [Entry(name, is_directory=False) for name in self._folders[path]]

    def _source(self, path: str) -> Source:
        folder, _, name = path.rpartition("/")
        source = self._folders.get(folder, {}).get(name)
        if source is None:
            raise FileNotFoundError(errno.ENOENT, "no such file in the view of remote segments", path)
        return source

    def exists(self, path: str) -> bool:
        folder, _, name = path.rpartition("/")
        return path == self.root or path in self._folders or name in self._folders.get(folder, {})

    def size(self, path: str) -> int:
        return self._source(path).size

    def modified_ms(self, path: str) -> int:
        """Return 0: the objects of a segment never change."""
        self._source(path)
        return 0

    def open(self, path: str, *, create: bool = False, read_only: bool = False) -> File:
        if create and not self.exists(path):
            raise read_only_error(path)
        return self._source(path).open(self.store_files, path)

    def read(self, path: str) -> bytes:
        return bytes(self.open(path).map())

    # Writing (refused)

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        raise read_only_error(path)

    def write(self, path: str, data: Buffer, *, sync: bool) -> None:
        raise read_only_error(path)

    def replace(self, source: str, target: str) -> None:
        raise read_only_error(source)

    def remove(self, path: str) -> bool:
        raise read_only_error(path)

    def make_directory(self, path: str) -> None:
        raise read_only_error(path)

    def remove_directory(self, path: str) -> None:
        raise read_only_error(path)

    def sync_directory(self, path: str) -> None:
        raise read_only_error(path)

    def space(self, path: str) -> Space:
        raise OSError(errno.ENOSYS, "a remote store does not report its free space", path)

    def lock(self, path: str) -> File:
        raise read_only_error(path)
