# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, annotation_typing=False
"""Frequent requests, read in one pass: a Produce of one batch, an OffsetCommit.

Plain Python that Cython compiles in place, with its C types in request_kernels.pxd, by the rules of records/kernels.py:
every read is checked against the end first. A request that is anything else, or is malformed, gives None, and the
compiled message readers say what it is.
"""

from __future__ import annotations

from typing import TypeVar

from tailrace.protocol.primitives import Buffer

COMPILED = not __file__.endswith(".py")

Produced = tuple[int, int, int, int, int, int, int, int]
Topics = list[tuple[int, int, int, int]]
Committing = tuple[int, int, int, int, int, int, int, int, int, Topics]
T = TypeVar("T", bound=tuple[object, ...])

_COMMIT_METADATA_MAX = 126
_COMMIT_OVERHEAD = 48  # the fixed fields of a record, and its lengths at their longest
_COMMIT_VALUE_VERSION = 4
_new = tuple.__new__


def _int16(data: Buffer, position: int) -> int:
    value = data[position] << 8 | data[position + 1]
    return value - 0x10000 if value >= 0x8000 else value


def _int32(data: Buffer, position: int) -> int:
    high = (data[position] ^ 0x80) - 0x80
    return high * 16777216 + (data[position + 1] << 16 | data[position + 2] << 8 | data[position + 3])


def _int64(data: Buffer, position: int) -> int:
    return (_int32(data, position) + (data[position + 4] >> 7)) * 65536 * 65536 + _int32(data, position + 4)


def _length(data: Buffer, position: int, end: int) -> tuple[int, int]:
    """A compact length, one too large as it travels, and what follows it; -1 there if it is cut short or too long."""
    value = 0
    shift = 0
    while shift < 28:
        if position >= end:
            return 0, -1
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    return 0, -1


def _body(data: Buffer, api_key: int, first_version: int, last_version: int, end: int) -> int:
    """Where the body of a request of this API and these flexible versions begins; -1 if it is another."""
    if end < 11 or _int16(data, 0) != api_key:
        return -1
    version = _int16(data, 2)
    if version < first_version or version > last_version:
        return -1
    position = 10
    size = _int16(data, 8)
    if size > 0:
        position += size
    if position >= end or data[position] != 0:  # tagged fields
        return -1
    return position + 1


def _topic(data: Buffer, position: int, end: int, by_id: bool) -> tuple[int, int]:
    """Where the only topic's id or name begins, and where its only partition does; -1 there if there are others."""
    if position + 2 > end or data[position] != 2:
        return 0, -1
    position += 1
    size = 16
    if not by_id:
        size = data[position] - 1
        position += 1
        if size <= 0 or size > 126:
            return 0, -1
    start = position
    position += size
    if position >= end or data[position] != 2:
        return 0, -1
    return start, position + 1


def read_produce(data: Buffer) -> Produced | None:
    """(version, correlation id, acks, topic's start and stop, partition, records' start and stop) of Produce v9 to v13.

    One partition, no transactional id, no tagged fields; its records are one batch of format 2 at offset 0, and of no
    transaction.
    """
    end = len(data)
    position = _body(data, 0, 9, 13, end)
    if position < 0 or position + 7 > end or data[position] != 0:
        return None
    version = _int16(data, 2)
    acks = _int16(data, position + 1)
    topic, position = _topic(data, position + 7, end, version >= 13)
    if position < 0 or position + 5 > end:
        return None
    topic_stop = position - 1
    index = _int32(data, position)
    size, start = _length(data, position + 4, end)
    stop = start + size - 1
    if start < 0 or size < 62 or stop + 3 != end:
        return None
    if data[stop] or data[stop + 1] or data[stop + 2]:
        return None
    if _int64(data, start) or _int32(data, start + 8) + 12 != stop - start or data[start + 16] != 2:
        return None
    if data[start + 22] & 0x10:  # in the batch's attributes
        return None
    return version, _int32(data, 4), acks, topic, topic_stop, index, start, stop


