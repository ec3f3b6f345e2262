"""Where a group is to go on reading: earliest, latest, an offset, a time, or so many records from where it is.

    plan_reset(cluster, partitions, Goal(to_time_ms=…), committed) → partition → offset

Offsets outside a log are brought to its nearer end, as Kafka's own tool does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tailrace.client.cluster.cluster import ClusterClient
from tailrace.client.errors import ClientError
from tailrace.client.offsets import earliest_offsets, find_offsets, latest_offsets
from tailrace.model.ids import Offset, TopicPartition


class NothingCommitted(ClientError):
    """To shift from where a group is, it has to have committed something."""

    def __init__(self, partition: TopicPartition) -> None:
        super().__init__(f"nothing is committed for {partition}: there is no place to shift from")


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """One of these."""

    to_earliest: bool = False
    to_latest: bool = False
    to_current: bool = False  # what is committed; the latest where nothing is
    to_offset: Offset | None = None
    to_time_ms: int | None = None  # the first record at that time or later, or else the latest
    shift_by: int | None = None


def plan_reset(
    cluster: ClusterClient, partitions: Iterable[TopicPartition], goal: Goal, committed: Mapping[TopicPartition, Offset]
) -> dict[TopicPartition, Offset]:
    """The new offset of each partition."""
    wanted = list(partitions)
    earliest = earliest_offsets(cluster, wanted)
    latest = latest_offsets(cluster, wanted)
    if goal.to_earliest:
        return earliest
    if goal.to_latest:
        return latest
    if goal.to_time_ms is not None:
        found = find_offsets(cluster, dict.fromkeys(wanted, goal.to_time_ms))
        return {one: latest[one] if (at := found[one]) is None else at.offset for one in wanted}
    if goal.to_current:
        aims = {one: committed.get(one, latest[one]) for one in wanted}
    elif goal.to_offset is not None:
        aims = dict.fromkeys(wanted, goal.to_offset)
    else:
        assert goal.shift_by is not None, "a goal has to say where to"
        for one in wanted:
            if one not in committed:
                raise NothingCommitted(one)
        aims = {one: committed[one] + goal.shift_by for one in wanted}
    return {one: min(max(aim, earliest[one]), latest[one]) for one, aim in aims.items()}
