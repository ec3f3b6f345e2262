"""TreeTarget: what the targets share whose inputs are directories. Each input starts from nothing."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.fuzz.limits import limited
from tests.fuzz.trees import mutate_tree, pack_tree, tree_pieces, unpack_tree
from tests.support.memory_files import MemoryFiles, memory_files

ROOT = "/data"


class TreeTarget:
    def __init__(self, trees: Sequence[dict[str, bytes]]) -> None:
        self._seeds = [pack_tree(tree) for tree in trees]
        self.history: list[bytes] = []

    def seeds(self) -> list[bytes]:
        return self._seeds

    def mutate(self, data: bytes, dice: random.Random) -> bytes:
        return mutate_tree(data, dice, self._seeds)

    def pieces(self, data: bytes) -> list[bytes]:
        return tree_pieces(data)

    def renew(self) -> None:
        self.history.clear()

    def replay(self, inputs: Sequence[bytes]) -> None:
        for data in inputs:
            self.run(data)

    def run(self, data: bytes) -> None:
        self.history[:] = [data]
        with limited():
            self.open(memory_files(unpack_tree(data), ROOT))

    def open(self, files: MemoryFiles) -> None:
        """Open the directory at ROOT and look whether it is as it must be; the target's own."""
        raise NotImplementedError
