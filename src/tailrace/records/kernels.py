# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, annotation_typing=False
"""The loops over records: the only code that runs once per record.

Plain Python that Cython compiles in place, with its C types in kernels.pxd: one source for both speeds. The
interpreted file is what runs where there is no compiler, and the oracle that the compiled one is tested against.

Three rules keep both meanings equal. Every read is checked against an explicit end, because the compiled code indexes
raw memory. Every sum that Java would let wrap goes through _add, because Python's integers do not wrap and C's must
not. Constants of more than 31 bits are put into a typed local first, or Cython would compute with Python objects.
"""

from __future__ import annotations

from array import array

from tailrace.records.batch import Buffer, CorruptBatch
from tailrace.records.utf8 import decode_utf8

COMPILED = not __file__.endswith(".py")

Headers = tuple[tuple[bytes, bytes | None], ...]
DecodedRecord = tuple[int, int, bytes | None, bytes | None, Headers, int]
BatchFields = tuple[int, int, int, int, int, int, int, int, int, int, int, int, int, int]

# --- integers -------------------------------------------------------------------------------------------------------


def _varint(data: Buffer, position: int, end: int) -> tuple[int, int]:
    """(value, next position); next position is -1 when the bytes end early or the varint is too long."""
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
    """As _varint, for 64 bits: ten bytes at most, bits past the 64th dropped."""
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


def _varint_size(value: int) -> int:
    """Bytes that a signed value takes as a zigzag varint."""
    negative = value < 0
    folded = -1 - value if negative else value
    folded = folded * 2 + negative
    size = 1
    while folded > 0x7F:
        folded >>= 7
        size += 1
    return size


def _append_varint(out: bytearray, value: int) -> None:
    negative = value < 0
    folded = -1 - value if negative else value
    folded = folded * 2 + negative
    while folded > 0x7F:
        out.append(folded & 0x7F | 0x80)
        folded >>= 7
    out.append(folded)


def _add(a: int, b: int) -> int:
    """a + b as Java's long: past either end it goes on at the other."""
    last = 0x7FFFFFFFFFFFFFFF
    if b > 0 and a > last - b:
        return (a - last - 1) + (b - last - 1)
    if b < 0 and a < -1 - last - b:
        return (a + last + 1) + (b + last + 1)
    return a + b


def _int32(data: Buffer, position: int) -> int:
    """Big-endian and signed; the caller has checked that four bytes are there."""
    high = (data[position] ^ 0x80) - 0x80
    return high * 16777216 + (data[position + 1] << 16 | data[position + 2] << 8 | data[position + 3])


def _uint32(data: Buffer, position: int) -> int:
    return _int32(data, position) & 0xFFFFFFFF


def _int64(data: Buffer, position: int) -> int:
    return (_int32(data, position) + (data[position + 4] >> 7)) * 65536 * 65536 + _int32(data, position + 4)


# --- the records of one batch ---------------------------------------------------------------------------------------


def _broken(index: int, position: int) -> CorruptBatch:
    return CorruptBatch(f"record {index} is broken at byte {position} of the batch's records")


def _check_count(count: int) -> None:
    if count < 0:
        raise CorruptBatch(f"record count is {count}")


def _left_over(size: int, count: int) -> CorruptBatch:
    return CorruptBatch(f"{size} bytes follow the last of {count} records")


def _skip_headers(data: Buffer, position: int, end: int) -> int:
    """The position after a record's headers, -1 if they are broken."""
    count, position = _varint(data, position, end)
    if position < 0 or count < 0:
        return -1
    while count > 0:
        length, position = _varint(data, position, end)
        if position < 0 or length < 0 or length > end - position:
            return -1
        position += length
        length, position = _varint(data, position, end)
        if position < 0 or length > end - position:
            return -1
        if length > 0:
            position += length
        count -= 1
    return position


