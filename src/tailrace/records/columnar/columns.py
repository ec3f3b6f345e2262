# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, annotation_typing=False
"""Record batches to columns: the records that a consumer may see, as the buffers of Arrow arrays.

Plain Python that Cython compiles in place, with its C types in columns.pxd. The rules of `kernels.py` apply. This
module does not use Arrow. A column is its buffers: the ends of the contents, the contents, and a validity bit per row.
The caller's `allocate` provides the memory, and no object is made per record.

`RecordColumns.put_batches` reads whole batches from a chunk of a log or of a Fetch response. It checks the checksum of
every batch from which it takes records. It leaves out control batches, aborted transactions, records outside the
bounds, and columns that were not requested. Messages of formats 0 and 1 take a slower path, through `legacy.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tailrace.records.batch import Buffer, Codec, CorruptBatch
from tailrace.records.codecs.crc32c import crc32c
from tailrace.records.codecs.decompression import decompress
from tailrace.records.legacy import Message
from tailrace.records.utf8 import decode_utf8

COMPILED = not __file__.endswith(".py")
_NATIVE = COMPILED

# The columns that can be requested, one bit each.
OFFSET = 1
TIMESTAMP = 2  # microseconds since 1970
TIMESTAMP_TYPE = 4
KEY = 8
VALUE = 16
HEADERS = 32
LEADER_EPOCH = 64
PRODUCER_ID = 128
PRODUCER_EPOCH = 256
BASE_SEQUENCE = 512
BATCH_OFFSET = 1024  # the batch's base offset
BATCH_SIZE = 2048
ATTRIBUTES = 4096  # of the batch

_OFFSET = OFFSET
_TIMESTAMP = TIMESTAMP
_TIMESTAMP_TYPE = TIMESTAMP_TYPE
_KEY = KEY
_VALUE = VALUE
_HEADERS = HEADERS
_LEADER_EPOCH = LEADER_EPOCH
_PRODUCER_ID = PRODUCER_ID
_PRODUCER_EPOCH = PRODUCER_EPOCH
_BASE_SEQUENCE = BASE_SEQUENCE
_BATCH_OFFSET = BATCH_OFFSET
_BATCH_SIZE = BATCH_SIZE
_ATTRIBUTES = ATTRIBUTES

LONG_COLUMNS = OFFSET | TIMESTAMP | PRODUCER_ID | BATCH_OFFSET
INT_COLUMNS = TIMESTAMP_TYPE | LEADER_EPOCH | PRODUCER_EPOCH | BASE_SEQUENCE | BATCH_SIZE | ATTRIBUTES

_BYTES_MAX = 0x7FFFFFFF  # Arrow counts the bytes of a column in 32 bits
_MICROS_MAX = 9223372036854775
_SMALLEST_RECORD = 7
_ROWS_AT_FIRST = 1024
_BYTES_AT_FIRST = 16384

Allocate = Callable[[int], Any]  # returns that number of writable bytes, not initialized
AbortedRanges = Mapping[int, Sequence[tuple[int, int]]]  # producer id → [(first offset, last offset)]


# --- integers -------------------------------------------------------------------------------------------------------


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


def _varlong(data: Buffer, position: int, end: int) -> tuple[int, int]:
    """Like _varint, for 64 bits: at most ten bytes; bits beyond the 64th are dropped."""
    raw = 0
    shift = 0
    while shift < 63:
        if position >= end:
            return 0, -1
        byte = data[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            value = raw >> 1
            if raw & 1:
                value = -1 - value
            return value, position
        shift += 7
    if position >= end:
        return 0, -1
    byte = data[position]
    if byte >= 0x80:
        return 0, -1
    raw |= (byte & 1) << 63
    value = raw >> 1
    if raw & 1:
        value = -1 - value
    return value, position + 1


def _add(a: int, b: int) -> int:
    """Return a + b with the overflow of Java's long."""
    last = 0x7FFFFFFFFFFFFFFF
    if b > 0 and a > last - b:
        return (a - last - 1) + (b - last - 1)
    if b < 0 and a < -1 - last - b:
        return (a + last + 1) + (b + last + 1)
    return a + b


