# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, annotation_typing=False
"""The loops over the records of a batch: decode, encode, find, rewrite. No other code runs once per record.

Plain Python that Cython compiles in place, with its C types in kernels.pxd. The file also runs interpreted, without a
compiler, and is then the oracle for tests. Three rules keep both forms equal. Every read is checked against an explicit
end, because compiled code indexes raw memory. Every sum that would wrap in Java goes through _add, because Python's
integers do not wrap and C's must not. Constants of more than 31 bits are assigned to a typed local first, or else
Cython would compute with Python objects.
"""

from __future__ import annotations

from tailrace.records.batch import Buffer, CorruptBatch
from tailrace.records.utf8 import decode_utf8

COMPILED = not __file__.endswith(".py")

Headers = tuple[tuple[bytes, bytes | None], ...]
DecodedRecord = tuple[int, int, bytes | None, bytes | None, Headers, int]

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


def _append_varint(out: bytearray, value: int) -> None:
    negative = value < 0
    folded = -1 - value if negative else value
    folded = folded * 2 + negative
    while folded > 0x7F:
        out.append(folded & 0x7F | 0x80)
        folded >>= 7
    out.append(folded)


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


# --- the records of one batch ---------------------------------------------------------------------------------------


def _broken(index: int, position: int) -> CorruptBatch:
    return CorruptBatch(f"record {index} is broken at byte {position} of the batch's records")


def _check_count(count: int) -> None:
    if count < 0:
        raise CorruptBatch(f"record count is {count}")


def _left_over(size: int, count: int) -> CorruptBatch:
    return CorruptBatch(f"{size} bytes follow the last of {count} records")


def decode_records(payload: bytes, count: int) -> list[DecodedRecord]:
    """Return the records of an uncompressed v2 payload.

    The list has (offset delta, timestamp delta, key, value, headers, attributes). Headers are a tuple of (key bytes,
    value or None). Raises CorruptBatch unless the payload has exactly `count` well-formed records.
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
    """Return the end of the complete records at the start of `data`, at most `count` of them, and their number.

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
    """Append one v2 record. Headers are (key bytes, value or None)."""
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
    """Return (offset, timestamp) of the first record at or beyond both bounds, in the order of the payload, or None."""
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
    """Encode the records whose byte in `keep` is not zero, like `BatchBuilder`.

    Their timestamps become deltas from new_base_timestamp, or from the first kept record's timestamp if that is None.
    If `append_time` is given, all have that timestamp. Returns (payload, base timestamp, largest timestamp, number of
    records). Raises ValueError for a negative timestamp other than -1, which `BatchBuilder` refuses as well.
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
            # Kafka decodes and encodes header keys as text, which replaces bytes that are not UTF-8.
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
    """Return a - b with the overflow of Java's long."""
    last = 0x7FFFFFFFFFFFFFFF
    if b == -1 - last:
        return a + last + 1 if a < 0 else a - last - 1
    return _add(a, -b)
