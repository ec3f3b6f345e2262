"""Packs small pieces of work into tasks of similar size; large pieces become tasks of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

Piece = TypeVar("Piece")


def pack(pieces: Iterable[Piece], size_of: Callable[[Piece], int], task_bytes: int) -> list[list[Piece]]:
    """Pack the pieces in order into tasks of at most `task_bytes`. A larger piece is a task of its own."""
    tasks: list[list[Piece]] = []
    filled = 0
    for piece in pieces:
        size = size_of(piece)
        if not tasks or filled + size > task_bytes:
            tasks.append([])
            filled = 0
        tasks[-1].append(piece)
        filled += size
    return tasks