class RecordWalk:
    """A walk over an uncompressed v2 payload that comes in pieces; nothing of it is kept.

    `feed` takes the next piece. After the last one `index` records were walked, and the other fields describe them all:
    if their offset deltas are 0, 1, 2 …, and the largest timestamp (at least -1). Raises CorruptBatch unless exactly
    `count` records fill the payload.

    With `check_sizes` each record must also be as long as it claims: Kafka checks that in uncompressed batches but not
    when it skims compressed ones. `refused` counts the records that lack a needed key or have a timestamp not within
    `earliest` and `latest`. `found` lists the first `found_max` of them: (index, offset delta, timestamp, has a key).
    A timestamp of -1 is within, unless `latest` is less than `earliest`: then none is.
    """

    def __init__(
        self,
        count: int,
        base_timestamp: int,
        check_sizes: bool,
        needs_keys: bool = False,
        earliest: int = -(2**63),
        latest: int = 2**63 - 1,
        found_max: int = 0,
    ) -> None:
        _check_count(count)
        self._begin(count, base_timestamp, check_sizes, needs_keys, earliest, latest, found_max)

    def _begin(
        self,
        count: int,
        base_timestamp: int,
        check_sizes: bool,
        needs_keys: bool,
        earliest: int,
        latest: int,
        found_max: int,
    ) -> None:
        self.count = count
        self.base_timestamp = base_timestamp
        self.check_sizes = check_sizes
        self.needs_keys = needs_keys
        self.earliest = earliest
        self.latest = latest
        self.found_max = found_max
        self.found: list[tuple[int, int, int, bool]] = []
        self.index = 0
        self.refused = 0
        self.sequential = True
        self.largest = -1
        # The record that is not yet complete: which field comes next, and what is known.
        self.stage = 0
        self.skip = 0
        self.passed = 0  # bytes of earlier pieces
        self.start = 0
        self.size = 0
        self.timestamp_delta = 0
        self.offset_delta = 0
        self.has_key = False
        self.headers = 0

    def feed(self, data: Buffer, is_last: bool) -> int:
        """Walk the next piece. Return how many bytes were used: the others (up to 10) must precede the next piece."""
        end = len(data)
        position = 0
        while True:
            if self.skip > 0:
                if self.skip > end - position:
                    if is_last:
                        raise _broken(self.index, self.start)
                    self.skip -= end - position
                    position = end
                    break
                position += self.skip
                self.skip = 0
            if self.stage == 0:
                position = self._whole_records(data, position, end)
                if self.index == self.count:
                    if position < end:
                        raise _left_over(end - position, self.count)
                    break
                self.start = self.passed + position
            if self.stage == 9:
                if self.check_sizes and self.passed + position - self.start != self.size:
                    raise _broken(self.index, self.start)
                self._note(self.offset_delta, self.timestamp_delta, self.has_key)
                self.stage = 0
                continue
            value, following = _varlong(data, position, end) if self.stage == 1 else _varint(data, position, end)
            if following < 0:
                if is_last or end - position >= 10:
                    raise _broken(self.index, self.start)
                break
            position = following
            self._take_field(value, position)
        self.passed += position
        return position

    def _whole_records(self, data: Buffer, position: int, end: int) -> int:
        """Walk the records that lie whole in a piece. Return the position after them."""
        while self.index < self.count:
            size, start = _varint(data, position, end)
            if start < 0 or start >= end:
                return position
            timestamp_delta, at = _varlong(data, start + 1, end)
            if at < 0:
                return position
            offset_delta, at = _varint(data, at, end)
            if at < 0:
                return position
            length, at = _varint(data, at, end)
            if at < 0 or length > end - at:
                return position
            has_key = length >= 0
            if has_key:
                at += length
            length, at = _varint(data, at, end)
            if at < 0 or length > end - at:
                return position
            if length > 0:
                at += length
            if at < end and data[at] == 0:
                at += 1
            else:
                at = _skip_headers(data, at, end)
                if at < 0:
                    return position
            if self.check_sizes and at - start != size:
                raise _broken(self.index, self.passed + start)
            position = at
            self._note(offset_delta, timestamp_delta, has_key)
        return position

    def _note(self, offset_delta: int, timestamp_delta: int, has_key: bool) -> None:
        """Note a whole record."""
        if offset_delta != self.index:
            self.sequential = False
        timestamp = _add(self.base_timestamp, timestamp_delta)
        if timestamp > self.largest:
            self.largest = timestamp
        if (self.needs_keys and not has_key) or (
            (timestamp < self.earliest or timestamp > self.latest) and (timestamp != -1 or self.earliest > self.latest)
        ):
            if self.refused < self.found_max:
                self.found.append((self.index, offset_delta, timestamp, has_key))
            self.refused += 1
        self.index += 1

    def _take_field(self, value: int, position: int) -> None:
        """Take the next field of a record that spans pieces; the stages are its fields in order."""
        stage = self.stage
        if stage == 0:
            self.size = value
            self.start = self.passed + position
            self.skip = 1  # the attributes
        elif stage == 1:
            self.timestamp_delta = value
        elif stage == 2:
            self.offset_delta = value
        elif stage == 3:
            self.has_key = value >= 0
            self.skip = value if value > 0 else 0
        elif stage == 4:
            self.skip = value if value > 0 else 0
        elif stage == 5:
            if value < 0:
                raise _broken(self.index, self.start)
            self.headers = value
            if value == 0:
                stage = 8
        elif stage == 6:
            if value < 0:
                raise _broken(self.index, self.start)
            self.skip = value
        else:
            self.skip = value if value > 0 else 0
            self.headers -= 1
            stage = 5 if self.headers > 0 else 8
        self.stage = stage + 1


