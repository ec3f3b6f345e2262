"""Plans a round: the offsets that come next, from the ends of the table and the bounds of the topics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tailrace.model.ids import Offset, TopicPartition
from tailrace.spark.jobs.errors import JobError
from tailrace.spark.source.planning.admission import admitted
from tailrace.spark.source.planning.offset_ranges import OffsetRange
from tailrace.spark.tables.table_ends import TableEnds

Offsets = Mapping[TopicPartition, Offset]


@dataclass(frozen=True, slots=True)
class RoundPlan:
    starts: dict[TopicPartition, Offset]  # of all partitions, after lost records
    ends: dict[TopicPartition, Offset]  # of all partitions
    lost: int  # offsets that are neither in the table nor in the topics
    ranges: list[OffsetRange]  # with records to add
    moved: list[TopicPartition]  # whose end in the table moves


def plan_round(
    there: TableEnds,
    earliest: Offsets,
    latest: Offsets,
    target: Offsets,
    *,
    max_offsets: int,
    allow_loss: bool,
    table: str,
) -> RoundPlan:
    """Plan a round of about `max_offsets` offsets, up to `target`, which may lack new partitions.

    Raise JobError if the table is ahead of a topic, or, without allow_loss, if records were deleted before they were
    exported.
    """
    starts: dict[TopicPartition, Offset] = {}
    ends: dict[TopicPartition, Offset] = {}
    lost: dict[TopicPartition, int] = {}
    for partition in sorted(latest):
        first, last = earliest[partition], latest[partition]
        start = there.next_offset(partition)
        if start is None:
            start = first
        if start > last:
            raise JobError(
                f"{partition} ends at offset {last}, but table {table} has its records up to {start}: the log has lost "
                "records; export into another table"
            )
        if start < first:
            if not allow_loss:
                raise JobError(
                    f"offsets {start} to {first - 1} of {partition} were deleted before they were exported to table "
                    f"{table}; --allow-loss exports the remaining records and counts the lost offsets"
                )
            lost[partition] = first - start
        starts[partition] = max(start, first)
        ends[partition] = max(starts[partition], min(last, target.get(partition, 0)))
    ends = admitted(starts, ends, max_offsets)
    ranges = [OffsetRange(one, starts[one], end) for one, end in ends.items() if end > starts[one]]
    moved = [one for one, end in ends.items() if end > starts[one] or one in lost]
    return RoundPlan(starts, ends, sum(lost.values()), ranges, moved)
