"""Damage to bytes that knows nothing of what they mean."""

from __future__ import annotations

import random
import struct

NUMBERS = (-1, 0, 1, 2, 127, 128, 255, 32767, 65535, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63), 10**9)
INVALID_MARK = "\u00bf\u00bf"  # represents bytes that are not UTF-8 in a text
_INVALID = b"\xff\xfe\xff\xfe"
_FORMATS = ((">b", 8), (">h", 16), (">i", 32), (">q", 64))
_VARINTS = (b"\x00", b"\x01", b"\x7f", b"\x80\x01", b"\xff\xff\x03", b"\xff\xff\xff\xff\x0f", b"\xff" * 9 + b"\x01")


def with_invalid_text(data: bytes) -> bytes:
    """Return the bytes with every mark replaced by as many bytes that are not UTF-8."""
    return data.replace(INVALID_MARK.encode(), _INVALID)


def damage(data: bytes, dice: random.Random, times: int = 1) -> bytes:
    """Flip, overwrite, cut, repeat or insert some bytes."""
    damaged = bytearray(data)
    for _ in range(times):
        _damage_once(damaged, dice)
    return bytes(damaged)


def _damage_once(data: bytearray, dice: random.Random) -> None:
    size = len(data)
    where = dice.randrange(size + 1)
    match dice.randrange(7):
        case 0 if where < size:
            data[where] ^= 1 << dice.randrange(8)
        case 1:
            form, bits = dice.choice(_FORMATS)
            value = (dice.choice(NUMBERS) + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)
            data[where : where + bits // 8] = struct.pack(form, value)
        case 2:
            varint = dice.choice(_VARINTS)
            data[where : where + dice.choice((1, len(varint)))] = varint
        case 3:
            del data[where : where + dice.choice((1, 2, 4, 8, 60))]
        case 4:
            del data[where:]
        case 5:
            piece = data[where : where + dice.choice((1, 4, 61, 200))]
            data[where:where] = piece * dice.choice((1, 1, 2, 10))
        case _:
            data[where:where] = dice.randbytes(dice.choice((1, 2, 4, 16)))
