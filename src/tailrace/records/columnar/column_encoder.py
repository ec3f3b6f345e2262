# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, annotation_typing=False
"""Columns to record batches: the reverse of `columns.py`.

Plain Python that Cython compiles in place, with its C types in column_encoder.pxd. The rules of `kernels.py` apply.
This module does not use Arrow: a column is its buffers, and no object is made per record.

`choose_batches` selects a batch for each row: that of the row's own partition, or of the partition that Kafka's default
partitioner chooses for its key, or one for all rows without a key. `encode_rows` encodes rows into their batches. It
stops at a row that would make its batch larger than the limit, which the caller then seals and sends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tailrace.records.batch import Buffer

COMPILED = not __file__.endswith(".py")
_NATIVE = COMPILED

HEADER_ROOM = 61  # space for a batch's header, which is written when the batch is sealed
_HEADER_ROOM = HEADER_ROOM
_ROOM_AT_FIRST = 16384
_LENGTH_MAX = 0x7FFFFFFF
_MICROS = 1000
_OUTSIDE = -2  # the length of a value that does not lie within its column's data

NO_ROW = -1


class Column:
    """The validity of rows in some buffers.

    `first` is the index of the column's first row in the buffers. `rows` is the number of its rows in the buffers.
    """

    def __init__(self, validity: Buffer | None, first: int, available: int) -> None:
        if first < 0:
            raise ValueError(f"{first} rows cannot come before a column's first")
        self._has_validity = validity is not None
        self.validity: Any = memoryview(b"\xff" if validity is None else validity).cast("B")
        self.first = first
        self.rows = (available if validity is None else min(available, 8 * len(self.validity))) - first

    def _is_there(self, row: int) -> bool:
        at = row + self.first
        return not self._has_validity or self.validity[at >> 3] >> (at & 7) & 1 != 0


class SpanColumn(Column):
    """The ends of the contents of each row, and the total size of the contents."""

    def __init__(self, ends: Buffer, validity: Buffer | None, first: int, size: int) -> None:
        self.ends = memoryview(ends).cast("B").cast("i")
        self.size = size
        Column.__init__(self, validity, first, len(self.ends) - 1)

    def _start(self, row: int) -> int:
        return self.ends[row + self.first]

    def _length(self, row: int) -> int:
        """Return the length of a row's content: -1 for null, _OUTSIDE if its ends do not lie within the contents."""
        if not self._is_there(row):
            return -1
        start = self.ends[row + self.first]
        end = self.ends[row + self.first + 1]
        return _OUTSIDE if start < 0 or end < start or end > self.size else end - start


class BytesInput(SpanColumn):
    """Byte strings, some of them null: the end of each, the contents one after the other, a validity bit per row."""

    def __init__(self, ends: Buffer, data: Buffer, validity: Buffer | None, first: int = 0) -> None:
        SpanColumn.__init__(self, ends, validity, first, len(data))
        self._kept = memoryview(data).cast("B") if len(data) else memoryview(b"\0")
        if not _NATIVE:
            self.data: Buffer = self._kept
        else:
            self.data = _source_address(self._kept)  # type: ignore[name-defined]  # noqa: F821


