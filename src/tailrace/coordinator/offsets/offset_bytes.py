"""The bytes of a committed offset, read and written in one go: they are nearly all that `__consumer_offsets` has.

    key    int16 1, group, topic (each an int16 length and UTF-8), int32 partition
    value  int16 version, int64 offset, int32 leader epoch, metadata, int64 commit timestamp; in version 4 tags after it

Only versions 3 and 4, which Kafka has written since 2.1; whatever else there is takes the general way.
"""

from __future__ import annotations

from functools import lru_cache
from struct import Struct
from struct import error as struct_error
from typing import Final, NamedTuple

from tailrace.coordinator.groups.group import CommittedOffset
from tailrace.protocol.errors import UnwritableMessage
from tailrace.protocol.primitives import STRING_MAX
from tailrace.protocol.strings import plain_string

_KEY = b"\0\1"
_INT32 = Struct(">i")
_HEAD = Struct(">hqi")
_INT64 = Struct(">q")
_LENGTH = Struct(">h")
_TOPIC_ID_TAG = b"\1\0\x10"  # one tag: number 0, 16 bytes
_NO_ID = bytes(16)
METADATA_SIZE_MAX: Final = 126  # whose length, plus one, is a varint of one byte


class CommitBytes(NamedTuple):
    group_id: str
    topic: str
    partition: int
    committed: CommittedOffset


def read_commit(key: bytes, value: bytes, record_offset: int) -> CommitBytes | None:
    """Return what is committed; None for a record that the general path must read, or refuse."""
    if key[:2] != _KEY:
        return None
    try:
        group_end = 4 + (key[2] << 8 | key[3])
        topic_start = group_end + 2
        topic_end = topic_start + (key[group_end] << 8 | key[group_end + 1])
        if group_end - 4 > STRING_MAX or topic_end - topic_start > STRING_MAX or topic_end + 4 != len(key):
            return None
        (partition,) = _INT32.unpack_from(key, topic_end)
        version, offset, leader_epoch = _HEAD.unpack_from(value)
        position = _HEAD.size
        if version == 4:
            size = value[position] - 1
            position += 1
            if not 0 <= size <= METADATA_SIZE_MAX:
                return None
        elif version == 3:
            (size,) = _LENGTH.unpack_from(value, position)
            position += 2
            if size < 0:
                return None
        else:
            return None
        (timestamp,) = _INT64.unpack_from(value, position + size)
        return CommitBytes(
            key[4:group_end].decode(),
            key[topic_start:topic_end].decode(),
            partition,
            CommittedOffset(
                offset, leader_epoch, value[position : position + size].decode() if size else "", timestamp, -1,
                record_offset,
            ),
        )  # fmt: skip
    except (IndexError, UnicodeDecodeError, struct_error):
        return None


def write_commit(
    group_id: str, topic: str, topic_id: bytes, partition: int, committed: CommittedOffset
) -> tuple[bytes, bytes] | None:
    """Return key and value, in version 4; None for a commit that takes the general path.

    Raise UnwritableMessage for names or numbers that the record's format cannot hold.
    """
    if len(committed.metadata) > METADATA_SIZE_MAX or committed.expire_timestamp_ms != -1:
        return None
    try:
        metadata = committed.metadata.encode()
        if len(metadata) > METADATA_SIZE_MAX:
            return None
        head = _HEAD.pack(4, committed.offset, committed.leader_epoch)
        end = value_end(topic_id, committed.commit_timestamp_ms)
        return key_start(group_id, topic) + _INT32.pack(partition), b"%b%c%b%b" % (
            head, len(metadata) + 1, metadata, end
        )  # fmt: skip
    except (UnicodeEncodeError, struct_error) as error:
        raise UnwritableMessage(f"the offset of {topic[:300]}-{partition} cannot be written: {error}") from error


def value_end(topic_id: bytes, committed_at_ms: int) -> bytes:
    """What a value of version 4 has behind the metadata."""
    return _INT64.pack(committed_at_ms) + (_TOPIC_ID_TAG + topic_id if topic_id != _NO_ID else b"\0")


@lru_cache(maxsize=1024)
def key_start(group_id: str, topic: str) -> bytes:
    """Return all of a key but the partition; raise UnwritableMessage for names that do not fit."""
    return _KEY + plain_string(group_id) + plain_string(topic)
