"""Conditions narrow the read, and never leave out a row that could pass."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.model.ids import TopicPartition
from tailrace.spark.source.planning.offset_ranges import OffsetRange
from tailrace.spark.source.planning.pruning import LONG_MAX, LONG_MIN, Condition, Narrowing, narrowing

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
RANGES = [OffsetRange(T0, 0, 100), OffsetRange(T1, 50, 60), OffsetRange(U0, 0, 10)]


def narrowed(*conditions: tuple[str, str, object]) -> list[OffsetRange]:
    return narrowing(Condition(*one) for one in conditions).apply(RANGES)


def at(milliseconds: float) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)


def test_conditions_on_offsets_narrow_the_range() -> None:
    assert narrowed(("offset", ">=", 55), ("offset", "<", 58)) == [OffsetRange(T0, 55, 58), OffsetRange(T1, 55, 58)]
    assert narrowed(("offset", ">", 98)) == [OffsetRange(T0, 99, 100)]
    assert narrowed(("offset", "=", 7)) == [OffsetRange(T0, 7, 8), OffsetRange(U0, 7, 8)]
    assert narrowed(("offset", "in", [3, 9])) == [OffsetRange(T0, 3, 10), OffsetRange(U0, 3, 10)]
    assert narrowed(("offset", "<=", 2)) == [OffsetRange(T0, 0, 3), OffsetRange(U0, 0, 3)]
    assert narrowed(("offset", "=", 5), ("offset", "=", 6)) == []


def test_conditions_on_partitions_and_topics_narrow_the_selection() -> None:
    assert narrowed(("partition", "=", 1)) == [OffsetRange(T1, 50, 60)]
    assert narrowed(("topic", "=", "u")) == [OffsetRange(U0, 0, 10)]
    assert narrowed(("topic", "in", ["t", "x"]), ("partition", "in", [0])) == [OffsetRange(T0, 0, 100)]
    assert narrowed(("topic", "=", "u"), ("topic", "=", "t")) == []


@pytest.mark.parametrize(
    ("operator", "time", "expected"),
    [
        (">=", 1000, (1000, LONG_MAX)),
        (">=", 1000.5, (1001, LONG_MAX)),
        (">", 1000, (1001, LONG_MAX)),
        (">", 1000.5, (1001, LONG_MAX)),
        ("<=", 1000.5, (LONG_MIN, 1000)),
        ("<", 1000, (LONG_MIN, 999)),
        ("<", 1000.5, (LONG_MIN, 1000)),
        ("=", 1000, (1000, 1000)),
    ],
)
def test_conditions_on_time_are_rounded_to_milliseconds(operator: str, time: float, expected: tuple[int, int]) -> None:
    found = narrowing([Condition("timestamp", operator, at(time))])
    assert (found.min_timestamp, found.max_timestamp) == expected


def test_a_time_between_two_milliseconds_is_never_equal() -> None:
    assert narrowed(("timestamp", "=", at(1000.5))) == []


def test_times_of_different_zones_are_compared_as_moments() -> None:
    there = at(7_200_000).astimezone(timezone(timedelta(hours=5)))
    assert narrowing([Condition("timestamp", ">=", there)]).min_timestamp == 7_200_000


@pytest.mark.parametrize(
    "condition",
    [
        ("value", "=", b"x"),
        ("topic", ">", "a"),
        ("partition", "<", 1),
        ("offset", "=", "7"),
        ("offset", "in", [1, None]),
        ("offset", "=", True),
        ("timestamp", ">=", 1000),
        ("offset", "like", 3),
    ],
)
def test_unknown_conditions_narrow_nothing(condition: tuple[str, str, object]) -> None:
    assert narrowing([Condition(*condition)]) == Narrowing()


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["offset", "partition"]), st.sampled_from(["=", ">", ">=", "<", "<="]), st.integers(0, 20)
        ),
        max_size=4,
    )
)
def test_narrowing_keeps_every_row_that_passes(conditions: list[tuple[str, str, int]]) -> None:
    compare = {
        "=": int.__eq__, ">": int.__gt__, ">=": int.__ge__, "<": int.__lt__, "<=": int.__le__
    }  # fmt: skip
    ranges = [OffsetRange(TopicPartition("t", number), 0, 20) for number in range(3)]
    kept = narrowing(Condition(*one) for one in conditions).apply(ranges)
    for partition in range(3):
        for offset in range(20):
            row = {"offset": offset, "partition": partition}
            if all(compare[operator](row[column], value) for column, operator, value in conditions):
                assert any(one.partition.partition == partition and one.start <= offset < one.end for one in kept)