def read_offset_commit(data: Buffer) -> Committing | None:
    """(version, correlation id, group's start and stop, generation, member's start and stop, instance's start and stop,
    topics) of OffsetCommit v8 to v10; a topic is (its name's or id's start and stop, partitions' start, their number).

    No tagged fields, and metadata of at most 126 ASCII characters; without an instance id its start is -1.
    """
    end = len(data)
    position = _body(data, 8, 8, 10, end)
    if position < 0:
        return None
    version = _int16(data, 2)
    size, group = _length(data, position, end)
    group_stop = group + size - 1
    if group < 0 or size < 2 or group_stop + 4 > end:
        return None
    generation = _int32(data, group_stop)
    size, member = _length(data, group_stop + 4, end)
    member_stop = member + size - 1
    if member < 0 or size < 1:
        return None
    size, instance = _length(data, member_stop, end)
    if instance < 0:
        return None
    instance_stop = instance
    if size == 0:
        instance = -1
    else:
        instance_stop += size - 1
    count, position = _length(data, instance_stop, end)
    if position < 0 or count < 2:
        return None
    topics = []
    while count > 1:
        count -= 1
        size = 17
        if version < 10:
            size, position = _length(data, position, end)
        topic = position
        if position < 0 or size < 2:
            return None
        topic_stop = topic + size - 1
        number, start = _length(data, topic_stop, end)
        number -= 1
        position = _after_commits(data, start, end, number)
        if start < 0 or number < 1 or position < 0 or position >= end or data[position]:
            return None
        position += 1
        topics.append((topic, topic_stop, start, number))
    if position + 1 != end or data[position]:
        return None
    return (
        version, _int32(data, 4), group, group_stop, generation, member, member_stop, instance, instance_stop, topics
    )  # fmt: skip


def _after_commits(data: Buffer, position: int, end: int, number: int) -> int:
    """What follows this many partitions; -1 where they are not as plain as they have to be."""
    while position >= 0 and number > 0:
        number -= 1
        position += 16
        if position >= end:
            return -1
        size = data[position] - 1
        position += 1
        if size < 0:  # null
            size = 0
        if size > _COMMIT_METADATA_MAX or position + size >= end:
            return -1
        while size > 0:
            if data[position] >= 0x80:
                return -1
            position += 1
            size -= 1
        if data[position]:  # tagged fields
            return -1
        position += 1
    return position


def _put_varint(out: bytearray, at: int, value: int) -> int:
    """A length or a delta, which are never negative, in zigzag; where it ends."""
    value *= 2
    while value > 0x7F:
        out[at] = value & 0x7F | 0x80
        value >>= 7
        at += 1
    out[at] = value
    return at + 1


def _zigzag_size(value: int) -> int:
    size = 1
    while value > 0x3F:
        value >>= 7
        size += 1
    return size


def _copy(data: Buffer, start: int, stop: int, out: bytearray, at: int) -> int:
    while start < stop:
        out[at] = data[start]
        start += 1
        at += 1
    return at


def commits_size(number: int, key_start: Buffer, value_end: Buffer) -> int:
    """No `encode_commits` of so many partitions writes more than this, apart from their metadata."""
    return number * (len(key_start) + len(value_end) + _COMMIT_OVERHEAD)