def decode_records(payload: bytes, count: int) -> list[DecodedRecord]:
    """The records of an uncompressed v2 payload.

    A list of (offset delta, timestamp delta, key, value, headers, attributes); headers is a tuple of
    (key bytes, value or None). Raises CorruptBatch unless the payload holds exactly `count` well-formed records.
    """
    _check_count(count)
    data = payload
    end = len(data)
    position = 0
    records: list[DecodedRecord] = []
    for index in range(count):
        size, start = _varint(data, position, end)
        if start < 0 or size < 1 or size > end - start:
            raise _broken(index, position)
        stop = start + size
        attributes = (data[start] ^ 0x80) - 0x80
        timestamp_delta, position = _varlong(data, start + 1, stop)
        if position < 0:
            raise _broken(index, start)
        offset_delta, position = _varint(data, position, stop)
        if position < 0:
            raise _broken(index, start)
        key = None
        length, position = _varint(data, position, stop)
        if position < 0 or length > stop - position:
            raise _broken(index, start)
        if length >= 0:
            key = payload[position : position + length]
            position += length
        value = None
        length, position = _varint(data, position, stop)
        if position < 0 or length > stop - position:
            raise _broken(index, start)
        if length >= 0:
            value = payload[position : position + length]
            position += length
        headers: Headers = ()
        header_count, position = _varint(data, position, stop)
        if position < 0 or header_count < 0:
            raise _broken(index, start)
        if header_count > 0:
            found: list[tuple[bytes, bytes | None]] = []
            while header_count > 0:
                length, position = _varint(data, position, stop)
                if position < 0 or length < 0 or length > stop - position:
                    raise _broken(index, start)
                name = payload[position : position + length]
                position += length
                length, position = _varint(data, position, stop)
                if position < 0 or length > stop - position:
                    raise _broken(index, start)
                if length < 0:
                    found.append((name, None))
                else:
                    found.append((name, payload[position : position + length]))
                    position += length
                header_count -= 1
            headers = tuple(found)
        if position != stop:
            raise _broken(index, start)
        records.append((offset_delta, timestamp_delta, key, value, headers, attributes))
    if position != end:
        raise _left_over(end - position, count)
    return records


