# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, annotation_typing=False
"""Parts of codecs that no library has: snappy blocks like Google's, the size bound of zstd data, the checksum of lz4.

See `records/kernels.py` for the rules of compiled modules.
"""

from __future__ import annotations

from array import array

from tailrace.records.batch import Buffer

COMPILED = not __file__.endswith(".py")

SNAPPY_TABLE_SIZE = 16384


def _load32(data: Buffer, position: int) -> int:
    """Return an unsigned little-endian integer. The caller has checked that there are four bytes."""
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
    """Compress one raw snappy block of at most 65536 bytes, with the choices of Google's snappy 1.1.10.

    Ports of snappy keep the format but hash differently, and so find other matches in short blocks.
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
    emitted = 0  # all bytes before this are in `out`
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
    """Return an upper bound of the decompressed size of zstd data, or -1 if the data ends inside a frame.

    The bound is computed from the block headers, up to the first bytes that are not a frame, which the decoder refuses.
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
        if magic >> 4 == 0x184D2A5:  # a skippable frame
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
    """Return the 32-bit xxHash with seed 0, the checksum inside lz4 frames."""
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
