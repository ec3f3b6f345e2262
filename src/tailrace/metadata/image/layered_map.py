"""LayeredMap: a large mapping that is never changed, and one like it made at the price of what differs.

It is a dict that it shares with its predecessors, under a small one of what has changed since. When the small one has
grown to about the square root of the large one both are folded into a new dict, so that a change of one key among n
costs √n copied entries and not n. Mappings of few entries are plain dicts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, TypeVar

K = TypeVar("K")
V = TypeVar("V")

FEW: Final = 2_048  # to copy that many entries takes no longer than anything else that a change asks for


class LayeredMap(Mapping[K, V]):
    __slots__ = ("_base", "_changes", "_size")

    def __init__(self, base: dict[K, V], changes: dict[K, V | None]) -> None:
        """`changes` says what is there now instead; None: nothing."""
        self._base = base
        self._changes = changes
        self._size = len(base)
        for key, value in changes.items():
            self._size += (value is not None) - (key in base)

    def __getitem__(self, key: K) -> V:
        if key in self._changes:
            value = self._changes[key]
            if value is None:
                raise KeyError(key)
            return value
        return self._base[key]

    def __contains__(self, key: object) -> bool:
        return self._changes[key] is not None if key in self._changes else key in self._base

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[K]:
        """In the order in which keys came."""
        changes = self._changes
        for key in self._base:
            if changes.get(key, key) is not None:
                yield key
        for key, value in changes.items():
            if value is not None and key not in self._base:
                yield key

    def changed(self, changes: Mapping[K, V | None]) -> Mapping[K, V]:
        return _layered(self._base, {**self._changes, **changes})


def changed(before: Mapping[K, V], changes: Mapping[K, V | None]) -> Mapping[K, V]:
    """The mapping with other values for some keys, and without those whose value is None."""
    if not changes:
        return before
    if isinstance(before, LayeredMap):
        return before.changed(changes)
    assert isinstance(before, dict)
    return _layered(before, dict(changes))


def _layered(base: dict[K, V], changes: dict[K, V | None]) -> Mapping[K, V]:
    if len(base) > FEW and len(changes) ** 2 < 4 * len(base):
        return LayeredMap(base, changes)
    folded = dict(base)
    for key, value in changes.items():
        if value is None:
            folded.pop(key, None)
        else:
            folded[key] = value
    return folded
