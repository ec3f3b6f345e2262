"""Offsets of partitions: first, last, and the offset of a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from typing import Final, NamedTuple

from tailrace.client.cluster.cluster_client import ClusterClient, LedPartition, PartitionAnswer
from tailrace.client.errors import Refused
from tailrace.client.visible_batches import IsolationLevel
from tailrace.model.ids import LeaderEpoch, Offset, TopicPartition
from tailrace.protocol.codegen.field_versions import first_version_with
from tailrace.protocol.messages import ListOffsetsRequest, ListOffsetsResponse


class OffsetSpec(IntEnum):
    """Special timestamps of ListOffsets."""

    LATEST = -1  # the high watermark; with read_committed the last stable offset
    EARLIEST = -2
    MAX_TIMESTAMP = -3  # the record with the largest timestamp
    EARLIEST_LOCAL = -4  # the first offset on the broker's own disks
    LATEST_TIERED = -5


class FoundOffset(NamedTuple):
    offset: Offset
    timestamp: int  # of the record, for a time and for MAX_TIMESTAMP; -1 for the other OffsetSpecs
    leader_epoch: LeaderEpoch


_CONSUMER: Final = -1
_FIRST_VERSION: Final = {
    OffsetSpec.MAX_TIMESTAMP: 7,
    OffsetSpec.EARLIEST_LOCAL: 8,
    OffsetSpec.LATEST_TIERED: 9,
}
_FIRST_WITH_ONE_OFFSET: Final = 1
_FIRST_WITH_ISOLATION: Final = first_version_with("ListOffsetsRequest", "isolation_level")


def find_offsets(
    cluster: ClusterClient,
    targets: Mapping[TopicPartition, int],
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
) -> dict[TopicPartition, FoundOffset | None]:
    """Return an offset for each partition.

    A target is an OffsetSpec or a time in milliseconds. For a time, the result is the first record at or after it, or
    None.
    """
    version_min = max(
        [_FIRST_WITH_ONE_OFFSET, *(_FIRST_VERSION.get(OffsetSpec(t), 0) for t in targets.values() if t < 0)]
    )
    if isolation is not IsolationLevel.READ_UNCOMMITTED:
        version_min = max(version_min, _FIRST_WITH_ISOLATION)

    def build(leaders: list[LedPartition]) -> ListOffsetsRequest:
        topics: dict[str, ListOffsetsRequest.ListOffsetsTopic] = {}
        for partition, _, leader_epoch in leaders:
            topic = topics.setdefault(partition.topic, ListOffsetsRequest.ListOffsetsTopic(name=partition.topic))
            topic.partitions.append(
                ListOffsetsRequest.ListOffsetsPartition(
                    partition_index=partition.partition,
                    current_leader_epoch=leader_epoch,
                    timestamp=targets[partition],
                )
            )
        return ListOffsetsRequest(
            replica_id=_CONSUMER,
            isolation_level=isolation,
            topics=list(topics.values()),
            timeout_ms=cluster.settings.request_timeout_ms,
        )

    return cluster.ask_leaders(targets, build, _read, version_min=version_min)


def _read(answer: ListOffsetsResponse, leaders: list[LedPartition]) -> Iterator[PartitionAnswer]:
    for topic in answer.topics:
        for data in topic.partitions:
            partition = TopicPartition(topic.name, data.partition_index)
            if data.error_code:
                yield PartitionAnswer(partition, None, Refused(str(partition), data.error_code))
            elif data.offset < 0:
                yield PartitionAnswer(partition, None)
            else:
                yield PartitionAnswer(partition, FoundOffset(data.offset, data.timestamp, data.leader_epoch))


def earliest_offsets(cluster: ClusterClient, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Offset]:
    return _offsets_at(cluster, partitions, OffsetSpec.EARLIEST, IsolationLevel.READ_UNCOMMITTED)


def latest_offsets(
    cluster: ClusterClient,
    partitions: Iterable[TopicPartition],
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
) -> dict[TopicPartition, Offset]:
    return _offsets_at(cluster, partitions, OffsetSpec.LATEST, isolation)


def _offsets_at(
    cluster: ClusterClient, partitions: Iterable[TopicPartition], spec: OffsetSpec, isolation: IsolationLevel
) -> dict[TopicPartition, Offset]:
    found = find_offsets(cluster, dict.fromkeys(partitions, spec), isolation)
    return {partition: 0 if one is None else one.offset for partition, one in found.items()}
