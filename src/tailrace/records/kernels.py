# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The loops over records: the only code that runs once per record.

Plain Python that Cython compiles in place, with its C types in kernels.pxd: one source for both speeds. The
interpreted file is what runs where there is no compiler, and the oracle that the compiled one is tested against.

Two rules keep both meanings equal. Every read is checked against an explicit end, because the compiled code indexes
raw memory. Every sum that Java would let wrap is masked to 64 bits, because Python's integers do not.
"""

from tailrace.records.batch import CorruptBatch

COMPILED = not __file__.endswith(".py")


def _varint(data, position, end):
    """(value, next position); next position is -1 when the bytes end early or the varint is too long."""
    raw = 0
    shift = 0
    while shift < 35:
        if position >= end:
            return 0, -1
        byte = data[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            raw &= 0xFFFFFFFF
            value = raw >> 1
            if raw & 1:
                value = -1 - value
            return value, position
        shift += 7
    return 0, -1


def _varlong(data, position, end):
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


def _wrapped(value):
    """A sum of two int64 as Java gives it."""
    value &= 0xFFFFFFFFFFFFFFFF
    return value - 0x10000000000000000 if value >= 0x8000000000000000 else value


def _broken(index, position):
    return CorruptBatch(f"record {index} is broken at byte {position} of the batch's records")


def decode_records(payload, count):
    """The records of an uncompressed v2 payload.

    A list of (offset delta, timestamp delta, key, value, headers, attributes); headers is a tuple of
    (key bytes, value or None). Raises CorruptBatch unless the payload holds exactly `count` well-formed records.
    """
    if count < 0:
        raise CorruptBatch(f"record count is {count}")
    data = payload
    end = len(data)
    position = 0
    records = []
    for index in range(count):
        size, start = _varint(data, position, end)
        if start < 0 or size < 1 or size > end - start:
            raise _broken(index, position)
        stop = start + size
        attributes = data[start]
        if attributes > 127:
            attributes -= 256
        timestamp_delta, position = _varlong(data, start + 1, stop)
        if position < 0:
            raise _broken(index, start)
        offset_delta, position = _varint(data, position, stop)
        if position < 0:
            raise _broken(index, start)
        length, position = _varint(data, position, stop)
        if position < 0 or length > stop - position:
            raise _broken(index, start)
        if length < 0:
            key = None
        else:
            key = payload[position : position + length]
            position += length
        length, position = _varint(data, position, stop)
        if position < 0 or length > stop - position:
            raise _broken(index, start)
        if length < 0:
            value = None
        else:
            value = payload[position : position + length]
            position += length
        header_count, position = _varint(data, position, stop)
        if position < 0 or header_count < 0 or header_count > stop - position:
            raise _broken(index, start)
        if header_count == 0:
            headers = ()
        else:
            found = []
            for _ in range(header_count):
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
            headers = tuple(found)
        if position != stop:
            raise _broken(index, start)
        records.append((offset_delta, timestamp_delta, key, value, headers, attributes))
    if position != end:
        raise CorruptBatch(f"{end - position} bytes follow the last of {count} records")
    return records


def _varint_size(value):
    """Bytes that a signed value takes as a zigzag varint."""
    folded = value * 2 if value >= 0 else (-1 - value) * 2 + 1
    size = 1
    while folded > 0x7F:
        folded >>= 7
        size += 1
    return size


def _append_varint(out, value):
    folded = value * 2 if value >= 0 else (-1 - value) * 2 + 1
    while folded > 0x7F:
        out.append(folded & 0x7F | 0x80)
        folded >>= 7
    out.append(folded)


def encode_record(out, offset_delta, timestamp_delta, key, value, headers):
    """Append one v2 record to a bytearray; headers are (key bytes, value or None). Returns its size."""
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
    before = len(out)
    _append_varint(out, size)
    out.append(0)
    _append_varint(out, timestamp_delta)
    _append_varint(out, offset_delta)
    _append_varint(out, key_size)
    if key_size > 0:
        out += key
    _append_varint(out, value_size)
    if value_size > 0:
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
    return len(out) - before


SNAPPY_TABLE_SIZE = 16384


def _load32(data, position):
    return data[position] | data[position + 1] << 8 | data[position + 2] << 16 | data[position + 3] << 24


def _snappy_literal(out, data, start, stop):
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
    out += data[start:stop]


def _snappy_copy(out, distance, size):
    if size < 12 and distance < 2048:
        out.append(1 | (size - 4) << 2 | distance >> 8 << 5)
        out.append(distance & 0xFF)
    else:
        out.append(2 | (size - 1) << 2)
        out.append(distance & 0xFF)
        out.append(distance >> 8)


def snappy_compress(block, table):
    """One raw snappy block of at most 65536 bytes, with the choices that Google's snappy 1.1.10 makes.

    `table` is an array of SNAPPY_TABLE_SIZE uint16, scratch space for the positions of four-byte sequences.
    """
    data = block
    end = len(data)
    if end > 65536:
        raise ValueError(f"a snappy block holds at most 65536 bytes, not {end}")
    if len(table) < SNAPPY_TABLE_SIZE:
        raise ValueError(f"the table needs {SNAPPY_TABLE_SIZE} entries")
    slots = table
    out = bytearray()
    size = end
    while size > 0x7F:
        out.append(size & 0x7F | 0x80)
        size >>= 7
    out.append(size)
    mask = 255
    while mask < SNAPPY_TABLE_SIZE - 1 and mask + 1 < end:
        mask = mask * 2 + 1
    for slot in range(mask + 1):
        slots[slot] = 0
    emitted = 0  # everything before this is in `out`
    position = 0
    limit = end - 15
    while limit >= 0:
        emitted = position
        position += 1
        skip = 32
        found = False
        while True:
            step = skip >> 5
            skip += step
            if position + step > limit:
                break
            word = _load32(data, position)
            slot = ((word * 0x1E35A7BD) & 0xFFFFFFFF) >> 18 & mask
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
            slots[((word * 0x1E35A7BD) & 0xFFFFFFFF) >> 18 & mask] = position - 1
            word = _load32(data, position)
            slot = ((word * 0x1E35A7BD) & 0xFFFFFFFF) >> 18 & mask
            candidate = slots[slot]
            slots[slot] = position
            if _load32(data, candidate) != word:
                break
        if position >= limit:
            break
    if emitted < end:
        _snappy_literal(out, block, emitted, end)
    return bytes(out)


def xxh32(data):
    """The 32-bit xxHash of `data` with seed 0, the checksum inside lz4 frames."""
    view = data
    end = len(view)
    position = 0
    if end >= 16:
        a = 0x24234428
        b = 0x85EBCA77
        c = 0
        d = 0x61C8864F
        while position <= end - 16:
            a = (a + _load32(view, position) * 0x85EBCA77) & 0xFFFFFFFF
            a = ((a << 13 | a >> 19) & 0xFFFFFFFF) * 0x9E3779B1 & 0xFFFFFFFF
            b = (b + _load32(view, position + 4) * 0x85EBCA77) & 0xFFFFFFFF
            b = ((b << 13 | b >> 19) & 0xFFFFFFFF) * 0x9E3779B1 & 0xFFFFFFFF
            c = (c + _load32(view, position + 8) * 0x85EBCA77) & 0xFFFFFFFF
            c = ((c << 13 | c >> 19) & 0xFFFFFFFF) * 0x9E3779B1 & 0xFFFFFFFF
            d = (d + _load32(view, position + 12) * 0x85EBCA77) & 0xFFFFFFFF
            d = ((d << 13 | d >> 19) & 0xFFFFFFFF) * 0x9E3779B1 & 0xFFFFFFFF
            position += 16
        total = ((a << 1 | a >> 31) + (b << 7 | b >> 25) + (c << 12 | c >> 20) + (d << 18 | d >> 14)) & 0xFFFFFFFF
    else:
        total = 0x165667B1
    total = (total + end) & 0xFFFFFFFF
    while position <= end - 4:
        total = (total + _load32(view, position) * 0xC2B2AE3D) & 0xFFFFFFFF
        total = ((total << 17 | total >> 15) & 0xFFFFFFFF) * 0x27D4EB2F & 0xFFFFFFFF
        position += 4
    while position < end:
        total = (total + view[position] * 0x165667B1) & 0xFFFFFFFF
        total = ((total << 11 | total >> 21) & 0xFFFFFFFF) * 0x9E3779B1 & 0xFFFFFFFF
        position += 1
    total = (total ^ total >> 15) * 0x85EBCA77 & 0xFFFFFFFF
    total = (total ^ total >> 13) * 0xC2B2AE3D & 0xFFFFFFFF
    return total ^ total >> 16
