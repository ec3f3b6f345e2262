"""Offsets of a group without members: written with a note, and read again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from tailrace.client.cluster.coordinators import CoordinatorKind, Coordinators
from tailrace.client.errors import Refused
from tailrace.model.ids import Offset, TopicPartition
from tailrace.protocol.codegen.field_versions import OFFSET_TOPIC_IDS, first_version_with
from tailrace.protocol.messages import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)

# The first version with this field is also the last one for a single group.
FIRST_VERSION_WITH_STABLE: Final = first_version_with("OffsetFetchRequest", "require_stable")
LAST_COMMIT_BY_NAME: Final = OFFSET_TOPIC_IDS - 1
NO_GENERATION: Final = -1


class NotedOffset(NamedTuple):
    offset: Offset
    note: str


def committed_offsets(coordinators: Coordinators, group: str) -> dict[TopicPartition, NotedOffset]:
    """All that a group has committed; waits for open transactions that are about to change it."""

    def check(answer: OffsetFetchResponse) -> None:
        codes = [one.error_code for topic in answer.topics for one in topic.partitions]
        for code in (answer.error_code, *codes):
            if code:
                raise Refused(f"group {group}", code)

    answer: OffsetFetchResponse = coordinators.ask(
        CoordinatorKind.GROUP,
        group,
        OffsetFetchRequest(group_id=group, topics=None, require_stable=True),
        check,
        at_least=FIRST_VERSION_WITH_STABLE,
        at_most=FIRST_VERSION_WITH_STABLE,
    )
    return {
        TopicPartition(topic.name, one.partition_index): NotedOffset(one.committed_offset, one.metadata or "")
        for topic in answer.topics
        for one in topic.partitions
        if one.committed_offset >= 0
    }


def commit_offset(coordinators: Coordinators, group: str, partition: TopicPartition, offset: Offset, note: str) -> None:
    commit_offsets(coordinators, group, {partition: NotedOffset(offset, note)})


def commit_offsets(coordinators: Coordinators, group: str, offsets: Mapping[TopicPartition, NotedOffset]) -> None:
    """Commit for a group that has no members: one with members refuses (UNKNOWN_MEMBER_ID)."""

    def check(answer: OffsetCommitResponse) -> None:
        for topic in answer.topics:
            for one in topic.partitions:
                if one.error_code:
                    raise Refused(f"group {group}", one.error_code)

    topics: dict[str, OffsetCommitRequest.OffsetCommitRequestTopic] = {}
    for partition, (offset, note) in offsets.items():
        topic = topics.setdefault(partition.topic, OffsetCommitRequest.OffsetCommitRequestTopic(name=partition.topic))
        topic.partitions.append(
            OffsetCommitRequest.OffsetCommitRequestPartition(
                partition_index=partition.partition, committed_offset=offset, committed_metadata=note
            )
        )
    request = OffsetCommitRequest(
        group_id=group, generation_id_or_member_epoch=NO_GENERATION, topics=list(topics.values())
    )
    coordinators.ask(CoordinatorKind.GROUP, group, request, check, at_most=LAST_COMMIT_BY_NAME)