class IntInput(Column):
    """Integers of 4 or 8 bytes, some of them null."""

    def __init__(self, data: Buffer, width: int, validity: Buffer | None, first: int = 0) -> None:
        view = memoryview(data).cast("B")
        Column.__init__(self, validity, first, len(view) // width)
        self.width = width
        self.ints = view.cast("i") if width == 4 else memoryview(b"").cast("i")
        self.longs = view.cast("q") if width == 8 else memoryview(b"").cast("q")

    def _get(self, row: int) -> int:
        return self.longs[row + self.first] if self.width == 8 else self.ints[row + self.first]


class HeadersInput(SpanColumn):
    """A list of headers for each row: the end of each list, and all keys and values one after the other."""

    def __init__(
        self, ends: Buffer, validity: Buffer | None, names: BytesInput, contents: BytesInput, first: int = 0
    ) -> None:
        SpanColumn.__init__(self, ends, validity, first, min(names.rows, contents.rows))
        self.names = names
        self.contents = contents


def _check_rows(end: int, **columns: Any) -> None:
    """Raise ValueError if a column has fewer rows than `end`."""
    for name, column in columns.items():
        if column is not None and column.rows < end:
            raise ValueError(f"the buffers of {name} hold {column.rows} rows, and {end} are needed")


class OpenBatch:
    """A batch that is being filled: space for its header, then records."""

    def __init__(self) -> None:
        self.room = _ROOM_AT_FIRST
        self.restart()

    def restart(self) -> None:
        """Begin another batch. The caller owns the buffer of the last one."""
        self.buffer = bytearray(self.room)
        self.size = _HEADER_ROOM
        self.count = 0
        self.base_offset = 0
        self.last_offset = -1
        self.base_timestamp = 0
        self.max_timestamp = 0
        self._point()

    def _point(self) -> None:
        view = memoryview(self.buffer)
        if not _NATIVE:
            self._out: Any = view
        else:
            self._out = _target_address(view)  # type: ignore[name-defined]  # noqa: F821

    def _reserve(self, size: int) -> None:
        if self.size + size > self.room:
            room = max(2 * self.room, self.size + size)
            grown = bytearray(room)
            grown[: self.size] = memoryview(self.buffer)[: self.size]
            self.buffer = grown
            self.room = room
            self._point()

    def _put_varint(self, value: int) -> None:
        """Write a signed varint. The caller has reserved the space."""
        negative = value < 0
        folded = -1 - value if negative else value
        folded = folded * 2 + negative
        at = self.size
        while folded > 0x7F:
            self._out[at] = folded & 0x7F | 0x80
            folded >>= 7
            at += 1
        self._out[at] = folded
        self.size = at + 1

    def _put_bytes(self, column: BytesInput, row: int, length: int) -> None:
        """Write a length and the bytes, or the length -1 for null. The caller has reserved the space."""
        self._put_varint(length)
        if length > 0:
            start = column._start(row)
            if _NATIVE:
                _copy_bytes(self._out, self.size, column.data, start, length)  # type: ignore[name-defined]  # noqa: F821
            else:
                self._out[self.size : self.size + length] = column.data[start : start + length]
            self.size += length


def _varint_size(value: int) -> int:
    """Return the size of a signed value as a zigzag varint."""
    negative = value < 0
    folded = -1 - value if negative else value
    folded = folded * 2 + negative
    size = 1
    while folded > 0x7F:
        folded >>= 7
        size += 1
    return size


def _sized(length: int) -> int:
    """Return the size of a string with its length before it."""
    return _varint_size(length) + (length if length > 0 else 0)


def _headers_size(headers: HeadersInput, row: int) -> int:
    """Return the size of a row's headers with their count: -1 for a null key, _OUTSIDE for one outside the data."""
    count = headers._length(row)
    if count == _OUTSIDE:
        return _OUTSIDE
    count = max(count, 0)
    size = _varint_size(count)
    at = headers._start(row)
    end = at + count
    while at < end:
        length = headers.names._length(at)
        if length < 0:
            return length
        size += _sized(length)
        length = headers.contents._length(at)
        if length < -1:
            return length
        size += _sized(length)
        at += 1
    return size


def _put_headers(batch: OpenBatch, headers: HeadersInput, row: int) -> None:
    count = max(headers._length(row), 0)
    batch._put_varint(count)
    at = headers._start(row)
    end = at + count
    while at < end:
        batch._put_bytes(headers.names, at, headers.names._length(at))
        batch._put_bytes(headers.contents, at, headers.contents._length(at))
        at += 1


def _byte(data: Buffer, position: int) -> int:
    return data[position]


def _murmur2(data: Buffer, start: int, length: int) -> int:
    """Return the 32-bit hash of a key that Kafka's default partitioner uses."""
    low32 = 0xFFFFFFFF
    m = 0x5BD1E995
    h = 0x9747B28C ^ length
    position = start
    tail = start + (length & ~3)
    while position < tail:
        k = _byte(data, position) | _byte(data, position + 1) << 8
        k |= _byte(data, position + 2) << 16 | _byte(data, position + 3) << 24
        k = k * m & low32
        k = (k ^ k >> 24) * m & low32
        h = (h * m & low32) ^ k
        position += 4
    left = length & 3
    if left > 2:
        h ^= _byte(data, position + 2) << 16
    if left > 1:
        h ^= _byte(data, position + 1) << 8
    if left > 0:
        h = (h ^ _byte(data, position)) * m & low32
    h = (h ^ h >> 13) * m & low32
    return h ^ h >> 15


def _digest(data: Buffer, start: int, length: int, seed: int) -> int:
    """Return 64 bits that depend on every byte, to check that a retried task got the same rows."""
    low64 = 0xFFFFFFFFFFFFFFFF
    prime = 0x9E3779B97F4A7C15
    h = (seed ^ length & low64) * prime & low64
    position = start
    end = start + length
    while position + 4 <= end:
        k = _byte(data, position) | _byte(data, position + 1) << 8
        k |= _byte(data, position + 2) << 16 | _byte(data, position + 3) << 24
        h = (h ^ k) * prime & low64
        h ^= h >> 29
        position += 4
    while position < end:
        h = (h ^ _byte(data, position)) * prime & low64
        h ^= h >> 29
        position += 1
    return h


def choose_batches(
    targets: Any,
    rows: int,
    keys: BytesInput | None,
    partitions: IntInput | None,
    topics: IntInput | None,
    counts: Any,
    firsts: Any,
    keyless: Any,
) -> int:
    """Fill `targets` (an int32 per row) with each row's batch index. Return the first row without one, or NO_ROW.

    `topics` has the index of each row's topic; without it every row has topic 0. Indexed by topic, `counts` has the
    number of partitions, `firsts` the batch of partition 0, and `keyless` the partition for rows without a key. A row
    has no batch if its topic is null or its partition does not exist. Raises ValueError if a buffer is too small.
    """
    _check_rows(rows, keys=keys, partitions=partitions, topics=topics)
    out = memoryview(targets).cast("B").cast("i")
    topic_counts = memoryview(counts).cast("B").cast("i")
    topic_firsts = memoryview(firsts).cast("B").cast("i")
    topic_keyless = memoryview(keyless).cast("B").cast("i")
    known = min(len(topic_counts), len(topic_firsts), len(topic_keyless))
    if len(out) < rows:
        raise ValueError(f"there is room for the batches of {len(out)} rows, and {rows} are needed")
    topic = 0
    row = 0
    while row < rows:
        if topics is not None:
            if not topics._is_there(row):
                return row
            topic = topics._get(row)
        if topic < 0 or topic >= known:
            raise ValueError(f"row {row} has topic {topic} of {known}")
        count = topic_counts[topic]
        length = -1 if keys is None else keys._length(row)
        if count < 1 or length < -1:
            return row
        if partitions is not None and partitions._is_there(row):
            chosen = partitions._get(row)
            if chosen < 0 or chosen >= count:
                return row
        elif keys is not None and length >= 0:
            chosen = (_murmur2(keys.data, keys._start(row), length) & 0x7FFFFFFF) % count
        else:
            chosen = topic_keyless[topic]
        out[row] = topic_firsts[topic] + chosen
        row += 1
    return NO_ROW


class RowEncoder:
    """Encodes rows into batches, and keeps their count and their digest.

    `digest` does not depend on the order of rows, nor on their distribution over batches.
    """

    def __init__(self, limit: int) -> None:
        """`limit` is the largest size of a batch in bytes. A larger record becomes a batch of its own."""
        self.limit = limit
        self.rows = 0
        self.digest = 0

    def lower_limit(self, limit: int) -> None:
        """Lower the largest size of a batch, because the broker has refused one."""
        self.limit = min(self.limit, limit)

    def encode_rows(
        self,
        batches: Sequence[OpenBatch],
        targets: Any,
        keys: BytesInput | None,
        values: BytesInput,
        headers: HeadersInput | None,
        times: IntInput | None,
        now_ms: int,
        start: int,
        end: int,
        offsets: IntInput | None = None,
    ) -> int:
        """Encode rows from `start` on into their batches. Return the first row whose batch has no room, or `end`.

        `times` are microseconds. Records have the offsets 0, 1, 2, … unless `offsets` is given, which may have gaps.
        Raises ValueError for a record that is not allowed: a header without a key, a time before 1970, or an offset
        that does not increase. Also raises it for buffers that do not contain the data that their ends refer to.
        """
        low64 = 0xFFFFFFFFFFFFFFFF
        _check_rows(end, keys=keys, values=values, headers=headers, times=times, offsets=offsets)
        chosen = memoryview(targets).cast("B").cast("i")
        if start < 0 or end > len(chosen):
            raise ValueError(f"rows {start} to {end} are not among the {len(chosen)} that have a batch")
        row = start
        while row < end:
            number = chosen[row]
            if number < 0 or number >= len(batches):
                raise ValueError(f"row {row} has batch {number} of {len(batches)}")
            batch = batches[number]
            timestamp = now_ms
            if times is not None and times._is_there(row):
                timestamp = times._get(row)
                if timestamp < 0:
                    raise ValueError(f"row {row} has a timestamp before 1970")
                timestamp = timestamp // _MICROS
            key_length = -1 if keys is None else keys._length(row)
            value_length = values._length(row)
            if key_length < -1 or value_length < -1:
                raise ValueError(f"row {row} has a key or a value outside its column's data")
            delta = 0 if batch.count == 0 else timestamp - batch.base_timestamp
            offset = batch.count if offsets is None else offsets._get(row)
            place = batch.count
            if offsets is not None:
                if offset < 0:
                    raise ValueError(f"row {row} has the negative offset {offset}")
                if batch.count > 0 and offset <= batch.last_offset:
                    raise ValueError(f"row {row} has offset {offset}, which does not follow {batch.last_offset}")
                place = 0 if batch.count == 0 else offset - batch.base_offset
                if place > _LENGTH_MAX:
                    return row
            size = 1 + _varint_size(delta) + _varint_size(place) + _sized(key_length) + _sized(value_length)
            if headers is None:
                size += 1
            else:
                headers_size = _headers_size(headers, row)
                if headers_size < 0:
                    what = "without a key" if headers_size == -1 else "outside its column's data"
                    raise ValueError(f"row {row} has a header {what}")
                size += headers_size
            if size > _LENGTH_MAX - _HEADER_ROOM - 5:
                raise ValueError(f"row {row} makes a record of {size} bytes")
            if batch.count > 0 and batch.size + size + 5 > self.limit:
                return row
            batch._reserve(size + 5)
            if batch.count == 0:
                batch.base_offset = offset
                batch.base_timestamp = timestamp
                batch.max_timestamp = timestamp
            elif timestamp > batch.max_timestamp:
                batch.max_timestamp = timestamp
            batch._put_varint(size)
            batch._out[batch.size] = 0
            batch.size += 1
            batch._put_varint(delta)
            batch._put_varint(place)
            seed = 1
            if keys is None or key_length < 0:
                batch._put_varint(-1)
            else:
                batch._put_bytes(keys, row, key_length)
                seed = _digest(keys.data, keys._start(row), key_length, 2)
            batch._put_bytes(values, row, value_length)
            if value_length >= 0:
                seed = _digest(values.data, values._start(row), value_length, seed)
            if headers is None:
                batch._put_varint(0)
            else:
                _put_headers(batch, headers, row)
            batch.last_offset = offset
            batch.count += 1
            self.rows += 1
            self.digest = (self.digest + seed) & low64
            row += 1
        return end