def whole_records(data: Buffer, count: int, index: int, passed: int) -> tuple[int, int]:
    """Return where the whole records at the start of `data` end, at most `count` of them, and how many they are.

    The first is the batch's record `index`, and `passed` bytes of records precede it.
    """
    end = len(data)
    position = 0
    found = 0
    while found < count:
        size, start = _varint(data, position, end)
        if start < 0:
            break
        if size < 1:
            raise _broken(index + found, passed + position)
        if size > end - start:
            break
        position = start + size
        found += 1
    return position, found


def encode_record(
    out: bytearray,
    offset_delta: int,
    timestamp_delta: int,
    key: Buffer | None,
    value: Buffer | None,
    headers: Headers | list[tuple[bytes, bytes | None]],
) -> None:
    """Append one v2 record; headers are (key bytes, value or None)."""
    key_size = -1 if key is None else len(key)
    value_size = -1 if value is None else len(value)
    size = 1 + _varint_size(timestamp_delta) + _varint_size(offset_delta)
    size += _varint_size(key_size) + _varint_size(value_size)
    if key_size > 0:
        size += key_size
    if value_size > 0:
        size += value_size
    size += _varint_size(len(headers))
    for name, content in headers:
        size += _varint_size(len(name)) + len(name)
        size += 1 if content is None else _varint_size(len(content)) + len(content)
    _append_varint(out, size)
    out.append(0)
    _append_varint(out, timestamp_delta)
    _append_varint(out, offset_delta)
    _append_varint(out, key_size)
    if key is not None:
        out += key
    _append_varint(out, value_size)
    if value is not None:
        out += value
    _append_varint(out, len(headers))
    for name, content in headers:
        _append_varint(out, len(name))
        out += name
        if content is None:
            out.append(1)
        else:
            _append_varint(out, len(content))
            out += content


def find_record(
    data: Buffer, count: int, base_offset: int, base_timestamp: int, min_offset: int, min_timestamp: int
) -> tuple[int, int] | None:
    """(offset, timestamp) of the first record at or past both bounds, in the order of the payload; None without one."""
    _check_count(count)
    end = len(data)
    position = 0
    for index in range(count):
        size, start = _varint(data, position, end)
        if start < 0 or size < 1 or size > end - start:
            raise _broken(index, position)
        timestamp_delta, position = _varlong(data, start + 1, end)
        if position < 0:
            raise _broken(index, start)
        timestamp = _add(base_timestamp, timestamp_delta)
        if timestamp >= min_timestamp:
            offset_delta, position = _varint(data, position, end)
            if position < 0:
                raise _broken(index, start)
            offset = _add(base_offset, offset_delta)
            if offset >= min_offset:
                return offset, timestamp
        position = start + size
    return None


