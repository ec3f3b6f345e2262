"""Computes new offsets of a group: earliest, latest, an offset, a time, or a shift of the committed offset.

    plan_reset(cluster, partitions, ResetTarget(to_time_ms=…), committed) → partition → offset

An offset outside a log is replaced by the nearer end of the log, as Kafka's own tool does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.errors import ClientError
from tailrace.client.offsets import earliest_offsets, find_offsets, latest_offsets
from tailrace.model.ids import Offset, TopicPartition


class NothingCommitted(ClientError):
    """A shift needs a committed offset, and there is none."""

    def __init__(self, partition: TopicPartition) -> None:
        super().__init__(f"{partition} has no committed offset to shift from")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetTarget:
    """The target of a reset. Exactly one field is set."""

    to_earliest: bool = False
    to_latest: bool = False
    to_current: bool = False  # the committed offset, or the latest if there is none
    to_offset: Offset | None = None
    to_time_ms: int | None = None  # the first record at or after that time, or the latest offset if there is none
    shift_by: int | None = None


def plan_reset(
    cluster: ClusterClient,
    partitions: Iterable[TopicPartition],
    target: ResetTarget,
    committed: Mapping[TopicPartition, Offset],
) -> dict[TopicPartition, Offset]:
    """Return the new offset of each partition."""
    wanted = list(partitions)
    earliest = earliest_offsets(cluster, wanted)
    latest = latest_offsets(cluster, wanted)
    if target.to_earliest:
        return earliest
    if target.to_latest:
        return latest
    if target.to_time_ms is not None:
        found = find_offsets(cluster, dict.fromkeys(wanted, target.to_time_ms))
        return {one: latest[one] if (at := found[one]) is None else at.offset for one in wanted}
    if target.to_current:
        aims = {one: committed.get(one, latest[one]) for one in wanted}
    elif target.to_offset is not None:
        aims = dict.fromkeys(wanted, target.to_offset)
    else:
        assert target.shift_by is not None, "no field of the reset target is set"
        for one in wanted:
            if one not in committed:
                raise NothingCommitted(one)
        aims = {one: committed[one] + target.shift_by for one in wanted}
    return {one: min(max(aim, earliest[one]), latest[one]) for one, aim in aims.items()}
