"""MemoryFiles: the file system of `log/disk/files.py` in memory.

For the log it behaves like `DiskFiles`: a file is opened on first use, an open file survives a rename or removal, a
released file is found again by its path, errors are those of the operating system. `modified_ms` is `now_ms`, which
does not advance unless a test moves it.

Every change goes through one of the `_…` methods at the end of `MemoryFiles`; `RecordingFiles` records them there.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from itertools import count
from typing import TypeVar

from tailrace.log.disk.files import Entry, Space
from tailrace.records.batch import Buffer

Result = TypeVar("Result")
_numbers = count()
SPACE = Space(total=1 << 40, usable=1 << 39)


class FileNode:
    """A file's bytes, independent of its name."""

    __slots__ = ("data", "modified_ms", "number")

    def __init__(self, data: bytes = b"", modified_ms: int = 0) -> None:
        self.number = next(_numbers)
        self.data = bytearray(data)
        self.modified_ms = modified_ms


class FolderNode:
    __slots__ = ("entries", "number")

    def __init__(self) -> None:
        self.number = next(_numbers)
        self.entries: dict[str, FileNode | FolderNode] = {}


Node = FileNode | FolderNode


def _error(code: int, path: str) -> OSError:
    return OSError(code, os.strerror(code), path)


class MemoryFile:
    """A file opened by its path on first use, like `DiskFile`."""

    def __init__(self, files: MemoryFiles, path: str, *, read_only: bool) -> None:
        self.path = path
        self._files = files
        self._read_only = read_only
        self._node: FileNode | None = None

    @property
    def node(self) -> FileNode:
        if self._node is None:
            self._node = self._files._file_node(self.path)
            self._files.open_count += 1
        return self._node

    def _writable(self) -> FileNode:
        if self._read_only:
            raise _error(errno.EBADF, self.path)
        return self.node

    def fileno(self) -> int:
        raise _error(errno.EBADF, self.path)

    def size(self) -> int:
        return len(self.node.data)

    def read(self, position: int, size: int) -> bytes:
        return bytes(memoryview(self.node.data)[position : position + size])

    def read_into(self, position: int, buffer: memoryview) -> int:
        data = self.read(position, len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def write(self, position: int, data: Buffer) -> None:
        self._files._write(self._writable(), position, bytes(data))

    def map(self) -> Buffer:
        return memoryview(bytes(self.node.data))

    def allocate(self, size: int) -> None:
        node = self._writable()
        if size > len(node.data):
            self._files._truncate(node, size)

    def truncate(self, size: int) -> None:
        self._files._truncate(self._writable(), size)

    def sync(self) -> None:
        self._files._sync(self.node)

    def release(self) -> None:
        if self._node is not None:
            self._node = None
            self._files.open_count -= 1

    def close(self) -> None:
        self.release()


class _HeldLock(MemoryFile):
    def close(self) -> None:
        self._files.locked.discard(self.path)
        super().close()


class MemoryFiles:
    file_class: type[MemoryFile] = MemoryFile

    def __init__(self, root: FolderNode | None = None) -> None:
        self.root = root or FolderNode()
        self.now_ms = 0
        self.open_count = 0
        self.locked: set[str] = set()

    # Paths

    def _find(self, path: str) -> Node | None:
        node: Node | None = self.root
        for part in path.split("/"):
            if part:
                if not isinstance(node, FolderNode):
                    return None
                node = node.entries.get(part)
        return node

    def _file_node(self, path: str) -> FileNode:
        node = self._find(path)
        if node is None:
            raise _error(errno.ENOENT, path)
        if not isinstance(node, FileNode):
            raise _error(errno.EISDIR, path)
        return node

    def _folder_node(self, path: str) -> FolderNode:
        node = self._find(path)
        if node is None:
            raise _error(errno.ENOENT, path)
        if not isinstance(node, FolderNode):
            raise _error(errno.ENOTDIR, path)
        return node

    def _parent(self, path: str) -> tuple[FolderNode, str]:
        folder, _, name = path.rstrip("/").rpartition("/")
        return self._folder_node(folder), name

    def _file_node_or_new(self, path: str) -> FileNode:
        folder, name = self._parent(path)
        if name not in folder.entries:
            self._link(folder, name, FileNode(modified_ms=self.now_ms))
        return self._file_node(path)

    # The interface that the log uses

    def open(self, path: str, *, create: bool = False, read_only: bool = False) -> MemoryFile:
        file = self.file_class(self, path, read_only=read_only)
        if create:
            self._file_node_or_new(path)
            _ = file.node
        return file

    def entries(self, path: str) -> list[Entry]:
        return [Entry(name, isinstance(node, FolderNode)) for name, node in self._folder_node(path).entries.items()]

    def exists(self, path: str) -> bool:
        return self._find(path) is not None

    def size(self, path: str) -> int:
        return len(self._file_node(path).data)

    def modified_ms(self, path: str) -> int:
        return self._file_node(path).modified_ms

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        self._file_node(path).modified_ms = modified_ms

    def read(self, path: str) -> bytes:
        return bytes(self._file_node(path).data)

    def write(self, path: str, data: Buffer, *, sync: bool) -> None:
        node = self._file_node_or_new(path)
        if node.data:
            self._truncate(node, 0)
        self._write(node, 0, bytes(data))
        if sync:
            self._sync(node)

    def replace(self, source: str, target: str) -> None:
        node = self._find(source)
        if node is None:
            raise _error(errno.ENOENT, source)
        there = self._find(target)
        if isinstance(there, FolderNode) and (there.entries or isinstance(node, FileNode)):
            raise _error(errno.ENOTEMPTY, target)
        self._rename(*self._parent(source), *self._parent(target))

    def remove(self, path: str) -> bool:
        if not isinstance(self._find(path), FileNode):
            return False
        self._unlink(*self._parent(path))
        return True

    def make_directory(self, path: str) -> None:
        done = ""
        for part in path.strip("/").split("/"):
            done += "/" + part
            if self._find(done) is None:
                self._link(*self._parent(done), FolderNode())
            self._folder_node(done)

    def remove_directory(self, path: str) -> None:
        folder = self._folder_node(path)
        for name in list(folder.entries):
            self._unlink(folder, name)
        self._unlink(*self._parent(path))

    def sync_directory(self, path: str) -> None:
        self._sync_folder(self._folder_node(path))

    def space(self, path: str) -> Space:
        self._folder_node(path)
        return SPACE

    def lock(self, path: str) -> MemoryFile:
        self._file_node_or_new(path)
        if path in self.locked:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN), path)
        self.locked.add(path)
        return _HeldLock(self, path, read_only=False)

    # For tests

    def tree(self, path: str = "") -> dict[str, bytes]:
        """Return every file below a folder with its bytes, by relative path; an empty folder is a name with a slash."""
        return flatten(self._folder_node(path), lambda node: bytes(node.data))

    # Every change

    def _write(self, node: FileNode, position: int, data: bytes) -> None:
        write_bytes(node.data, position, data)
        node.modified_ms = self.now_ms

    def _truncate(self, node: FileNode, size: int) -> None:
        resize(node.data, size)
        node.modified_ms = self.now_ms

    def _sync(self, node: FileNode) -> None:
        pass

    def _link(self, folder: FolderNode, name: str, node: Node) -> None:
        folder.entries[name] = node

    def _unlink(self, folder: FolderNode, name: str) -> None:
        del folder.entries[name]

    def _rename(self, source: FolderNode, source_name: str, target: FolderNode, target_name: str) -> None:
        target.entries[target_name] = source.entries.pop(source_name)

    def _sync_folder(self, folder: FolderNode) -> None:
        pass


def write_bytes(content: bytearray, position: int, data: bytes) -> None:
    if position > len(content) and data:
        content += bytes(position - len(content))
    content[position : position + len(data)] = data


def resize(content: bytearray, size: int) -> None:
    if size < len(content):
        del content[size:]
    else:
        content += bytes(size - len(content))


def flatten(folder: FolderNode, of: Callable[[FileNode], Result], prefix: str = "") -> dict[str, Result | bytes]:
    found: dict[str, Result | bytes] = {}
    for name, node in sorted(folder.entries.items()):
        if isinstance(node, FileNode):
            found[prefix + name] = of(node)
        elif node.entries:
            found.update(flatten(node, of, f"{prefix}{name}/"))
        else:
            found[f"{prefix}{name}/"] = b""
    return found


def memory_files(tree: dict[str, bytes], root: str = "") -> MemoryFiles:
    """Return a file system with the files that `MemoryFiles.tree` returned."""
    files = MemoryFiles()
    if root:
        files.make_directory(root)
    for name, data in tree.items():
        path = f"{root}/{name}"
        if name.endswith("/"):
            files.make_directory(path)
        else:
            files.make_directory(path.rpartition("/")[0] or "/")
            files.write(path, data, sync=True)
    return files
