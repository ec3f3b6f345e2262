"""Folds the empty partitions of internal topics into one line: a broker has over a hundred of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from tailrace.cli.output import count_text
from tailrace.log.directories.data_directory import PartitionFolder

_INTERNAL_TOPICS = ("__consumer_offsets", "__transaction_state", "__share_group_state")


T = TypeVar("T")


def fold_empty(
    partitions: Sequence[T], folder_of: Callable[[T], PartitionFolder], is_empty: Callable[[T], bool]
) -> tuple[list[T], list[str]]:
    """Return the partitions to list, and the line that stands for the others. A single one is always listed."""
    listed: list[T] = []
    folded: list[T] = []
    for one in partitions:
        folder = folder_of(one)
        is_folded = folder.partition.topic in _INTERNAL_TOPICS and not folder.mark and is_empty(one)
        (folded if is_folded else listed).append(one)
    if len(folded) < 2:
        return list(partitions), []
    topics = sorted({folder_of(one).partition.topic for one in folded})
    names = f"{', '.join(topics[:-1])} and {topics[-1]}" if len(topics) > 1 else topics[0]
    return listed, [f"and {count_text(len(folded), 'empty partition')} of {names} (--topic lists them)"]