def rewrite_records(
    payload: bytes,
    count: int,
    keep: Buffer,
    base_timestamp: int,
    append_time: int | None,
    new_base_timestamp: int | None,
) -> tuple[bytes, int, int, int]:
    """The records whose byte in `keep` is not zero, written again as a builder would write them.

    Their timestamps (all `append_time`, if given) become deltas from new_base_timestamp, or else from the first kept
    record's. Returns (payload, base timestamp, largest timestamp, number of records). ValueError for a negative
    timestamp other than -1, which no builder takes.
    """
    _check_count(count)
    if len(keep) < count:
        raise ValueError(f"{len(keep)} flags for {count} records")
    data = payload
    flags = keep
    end = len(data)
    position = 0
    out = bytearray()
    body = bytearray()
    kept = 0
    largest = -1
    fixed = append_time is not None
    fixed_timestamp = 0 if append_time is None else append_time
    based = new_base_timestamp is not None
    base = 0 if new_base_timestamp is None else new_base_timestamp
    for index in range(count):
        size, start = _varint(data, position, end)
        if start < 0 or size < 1 or size > end - start:
            raise _broken(index, position)
        stop = start + size
        if flags[index] == 0:
            position = stop
            continue
        timestamp_delta, position = _varlong(data, start + 1, stop)
        if position < 0:
            raise _broken(index, start)
        timestamp = fixed_timestamp if fixed else _add(base_timestamp, timestamp_delta)
        if timestamp < -1:
            raise ValueError(f"timestamp {timestamp} is negative")
        if not based:
            base = timestamp
            based = True
        if timestamp > largest:
            largest = timestamp
        offset_delta, position = _varint(data, position, stop)
        if position < 0:
            raise _broken(index, start)
        del body[:]
        body.append(0)
        _append_varint(body, _subtract(timestamp, base))
        _append_varint(body, offset_delta)
        for _ in range(2):
            length, position = _varint(data, position, stop)
            if position < 0 or length > stop - position:
                raise _broken(index, start)
            if length < 0:
                body.append(1)
            else:
                _append_varint(body, length)
                body += payload[position : position + length]
                position += length
        header_count, position = _varint(data, position, stop)
        if position < 0 or header_count < 0:
            raise _broken(index, start)
        _append_varint(body, header_count)
        while header_count > 0:
            length, position = _varint(data, position, stop)
            if position < 0 or length < 0 or length > stop - position:
                raise _broken(index, start)
            # Kafka reads and writes header keys as text, which replaces what is not UTF-8.
            name = decode_utf8(payload[position : position + length]).encode()
            position += length
            _append_varint(body, len(name))
            body += name
            length, position = _varint(data, position, stop)
            if position < 0 or length > stop - position:
                raise _broken(index, start)
            if length < 0:
                body.append(1)
            else:
                _append_varint(body, length)
                body += payload[position : position + length]
                position += length
            header_count -= 1
        if position != stop:
            raise _broken(index, start)
        _append_varint(out, len(body))
        out += body
        kept += 1
    if position != end:
        raise _left_over(end - position, count)
    return bytes(out), base, largest, kept


def _subtract(a: int, b: int) -> int:
    """a - b as Java's long."""
    last = 0x7FFFFFFFFFFFFFFF
    if b == -1 - last:
        return a + last + 1 if a < 0 else a - last - 1
    return _add(a, -b)


# --- batches and indexes ---------------------------------------------------------------------------------------------


# The rules for the header of a client's batch, in the order in which Kafka checks them: what `header_fault` returns.
NO_FAULT = 0
NEGATIVE_OFFSET_DELTA = 1
NO_RECORDS = 2
WRONG_RECORD_COUNT = 3
IS_CONTROL_BATCH = 4
NO_SEQUENCE_NUMBER = 5


def header_fault(data: Buffer) -> int:
    """Return the first rule that the header of a client's v2 batch breaks."""
    if len(data) < 61:
        raise ValueError(f"{len(data)} bytes are no batch")
    last_offset_delta = _int32(data, 23)
    count = _int32(data, 57)
    if last_offset_delta < 0:
        return 1
    if count <= 0:
        return 2
    if last_offset_delta + 1 != count:
        return 3
    if data[22] & 0x20:
        return 4
    if _int64(data, 43) >= 0 and _int32(data, 53) < 0:
        return 5
    return 0


def timestamp_bounds(now_ms: int, before_ms: int, after_ms: int) -> tuple[int, int]:
    """Return the earliest and the latest timestamp of a record that is not refused. No argument is negative."""
    last = 0x7FFFFFFFFFFFFFFF
    latest = last
    if after_ms < last - now_ms:
        latest = now_ms + after_ms
    return now_ms - before_ms, latest


