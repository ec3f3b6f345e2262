# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, annotation_typing=False
"""The requests that come most, read in one go: a Produce of one batch, a Fetch of one partition without a session.

Plain Python that Cython compiles in place, with its C types in request_kernels.pxd, by the rules of records/kernels.py:
every read is checked against the end first. A request that is anything else, or is malformed, gives None, and the
compiled message readers say what it is.
"""

from __future__ import annotations

from tailrace.protocol.primitives import Buffer

COMPILED = not __file__.endswith(".py")

Produced = tuple[int, int, int, int, int, int, int, int]
Fetched = tuple[int, int, int, int, int, int, int, int, int, int, int, int]


def _int16(data: Buffer, position: int) -> int:
    value = data[position] << 8 | data[position + 1]
    return value - 0x10000 if value >= 0x8000 else value


def _int32(data: Buffer, position: int) -> int:
    high = data[position]
    if high >= 0x80:
        high -= 0x100
    return high * 0x1000000 + (data[position + 1] << 16 | data[position + 2] << 8 | data[position + 3])


def _int64(data: Buffer, position: int) -> int:
    high = _int32(data, position)
    low = data[position + 4]
    return high * 0x100000000 + (
        low * 0x1000000 + (data[position + 5] << 16 | data[position + 6] << 8 | data[position + 7])
    )


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


def read_fetch(data: Buffer) -> Fetched | None:
    """(version, correlation id, most to wait, fewest and most bytes, isolation level, topic's start and stop,
    partition, leader epoch, offset, partition's most bytes) of Fetch v12 to v18.

    A consumer's, without a session; one partition, no last fetched epoch, no tagged fields.
    """
    end = len(data)
    position = _body(data, 1, 12, 18, end)
    if position < 0:
        return None
    version = _int16(data, 2)
    if version < 15:
        if position + 4 > end or _int32(data, position) != -1:
            return None
        position += 4
    if position + 21 > end:
        return None
    wait_ms = _int32(data, position)
    least = _int32(data, position + 4)
    most = _int32(data, position + 8)
    isolation = data[position + 12]
    if isolation > 1 or _int32(data, position + 13) != 0 or _int32(data, position + 17) != -1:
        return None
    topic, position = _topic(data, position + 21, end, version >= 13)
    if position < 0 or position + 33 > end:
        return None
    topic_stop = position - 1
    index = _int32(data, position)
    epoch = _int32(data, position + 4)
    offset = _int64(data, position + 8)
    if _int32(data, position + 16) >= 0:
        return None
    partition_most = _int32(data, position + 28)
    position += 32
    # Tags of the partition and of the topic, forgotten topics, rack, tags.
    if position + 5 > end or data[position] or data[position + 1] or data[position + 2] != 1:
        return None
    rack, position = _length(data, position + 3, end)
    if position < 0 or rack == 0 or position + rack != end or data[end - 1]:
        return None
    return (
        version,
        _int32(data, 4),
        wait_ms,
        least,
        most,
        isolation,
        topic,
        topic_stop,
        index,
        epoch,
        offset,
        partition_most,
    )
