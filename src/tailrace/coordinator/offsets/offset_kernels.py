# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, annotation_typing=False
"""The bytes of committed offsets: the only encoder and the only decoder of their records.

    key    int16 1, group, topic (each an int16 length and UTF-8), int32 partition
    value  int16 version, int64 offset, int32 leader epoch (from 3), metadata, int64 commit time, int64 expiry (only 1),
           tagged fields (4: the topic's id)

Plain Python that Cython compiles in place, with its C types in offset_kernels.pxd, by the rules of records/kernels.py:
every read is checked against the end first. The encoder writes version 4, or version 1 for an offset with an expiry
time. The decoder reads versions 0 to 4, also with the key number 0 of old logs, whose values have version 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tailrace.protocol.errors import MalformedMessage
from tailrace.protocol.primitives import Buffer, read_text

COMPILED = not __file__.endswith(".py")

_STRING_MAX = 0x7FFF
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


def _varint(data: Buffer, position: int, end: int) -> tuple[int, int]:
    """Return (value, next position). The next position is -1 if the bytes end early or the varint is too long."""
    low32 = 0xFFFFFFFF
    raw = 0
    shift = 0
    while shift < 35:
        if position >= end:
            return 0, -1
        byte = data[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            raw &= low32
            value = raw >> 1
            if raw & 1:
                value = -1 - value
            return value, position
        shift += 7
    return 0, -1


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


def _zigzag_size(value: int) -> int:
    size = 1
    while value > 0x3F:
        value >>= 7
        size += 1
    return size


def _put_zigzag(out: bytearray, at: int, value: int) -> int:
    """Write a length or a delta, which is never negative, as a varint. Return the position after it."""
    value *= 2
    while value > 0x7F:
        out[at] = value & 0x7F | 0x80
        value >>= 7
        at += 1
    out[at] = value
    return at + 1


# Encode


def _value_size(metadata_size: int, tags_size: int, expires: bool) -> int:
    if expires:
        return 28 + metadata_size
    return 22 + _length_size(metadata_size) + metadata_size + tags_size


def _body_size(delta: int, key_size: int, value_size: int) -> int:
    """Return the size of a record without its length: attributes, time delta, offset delta, key, value, headers."""
    return 3 + _zigzag_size(delta) + _zigzag_size(key_size) + key_size + _zigzag_size(value_size) + value_size


def offsets_size(partitions: list[Any], delta: int, names: bytes, tags: bytes, expires: bool) -> int:
    """Return the number of bytes that `encode_offsets` writes for the same arguments."""
    total = 0
    key_size = len(names) + 4
    tags_size = len(tags)
    for _, _, _, metadata, _ in partitions:
        size = _body_size(delta, key_size, _value_size(len(metadata), tags_size, expires))
        total += _zigzag_size(size) + size
        delta += 1
    return total


def encode_offsets(
    partitions: list[Any],
    delta: int,
    names: bytes,
    tags: bytes,
    expires: bool,
    expire_ms: int,
    now_ms: int,
    out: bytearray,
    at: int,
) -> int:
    """Write the records of a topic's commits into a batch's payload. Return the position after them.

    A partition is (index, offset, leader epoch, metadata in UTF-8, commit time or -1). `names` is a key without its
    partition, `delta` the first record's offset in the batch. `out` has room for `offsets_size`.
    """
    key_size = len(names) + 4
    tags_size = len(tags)
    for index, offset, leader_epoch, metadata, timestamp_ms in partitions:
        length = len(metadata)
        value_size = _value_size(length, tags_size, expires)
        at = _put_zigzag(out, at, _body_size(delta, key_size, value_size))
        out[at] = 0  # attributes
        out[at + 1] = 0  # the time is the batch's
        at = _put_zigzag(out, at + 2, delta)
        at = _put_zigzag(out, at, key_size)
        at = _copy(names, 0, key_size - 4, out, at)
        _put_int32(out, at, index)
        at = _put_zigzag(out, at + 4, value_size)
        at = _put_int16(out, at, 1 if expires else 4)
        at = _put_int64(out, at, offset)
        if expires:
            at = _put_int16(out, at, length)
        else:
            _put_int32(out, at, leader_epoch)
            at = _put_length(out, at + 4, length)
        at = _copy(metadata, 0, length, out, at)
        at = _put_int64(out, at, now_ms if timestamp_ms == -1 else timestamp_ms)
        at = _put_int64(out, at, expire_ms) if expires else _copy(tags, 0, tags_size, out, at)
        out[at] = 0  # headers
        at += 1
        delta += 1
    return at


# Decode


def _text(chunk: bytes) -> str | None:
    """Decode a string like the message readers. Return None if it exceeds the limit of a string."""
    if len(chunk) > _STRING_MAX:
        return None
    try:
        return chunk.decode()
    except UnicodeDecodeError:
        pass
    try:
        return read_text("a committed offset", chunk, 0)
    except MalformedMessage:
        return None


class OffsetReplay:
    """The decoder: stores the committed offsets in the records of one batch.

    `known_of(group, topic)` returns the dictionary from partitions to offsets that takes a commit, and
    `remove(group, topic, partition)` is called for a record without a value. `make` is a named tuple of offset, leader
    epoch, metadata, commit time, expiry time (-1: none), and the offset of the record.
    """

    def __init__(
        self,
        make: type[Any],
        known_of: Callable[[str, str], dict[int, Any]],
        remove: Callable[[str, str, int], None],
    ) -> None:
        self._make = make
        self._known_of = known_of
        self._remove = remove
        self._names = b""  # the key of the record before, without its partition
        self._group = ""
        self._topic = ""
        self._known: dict[int, Any] | None = None

    def take_payload(self, payload: bytes, count: int, base_offset: int) -> int:
        """Replay the records of a batch up to the first that `take` would refuse, or that has headers or attributes.
        Return the number of replayed records."""
        data = payload
        end = len(data)
        position = 0
        taken = 0
        while taken < count:
            size, position = _varint(data, position, end)
            stop = position + size
            if position < 0 or size < 1 or stop > end:
                return taken
            _, position = _varint(data, position + 1, stop)  # attributes, and the time
            if position < 0:
                return taken
            delta, position = _varint(data, position, stop)
            if position < 0 or delta < 0:
                return taken
            size, key = _varint(data, position, stop)
            if key < 0 or size < 0 or key + size > stop:
                return taken
            key_stop = key + size
            size, value = _varint(data, key_stop, stop)
            value_stop = value + size if size >= 0 else value
            if value < 0 or size < -1 or value_stop + 1 != stop or data[value_stop]:  # no headers
                return taken
            if size < 0:
                value = -1
            if not self._take(payload, data, key, key_stop, value, value_stop, base_offset + delta):
                return taken
            position = stop
            taken += 1
        return taken

    def take(self, key: bytes, value: bytes | None, record_offset: int) -> bool:
        """Replay one record. Return False, with nothing done, if it is not a committed offset or is malformed."""
        size = len(key)
        if value is None:
            return self._take(key, key, 0, size, -1, -1, record_offset)
        record = key + value
        return self._take(record, record, 0, size, size, len(record), record_offset)

    def _take(
        self, record: bytes, data: Buffer, key: int, key_stop: int, value: int, value_stop: int, record_offset: int
    ) -> bool:
        """Replay one record. `data` is the view of `record` that compiled code indexes."""
        if not self._is_named(data, key, key_stop) and not self._read_names(record, data, key, key_stop):
            return False
        names_stop = key + len(self._names)
        partition = _int32(data, names_stop)
        if value < 0:
            self._known = None  # removing the last offset removes the dictionary
            self._remove(self._group, self._topic, partition)
            return True
        committed = self._read_value(record, data, value, value_stop, data[key + 1] == 0, record_offset)
        if committed is None:
            return False
        if self._known is None:
            self._known = self._known_of(self._group, self._topic)
        self._known[partition] = committed
        return True

    def _is_named(self, data: Buffer, start: int, stop: int) -> bool:
        """Return True if a key begins with the group and the topic of the previous record."""
        names = self._names
        size = len(names)
        if size == 0 or start + size + 4 > stop:
            return False
        index = size - 1
        while index >= 0 and names[index] == data[start + index]:
            index -= 1
        return index < 0

    def _read_names(self, record: bytes, data: Buffer, start: int, stop: int) -> bool:
        """Read the group and the topic of a key. Bytes after its partition are ignored."""
        if start + 10 > stop or data[start] or data[start + 1] > 1:
            return False
        group_stop = start + 4 + _int16(data, start + 2)
        if group_stop < start + 4 or group_stop + 6 > stop:
            return False
        names_stop = group_stop + 2 + _int16(data, group_stop)
        if names_stop < group_stop + 2 or names_stop + 4 > stop:
            return False
        group = _text(record[start + 4 : group_stop])
        topic = _text(record[group_stop + 2 : names_stop])
        if group is None or topic is None:
            return False
        self._names = record[start:names_stop]
        self._group = group
        self._topic = topic
        self._known = None
        return True

    def _read_value(
        self, record: bytes, data: Buffer, position: int, stop: int, is_legacy: bool, record_offset: int
    ) -> Any:
        """Return the commit in a value, or None if the value is malformed or has an unknown version."""
        if position + 14 > stop:
            return None
        version = _int16(data, position)
        if version < 0 or version > 4 or (is_legacy and version > 0):
            return None
        offset = _int64(data, position + 2)
        position += 10
        leader_epoch = -1
        if version >= 3:
            leader_epoch = _int32(data, position)
            position += 4
        expire_ms = -1
        after = 8  # behind the metadata
        if version == 4:
            size, position = _length(data, position, stop)
            size -= 1
            after = 9
            if position < 0:
                return None
        else:
            if position + 2 > stop:
                return None
            size = _int16(data, position)
            position += 2
            if version == 1:
                after = 16
        if size < 0 or position + size + after > stop:
            return None
        metadata = ""
        if size > 0:
            text = _text(record[position : position + size])
            if text is None:
                return None
            metadata = text
        position += size
        if version == 1:
            expire_ms = _int64(data, position + 8)
        return _new(self._make, (offset, leader_epoch, metadata, _int64(data, position), expire_ms, record_offset))