def is_sound(data: Buffer, crc: int, now_ms: int, before_ms: int, after_ms: int, needs_keys: bool) -> bool:
    """Return True if the bytes are one sound v2 batch of a client that can be kept as it is: nearly always.

    The batch is uncompressed, has the producer's time, starts at offset 0, breaks no rule of `header_fault`, and has
    `crc`, computed by the caller, in its header. Its records fill the batch, their offsets count up, none is refused by
    `RecordWalk`, and the latest is as late as the header claims. For any other batch `validation.py` finds the reason.
    """
    end = len(data)
    if end < 61 or _int32(data, 8) + 12 != end or _int64(data, 0) or data[16] != 2 or data[22] & 0x0F:
        return False
    if _uint32(data, 17) != crc or header_fault(data):
        return False
    earliest, latest = timestamp_bounds(now_ms, before_ms, after_ms)
    walk = RecordWalk.__new__(RecordWalk)
    walk._begin(_int32(data, 57), _int64(data, 27), True, needs_keys, earliest, latest, 0)
    try:
        position = walk._whole_records(data, 61, end)
    except CorruptBatch:
        return False
    is_filled = position == end and walk.index == walk.count
    return is_filled and walk.sequential and not walk.refused and walk.largest == _int64(data, 35)


def find_batch(view: Buffer, start: int, end: int, target_offset: int) -> tuple[int, int, int, int]:
    """The first batch that ends at or after target_offset: (position, size, base offset, last offset).

    Batches of any format lie end to end from `start`; one whose header is inside counts even if its records are not.
    Without such a batch the size is 0 and the position is where the walk ended: past `end`, or at a header that is
    cut off. A length that no batch can have raises CorruptBatch.
    """
    if start < 0 or end > len(view):
        raise ValueError(f"range {start}..{end} is not inside the {len(view)} bytes given")
    position = start
    while end - position >= 27:
        size = _int32(view, position + 8) + 12
        if size < 26:
            raise CorruptBatch(f"batch length {size - 12} is too small", position=position)
        base_offset = _int64(view, position)
        last_offset = _add(base_offset, _int32(view, position + 23)) if view[position + 16] >= 2 else base_offset
        if last_offset >= target_offset:
            return position, size, base_offset, last_offset
        position += size
    return position, 0, -1, -1


def scan_batches(view: Buffer, start: int, end: int) -> tuple[list[BatchFields], int, str | None]:
    """The headers of all whole batches between `start` and `end`, none of which is checked against its checksum.

    Returns them, the position after the last, and what is wrong there: None if the bytes end, even inside a batch.
    Each is (position, size, base offset, last offset, leader epoch, magic, crc, attributes, base timestamp,
    max timestamp, producer id, producer epoch, base sequence, record count). Formats 0 and 1 have -1 for what they do
    not know, and their one timestamp twice.
    """
    if start < 0 or end > len(view):
        raise ValueError(f"range {start}..{end} is not inside the {len(view)} bytes given")
    batches: list[BatchFields] = []
    position = start
    while end - position >= 17:
        size = _int32(view, position + 8) + 12
        magic = view[position + 16]
        if magic > 2:
            return batches, position, f"magic {(magic ^ 0x80) - 0x80} is unknown"
        if size < (61 if magic == 2 else 34 if magic == 1 else 26):
            return batches, position, f"batch length {size - 12} is too small for magic {magic}"
        if size > end - position:
            break
        base_offset = _int64(view, position)
        if magic == 2:
            batches.append(
                (
                    position,
                    size,
                    base_offset,
                    _add(base_offset, _int32(view, position + 23)),
                    _int32(view, position + 12),
                    2,
                    _uint32(view, position + 17),
                    ((view[position + 21] ^ 0x80) - 0x80) * 256 + view[position + 22],
                    _int64(view, position + 27),
                    _int64(view, position + 35),
                    _int64(view, position + 43),
                    ((view[position + 51] ^ 0x80) - 0x80) * 256 + view[position + 52],
                    _int32(view, position + 53),
                    _int32(view, position + 57),
                )
            )
        else:
            crc = _uint32(view, position + 12)
            time = _int64(view, position + 18) if magic == 1 else -1
            attributes = (view[position + 17] ^ 0x80) - 0x80
            batches.append(
                (position, size, base_offset, base_offset, -1, magic, crc, attributes, time, time, -1, -1, -1, -1)
            )
        position += size
    return batches, position, None


