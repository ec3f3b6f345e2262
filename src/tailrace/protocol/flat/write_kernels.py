# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, annotation_typing=False
"""Produce, Fetch and OffsetCommit responses of flexible versions, from flat tuples to bytes in one pass.

Plain Python that Cython compiles in place, with its C types in write_kernels.pxd. The size of a response is computed
first, so every write is within the allocated memory. Rare fields (errors of single records, a diverging epoch, a leader
on another broker) are not written here. Responses with them are converted to messages.
"""

from __future__ import annotations

from typing import Any

COMPILED = not __file__.endswith(".py")

_PRODUCED_SIZE = 33  # a partition of a Produce response
_FETCHED_SIZE = 37  # a partition of a Fetch response without aborted transactions and records
_ABORTED_SIZE = 17
_COMMITTED_SIZE = 7  # a partition of an OffsetCommit response


def _length_size(value: int) -> int:
    size = 1
    value += 1
    while value > 0x7F:
        value >>= 7
        size += 1
    return size


def _put_length(out: bytearray, at: int, value: int) -> int:
    """Write a compact length. Return the position after it."""
    value += 1
    while value > 0x7F:
        out[at] = value & 0x7F | 0x80
        value >>= 7
        at += 1
    out[at] = value
    return at + 1


def _put_int16(out: bytearray, at: int, value: int) -> int:
    out[at] = value >> 8 & 0xFF
    out[at + 1] = value & 0xFF
    return at + 2


def _put_int32(data: bytearray, position: int, value: int) -> None:
    """Write the low 32 bits, big-endian. The caller has checked that there is room for four bytes."""
    data[position] = value >> 24 & 0xFF
    data[position + 1] = value >> 16 & 0xFF
    data[position + 2] = value >> 8 & 0xFF
    data[position + 3] = value & 0xFF


def _put_int64(out: bytearray, at: int, value: int) -> int:
    _put_int32(out, at, value >> 32)
    _put_int32(out, at + 4, value)
    return at + 8


def _copy(data: Any, start: int, stop: int, out: bytearray, at: int) -> int:
    while start < stop:
        out[at] = data[start]
        start += 1
        at += 1
    return at


def _topic_size(name: Any, partitions: int, by_id: bool) -> int:
    """Return the size of a topic without its partitions: name or id, partition count, tags."""
    size = _length_size(partitions) + 1
    if by_id:
        return size + 16
    length = len(name.encode())
    return size + _length_size(length) + length


def _put_topic(out: bytearray, at: int, topic: Any, by_id: bool) -> int:
    if by_id:
        return _copy(topic, 0, 16, out, at)
    name = topic.encode()
    at = _put_length(out, at, len(name))
    return _copy(name, 0, len(name), out, at)


def write_produced(version: int, correlation_id: int, throttle_ms: int, topics: list[Any]) -> bytearray | None:
    """Return a Produce response of version 9 to 13 with its header.

    A topic is (name or id, partitions), and a partition has the attributes of a `ProducedPartition`. Return None if a
    partition has an error message or errors of single records.
    """
    by_id = version >= 13
    size = 10 + _length_size(len(topics))
    for topic, partitions in topics:
        size += _topic_size(topic, len(partitions), by_id) + _PRODUCED_SIZE * len(partitions)
    response = bytearray(size)
    out = response
    _put_int32(out, 0, correlation_id)
    at = _put_length(out, 5, len(topics))
    for topic, partitions in topics:
        at = _put_topic(out, at, topic, by_id)
        at = _put_length(out, at, len(partitions))
        for one in partitions:
            if one.message is not None or one.record_errors:
                return None
            _put_int32(out, at, one.index)
            at = _put_int16(out, at + 4, one.error)
            at = _put_int64(out, at, one.first_offset)
            at = _put_int64(out, at, one.append_time_ms)
            at = _put_int64(out, at, one.log_start)
            out[at] = 1  # no record errors; then no error message and no tags
            at += 3
        at += 1
    _put_int32(out, at, throttle_ms)
    return response


