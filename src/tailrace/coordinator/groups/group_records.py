"""Records of committed offsets in `__consumer_offsets`, in the versions that Apache Kafka 4.3 writes."""

from __future__ import annotations

from tailrace.coordinator.groups.group import CommittedOffset
from tailrace.coordinator.offsets.offset_bytes import write_commit
from tailrace.coordinator.shard import CoordinatorRecord
from tailrace.protocol.messages import OffsetCommitKey, OffsetCommitValue

OFFSET_VERSION = 4
OFFSET_WITH_EXPIRY_VERSION = 1  # the only version with an expiry time


def offset_record(
    group_id: str, topic: str, topic_id: bytes, partition: int, committed: CommittedOffset
) -> CoordinatorRecord:
    expires = committed.expire_timestamp_ms != -1
    value = OffsetCommitValue(
        offset=committed.offset,
        leader_epoch=-1 if expires else committed.leader_epoch,
        metadata=committed.metadata,
        commit_timestamp=committed.commit_timestamp_ms,
        expire_timestamp=committed.expire_timestamp_ms,
    )
    if not expires:
        value.topic_id = topic_id
    version = OFFSET_WITH_EXPIRY_VERSION if expires else OFFSET_VERSION
    key = OffsetCommitKey(group=group_id, topic=topic, partition=partition)
    return CoordinatorRecord(key, value, version, encoded=write_commit(group_id, topic, topic_id, partition, committed))


def offset_tombstone(group_id: str, topic: str, partition: int) -> CoordinatorRecord:
    return CoordinatorRecord(OffsetCommitKey(group=group_id, topic=topic, partition=partition), None)
