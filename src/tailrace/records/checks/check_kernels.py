# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, annotation_typing=False
"""The checks of batches that are appended: one pass over the header and the records.

See `records/kernels.py` for the rules of compiled modules.
"""

from __future__ import annotations

from tailrace.records.batch import Buffer, CorruptBatch

COMPILED = not __file__.endswith(".py")

# The rules for the header of a client's batch, in the order in which Kafka checks them. `header_fault` returns one.
NO_FAULT = 0
NEGATIVE_OFFSET_DELTA = 1
NO_RECORDS = 2
WRONG_RECORD_COUNT = 3
IS_CONTROL_BATCH = 4
NO_SEQUENCE_NUMBER = 5


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


def _broken(index: int, position: int) -> CorruptBatch:
    return CorruptBatch(f"record {index} is broken at byte {position} of the batch's records")


def _check_count(count: int) -> None:
    if count < 0:
        raise CorruptBatch(f"record count is {count}")


def _left_over(size: int, count: int) -> CorruptBatch:
    return CorruptBatch(f"{size} bytes follow the last of {count} records")


def _skip_headers(data: Buffer, position: int, end: int) -> int:
    """Return the position after a record's headers, or -1 if they are malformed."""
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
    """A walk over an uncompressed v2 payload that arrives in pieces. Nothing of it is kept.

    `feed` takes the next piece. After the last piece `index` is the number of records, and the other fields describe
    all of them: whether their offset deltas are 0, 1, 2 …, and the largest timestamp (at least -1). Raises CorruptBatch
    unless exactly `count` records fill the payload.

    With `check_sizes` each record must also have the length that it states. Kafka checks that in uncompressed batches,
    but not in compressed ones that it only reads. `refused` counts the records without a required key or with a
    timestamp outside `earliest` and `latest`. `found` lists the first `found_max` of them: (index, offset delta,
    timestamp, has a key). A timestamp of -1 is accepted unless `latest` is below `earliest`.
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
        # The record that is not complete yet: the next field, and the fields read so far.
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
        """Walk the next piece. Return how many bytes were used. The next piece must begin with the rest (up to 10)."""
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
        """Walk the records that are complete in a piece. Return the position after them."""
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
        """Add a complete record to the summary."""
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
        """Take the next field of a record that spans pieces. The stages are its fields in order."""
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


def header_fault(data: Buffer) -> int:
    """Return the first rule that the header of a client's v2 batch violates."""
    if len(data) < 61:
        raise ValueError(f"{len(data)} bytes are too few for a batch header")
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
    """Return the earliest and the latest timestamp that a record may have. No argument is negative."""
    last = 0x7FFFFFFFFFFFFFFF
    latest = last
    if after_ms < last - now_ms:
        latest = now_ms + after_ms
    return now_ms - before_ms, latest


def is_sound(data: Buffer, crc: int, now_ms: int, before_ms: int, after_ms: int, needs_keys: bool) -> bool:
    """Return True if the bytes are one valid v2 batch of a client that can be stored unchanged. This is the usual case.

    The batch is uncompressed, has the producer's time, starts at offset 0, violates no rule of `header_fault`, and has
    `crc`, computed by the caller, in its header. Its records fill the batch, their offset deltas are 0, 1, 2 …, and
    `RecordWalk` refuses none. The latest timestamp is the header's. Otherwise `validation.py` finds the reason.
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
