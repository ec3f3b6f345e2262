"""OffsetCommit as flat tuples: `CommitAsk` for a request of any version, `CommitTopic` for each topic of a response.

read_flat_offset_commit     reads versions 8 to 10 in one pass (read_kernels.py)
ask_of(message, version)    convert a request that was read as a message
parts_of(topics, …)         encode a response of any version as parts to send
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from tailrace.protocol.codegen.field_versions import OFFSET_TOPIC_IDS
from tailrace.protocol.flat.write_kernels import write_committed
from tailrace.protocol.headers import write_response
from tailrace.protocol.messages import OffsetCommitRequest, OffsetCommitResponse

FLAT_VERSIONS: Final = range(8, 11)
_OFFSET_COMMIT: Final = 8
_Topic = OffsetCommitResponse.OffsetCommitResponseTopic
_Partition = OffsetCommitResponse.OffsetCommitResponsePartition

# index, offset, leader epoch, metadata in UTF-8 (empty for null), commit time (only in version 1; otherwise -1)
PartitionCommit: TypeAlias = tuple[int, int, int, bytes, int]
AskedTopic: TypeAlias = tuple[bytes | str, list[PartitionCommit]]  # name or id; partitions


class CommitAsk(NamedTuple):
    """An OffsetCommit request. Topics are named by id from version 10 on and by name before. `read_flat_offset_commit`
    returns these fields in this order."""

    group_id: str
    generation: int  # or the member epoch
    member_id: str
    instance_id: str | None
    retention_ms: int  # only in versions 2 to 4; otherwise -1
    topics: Sequence[AskedTopic]


# Name or id, partitions as in the request, and a code for each partition or one code for all.
CommitTopic: TypeAlias = tuple[bytes | str, list[PartitionCommit], list[int] | int]


def ask_of(body: OffsetCommitRequest, version: int) -> CommitAsk:
    """Convert a message."""
    by_id = version >= OFFSET_TOPIC_IDS
    topics: list[AskedTopic] = [
        (
            topic.topic_id if by_id else topic.name,
            [
                (
                    one.partition_index,
                    one.committed_offset,
                    one.committed_leader_epoch,
                    (one.committed_metadata or "").encode(),
                    one.commit_timestamp,
                )
                for one in topic.partitions
            ],
        )
        for topic in body.topics
    ]
    return CommitAsk(
        body.group_id,
        body.generation_id_or_member_epoch,
        body.member_id,
        body.group_instance_id,
        body.retention_time_ms,
        topics,
    )


def parts_of(topics: list[CommitTopic], version: int, correlation_id: int, throttle_ms: int) -> list[Any]:
    """Return the parts of a response with its header."""
    if version in FLAT_VERSIONS:
        return [write_committed(version, correlation_id, throttle_ms, topics)]
    return write_response(_OFFSET_COMMIT, version, correlation_id, message_of(topics, throttle_ms))


def message_of(topics: list[CommitTopic], throttle_ms: int) -> OffsetCommitResponse:
    """Convert a response to a message."""
    response = OffsetCommitResponse(throttle_time_ms=throttle_ms)
    for topic, partitions, errors in topics:
        codes = errors if isinstance(errors, list) else [errors] * len(partitions)
        made = _Topic(
            partitions=[
                _Partition(partition_index=one[0], error_code=code) for one, code in zip(partitions, codes, strict=True)
            ]
        )
        if isinstance(topic, bytes):
            made.topic_id = topic
        else:
            made.name = topic
        response.topics.append(made)
    return response
