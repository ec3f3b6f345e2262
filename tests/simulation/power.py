"""PoweredFiles: in-memory files of a machine whose power may fail. A power failure loses the unsynced end of each file.

Each file may lose a different part: the end of one write, or whole writes, which no checksum can detect. File names are
kept: `tests/crash` tests crashes between file operations, for one log and every state.
"""

from __future__ import annotations

from random import Random

from tests.support.memory_files import FileNode, FolderNode, MemoryFiles


class PoweredFiles(MemoryFiles):
    def __init__(self) -> None:
        super().__init__()
        self._synced: dict[int, int] = {}  # node → number of bytes that are surely durable
        self._ends: dict[int, list[int]] = {}  # node → ends of the writes that are not yet durable

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
        """Drop unsynced bytes. Return how many were lost."""
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