def encode_commits(
    data: Buffer,
    position: int,
    number: int,
    partitions: int,
    first_delta: int,
    key_start: Buffer,
    value_end: Buffer,
    out: bytearray,
) -> int:
    """The records of a topic's commits, as `coordinator/offsets/offset_bytes.py` has them, into a batch's payload.

    `key_start` is a key without its partition, `value_end` what comes behind the metadata. Gives their size; -1 if
    a partition is none of so many.
    """
    at = 0
    delta = first_delta
    key_size = len(key_start)
    end_size = len(value_end)
    while number > 0:
        number -= 1
        partition = _int32(data, position)
        if partition < 0 or partition >= partitions:
            return -1
        metadata = data[position + 16] - 1
        if metadata < 0:
            metadata = 0
        size = 15 + metadata + end_size
        at = _put_varint(
            out, at,
            3 + _zigzag_size(delta) + _zigzag_size(key_size + 4) + key_size + 4 + _zigzag_size(size) + size,
        )  # fmt: skip
        out[at] = 0  # attributes
        out[at + 1] = 0  # no time after the batch's
        at = _put_varint(out, at + 2, delta)
        at = _put_varint(out, at, key_size + 4)
        at = _copy(key_start, 0, key_size, out, at)
        at = _copy(data, position, position + 4, out, at)
        at = _put_varint(out, at, size)
        out[at] = 0
        out[at + 1] = _COMMIT_VALUE_VERSION
        at = _copy(data, position + 4, position + 16, out, at + 2)
        out[at] = metadata + 1
        at = _copy(data, position + 17, position + 17 + metadata, out, at + 1)
        at = _copy(value_end, 0, end_size, out, at)
        out[at] = 0  # headers
        at += 1
        position += 18 + metadata
        delta += 1
    return at


def take_commits(
    data: Buffer,
    position: int,
    number: int,
    committed_at_ms: int,
    record_offset: int,
    make: type[T],
    known: dict[int, T],
) -> None:
    """Note what a topic's partitions commit in `known`: `make` is a named tuple of offset, leader epoch, metadata, time
    of the commit, none of expiry, and the offset of its record."""
    while number > 0:
        number -= 1
        metadata = data[position + 16] - 1
        if metadata < 0:
            metadata = 0
        stop = position + 17 + metadata
        known[_int32(data, position)] = _new(
            make,
            (
                _int64(data, position + 4),
                _int32(data, position + 12),
                bytes(data[position + 17 : stop]).decode() if metadata else "",
                committed_at_ms,
                -1,
                record_offset,
            ),
        )
        record_offset += 1
        position = stop + 1


def commit_answer(data: Buffer, correlation_id: int, topics: Topics, by_id: bool, error: int) -> bytearray:
    """The answer to a commit, with one verdict for all partitions: correlation id, tags, no throttling, topics."""
    size = 10 + _length_size(len(topics))
    for topic, topic_stop, _, number in topics:
        size += topic_stop - topic + _length_size(number) + 7 * number + 1
        if not by_id:
            size += _length_size(topic_stop - topic)
    answer = bytearray(size)
    out = answer
    _put_int32(out, 0, correlation_id)
    at = 9
    at = _put_length(out, at, len(topics))
    for topic, topic_stop, position, number in topics:
        if not by_id:
            at = _put_length(out, at, topic_stop - topic)
        at = _copy(data, topic, topic_stop, out, at)
        at = _put_length(out, at, number)
        left = number
        while left > 0:
            left -= 1
            at = _copy(data, position, position + 4, out, at)
            out[at] = (error >> 8) & 0xFF
            out[at + 1] = error & 0xFF
            at += 3
            metadata = data[position + 16]
            position += 17 + (metadata if metadata else 1)
        at += 1
    return answer


def _length_size(value: int) -> int:
    size = 1
    value += 1
    while value > 0x7F:
        value >>= 7
        size += 1
    return size


def _put_int32(data: bytearray, position: int, value: int) -> None:
    """The low 32 bits, big-endian; the caller has checked that four bytes are there."""
    data[position] = value >> 24 & 0xFF
    data[position + 1] = value >> 16 & 0xFF
    data[position + 2] = value >> 8 & 0xFF
    data[position + 3] = value & 0xFF


def _put_length(out: bytearray, at: int, value: int) -> int:
    """A compact length."""
    value += 1
    while value > 0x7F:
        out[at] = value & 0x7F | 0x80
        value >>= 7
        at += 1
    out[at] = value
    return at + 1
