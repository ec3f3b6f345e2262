"""LayeredMap: a large immutable mapping, whose changed copies cost only as much as the changes.

It shares a large dict with its predecessors, under a small dict of the changes since. When the small dict has grown to
about the square root of the large one, both are merged into a new dict. So a change of one key among n costs √n copied
entries, not n. Mappings with few entries are plain dicts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, TypeVar

K = TypeVar("K")
V = TypeVar("V")

FEW: Final = 2_048  # copying this number of entries takes no longer than the rest of a change


class LayeredMap(Mapping[K, V]):
    __slots__ = ("_base", "_changes", "_size")

    def __init__(self, base: dict[K, V], changes: dict[K, V | None]) -> None:
        """`changes` has the new values of changed keys, and None for removed ones."""
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
        """Iterate in insertion order."""
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
    """Return the mapping with changed values for some keys, and without the keys whose new value is None."""
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
