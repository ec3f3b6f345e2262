"""Reads and writes the committed offsets of a group without members."""

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

# The first version with this field is also the last version for a single group.
FIRST_VERSION_WITH_STABLE: Final = first_version_with("OffsetFetchRequest", "require_stable")
LAST_COMMIT_BY_NAME: Final = OFFSET_TOPIC_IDS - 1
NO_GENERATION: Final = -1


class OffsetAndMetadata(NamedTuple):
    offset: Offset
    metadata: str


def committed_offsets(coordinators: Coordinators, group: str) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return all committed offsets of a group, after waiting for open transactions that commit offsets."""

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
        version_min=FIRST_VERSION_WITH_STABLE,
        version_max=FIRST_VERSION_WITH_STABLE,
    )
    return {
        TopicPartition(topic.name, one.partition_index): OffsetAndMetadata(one.committed_offset, one.metadata or "")
        for topic in answer.topics
        for one in topic.partitions
        if one.committed_offset >= 0
    }


def commit_offset(
    coordinators: Coordinators, group: str, partition: TopicPartition, offset: Offset, metadata: str
) -> None:
    commit_offsets(coordinators, group, {partition: OffsetAndMetadata(offset, metadata)})


def commit_offsets(
    coordinators: Coordinators,
    group: str,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
    *,
    generation: int = NO_GENERATION,
    member_id: str = "",
) -> None:
    """Commit offsets as a member, or for a group without members. Otherwise a group refuses (UNKNOWN_MEMBER_ID)."""

    def check(answer: OffsetCommitResponse) -> None:
        for topic in answer.topics:
            for one in topic.partitions:
                if one.error_code:
                    raise Refused(f"group {group}", one.error_code)

    topics: dict[str, OffsetCommitRequest.OffsetCommitRequestTopic] = {}
    for partition, (offset, metadata) in offsets.items():
        topic = topics.setdefault(partition.topic, OffsetCommitRequest.OffsetCommitRequestTopic(name=partition.topic))
        topic.partitions.append(
            OffsetCommitRequest.OffsetCommitRequestPartition(
                partition_index=partition.partition, committed_offset=offset, committed_metadata=metadata
            )
        )
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        topics=list(topics.values()),
    )
    coordinators.ask(CoordinatorKind.GROUP, group, request, check, version_max=LAST_COMMIT_BY_NAME)
