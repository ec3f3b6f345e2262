"""A stream takes no more than it may and gets everything in the end."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.model.ids import TopicPartition
from tailrace.spark.source.planning.admission import admitted, is_too_little

P = [TopicPartition("t", number) for number in range(4)]


def test_what_fits_is_taken_whole() -> None:
    assert admitted({P[0]: 5}, {P[0]: 9}, 4) == {P[0]: 9}


def test_shares_are_by_what_waits() -> None:
    assert admitted({P[0]: 0, P[1]: 0}, {P[0]: 300, P[1]: 100}, 40) == {P[0]: 30, P[1]: 10}


def test_a_partition_with_little_waiting_is_not_starved() -> None:
    assert admitted({P[0]: 0, P[1]: 0}, {P[0]: 1_000_000, P[1]: 1}, 10) == {P[0]: 9, P[1]: 1}


def test_a_new_partition_starts_at_its_beginning() -> None:
    assert admitted({P[0]: 50}, {P[0]: 100, P[1]: 50}, 10) == {P[0]: 55, P[1]: 5}


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 500)), min_size=1, max_size=4), st.integers(1, 60))
def test_every_stream_ends(sizes: list[tuple[int, int]], limit: int) -> None:
    starts = {P[number]: start for number, (start, _) in enumerate(sizes)}
    latest = {P[number]: start + more for number, (start, more) in enumerate(sizes)}
    for _ in range(2_500):
        ends = admitted(starts, latest, limit)
        taken = sum(ends[one] - starts[one] for one in ends)
        assert taken <= limit + len(sizes)
        assert all(starts[one] <= ends[one] <= latest[one] for one in ends)
        if ends == starts:
            break
        starts = ends
    assert starts == latest


def test_little_is_waited_for_but_not_for_ever() -> None:
    assert is_too_little({P[0]: 0}, {P[0]: 5}, 10, waited_ms=100, max_delay_ms=1000)
    assert not is_too_little({P[0]: 0}, {P[0]: 5}, 10, waited_ms=1000, max_delay_ms=1000)
    assert not is_too_little({P[0]: 0}, {P[0]: 10}, 10, waited_ms=100, max_delay_ms=1000)
