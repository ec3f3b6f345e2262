"""Records of committed offsets in `__consumer_offsets`: OffsetRecords for commits, and tombstones.

Their bytes are written and read by `offset_kernels.py`, in the versions that Apache Kafka 4.3 writes.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from tailrace.coordinator.groups.group import TopicCommit
from tailrace.coordinator.offsets.offset_kernels import OffsetReplay, encode_offsets, offsets_size
from tailrace.coordinator.shard import CoordinatorRecord, PackedRecords
from tailrace.model.ids import Offset
from tailrace.protocol.messages import OffsetCommitKey
from tailrace.protocol.strings import plain_string

NO_EXPIRY: Final = -1
_KEY_NUMBER: Final = b"\0\1"
_TOPIC_ID_TAG: Final = b"\1\0\x10"  # one tag: number 0, 16 bytes
_NO_TAGS: Final = b"\0"
_NO_ID: Final = bytes(16)


class OffsetRecords(PackedRecords):
    """The records of one commit, of any number of topics."""

    __slots__ = ("_count", "_expire_ms", "_group_id", "_now_ms", "_replay", "_topics", "size")

    def __init__(self, group_id: str, now_ms: int, expire_ms: int, replay: OffsetReplay) -> None:
        """`expire_ms` may be NO_EXPIRY. `replay` takes the records once they are written."""
        self._group_id = group_id
        self._now_ms = now_ms
        self._expire_ms = expire_ms
        self._replay = replay
        self._topics: list[tuple[TopicCommit, bytes, bytes]] = []  # with the start of a key, and the tags of a value
        self._count = 0
        self.size = 0

    def add(self, topic: TopicCommit) -> None:
        """Add the commits of a topic. Raise UnwritableMessage for names that do not fit a key."""
        if not topic.partitions:
            return
        names = key_names(self._group_id, topic.name)
        tags = _NO_TAGS if topic.topic_id == _NO_ID else _TOPIC_ID_TAG + topic.topic_id
        self.size += offsets_size(topic.partitions, self._count, names, tags, self._expire_ms != NO_EXPIRY)
        self._count += len(topic.partitions)
        self._topics.append((topic, names, tags))

    def __len__(self) -> int:
        return self._count

    def encode(self) -> bytes:
        out, at, delta = bytearray(self.size), 0, 0
        expire_ms, now_ms = self._expire_ms, self._now_ms
        expires = expire_ms != NO_EXPIRY
        for topic, names, tags in self._topics:
            at = encode_offsets(topic.partitions, delta, names, tags, expires, expire_ms, now_ms, out, at)
            delta += len(topic.partitions)
        assert at == self.size, (at, self.size)
        return bytes(out)

    def replay(self, payload: bytes, first_offset: Offset) -> None:
        taken = self._replay.take_payload(payload, self._count, first_offset)
        assert taken == self._count, (taken, self._count)


@lru_cache(maxsize=1024)
def key_names(group_id: str, topic: str) -> bytes:
    """Return a key without its partition. Raise UnwritableMessage for names that do not fit."""
    return _KEY_NUMBER + plain_string(group_id) + plain_string(topic)


def offset_tombstone(group_id: str, topic: str, partition: int) -> CoordinatorRecord:
    return CoordinatorRecord(OffsetCommitKey(group=group_id, topic=topic, partition=partition), None)
