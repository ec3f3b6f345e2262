# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, annotation_typing=False
"""Produce, Fetch and OffsetCommit requests of flexible versions, from bytes to flat tuples in one pass.

Plain Python that Cython compiles in place, with its C types in read_kernels.pxd, by the rules of records/kernels.py:
every read is checked against the end first. The functions return None for a malformed request, unexpected tagged fields
or too many elements. The compiled message readers then read the request or report the error.
"""

from __future__ import annotations

from typing import Any

from tailrace.protocol.primitives import Buffer

COMPILED = not __file__.endswith(".py")

_STRING_MAX = 0x7FFF


def _int16(data: Buffer, position: int) -> int:
    value = data[position] << 8 | data[position + 1]
    return value - 0x10000 if value >= 0x8000 else value


def _int32(data: Buffer, position: int) -> int:
    high = (data[position] ^ 0x80) - 0x80
    return high * 16777216 + (data[position + 1] << 16 | data[position + 2] << 8 | data[position + 3])


def _int64(data: Buffer, position: int) -> int:
    return (_int32(data, position) + (data[position + 4] >> 7)) * 65536 * 65536 + _int32(data, position + 4)


def _length(data: Buffer, position: int, end: int) -> tuple[int, int]:
    """Return a compact length (one too large), and the position after it: -1 if the length is malformed."""
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
    """Return the start of the body of a request of this API and these flexible versions, or -1 for any other
    request."""
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


def _string(data: Buffer, position: int, end: int) -> tuple[int, int]:
    """Return start and end of a compact string that is not null. The end is -1 if there is none."""
    size, start = _length(data, position, end)
    if start < 0 or size < 1 or size - 1 > _STRING_MAX or start + size - 1 > end:
        return 0, -1
    return start, start + size - 1


def _client_id(frame: Any, data: Buffer) -> str | None:
    size = _int16(data, 8)
    return str(frame[10 : 10 + size], "utf-8") if size >= 0 else None


def _topic_place(data: Buffer, position: int, end: int, by_id: bool) -> tuple[int, int]:
    """Return start and end of a topic's id or name. The end is -1 if there is none."""
    if by_id:
        return position, position + 16 if position + 16 <= end else -1
    return _string(data, position, end)


def _identity(frame: Any, start: int, stop: int, by_id: bool) -> bytes | str:
    return bytes(frame[start:stop]) if by_id else str(frame[start:stop], "utf-8")


def read_flat_produce(frame: Any, elements_max: int) -> tuple[Any, ...] | None:
    """Return (version, correlation id, client id, request) of Produce v9 to v13. The request is the tuple
    (transactional id, acks, timeout, topics, partition count, plain bytes).

    A topic is (name or id, partitions), and a partition is (index, records or None). Records are slices of the frame,
    which is a memoryview. Plain bytes are the size of all records if `is_plain` is true for each, else -1.
    `elements_max` limits the topics and partitions together.
    """
    data = frame
    end = len(data)
    position = _body(data, 0, 9, 13, end)
    if position < 0:
        return None
    version = _int16(data, 2)
    size, start = _length(data, position, end)
    position = start + size - 1 if size > 0 else start
    if start < 0 or position + 7 > end:
        return None
    acks = _int16(data, position)
    timeout_ms = _int32(data, position + 2)
    try:
        transactional_id = str(frame[start:position], "utf-8") if size > 0 else None
        found = _produced_topics(frame, data, position + 6, end, version >= 13, elements_max)
        client_id = _client_id(frame, data)
    except UnicodeDecodeError:
        return None
    if found is None:
        return None
    return version, _int32(data, 4), client_id, (transactional_id, acks, timeout_ms, *found)


def is_plain(data: Buffer, start: int, stop: int) -> bool:
    """Return True for exactly one whole batch of format 2 that is neither compressed nor part of a transaction."""
    if start < 0 or stop - start < 61 or stop > len(data):
        return False
    return data[start + 16] == 2 and not data[start + 22] & 0x17 and _int32(data, start + 8) + 12 == stop - start


