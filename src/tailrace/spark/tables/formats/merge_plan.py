"""Chooses the small files of a table that are worth a merge."""

from __future__ import annotations

from collections.abc import Iterable
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
    """Return groups of small files of the same partition, each of about the target size, ordered by offset.

    A merge is worthwhile if it gives a file of at least half of the target size, or joins ENOUGH_FILES. So the rows of
    a file are rewritten a limited number of times.
    """
    small = [file for file in files if file.size < SMALL * target_bytes]
    small.sort(key=lambda file: (file.partition, file.first_offset))
    merges: list[list[SmallFile]] = []
    for _, found in groupby(small, lambda file: file.partition):
        group: list[SmallFile] = []
        for file in found:
            group.append(file)
            if sum(one.size for one in group) >= target_bytes:
                merges.append(group)
                group = []
        is_half_full = sum(one.size for one in group) >= SMALL * target_bytes
        if len(group) >= ENOUGH_FILES or (len(group) > 1 and is_half_full):
            merges.append(group)
    return merges
