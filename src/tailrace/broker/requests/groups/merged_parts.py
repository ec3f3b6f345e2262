"""MergedParts: an answer put together of parts that come one by one, each from a coordinator of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

P = TypeVar("P")


class MergedParts(Generic[P]):
    def __init__(self, count: int, answer: Callable[[list[P], int], None]) -> None:
        self._parts: dict[int, P] = {}
        self._count = count
        self._answer = answer

    def part(self, index: int) -> Callable[[P, int], None]:
        """What takes a part."""

        def take(part: P, now_ms: int) -> None:
            assert index not in self._parts, f"part {index} is there already"
            self._parts[index] = part
            if len(self._parts) == self._count:
                self._finish(now_ms)

        return take

    def begin(self, now_ms: int) -> None:
        """Whoever has nothing to wait for is answered as well."""
        if self._count == 0:
            self._finish(now_ms)

    def _finish(self, now_ms: int) -> None:
        self._answer([self._parts[index] for index in range(self._count)], now_ms)
