"""RecordingFiles: MemoryFiles that records every change and every sync, so that a crash at any point can be replayed.

An operation names files and folders by their node, not by their path: written bytes stay written when the file is
renamed, and a synced name does not mean that its bytes are synced. Everything that exists when recording starts counts
as durable.
"""

from __future__ import annotations

from typing import NamedTuple

from tests.support.memory_files import FileNode, FolderNode, MemoryFiles, Node


class Write(NamedTuple):
    node: int
    position: int
    data: bytes

    def describe(self, names: dict[int, str]) -> str:
        return f"write {names[self.node]} [{self.position}, {self.position + len(self.data)})"


class Truncate(NamedTuple):
    """A new size; a file that grows gets zeros past its old end."""

    node: int
    size: int

    def describe(self, names: dict[int, str]) -> str:
        return f"truncate {names[self.node]} to {self.size}"


class Sync(NamedTuple):
    node: int

    def describe(self, names: dict[int, str]) -> str:
        return f"sync {names[self.node]}"


class Link(NamedTuple):
    """The first name of a new file or folder."""

    folder: int
    name: str
    node: int
    is_folder: bool

    def describe(self, names: dict[int, str]) -> str:
        return f"create {names[self.folder]}/{self.name}"


class Unlink(NamedTuple):
    folder: int
    name: str

    def describe(self, names: dict[int, str]) -> str:
        return f"remove {names[self.folder]}/{self.name}"


class Rename(NamedTuple):
    folder: int
    source: str
    target: str
    node: int

    def describe(self, names: dict[int, str]) -> str:
        return f"rename {names[self.folder]}/{self.source} → {self.target}"


class SyncFolder(NamedTuple):
    folder: int

    def describe(self, names: dict[int, str]) -> str:
        return f"sync folder {names[self.folder]}"


DataOperation = Write | Truncate
NameOperation = Link | Unlink | Rename
Operation = DataOperation | NameOperation | Sync | SyncFolder


class Image(NamedTuple):
    """Files and folders by node: bytes, and names."""

    root: int
    contents: dict[int, bytes]
    folders: dict[int, dict[str, int]]


class RecordingFiles(MemoryFiles):
    """`trace` has the operations since the start of recording, `base` the state before."""

    def __init__(self, root: FolderNode | None = None) -> None:
        super().__init__(root)
        self.trace: list[Operation] = []
        self.names: dict[int, str] = {self.root.number: ""}  # the last name of each node, for messages
        self.base = Image(self.root.number, {}, {})
        self._take(self.root)

    def _take(self, node: Node) -> None:
        if isinstance(node, FileNode):
            self.base.contents[node.number] = bytes(node.data)
            return
        self.base.folders[node.number] = {name: child.number for name, child in node.entries.items()}
        for name, child in node.entries.items():
            self.names[child.number] = name
            self._take(child)

    def _write(self, node: FileNode, position: int, data: bytes) -> None:
        super()._write(node, position, data)
        self.trace.append(Write(node.number, position, data))

    def _truncate(self, node: FileNode, size: int) -> None:
        if size != len(node.data):
            self.trace.append(Truncate(node.number, size))
        super()._truncate(node, size)

    def _sync(self, node: FileNode) -> None:
        self.trace.append(Sync(node.number))

    def _link(self, folder: FolderNode, name: str, node: Node) -> None:
        super()._link(folder, name, node)
        self.names[node.number] = name
        self.trace.append(Link(folder.number, name, node.number, isinstance(node, FolderNode)))

    def _unlink(self, folder: FolderNode, name: str) -> None:
        super()._unlink(folder, name)
        self.trace.append(Unlink(folder.number, name))

    def _rename(self, source: FolderNode, source_name: str, target: FolderNode, target_name: str) -> None:
        assert source is target, "moving between folders is not modelled: the log does not do it"
        node = source.entries[source_name]
        super()._rename(source, source_name, target, target_name)
        self.names[node.number] = target_name
        self.trace.append(Rename(source.number, source_name, target_name, node.number))

    def _sync_folder(self, folder: FolderNode) -> None:
        self.trace.append(SyncFolder(folder.number))
