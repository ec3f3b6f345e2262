"""A stream never exceeds its limit per batch, and reads everything in the end."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.model.ids import TopicPartition
from tailrace.spark.source.planning.admission import admitted, should_wait

P = [TopicPartition("t", number) for number in range(4)]


def test_all_offsets_are_admitted_below_the_maximum() -> None:
    assert admitted({P[0]: 5}, {P[0]: 9}, 4) == {P[0]: 9}


def test_admitted_shares_are_proportional_to_unread_offsets() -> None:
    assert admitted({P[0]: 0, P[1]: 0}, {P[0]: 300, P[1]: 100}, 40) == {P[0]: 30, P[1]: 10}


def test_a_partition_with_few_unread_offsets_gets_at_least_one() -> None:
    assert admitted({P[0]: 0, P[1]: 0}, {P[0]: 1_000_000, P[1]: 1}, 10) == {P[0]: 9, P[1]: 1}


def test_a_new_partition_starts_at_its_beginning() -> None:
    assert admitted({P[0]: 50}, {P[0]: 100, P[1]: 50}, 10) == {P[0]: 55, P[1]: 5}


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 500)), min_size=1, max_size=4), st.integers(1, 60))
def test_repeated_admission_reaches_the_end(sizes: list[tuple[int, int]], limit: int) -> None:
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


def test_a_small_batch_waits_until_the_maximum_delay() -> None:
    assert should_wait({P[0]: 0}, {P[0]: 5}, 10, waited_ms=100, max_delay_ms=1000)
    assert not should_wait({P[0]: 0}, {P[0]: 5}, 10, waited_ms=1000, max_delay_ms=1000)
    assert not should_wait({P[0]: 0}, {P[0]: 10}, 10, waited_ms=100, max_delay_ms=1000)