def _int32(data: Buffer, position: int) -> int:
    """Return a signed big-endian integer. The caller has checked that there are four bytes."""
    high = (data[position] ^ 0x80) - 0x80
    return high * 16777216 + (data[position + 1] << 16 | data[position + 2] << 8 | data[position + 3])


def _uint32(data: Buffer, position: int) -> int:
    return _int32(data, position) & 0xFFFFFFFF


def _int64(data: Buffer, position: int) -> int:
    return (_int32(data, position) + (data[position + 4] >> 7)) * 65536 * 65536 + _int32(data, position + 4)


def _is_ascii(data: Buffer, start: int, size: int) -> bool:
    for index in range(size):  # noqa: SIM110
        if data[start + index] >= 0x80:
            return False
    return True


def _broken(index: int, position: int) -> CorruptBatch:
    return CorruptBatch(f"record {index} is broken at byte {position} of the batch's records")


def _timeless(offset: int, timestamp: int) -> CorruptBatch:
    return CorruptBatch(f"the timestamp {timestamp} of offset {offset} does not fit into 64 bits as microseconds")


def _decompressed(code: int, payload: memoryview) -> bytes:
    if code > Codec.ZSTD:
        raise CorruptBatch(f"unknown compression codec {code}")
    return decompress(Codec(code), payload)


# --- columns --------------------------------------------------------------------------------------------------------


