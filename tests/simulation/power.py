"""PoweredFiles: files in memory of a machine whose power may fail; then the end of what was not synced is gone.

Any part of it may be lost, in each file another one. Names are kept: what a crash does to those is tried in
`tests/crash`, for one log and every state.
"""

from __future__ import annotations

from random import Random

from tests.support.memory_files import FileNode, FolderNode, MemoryFiles


class PoweredFiles(MemoryFiles):
    def __init__(self) -> None:
        super().__init__()
        self._synced: dict[int, int] = {}  # how much of a file is durable for sure

    def _sync(self, node: FileNode) -> None:
        self._synced[node.number] = len(node.data)

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
            kept = random.randint(min(self._synced.get(node.number, 0), size), size)
            del node.data[kept:]
            lost += size - kept
        return lost