def offset_index_slot(data: Buffer, entries: int, relative_offset: int) -> int:
    """The last of `entries` 8-byte entries (int32 relative offset, int32 position) up to the offset; -1 without one."""
    return _floor_slot(data, entries, 8, 0, relative_offset)


def position_index_slot(data: Buffer, entries: int, file_position: int) -> int:
    """As offset_index_slot, by the second half of the entries: the last one up to the file position."""
    return _floor_slot(data, entries, 8, 4, file_position)


def time_index_slot(data: Buffer, entries: int, timestamp: int) -> int:
    """The last of `entries` 12-byte entries (int64 timestamp, int32 relative offset) up to the timestamp, or -1."""
    return _floor_slot(data, entries, 12, 0, timestamp)


def _floor_slot(view: Buffer, entries: int, size: int, inside: int, target: int) -> int:
    if entries * size > len(view):
        raise ValueError(f"{entries} entries do not fit {len(view)} bytes")
    low = -1
    high = entries
    while high - low > 1:
        middle = (low + high) >> 1
        at = middle * size + inside
        if (_int64(view, at) if size == 12 else _int32(view, at)) <= target:
            low = middle
        else:
            high = middle
    return low


# --- codecs ----------------------------------------------------------------------------------------------------------

SNAPPY_TABLE_SIZE = 16384


def _load32(data: Buffer, position: int) -> int:
    """Little-endian and unsigned; the caller has checked that four bytes are there."""
    return (data[position] | data[position + 1] << 8 | data[position + 2] << 16) + data[position + 3] * 16777216


def _snappy_literal(out: bytearray, block: bytes, start: int, stop: int) -> None:
    size = stop - start - 1
    if size < 60:
        out.append(size << 2)
    elif size < 256:
        out.append(60 << 2)
        out.append(size)
    else:
        out.append(61 << 2)
        out.append(size & 0xFF)
        out.append(size >> 8)
    out += block[start:stop]


def _snappy_copy(out: bytearray, distance: int, size: int) -> None:
    if size < 12 and distance < 2048:
        out.append(1 | (size - 4) << 2 | distance >> 8 << 5)
        out.append(distance & 0xFF)
    else:
        out.append(2 | (size - 1) << 2)
        out.append(distance & 0xFF)
        out.append(distance >> 8)


def snappy_compress(block: bytes) -> bytes:
    """One raw snappy block of at most 65536 bytes, with the choices that Google's snappy 1.1.10 makes.

    Those who port it keep the format but hash differently, and so find other matches in short blocks.
    """
    data = block
    end = len(data)
    if end > 65536:
        raise ValueError(f"a snappy block holds at most 65536 bytes, not {end}")
    low32 = 0xFFFFFFFF
    out = bytearray()
    size = end
    while size > 0x7F:
        out.append(size & 0x7F | 0x80)
        size >>= 7
    out.append(size)
    mask = 255
    while mask < SNAPPY_TABLE_SIZE - 1 and mask + 1 < end:
        mask = mask * 2 + 1
    slots = array("H", bytes(2 * mask + 2))
    emitted = 0  # everything before this is in `out`
    position = 0
    candidate = 0
    limit = end - 15
    while position < limit:
        position += 1
        skip = 32
        found = False
        while True:
            step = skip >> 5
            skip += step
            if position + step > limit:
                break
            word = _load32(data, position)
            slot = ((word * 0x1E35A7BD) & low32) >> 18 & mask
            candidate = slots[slot]
            slots[slot] = position
            if _load32(data, candidate) == word:
                found = True
                break
            position += step
        if not found:
            break
        _snappy_literal(out, block, emitted, position)
        while True:
            start = position
            distance = position - candidate
            position += 4
            while position < end and data[position] == data[position - distance]:
                position += 1
            emitted = position
            size = position - start
            while size >= 68:
                _snappy_copy(out, distance, 64)
                size -= 64
            if size > 64:
                _snappy_copy(out, distance, 60)
                size -= 60
            _snappy_copy(out, distance, size)
            if position >= limit:
                break
            word = _load32(data, position - 1)
            slots[((word * 0x1E35A7BD) & low32) >> 18 & mask] = position - 1
            word = _load32(data, position)
            slot = ((word * 0x1E35A7BD) & low32) >> 18 & mask
            candidate = slots[slot]
            slots[slot] = position
            if _load32(data, candidate) != word:
                break
    if emitted < end:
        _snappy_literal(out, block, emitted, end)
    return bytes(out)