def write_fetched(
    version: int, correlation_id: int, throttle_ms: int, error: int, session_id: int, topics: list[Any]
) -> list[Any] | None:
    """Return a Fetch response of version 12 to 18 with its header, as parts: bytes, and slices of files.

    A topic is (name, id, partitions), and a partition is a `PartitionAnswer` of flat/fetch.py. Records are bytes, or a
    slice, which becomes a separate part. Return None if a partition has a diverging epoch or a leader on another
    broker.
    """
    by_id = version >= 13
    size = _fetched_size(topics, by_id)
    if size < 0:
        return None
    text = bytearray(size)
    out = text
    view = memoryview(text)
    parts: list[Any] = []
    _put_int32(out, 0, correlation_id)
    _put_int32(out, 5, throttle_ms)
    _put_int16(out, 9, error)
    _put_int32(out, 11, session_id)
    at = _put_length(out, 15, len(topics))
    begun = 0
    for name, topic_id, partitions in topics:
        at = _put_topic(out, at, topic_id if by_id else name, by_id)
        at = _put_length(out, at, len(partitions))
        for index, code, high_watermark, last_stable, log_start, aborted, preferred, records, _, _ in partitions:
            _put_int32(out, at, index)
            at = _put_int16(out, at + 4, code)
            at = _put_int64(out, at, high_watermark)
            at = _put_int64(out, at, last_stable)
            at = _put_int64(out, at, log_start)
            at = at + 1 if aborted is None else _put_aborted(out, at, aborted)
            _put_int32(out, at, preferred)
            length = len(records)
            at = _put_length(out, at + 4, length)
            if isinstance(records, bytes):
                at = _copy(records, 0, length, out, at)
            else:
                parts.append(view[begun:at])
                parts.append(records)
                begun = at
            at += 1  # no tags
        at += 1
    parts.append(view[begun:] if begun else text)
    return parts


def _fetched_size(topics: list[Any], by_id: bool) -> int:
    """Return the size of a Fetch response without slices, or -1 if a partition has a field that is not written here."""
    size = 16 + _length_size(len(topics))
    for name, _, partitions in topics:
        size += _topic_size(name, len(partitions), by_id)
        for _, _, _, _, _, aborted, _, records, diverging, leader in partitions:
            if diverging is not None or leader is not None:
                return -1
            length = len(records)
            size += _FETCHED_SIZE + _length_size(length) - 1
            if aborted is not None:
                size += _length_size(len(aborted)) - 1 + _ABORTED_SIZE * len(aborted)
            if isinstance(records, bytes):
                size += length
    return size


def _put_aborted(out: bytearray, at: int, aborted: list[tuple[int, int]]) -> int:
    at = _put_length(out, at, len(aborted))
    for producer_id, first_offset in aborted:
        at = _put_int64(out, at, producer_id)
        at = _put_int64(out, at, first_offset)
        at += 1  # no tags
    return at


def write_committed(version: int, correlation_id: int, throttle_ms: int, topics: list[Any]) -> bytearray:
    """Return an OffsetCommit response of version 8 to 10 with its header.

    A topic is (name or id, partitions, errors). Partitions begin with their index. Errors are a list with a code for
    each partition, or one code for all.
    """
    by_id = version >= 10
    size = 10 + _length_size(len(topics))
    for topic, partitions, _ in topics:
        size += _topic_size(topic, len(partitions), by_id) + _COMMITTED_SIZE * len(partitions)
    response = bytearray(size)
    out = response
    _put_int32(out, 0, correlation_id)
    _put_int32(out, 5, throttle_ms)
    at = _put_length(out, 9, len(topics))
    for topic, partitions, errors in topics:
        at = _put_topic(out, at, topic, by_id)
        at = _put_length(out, at, len(partitions))
        has_errors = isinstance(errors, list)
        code = 0 if has_errors else errors
        place = 0
        for index, _, _, _, _ in partitions:
            if has_errors:
                code = errors[place]
                place += 1
            _put_int32(out, at, index)
            at = _put_int16(out, at + 4, code)
            at += 1  # no tags
        at += 1
    return response
