"""Chooses the small files of a table that are worth a merge.

A file is small below half of the target size. In each partition of the table:

    the small files together fill half of a file      → merge them into files of the target size
    ENOUGH_FILES of them, and larger ones as long as  → merge these into one small file
    each is at most as large as all smaller ones

So each merge at least doubles a small file, or gives a large one, and a row is rewritten a limited number of times:
about log2 of the target size divided by the size of a round. A partition keeps a few small files of different sizes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, NamedTuple

SMALL = 0.5  # of the target size
ENOUGH_FILES = 8  # with this number of files, a merge below the target size is worthwhile


class SmallFile(NamedTuple):
    handle: Any  # how the table names the file
    size: int
    partition: str  # equal for files of the same partition
    first_offset: int


def plan_merges(files: Iterable[SmallFile], target_bytes: int) -> list[list[SmallFile]]:
    """Return groups of small files of the same partition, each ordered by offset. A group becomes one file."""
    small = [file for file in files if file.size < SMALL * target_bytes]
    small.sort(key=_by_offset)
    merges: list[list[SmallFile]] = []
    for _, found in groupby(small, lambda file: file.partition):
        group = list(found)
        if _size(group) >= SMALL * target_bytes:
            merges += _large_files(group, target_bytes)
        elif len(group) >= ENOUGH_FILES:
            merges.append(sorted(_similar_files(group), key=_by_offset))
    return [group for group in merges if len(group) > 1]


def _large_files(files: Iterable[SmallFile], target_bytes: int) -> list[list[SmallFile]]:
    """Divide files, in their order, into groups of about the target size. A rest below half of it is left out."""
    groups: list[list[SmallFile]] = [[]]
    for file in files:
        if _size(groups[-1]) >= target_bytes:
            groups.append([])
        groups[-1].append(file)
    return [group for group in groups if _size(group) >= SMALL * target_bytes]


def _similar_files(files: Iterable[SmallFile]) -> list[SmallFile]:
    """Return the smallest files, and the next larger ones as long as these at least double the result."""
    group: list[SmallFile] = []
    for file in sorted(files, key=lambda file: file.size):
        if len(group) >= ENOUGH_FILES and file.size > _size(group):
            break
        group.append(file)
    return group


def _by_offset(file: SmallFile) -> tuple[str, int]:
    return file.partition, file.first_offset


def _size(files: Sequence[SmallFile]) -> int:
    return sum(file.size for file in files)
