"""PoweredFiles: files in memory of a machine whose power may fail; then the end of what was not synced is gone.

Any part of it may be lost, in each file another one: in the midst of a write, or whole writes, which no checksum tells.
Names are kept: what a crash does to those is tried in `tests/crash`, for one log and every state.
"""

from __future__ import annotations

from random import Random

from tests.support.memory_files import FileNode, FolderNode, MemoryFiles


class PoweredFiles(MemoryFiles):
    def __init__(self) -> None:
        super().__init__()
        self._synced: dict[int, int] = {}  # how much of a file is durable for sure
        self._ends: dict[int, list[int]] = {}  # where the writes ended that are not

    def _write(self, node: FileNode, position: int, data: bytes) -> None:
        super()._write(node, position, data)
        self._ends.setdefault(node.number, []).append(position + len(data))

    def _sync(self, node: FileNode) -> None:
        self._synced[node.number] = len(node.data)
        self._ends.pop(node.number, None)

    def _truncate(self, node: FileNode, size: int) -> None:
        super()._truncate(node, size)
        if size < self._synced.get(node.number, 0):
            self._synced[node.number] = size

    def lose_power(self, random: Random) -> int:
        """How many bytes were lost."""
        return self._lose(self.root, random)

    def _lose(self, folder: FolderNode, random: Random) -> int:
        lost = 0
        for node in folder.entries.values():
            if isinstance(node, FolderNode):
                lost += self._lose(node, random)
                continue
            size = len(node.data)
            synced = min(self._synced.get(node.number, 0), size)
            ends = [end for end in self._ends.pop(node.number, ()) if synced <= end <= size]
            kept = random.choice(ends) if ends and random.random() < 0.5 else random.randint(synced, size)
            del node.data[kept:]
            lost += size - kept
        return lost