class BytesColumn:
    """Byte strings, some of them null: the end of each, the contents one after the other, and a validity bit
    per row."""

    def __init__(self, allocate: Allocate) -> None:
        self._allocate = allocate
        self.row_room = _ROWS_AT_FIRST
        self.byte_room = _BYTES_AT_FIRST
        self.reset()

    def reset(self) -> None:
        """Allocate new buffers of the same size. The caller owns the old ones."""
        self.offsets_buffer = self._allocate(4 * (self.row_room + 1))
        self.data_buffer = self._allocate(self.byte_room)
        self.validity_buffer = self._allocate(self.row_room // 8)
        memoryview(self.validity_buffer).cast("B")[:] = b"\xff" * (self.row_room // 8)
        self.rows = 0
        self.size = 0
        self.nulls = 0
        self._point()
        self._offsets[0] = 0

    def _point(self) -> None:
        """Take the addresses of the buffers."""
        self._offsets = memoryview(self.offsets_buffer).cast("B").cast("i")
        self._validity = memoryview(self.validity_buffer).cast("B")
        data = memoryview(self.data_buffer).cast("B")
        if not _NATIVE:
            self._data = data
        else:
            self._data = _target_address(data)  # type: ignore[name-defined]  # noqa: F821

    def reserve(self, rows: int, size: int) -> None:
        """Make room for more rows and bytes."""
        if self.rows + rows <= self.row_room and self.size + size <= self.byte_room:
            return
        if self.size + size > _BYTES_MAX:
            raise CorruptBatch(f"{self.size + size} bytes of keys or values are more than a column holds")
        if self.rows + rows > self.row_room:
            room = max(2 * self.row_room, (self.rows + rows + 7) // 8 * 8)
            self.offsets_buffer = self._grown(self.offsets_buffer, 4 * (self.rows + 1), 4 * (room + 1))
            before = self.row_room // 8
            self.validity_buffer = self._grown(self.validity_buffer, before, room // 8)
            memoryview(self.validity_buffer).cast("B")[before:] = b"\xff" * (room // 8 - before)
            self.row_room = room
        if self.size + size > self.byte_room:
            room = max(2 * self.byte_room, self.size + size)
            self.data_buffer = self._grown(self.data_buffer, self.size, room)
            self.byte_room = room
        self._point()

    def _grown(self, buffer: Any, used: int, size: int) -> Any:
        grown = self._allocate(size)
        memoryview(grown).cast("B")[:used] = memoryview(buffer).cast("B")[:used]
        return grown

    def _put(self, data: Buffer, start: int, length: int) -> None:
        """Append data[start:start + length], or null if the length is negative. The caller has reserved the space."""
        at = self.size
        if length < 0:
            self._validity[self.rows >> 3] &= ~(1 << (self.rows & 7)) & 0xFF
            self.nulls += 1
        elif _NATIVE:
            _copy_bytes(self._data, at, data, start, length)  # type: ignore[name-defined]  # noqa: F821
            self.size = at + length
        else:
            self._data[at : at + length] = data[start : start + length]
            self.size = at + length
        self.rows += 1
        self._offsets[self.rows] = self.size

    def put(self, value: bytes | None) -> None:
        """Append one value and reserve its space."""
        self.reserve(1, 0 if value is None else len(value))
        if value is None:
            self._put(b"", 0, -1)
        else:
            self._put(value, 0, len(value))


class IntColumn:
    """Integers of 4 or 8 bytes. The caller keeps their number."""

    def __init__(self, allocate: Allocate, width: int) -> None:
        self._allocate = allocate
        self.width = width
        self.room = _ROWS_AT_FIRST
        self.reset()

    def reset(self) -> None:
        self.buffer = self._allocate(self.width * self.room)
        self._point()

    def _point(self) -> None:
        view = memoryview(self.buffer).cast("B")
        if self.width == 8:
            self.longs = view.cast("q")
        else:
            self.ints = view.cast("i")

    def reserve(self, rows: int, used: int) -> None:
        """Make room for `rows` rows in total, of which `used` are filled."""
        if rows > self.room:
            room = max(2 * self.room, rows)
            grown = self._allocate(self.width * room)
            size = self.width * used
            memoryview(grown).cast("B")[:size] = memoryview(self.buffer).cast("B")[:size]
            self.buffer = grown
            self.room = room
            self._point()

    def _fill(self, start: int, end: int, value: int) -> None:
        if self.width == 8:
            for row in range(start, end):
                self.longs[row] = value
        else:
            for row in range(start, end):
                self.ints[row] = value


class RecordColumns:
    """The columns of the records in [start_offset, end_offset) with a time in [min_timestamp, max_timestamp].

    `aborted` has the transactions to leave out. After `put_batches`, `is_full` means that the caller has to take the
    columns and call `reset`. `is_done` means that end_offset was reached. `next_offset` is the offset to continue at.
    """

    def __init__(
        self,
        wanted: int,
        start_offset: int,
        end_offset: int,
        *,
        min_timestamp: int = -0x8000000000000000,
        max_timestamp: int = 0x7FFFFFFFFFFFFFFF,
        aborted: AbortedRanges | None = None,
        max_rows: int = 1_000_000,
        max_bytes: int = 16_777_216,
        allocate: Allocate = bytearray,
    ) -> None:
        self.wanted = wanted
        self.start_offset = start_offset
        self.end_offset = end_offset
        self.min_timestamp = min_timestamp
        self.max_timestamp = max_timestamp
        self.aborted = aborted or {}
        self.max_rows = max_rows
        self.max_bytes = max_bytes
        self._allocate = allocate
        self._wants_facts = wanted & (INT_COLUMNS | _PRODUCER_ID | _BATCH_OFFSET) & ~_TIMESTAMP_TYPE != 0
        self.next_offset = start_offset
        self.is_done = False
        self.records_read = 0
        self.columns: dict[int, Any] = {
            bit: IntColumn(allocate, 8 if bit & LONG_COLUMNS else 4)
            for bit in (1 << shift for shift in range(13))
            if bit & wanted & (LONG_COLUMNS | INT_COLUMNS)
        }
        self._offset: Any = self.columns.get(_OFFSET)
        self._timestamp: Any = self.columns.get(_TIMESTAMP)
        self._timestamp_type: Any = self.columns.get(_TIMESTAMP_TYPE)
        self._key: Any = BytesColumn(allocate) if wanted & _KEY else None
        self._value: Any = BytesColumn(allocate) if wanted & _VALUE else None
        for bit, column in ((KEY, self._key), (VALUE, self._value)):
            if column is not None:
                self.columns[bit] = column
        self._header_room = _ROWS_AT_FIRST
        self.header_ends = IntColumn(allocate, 4)
        self.header_keys = BytesColumn(allocate)
        self.header_values = BytesColumn(allocate)
        self._start_rows()

    def leave_out(self, aborted: AbortedRanges) -> None:
        """Leave out the records of these aborted transactions from now on."""
        self.aborted = aborted

    def reset(self) -> None:
        """Continue with new buffers. The caller owns the old ones."""
        for column in self.columns.values():
            column.reset()
        if self.wanted & _HEADERS:
            self.header_ends.reset()
            self.header_keys.reset()
            self.header_values.reset()
        self._start_rows()

    def skip_to(self, offset: int) -> None:
        """Leave out records before an offset from now on."""
        self.start_offset = max(self.start_offset, offset)
        self.next_offset = max(self.next_offset, offset)

    def _start_rows(self) -> None:
        self.rows = 0
        self._room = 0  # rows for which every column has room
        self.is_full = False
        self.rows_without_headers = 0
        self.header_validity = self._allocate(self._header_room // 8)
        bits = memoryview(self.header_validity).cast("B")
        bits[:] = b"\xff" * (self._header_room // 8)
        self._header_bits = bits
        self.header_ends._fill(0, 1, 0)

    def put_batches(self, source: Buffer, start: int, end: int) -> int:
        """Read the whole batches between two positions. Return the position after the last batch that was read.

        That position is before `end` if the last batch is incomplete, the columns are full, or the range is done.
        Raises CorruptBatch with its position for bytes that are not a batch or do not match their checksum. The columns
        cannot be used after that.
        """
        view = source if len(source) else b"\0"
        if start < 0 or start > end or end > len(source):
            raise ValueError(f"range {start}..{end} is not inside the {len(source)} bytes given")
        if _NATIVE:  # noqa: SIM108
            data = _source_address(view)  # type: ignore[name-defined]  # noqa: F821
        else:
            data = source
        whole = memoryview(source)
        position = start
        while end - position >= 17:
            size = _int32(data, position + 8) + 12
            magic = data[position + 16]
            if magic > 2:
                raise CorruptBatch(f"unknown magic {(magic ^ 0x80) - 0x80}", position=position)
            if size < (61 if magic == 2 else 34 if magic == 1 else 26):
                raise CorruptBatch(f"batch length {size - 12} is too small for magic {magic}", position=position)
            if size > end - position:
                break
            base_offset = _int64(data, position)
            last_offset = base_offset
            if magic == 2:
                last_offset = _add(base_offset, _int32(data, position + 23))
                if base_offset >= self.end_offset:
                    self.is_done = True
                    break
            if last_offset >= self.start_offset:
                try:
                    if magic < 2:
                        self._put_messages(Message(whole[position : position + size]))
                    else:
                        attributes = data[position + 22]
                        # All records of this batch are too early.
                        if not attributes & 0x20 and _int64(data, position + 35) >= self.min_timestamp:
                            self._put_batch(whole, data, position, size, attributes)
                except CorruptBatch as error:
                    error.note_position(position)
                    raise
                if self.is_done:
                    break
            if last_offset >= self.next_offset:
                self.next_offset = _add(last_offset, 1)
            position += size
            if self.next_offset >= self.end_offset:
                self.is_done = True  # the bytes that follow may not be batches: a preallocated file ends in zeros
            if self.is_full or self.is_done:
                break
        return position

    def _put_batch(self, source: memoryview, header: Buffer, start: int, size: int, attributes: int) -> None:
        base_offset = _int64(header, start)
        if attributes & 0x10 and self.aborted and self._is_aborted(_int64(header, start + 43), base_offset):
            return
        actual = crc32c(source[start + 21 : start + size])
        stored = _uint32(header, start + 17)
        if actual != stored:
            raise CorruptBatch(f"checksum does not match: stored crc={stored:#010x}, computed crc={actual:#010x}")
        count = _int32(header, start + 57)
        base_timestamp = _int64(header, start + 27)
        max_timestamp = _int64(header, start + 35)
        log_append_time = attributes & 0x08 != 0
        first = self.rows
        if attributes & 0x07:
            payload = b""
            if count > 0:  # an empty batch, left by the cleaner, has nothing to decompress
                payload = _decompressed(attributes & 0x07, source[start + 61 : start + size])
            view = payload or b"\0"
            if _NATIVE:  # noqa: SIM108
                data = _source_address(view)  # type: ignore[name-defined]  # noqa: F821
            else:
                data = payload
            self._reserve(count, len(payload))
            self._put_records(data, 0, len(payload), count, base_offset, base_timestamp, max_timestamp, log_append_time)
        else:
            self._reserve(count, size - 61)
            self._put_records(
                header,
                start + 61,
                start + size,
                count,
                base_offset,
                base_timestamp,
                max_timestamp,
                log_append_time,
            )
        timestamp_type = 1 if log_append_time else 0
        self._fill_facts(first, header, start, size, attributes, timestamp_type)

    def _is_aborted(self, producer_id: int, base_offset: int) -> bool:
        return any(first <= base_offset <= last for first, last in self.aborted.get(producer_id, ()))

    def _reserve(self, count: int, size: int) -> None:
        """Make room for a batch of `count` records. Their contents cannot be larger than the bytes of the records."""
        if count < 0:
            raise CorruptBatch(f"record count is {count}")
        if count > size // _SMALLEST_RECORD:
            raise CorruptBatch(f"{count} records cannot be in {size} bytes")
        if self.rows + count > self._room:
            self._room = max(self.rows + count, 2 * self._room)
            for column in self.columns.values():
                if not isinstance(column, BytesColumn):
                    column.reserve(self._room, self.rows)
        if self._key is not None:
            self._key.reserve(count, size)
        if self._value is not None:
            self._value.reserve(count, size)
        if self.wanted & _HEADERS:
            self._reserve_headers(count, size)

    def _reserve_headers(self, count: int, size: int) -> None:
        rows = self.rows + count
        self.header_ends.reserve(rows + 1, self.rows + 1)
        # A header has at least two bytes. Its key may become three times as long if it is not UTF-8.
        self.header_keys.reserve(size // 2, 3 * size)
        self.header_values.reserve(size // 2, size)
        if rows > self._header_room:
            room = max(2 * self._header_room, (rows + 7) // 8 * 8)
            grown = self._allocate(room // 8)
            bits = memoryview(grown).cast("B")
            before = self._header_room // 8
            bits[:before] = memoryview(self.header_validity).cast("B")[:before]
            bits[before:] = b"\xff" * (room // 8 - before)
            self.header_validity = grown
            self._header_bits = bits
            self._header_room = room

    def _put_records(
        self,
        data: Buffer,
        position: int,
        end: int,
        count: int,
        base_offset: int,
        base_timestamp: int,
        append_time: int,
        log_append_time: bool,
    ) -> None:
        origin = position
        wants_offset = self.wanted & _OFFSET != 0
        wants_timestamp = self.wanted & _TIMESTAMP != 0
        wants_key = self.wanted & _KEY != 0
        wants_value = self.wanted & _VALUE != 0
        wants_headers = self.wanted & _HEADERS != 0
        wants_content = wants_key or wants_value or wants_headers
        key = self._key
        value = self._value
        if wants_offset:
            offsets = self._offset.longs
        if wants_timestamp:
            timestamps = self._timestamp.longs
        start_offset = self.start_offset
        end_offset = self.end_offset
        min_timestamp = self.min_timestamp
        max_timestamp = self.max_timestamp
        row = self.rows
        self.records_read += count
        for index in range(count):
            size, body = _varint(data, position, end)
            if body < 0 or size < 1 or size > end - body:
                raise _broken(index, position - origin)
            stop = body + size
            timestamp_delta, position = _varlong(data, body + 1, stop)
            if position < 0:
                raise _broken(index, body - origin)
            offset_delta, position = _varint(data, position, stop)
            if position < 0:
                raise _broken(index, body - origin)
            timestamp = append_time if log_append_time else _add(base_timestamp, timestamp_delta)
            offset = _add(base_offset, offset_delta)
            if offset < start_offset or offset >= end_offset or timestamp < min_timestamp or timestamp > max_timestamp:
                position = stop
                continue
            if wants_content:
                length, position = _varint(data, position, stop)
                if position < 0 or length > stop - position:
                    raise _broken(index, body - origin)
                if wants_key:
                    key._put(data, position, length)
                if length > 0:
                    position += length
                length, position = _varint(data, position, stop)
                if position < 0 or length > stop - position:
                    raise _broken(index, body - origin)
                if wants_value:
                    value._put(data, position, length)
                if length > 0:
                    position += length
                if wants_headers:
                    position = self._put_headers(data, position, stop, row)
                    if position != stop:
                        raise _broken(index, body - origin)
            if wants_offset:
                offsets[row] = offset
            if wants_timestamp:
                if timestamp > _MICROS_MAX or timestamp < -_MICROS_MAX:
                    raise _timeless(offset, timestamp)
                timestamps[row] = timestamp * 1000
            row += 1
            position = stop
        if position != end:
            raise CorruptBatch(f"{end - position} bytes follow the last of {count} records")
        self.rows = row
        if row >= self.max_rows or self._held_bytes() >= self.max_bytes:
            self.is_full = True

    def _held_bytes(self) -> int:
        held = 0
        if self._key is not None:
            held += self._key.size
        if self._value is not None:
            held += self._value.size
        return held + self.header_keys.size + self.header_values.size

    def _put_headers(self, data: Buffer, position: int, stop: int, row: int) -> int:
        """Append one record's headers. Return the position after them, or -1 if they are malformed."""
        count, position = _varint(data, position, stop)
        if position < 0 or count < 0:
            return -1
        if count == 0:
            self._header_bits[row >> 3] &= ~(1 << (row & 7)) & 0xFF
            self.rows_without_headers += 1
        while count > 0:
            length, position = _varint(data, position, stop)
            if position < 0 or length < 0 or length > stop - position:
                return -1
            if _is_ascii(data, position, length):
                self.header_keys._put(data, position, length)
            else:
                self.header_keys.put(decode_utf8(data[position : position + length]).encode())
            position += length
            length, position = _varint(data, position, stop)
            if position < 0 or length > stop - position:
                return -1
            self.header_values._put(data, position, length)
            if length > 0:
                position += length
            count -= 1
        self.header_ends._fill(row + 1, row + 2, self.header_keys.rows)
        return position

    def _fill_facts(
        self, first: int, header: Buffer, start: int, size: int, attributes: int, timestamp_type: int
    ) -> None:
        """Fill the columns whose value is the same for all records of a batch."""
        if self._timestamp_type is not None:
            self._timestamp_type._fill(first, self.rows, timestamp_type)
        if not self._wants_facts:
            return
        for bit, value in (
            (_LEADER_EPOCH, _int32(header, start + 12)),
            (_PRODUCER_ID, _int64(header, start + 43)),
            (_PRODUCER_EPOCH, _int32(header, start + 51) >> 16),
            (_BASE_SEQUENCE, _int32(header, start + 53)),
            (_BATCH_OFFSET, _int64(header, start)),
            (_BATCH_SIZE, size),
            (_ATTRIBUTES, attributes),
        ):
            if self.wanted & bit:
                column = self.columns[bit]
                column._fill(first, self.rows, value)

    def _put_messages(self, message: Message) -> None:
        """Append a message, or the messages inside a wrapper, of formats 0 and 1."""
        message.check()
        if not message.is_compressed and message.offset >= self.end_offset:
            self.is_done = True
            return
        for record in message.records():
            self.records_read += 1
            if not self.start_offset <= record.offset < self.end_offset:
                continue
            if not self.min_timestamp <= record.timestamp <= self.max_timestamp:
                continue
            micros = 0
            if self.wanted & _TIMESTAMP:
                if abs(record.timestamp) > _MICROS_MAX:
                    raise _timeless(record.offset, record.timestamp)
                micros = record.timestamp * 1000
            self._reserve(1, _SMALLEST_RECORD)
            row = self.rows
            if self._key is not None:
                self._key.put(record.key)
            if self._value is not None:
                self._value.put(record.value)
            if self.wanted & _HEADERS:
                self._put_headers(b"\0", 0, 1, row)
            self.rows = row + 1
            for bit, value in (
                (_OFFSET, record.offset),
                (_TIMESTAMP, micros),
                (_TIMESTAMP_TYPE, int(record.timestamp_type)),
                (_LEADER_EPOCH, -1),
                (_PRODUCER_ID, -1),
                (_PRODUCER_EPOCH, -1),
                (_BASE_SEQUENCE, -1),
                (_BATCH_OFFSET, message.offset),
                (_BATCH_SIZE, message.size),
                (_ATTRIBUTES, message.attributes),
            ):
                if self.wanted & bit:
                    column = self.columns[bit]
                    column._fill(row, row + 1, value)
        if self.rows >= self.max_rows or self._held_bytes() >= self.max_bytes:
            self.is_full = True
