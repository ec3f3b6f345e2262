"""OverlayFiles: reads from the disk and writes to memory.

A log that is opened through it runs the same code as in a broker, including recovery, and leaves the disk unchanged.
Writes, renames, removals and truncations are kept in memory, and later reads see them. `changes` lists them, which is
the dry run of a repair.

- A file's content is that of the disk up to some byte, then that of memory. A truncation only moves that byte, so that
  a log file of a gigabyte is never copied. The bytes in memory are bounded. A write beyond the bound is an OSError.
- A folder is listed once. Later listings of the same overlay are the same.
- A `.broken` file, into which recovery copies the bytes that it cuts, is only counted.
- Files are read, not mapped, because a running broker may truncate a file and a mapping would then fault.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable
from typing import NamedTuple

from tailrace.log.disk import file_names
from tailrace.log.disk.files import Entry, File, Files, Space, join, zeros
from tailrace.records.batch import Buffer

MAX_MEMORY = 256 * 1024 * 1024
_READ_CHUNK = 256 * 1024
_INDEXES = (file_names.OFFSET_INDEX, file_names.TIME_INDEX)
COUNTED_ONLY = ".broken"


class Change(NamedTuple):
    """A difference from the disk. `what` is created, removed, cut, rewritten or renamed."""

    path: str
    what: str
    size_before: int
    size: int
    renamed_from: str | None = None


class _Node:
    """A file's content under any name: `kept` bytes of the disk's file (None: all of them), then `tail`."""

    __slots__ = ("disk", "is_counted_only", "kept", "modified_ms", "tail")

    def __init__(self, disk: File | None, *, is_counted_only: bool = False) -> None:
        self.disk = disk
        self.kept: int | None = None if disk else 0
        self.tail = bytearray()
        self.modified_ms: int | None = None
        self.is_counted_only = is_counted_only

    @property
    def is_changed(self) -> bool:
        return self.kept is not None

    @property
    def size(self) -> int:
        if self.kept is None:
            assert self.disk is not None
            return self.disk.size()
        return self.kept + len(self.tail)

    def read(self, position: int, size: int) -> bytes:
        parts = []
        kept = self.size if self.kept is None else self.kept
        if position < kept and self.disk is not None:
            parts.append(self.disk.read(position, min(size, kept - position)))
            size -= len(parts[0])
            position = kept
        if size > 0 and self.tail:
            parts.append(bytes(self.tail[position - kept : position - kept + size]))
        return b"".join(parts) if len(parts) != 1 else parts[0]

    def write(self, position: int, data: Buffer) -> None:
        if self.is_counted_only:
            self.kept = max(self.kept or 0, position + len(data))
            return
        size = self.size
        kept = size if self.kept is None else self.kept
        start = min(position, kept)
        tail = bytearray(self.read(start, kept - start)) + self.tail
        at = position - start
        if at > len(tail):
            tail += bytes(at - len(tail))
        tail[at : at + len(data)] = data
        self.kept, self.tail = start, tail

    def truncate(self, size: int) -> None:
        if self.is_counted_only:
            self.kept = size
            return
        kept = self.size if self.kept is None else self.kept
        if size < kept:
            self.kept, self.tail = size, bytearray()
        else:
            self.kept = kept
            del self.tail[size - kept :]
            self.tail += bytes(size - kept - len(self.tail))


class OverlayFile:
    """An open file of an OverlayFiles. It stays the same file when it is renamed."""

    __slots__ = ("_node", "_overlay", "path")

    def __init__(self, overlay: OverlayFiles, path: str, node: _Node) -> None:
        self._overlay = overlay
        self._node = node
        self.path = path

    def size(self) -> int:
        return self._node.size

    def read(self, position: int, size: int) -> bytes:
        return self._node.read(position, size)

    def read_into(self, position: int, buffer: memoryview) -> int:
        node = self._node
        if node.kept is None and node.disk is not None:
            return node.disk.read_into(position, buffer)
        data = node.read(position, len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def write(self, position: int, data: Buffer) -> None:
        self._overlay.check_room(len(data))
        self._node.write(position, data)

    def map(self) -> Buffer:
        """Return the whole content. The zeros at the end of an index can be megabytes, so only their start is read."""
        while True:
            size = self.size()
            content = self._read_all(size)
            if self.size() == size and len(content) == size:
                return content
            # The file was truncated or allocated meanwhile: read it again.

    def _read_all(self, size: int) -> memoryview:
        """Return the content, or nothing if the file is truncated meanwhile."""
        content = zeros(size)
        may_end_in_zeros = self.path.endswith(_INDEXES)
        for position in range(0, size, _READ_CHUNK):
            wanted = min(_READ_CHUNK, size - position)
            chunk = self.read(position, wanted)
            if len(chunk) < wanted:
                return memoryview(b"")
            content[position : position + wanted] = chunk
            if may_end_in_zeros and not any(chunk):
                break
        return content

    def allocate(self, size: int) -> None:
        if size > self.size():
            self._overlay.check_room(size - self.size())
            self._node.truncate(size)

    def truncate(self, size: int) -> None:
        self._overlay.check_room(size - self.size())
        self._node.truncate(size)

    def sync(self) -> None:
        pass

    def fileno(self) -> int:
        if self._node.disk is None or self._node.is_changed:
            raise OSError(errno.EBADF, "is only in memory", self.path)
        return self._node.disk.fileno()

    def release(self) -> None:
        if self._node.disk is not None:
            self._node.disk.release()

    close = release


class OverlayFiles:
    def __init__(self, disk: Files, *, without: Iterable[str] = (), max_memory: int = MAX_MEMORY) -> None:
        self._disk = disk
        self._without = tuple(without)
        self._max_memory = max_memory
        self._nodes: dict[str, _Node] = {}
        self._gone: set[str] = set(self._without)  # paths that exist on the disk but are removed here
        self._directories: set[str] = set()
        self._listings: dict[str, dict[str, Entry]] = {}

    def fresh(self) -> OverlayFiles:
        """Return another overlay over the same disk, without any writes."""
        return OverlayFiles(self._disk, without=self._without, max_memory=self._max_memory)

    def check_room(self, more: int) -> None:
        if more > 0 and sum(len(node.tail) for node in self._nodes.values()) + more > self._max_memory:
            raise OSError(errno.EFBIG, f"the changes exceed the limit of {self._max_memory} bytes in memory")

    def _node(self, path: str) -> _Node:
        node = self._nodes.get(path)
        if node is None:
            if not self.exists(path):
                raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
            node = self._nodes[path] = _Node(self._disk.open(path, read_only=True))
        return node

    def _new_node(self, path: str) -> _Node:
        node = self._nodes[path] = _Node(None, is_counted_only=path.endswith(COUNTED_ONLY))
        return node

    # Files

    def open(self, path: str, *, create: bool = False, read_only: bool = False) -> OverlayFile:
        if create and not self.exists(path):
            return OverlayFile(self, path, self._new_node(path))
        return OverlayFile(self, path, self._node(path))

    def entries(self, path: str) -> list[Entry]:
        found: dict[str, Entry] = {}
        if path not in self._gone and (path not in self._directories or self._disk.exists(path)):
            found |= self._listing(path)
        for gone in self._gone:
            if gone.rpartition("/")[0] == path:
                found.pop(gone.rpartition("/")[2], None)
        for added, is_directory in [*((p, False) for p in self._nodes), *((p, True) for p in self._directories)]:
            parent, _, name = added.rpartition("/")
            if parent == path:
                found[name] = Entry(name, is_directory)
        return list(found.values())

    def _listing(self, path: str) -> dict[str, Entry]:
        if path not in self._listings:
            self._listings[path] = {entry.name: entry for entry in self._disk.entries(path)}
        return self._listings[path]

    def exists(self, path: str) -> bool:
        if path in self._nodes or path in self._directories:
            return True
        if path in self._gone:
            return False
        parent, _, name = path.rpartition("/")
        return name in self._listings.get(parent, ()) or self._disk.exists(path)

    def size(self, path: str) -> int:
        node = self._nodes.get(path)
        if node is None or not node.is_changed:
            self._check_there(path)
            if node is None:
                return self._disk.size(path)
        return node.size

    def _check_there(self, path: str) -> None:
        if path in self._gone and path not in self._nodes:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)

    def modified_ms(self, path: str) -> int:
        node = self._nodes.get(path)
        if node is not None and node.modified_ms is not None:
            return node.modified_ms
        if node is not None:
            return self._disk.modified_ms(node.disk.path) if node.disk is not None else 0
        self._check_there(path)
        return self._disk.modified_ms(path)

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        self._node(path).modified_ms = modified_ms

    def read(self, path: str) -> bytes:
        node = self._nodes.get(path)
        if node is None:
            self._check_there(path)
            return self._disk.read(path)
        return node.read(0, node.size)

    def write(self, path: str, data: Buffer, *, sync: bool) -> None:
        self.check_room(len(data))
        self._new_node(path).write(0, data)

    def replace(self, source: str, target: str) -> None:
        if self._is_directory(source):
            self.make_directory(target)
            for entry in self.entries(source):
                self.replace(join(source, entry.name), join(target, entry.name))
            self._forget_directory(source)
            return
        self._nodes[target] = self._node(source)
        del self._nodes[source]
        self._gone.add(source)
        self._gone.discard(target)

    def _is_directory(self, path: str) -> bool:
        if path in self._nodes:
            return False
        parent, _, name = path.rpartition("/")
        return any(entry.name == name and entry.is_directory for entry in self.entries(parent or "."))

    def _forget_directory(self, path: str) -> None:
        self._directories.discard(path)
        self._gone.add(path)

    def remove(self, path: str) -> bool:
        was_there = self.exists(path)
        self._nodes.pop(path, None)
        self._gone.add(path)
        return was_there

    def make_directory(self, path: str) -> None:
        if not self.exists(path):
            self._gone.discard(path)
            self._directories.add(path)

    def remove_directory(self, path: str) -> None:
        for entry in self.entries(path):
            if entry.is_directory:
                self.remove_directory(join(path, entry.name))
            else:
                self.remove(join(path, entry.name))
        self._forget_directory(path)

    def sync_directory(self, path: str) -> None:
        pass

    def space(self, path: str) -> Space:
        return self._disk.space(path)

    def lock(self, path: str) -> OverlayFile:
        """Return the file without a lock, because reading excludes nobody."""
        return self.open(path, create=True)

    # Differences

    def changes(self) -> list[Change]:
        """Return how the disk would differ if all operations had been done there, ordered by path."""
        found = []
        for path, node in self._nodes.items():
            origin = node.disk.path if node.disk is not None else None
            before = self._disk.size(path) if self._disk.exists(path) else -1
            if origin is not None and origin != path:
                found.append(Change(path, "renamed", before, node.size, origin))
            elif before < 0:
                found.append(Change(path, "created", before, node.size))
            elif node.is_changed and (found_change := self._content_change(path, node, before)):
                found.append(found_change)
        sources = {change.renamed_from for change in found}
        found += [
            Change(path, "removed", self._disk.size(path), -1)
            for path in self._gone
            if path not in self._nodes and path not in sources and self._disk.exists(path)
        ]
        return sorted(found)

    def _content_change(self, path: str, node: _Node, before: int) -> Change | None:
        if node.disk is not None and not node.tail:
            return Change(path, "cut", before, node.size) if node.size < before else None
        if node.size == before and self._disk.read(path) == node.read(0, node.size):
            return None
        return Change(path, "rewritten", before, node.size)
