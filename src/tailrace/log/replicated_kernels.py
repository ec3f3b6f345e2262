# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, annotation_typing=False
"""The loop over batches that a follower takes from its leader.

Plain Python that Cython compiles in place, with its C types in replicated_kernels.pxd: one source for both speeds,
under the rules that `records/kernels.py` states.
"""

from __future__ import annotations

from tailrace.records.batch import Buffer
from tailrace.records.codecs.crc32c import crc32c

COMPILED = not __file__.endswith(".py")


def _int32(data: Buffer, position: int) -> int:
    """Big-endian and signed; the caller has checked that four bytes are there."""
    high = (data[position] ^ 0x80) - 0x80
    return high * 16777216 + (data[position + 1] << 16 | data[position + 2] << 8 | data[position + 3])


def _int64(data: Buffer, position: int) -> int:
    return _int32(data, position) * 65536 * 65536 + (_int32(data, position + 4) & 0xFFFFFFFF)


def take_plain(
    data: memoryview,
    next_offset: int,
    leader_epoch: int,
    batches: list[tuple[int, int, int]],
    produced: list[memoryview],
) -> int:
    """Take plain batches from the front; the size of those that were taken.

    Plain is a whole batch of format v2 and of this epoch, with a checksum that holds, no marker, at `next_offset` or
    past it. `batches` gets the size, last offset and largest timestamp of each, `produced` those with a producer id.
    """
    view = data
    end = len(view)
    start = 0
    while end - start >= 61:
        size = _int32(view, start + 8) + 12
        if view[start + 16] != 2 or size < 61 or size > end - start or _int32(view, start + 12) != leader_epoch:
            break
        base_offset = _int64(view, start)
        delta = _int32(view, start + 23)
        if view[start + 22] & 0x20 or base_offset < next_offset or delta < 0:
            break
        if base_offset >= 0x7FFFFFFFFFFFFFFF - delta:
            break  # the offset after the last one would not fit into 64 bits
        crc = _int32(view, start + 17) & 0x7FFFFFFF
        if view[start + 17] & 0x80:
            crc = crc + 0x7FFFFFFF + 1
        if crc32c(data[start + 21 : start + size]) != crc:
            break
        if view[start + 43] < 0x80:
            produced.append(data[start : start + size])
        next_offset = base_offset + delta + 1
        batches.append((size, base_offset + delta, _int64(view, start + 35)))
        start += size
    return start