def zstd_size_bound(view: Buffer) -> int:
    """Return an upper bound of what zstd data decompresses to, -1 if the data ends inside a frame.

    The bound comes from the headers of the blocks. It ends where the data is not a frame, which the decoder refuses.
    """
    low32 = 0xFFFFFFFF
    frame_magic = 0xFD2FB528
    end = len(view)
    position = 0
    bound = 0
    while position < end:
        if end - position < 5:
            return -1
        magic = _load32(view, position) & low32
        if magic >> 4 == 0x184D2A5:  # a frame to skip
            if end - position < 8:
                return -1
            size = _load32(view, position + 4) & low32
            if size > end - position - 8:
                return -1
            position += 8 + size
            continue
        if magic != frame_magic:
            return bound
        flags = view[position + 4]
        is_single = flags & 0x20 != 0
        size = flags & 3
        position += 5 + (0 if is_single else 1) + (4 if size == 3 else size)
        size = flags >> 6
        position += (1 if is_single else 0) if size == 0 else 1 << size
        is_last = False
        while not is_last:
            if end - position < 3:
                return -1
            size = view[position] | view[position + 1] << 8 | view[position + 2] << 16
            is_last = size & 1 != 0
            kind = size >> 1 & 3
            if kind == 3:
                return bound
            size >>= 3
            bound += 131072 if kind == 2 else size
            position += 3 + (1 if kind == 1 else size)
        if flags & 4:
            position += 4
        if position > end:
            return -1
    return bound


def xxh32(view: Buffer) -> int:
    """The 32-bit xxHash with seed 0, the checksum inside lz4 frames."""
    end = len(view)
    position = 0
    low32 = 0xFFFFFFFF
    prime1 = 0x9E3779B1
    prime2 = 0x85EBCA77
    prime3 = 0xC2B2AE3D
    prime4 = 0x27D4EB2F
    prime5 = 0x165667B1
    if end >= 16:
        a = (prime1 + prime2) & low32
        b = prime2
        c = 0
        d = low32 - prime1 + 1
        while end - position >= 16:
            a = (a + _load32(view, position) * prime2) & low32
            a = ((a << 13 & low32) | a >> 19) * prime1 & low32
            b = (b + _load32(view, position + 4) * prime2) & low32
            b = ((b << 13 & low32) | b >> 19) * prime1 & low32
            c = (c + _load32(view, position + 8) * prime2) & low32
            c = ((c << 13 & low32) | c >> 19) * prime1 & low32
            d = (d + _load32(view, position + 12) * prime2) & low32
            d = ((d << 13 & low32) | d >> 19) * prime1 & low32
            position += 16
        total = (a << 1 & low32 | a >> 31) + (b << 7 & low32 | b >> 25)
        total += (c << 12 & low32 | c >> 20) + (d << 18 & low32 | d >> 14)
    else:
        total = prime5
    total = (total + end) & low32
    while end - position >= 4:
        total = (total + _load32(view, position) * prime3) & low32
        total = (total << 17 & low32 | total >> 15) * prime4 & low32
        position += 4
    while position < end:
        total = (total + view[position] * prime5) & low32
        total = (total << 11 & low32 | total >> 21) * prime1 & low32
        position += 1
    total = (total ^ total >> 15) * prime2 & low32
    total = (total ^ total >> 13) * prime3 & low32
    return total ^ total >> 16
