"""Packing: small pieces of work together into tasks of about the same size, large ones alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

Piece = TypeVar("Piece")


def pack(pieces: Iterable[Piece], size_of: Callable[[Piece], int], task_bytes: int) -> list[list[Piece]]:
    """The pieces in their order, cut where a task would pass `task_bytes`; a larger piece is a task of its own."""
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
