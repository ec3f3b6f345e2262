"""Offsets of a group without members: written with a note, and read again."""

from __future__ import annotations

from typing import Final, NamedTuple

from tailrace.client.coordinators import CoordinatorKind, Coordinators
from tailrace.client.errors import Refused
from tailrace.model.ids import Offset, TopicPartition
from tailrace.protocol.messages import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)

FIRST_VERSION_WITH_STABLE: Final = 7  # and the last one for a single group
LAST_COMMIT_BY_NAME: Final = 9
NO_GENERATION: Final = -1


class NotedOffset(NamedTuple):
    offset: Offset
    note: str


def committed_offset(coordinators: Coordinators, group: str, partition: TopicPartition) -> NotedOffset | None:
    """What a group has committed for a partition; waits for open transactions that are about to change it."""

    def check(answer: OffsetFetchResponse) -> None:
        if answer.error_code:
            raise Refused(f"group {group}", answer.error_code)
        for topic in answer.topics:
            for one in topic.partitions:
                if one.error_code:
                    raise Refused(f"group {group}", one.error_code)

    topic = OffsetFetchRequest.OffsetFetchRequestTopic(name=partition.topic, partition_indexes=[partition.partition])
    request = OffsetFetchRequest(group_id=group, topics=[topic], require_stable=True)
    answer: OffsetFetchResponse = coordinators.ask(
        CoordinatorKind.GROUP,
        group,
        request,
        check,
        at_least=FIRST_VERSION_WITH_STABLE,
        at_most=FIRST_VERSION_WITH_STABLE,
    )
    for found in answer.topics:
        for one in found.partitions:
            if one.committed_offset >= 0:
                return NotedOffset(one.committed_offset, one.metadata or "")
    return None


def commit_offset(coordinators: Coordinators, group: str, partition: TopicPartition, offset: Offset, note: str) -> None:
    def check(answer: OffsetCommitResponse) -> None:
        for topic in answer.topics:
            for one in topic.partitions:
                if one.error_code:
                    raise Refused(f"group {group}", one.error_code)

    offsets = OffsetCommitRequest.OffsetCommitRequestPartition(
        partition_index=partition.partition, committed_offset=offset, committed_metadata=note
    )
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=NO_GENERATION,
        topics=[OffsetCommitRequest.OffsetCommitRequestTopic(name=partition.topic, partitions=[offsets])],
    )
    coordinators.ask(CoordinatorKind.GROUP, group, request, check, at_most=LAST_COMMIT_BY_NAME)