def _produced_topics(frame: Any, data: Buffer, position: int, end: int, by_id: bool, left: int) -> Any:
    """Return the topics of a Produce request, the number of partitions and the plain bytes. A topic without partitions
    counts as one. Return None unless the topics end at the end of the request."""
    topics, asked, plain_bytes = [], 0, 0
    count, position = _length(data, position, end)
    if position < 0 or count < 1:
        return None
    while count > 1:
        count -= 1
        start, stop = _topic_place(data, position, end, by_id)
        if stop < 0:
            return None
        topic = _identity(frame, start, stop, by_id)
        number, position = _length(data, stop, end)
        left -= number
        if position < 0 or number < 1 or left < 0:
            return None
        partitions = []
        while number > 1:
            number -= 1
            if position + 4 > end:
                return None
            index = _int32(data, position)
            size, start = _length(data, position + 4, end)
            position = start + size - 1 if size > 0 else start
            if start < 0 or position >= end or data[position]:  # tagged fields
                return None
            partitions.append((index, frame[start:position] if size > 0 else None))
            plain_bytes = plain_bytes + size - 1 if plain_bytes >= 0 and is_plain(data, start, position) else -1
            position += 1
        if position >= end or data[position]:
            return None
        position += 1
        asked += len(partitions) or 1
        topics.append((topic, partitions))
    if position + 1 != end or data[position]:
        return None
    return topics, asked, plain_bytes


def read_flat_fetch(frame: Any, elements_max: int) -> tuple[Any, ...] | None:
    """Return (version, correlation id, client id, request) of Fetch v12 to v18. The request is the tuple (replica id,
    replica epoch, max wait, min bytes, max bytes, isolation level, session id, session epoch, topics, forgotten topics,
    rack, partition count).

    A topic is (name or id, partitions). A partition is (index, leader epoch, offset, last fetched epoch, log start, max
    bytes). A forgotten topic is (name or id, indexes). Tagged fields of partitions are skipped.
    """
    data = frame
    end = len(data)
    position = _body(data, 1, 12, 18, end)
    if position < 0 or position + 25 > end:
        return None
    version = _int16(data, 2)
    replica_id = replica_epoch = -1
    if version < 15:
        replica_id = _int32(data, position)
        position += 4
    first, asked = position, 0
    try:
        topics, forgotten, position = _fetched_topics(frame, data, position + 21, end, version, elements_max)
        if position < 0:
            return None
        start, stop = _string(data, position, end)
        if stop < 0 or stop >= end:
            return None
        rack = str(frame[start:stop], "utf-8") if stop > start else ""
        client_id = _client_id(frame, data)
    except UnicodeDecodeError:
        return None
    if data[stop] == 1 and version >= 15:  # the only expected tagged field is the replica's state: tag 1 with 13 bytes
        if stop + 16 != end or data[stop + 1] != 1 or data[stop + 2] != 13 or data[stop + 15]:
            return None
        replica_id = _int32(data, stop + 3)
        replica_epoch = _int64(data, stop + 7)
    elif data[stop] or stop + 1 != end:
        return None
    for _, named in topics + forgotten:
        asked += len(named) or 1
    wait_ms, least, most = _int32(data, first), _int32(data, first + 4), _int32(data, first + 8)
    isolation, session, epoch = (data[first + 12] ^ 0x80) - 0x80, _int32(data, first + 13), _int32(data, first + 17)
    request = replica_id, replica_epoch, wait_ms, least, most, isolation, session, epoch, topics, forgotten, rack, asked
    return version, _int32(data, 4), client_id, request


def _fetched_topics(
    frame: Any, data: Buffer, position: int, end: int, version: int, left: int
) -> tuple[list[Any], list[Any], int]:
    """Read the topics and the forgotten topics of a Fetch request. The position after them is -1 if they are
    malformed."""
    by_id = version >= 13
    topics: list[Any] = []
    forgotten: list[Any] = []
    kind = 0  # 0: topics, 1: forgotten topics
    while kind < 2:
        count, position = _length(data, position, end)
        if position < 0 or count < 1:
            return topics, forgotten, -1
        while count > 1:
            count -= 1
            start, stop = _topic_place(data, position, end, by_id)
            if stop < 0:
                return topics, forgotten, -1
            topic = _identity(frame, start, stop, by_id)
            number, position = _length(data, stop, end)
            left -= number
            if position < 0 or number < 1 or left < 0:
                return topics, forgotten, -1
            partitions: list[Any] = []
            if kind == 0:
                position = _fetched_partitions(data, position, end, version, number - 1, partitions)
                topics.append((topic, partitions))
            else:
                position = _indexes(data, position, end, number - 1, partitions)
                forgotten.append((topic, partitions))
            if position < 0 or position >= end or data[position]:
                return topics, forgotten, -1
            position += 1
        kind += 1
    return topics, forgotten, position


def _fetched_partitions(data: Buffer, position: int, end: int, version: int, number: int, into: list[Any]) -> int:
    """Read the partitions of a topic. Return their end, or -1 if they are malformed."""
    while number > 0:
        number -= 1
        if position + 33 > end:
            return -1
        into.append(
            (
                _int32(data, position),
                _int32(data, position + 4),
                _int64(data, position + 8),
                _int32(data, position + 16),
                _int64(data, position + 20),
                _int32(data, position + 28),
            )
        )
        position = _after_tags(data, position + 32, end, version)
        if position < 0:
            return -1
    return position


