"""Damage to record batches and message sets that gets past their checksums as often as not."""

from __future__ import annotations

import random
import struct
import zlib

import crc32c

from tests.fuzz.bytes_mutator import NUMBERS, damage

_HEADER = 61  # of a v2 batch, before its records
_INSIDE = 21  # where its checksum begins to count
_FIELDS = ((16, ">b"), (21, ">h"), (23, ">i"), (27, ">q"), (35, ">q"), (43, ">q"), (51, ">h"), (53, ">i"), (57, ">i"))


def damage_records(data: bytes, dice: random.Random) -> bytes:
    match dice.randrange(8):
        case 0 | 1 | 2 if len(data) > _HEADER:
            data = _change_field(data, dice)
        case 3 if len(data) > _HEADER:
            data = data[:_HEADER] + damage(data[_HEADER:], dice)
        case 4:
            data = data + data
        case _:
            data = damage(data, dice, dice.choice((1, 1, 3)))
    return repaired(data) if dice.random() < 0.75 else data


def _change_field(data: bytes, dice: random.Random) -> bytes:
    changed = bytearray(data)
    position, form = dice.choice(_FIELDS)
    bits = struct.calcsize(form) * 8
    value = dice.choice((*NUMBERS, dice.randrange(32)))
    struct.pack_into(form, changed, position, (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1))
    return bytes(changed)


def repaired(data: bytes) -> bytes:
    """Return the data with the right size and checksum of its first batch or message, if it is only one batch."""
    fixed = bytearray(data)
    if len(fixed) < 17:
        return data
    if fixed[16] == 2 and len(fixed) >= _HEADER:
        (size,) = struct.unpack_from(">i", fixed, 8)
        if not _HEADER - 12 <= size <= len(fixed) - 12:
            size = len(fixed) - 12
            struct.pack_into(">i", fixed, 8, size)
        struct.pack_into(">I", fixed, 17, crc32c.crc32c(bytes(fixed[_INSIDE : 12 + size])))
    elif fixed[16] < 2:
        (size,) = struct.unpack_from(">i", fixed, 8)
        if not 14 <= size <= len(fixed) - 12:
            size = len(fixed) - 12
            struct.pack_into(">i", fixed, 8, size)
        struct.pack_into(">I", fixed, 12, zlib.crc32(bytes(fixed[16 : 12 + size])))
    return bytes(fixed)
