"""MergedParts: collects the parts of one response, which arrive one by one from different coordinators."""

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
        """Return the function that receives a part."""

        def take(part: P, now_ms: int) -> None:
            assert index not in self._parts, f"part {index} was already received"
            self._parts[index] = part
            if len(self._parts) == self._count:
                self._finish(now_ms)

        return take

    def begin(self, now_ms: int) -> None:
        """Respond at once if there are no parts. Called after all parts were requested."""
        if self._count == 0:
            self._finish(now_ms)

    def _finish(self, now_ms: int) -> None:
        self._answer([self._parts[index] for index in range(self._count)], now_ms)
