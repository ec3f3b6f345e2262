"""A merge runs beside the rounds of a follower, one at a time, and its error reaches the follower."""

from __future__ import annotations

from threading import Event

import pytest

from tailrace.spark.tables.background_merge import BackgroundMerge
from tailrace.spark.tables.formats.table import Merged


def test_a_second_merge_starts_only_after_the_first_has_ended() -> None:
    go_on, started = Event(), []

    def merge() -> Merged:
        started.append(1)
        go_on.wait(60)
        return Merged(8, 1)

    merging = BackgroundMerge(merge)
    merging.start()
    merging.start()
    assert merging.merged == Merged()
    go_on.set()
    merging.wait()
    assert (len(started), merging.merged) == (1, Merged(8, 1))
    merging.start()
    merging.wait()
    assert (len(started), merging.merged) == (2, Merged(16, 2))


def test_the_error_of_a_merge_is_raised_once_by_the_next_call() -> None:
    def merge() -> Merged:
        raise ValueError("no space")

    merging = BackgroundMerge(merge)
    merging.start()
    with pytest.raises(ValueError, match="no space"):
        merging.wait()
    merging.wait()
