"""A round starts where the table ends, and covers records that exist."""

from __future__ import annotations

import pytest

from tailrace.model.ids import TopicPartition
from tailrace.spark.jobs.errors import JobError
from tailrace.spark.source.transports.topic_identity import TopicIdentity
from tailrace.spark.tables.round_plan import RoundPlan, plan_round
from tailrace.spark.tables.table_ends import (
    ConcurrentChange,
    Round,
    TableEnds,
    TopicEnds,
    read_properties,
    to_properties,
)

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
HERE = TopicIdentity("topic-a", "cluster-a")


def table(**ends: int) -> TableEnds:
    return TableEnds({"t": TopicEnds(HERE, {int(name[1:]): end for name, end in ends.items()})})


def plan(there: TableEnds, earliest: dict, latest: dict, *, max_offsets: int = 10**9, **more: object) -> RoundPlan:  # type: ignore[type-arg]
    target = more.pop("target", latest)
    return plan_round(
        there,
        earliest,
        latest,
        target,  # type: ignore[arg-type]
        max_offsets=max_offsets,
        allow_loss=bool(more.get("allow_loss")),
        table="lake",
    )


def test_the_first_round_starts_at_the_first_offsets() -> None:
    found = plan(TableEnds(), {T0: 5, T1: 0}, {T0: 9, T1: 0})
    assert [tuple(one) for one in found.ranges] == [(T0, 5, 9)]
    assert (found.lost, found.moved) == (0, [T0])


def test_a_later_round_starts_where_the_table_ends() -> None:
    assert [tuple(one) for one in plan(table(p0=7), {T0: 5}, {T0: 9}).ranges] == [(T0, 7, 9)]


def test_a_new_partition_of_a_known_topic_starts_at_0() -> None:
    assert [tuple(one) for one in plan(table(p0=9), {T0: 0, T1: 0}, {T0: 9, T1: 3}).ranges] == [(T1, 0, 3)]
    with pytest.raises(JobError, match="offsets 0 to 1 of t-1 were deleted before they were exported to table lake"):
        plan(table(p0=9), {T0: 0, T1: 2}, {T0: 9, T1: 3})


def test_lost_offsets_are_counted_if_a_loss_is_allowed() -> None:
    with pytest.raises(JobError, match="offsets 4 to 6 of t-0 were deleted"):
        plan(table(p0=4), {T0: 7}, {T0: 9})
    found = plan(table(p0=4), {T0: 7}, {T0: 9}, allow_loss=True)
    assert ([tuple(one) for one in found.ranges], found.lost) == ([(T0, 7, 9)], 3)


def test_a_partition_that_lost_all_its_records_moves_its_end() -> None:
    found = plan(table(p0=4), {T0: 9}, {T0: 9}, allow_loss=True)
    assert (found.ranges, found.moved, found.ends, found.lost) == ([], [T0], {T0: 9}, 5)


def test_a_log_that_ends_before_the_table_is_refused() -> None:
    with pytest.raises(JobError, match="t-0 ends at offset 3, but table lake has its records up to 4"):
        plan(table(p0=4), {T0: 0}, {T0: 3}, allow_loss=True)


def test_a_round_has_about_the_maximum_of_offsets() -> None:
    found = plan(TableEnds(), {T0: 0, T1: 0}, {T0: 900, T1: 100}, max_offsets=100)
    assert [tuple(one) for one in found.ranges] == [(T0, 0, 90), (T1, 0, 10)]


def test_a_round_ends_at_the_target() -> None:
    assert [tuple(one) for one in plan(TableEnds(), {T0: 0, T1: 0}, {T0: 9, T1: 4}, target={T0: 5}).ranges] == [
        (T0, 0, 5)
    ]


# Ends


def round_(expected: int | None = 4) -> Round:
    return Round("r", {T0: expected}, {T0: 4}, {T0: 9}, {"t": HERE})


def test_a_round_is_refused_if_the_end_of_the_table_has_moved() -> None:
    round_().check_follows("lake", table(p0=4))
    round_(None).check_follows("lake", TableEnds())
    for there in (table(p0=9), table(p0=3), TableEnds()):
        with pytest.raises(ConcurrentChange, match="another program changed table lake during this round"):
            round_().check_follows("lake", there)
    with pytest.raises(ConcurrentChange):
        round_(None).check_follows("lake", table(p0=9))


def test_the_ends_after_a_round_have_all_partitions_of_its_topics() -> None:
    there = TableEnds({**table(p0=4, p1=2).topics, "u": TopicEnds(HERE, {0: 1})})
    assert round_().ends_after(there).topics == {"t": TopicEnds(HERE, {0: 9, 1: 2})}


def test_properties_of_the_newest_commit_have_precedence() -> None:
    newest, oldest = to_properties(table(p0=9)), to_properties(table(p0=4))
    assert read_properties([{}, newest, {"x": "y"}, oldest]).topics["t"].ends == {0: 9}
    assert newest == {
        "tailrace.offsets.t": '{"cluster_id":"cluster-a","topic_id":"topic-a","ends":{"0":9}}',
    }


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (TopicIdentity("topic-b", "cluster-a"), "topic t was deleted and created again: .* id topic-a, .* now topic-b"),
        (TopicIdentity("topic-a", "cluster-b"), "of topic t in cluster cluster-a, but this is cluster cluster-b"),
        (TopicIdentity("", "cluster-b"), "in cluster cluster-a, but this is cluster cluster-b"),
    ],
)
def test_another_topic_or_cluster_is_refused(other: TopicIdentity, message: str) -> None:
    with pytest.raises(JobError, match=message):
        table(p0=4).check("lake", {"t": other})


def test_unknown_ids_are_not_compared() -> None:
    table(p0=4).check("lake", {"t": TopicIdentity(), "u": TopicIdentity("x", "y")})