def _indexes(data: Buffer, position: int, end: int, number: int, into: list[Any]) -> int:
    if position + 4 * number > end:
        return -1
    while number > 0:
        number -= 1
        into.append(_int32(data, position))
        position += 4
    return position


def _after_tags(data: Buffer, position: int, end: int, version: int) -> int:
    """Return the end of a partition's tagged fields if they are those that followers send, otherwise -1.

    Tag 0 is a directory id of 16 bytes (from version 17 on), tag 1 a high watermark of 8 bytes (from version 18 on).
    """
    count = data[position]
    position += 1
    previous = -1
    if count > 2:
        return -1
    while count > 0:
        count -= 1
        if position + 2 > end:
            return -1
        tag = data[position]
        size = data[position + 1]
        if tag <= previous:
            return -1
        previous = tag
        if not (tag == 0 and size == 16 and version >= 17) and not (tag == 1 and size == 8 and version >= 18):
            return -1
        position += 2 + size
        if position > end:
            return -1
    return position


def read_flat_offset_commit(frame: Any, elements_max: int) -> tuple[Any, ...] | None:
    """Return (version, correlation id, client id, (group, generation, member, instance, retention time, topics)) of
    OffsetCommit v8 to v10. Retention time and commit time are -1, because these versions have none.

    A topic is (name or id, partitions), a partition (index, offset, leader epoch, metadata or b"", commit time).
    """
    data = frame
    end = len(data)
    position = _body(data, 8, 8, 10, end)
    if position < 0:
        return None
    version = _int16(data, 2)
    group, group_stop = _string(data, position, end)
    if group_stop < 0 or group_stop + 4 > end:
        return None
    generation = _int32(data, group_stop)
    member, member_stop = _string(data, group_stop + 4, end)
    if member_stop < 0 or member_stop >= end:
        return None
    instance, instance_stop = -1, member_stop + 1
    if data[member_stop]:  # not null
        instance, instance_stop = _string(data, member_stop, end)
        if instance_stop < 0:
            return None
    try:
        text = bytes(frame)
        topics = _committed_topics(text, data, instance_stop, end, version >= 10, elements_max)
        if topics is None:
            return None
        group_id = text[group:group_stop].decode()
        member_id = text[member:member_stop].decode()
        instance_id = text[instance:instance_stop].decode() if instance >= 0 else None
        client_id = _client_id(frame, data)
    except UnicodeDecodeError:
        return None
    return version, _int32(data, 4), client_id, (group_id, generation, member_id, instance_id, -1, topics)


def _committed_topics(text: bytes, data: Buffer, position: int, end: int, by_id: bool, left: int) -> list[Any] | None:
    """Read the topics of an OffsetCommit request. Return None unless they end at the end of the request."""
    topics = []
    count, position = _length(data, position, end)
    if position < 0 or count < 1:
        return None
    while count > 1:
        count -= 1
        start, stop = _topic_place(data, position, end, by_id)
        if stop < 0:
            return None
        topic = text[start:stop] if by_id else text[start:stop].decode()
        number, position = _length(data, stop, end)
        left -= number
        if position < 0 or number < 1 or left < 0:
            return None
        partitions: list[Any] = []
        position = _committed_partitions(text, data, position, end, number - 1, partitions)
        if position < 0 or position >= end or data[position]:  # tagged fields
            return None
        position += 1
        topics.append((topic, partitions))
    if position + 1 != end or data[position]:
        return None
    return topics


def _committed_partitions(text: bytes, data: Buffer, position: int, end: int, number: int, into: list[Any]) -> int:
    """Read the partitions of a topic. Return their end, or -1 if they are malformed."""
    while number > 0:
        number -= 1
        if position + 18 > end:
            return -1
        index = _int32(data, position)
        offset = _int64(data, position + 4)
        leader_epoch = _int32(data, position + 12)
        metadata = b""
        stop = position + 17
        if data[position + 16] > 1:  # neither null nor empty
            start, stop = _string(data, position + 16, end)
            if stop < 0 or stop >= end:
                return -1
            metadata = text[start:stop]
            while start < stop and data[start] < 0x80:
                start += 1
            if start < stop:
                metadata.decode()  # raises UnicodeDecodeError
        if data[stop]:  # tagged fields
            return -1
        into.append((index, offset, leader_epoch, metadata, -1))
        position = stop + 1
    return position
