"""The cases of the golden record bytes: what to build, and what to compress. Kafka's answers are kept beside the tests.

Data to compress is made from a seed, so that only Kafka's output has to be kept, and of long output only its digest.
"""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any

DATA = Path(__file__).resolve().parent / "data" / "records"
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
LEVELS: dict[str, tuple[int | None, ...]] = {
    "gzip": (None, 1, 9),
    "snappy": (None,),
    "lz4": (None, 1, 3, 12),
    "zstd": (None, -5, 1, 9),
}
SIZES = (1, 15, 100, 1000, 8193, 32_769, 65_537, 200_000)
START_MS = 1_700_000_000_000

Row = tuple[int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...], int]  # …, headers, offset


def sample(kind: str, size: int) -> bytes:
    """Return `size` bytes: noise, or repeated words like those of real records."""
    dice = random.Random(f"{kind} {size}")
    if kind == "noise":
        return dice.randbytes(size)
    words = [bytes(dice.choices(b"abcdefghijklmnopqrstuvwxyz", k=dice.randint(2, 9))) for _ in range(200)]
    out = bytearray()
    while len(out) < size:
        out += dice.choice(words) + b" %d " % dice.randrange(1000)
    return bytes(out[:size])


def codec_cases() -> list[dict[str, Any]]:
    return [
        {"codec": codec, "level": level, "magic": magic, "kind": kind, "size": size}
        for codec, levels in LEVELS.items()
        for level, kind, size in itertools.product(levels, ("text", "noise"), SIZES)
        for magic in ((0, 2) if codec == "lz4" and level is None else (2,))
    ]


def rows(base_offset: int, *, headers: bool, gaps: bool) -> list[Row]:
    some = (("trace", b"\x01\x02"), ("naïve", None)) if headers else ()
    step = 3 if gaps else 1
    return [
        (START_MS, b"key", b"value " * 20, some, base_offset),
        (START_MS + 70_000, None, b"", (), base_offset + step),
        (START_MS - 5, b"", None, some[:1], base_offset + 2 * step),
        (-1, b"key", b"x" * 200, (), base_offset + 3 * step),
    ]


def batch_cases() -> list[dict[str, Any]]:
    """Return the arguments for a builder, and the shape of its records."""
    cases: list[dict[str, Any]] = []
    for codec, timestamp_type in itertools.product(CODECS, ("CreateTime", "LogAppendTime")):
        for magic in (0, 1, 2) if codec != "zstd" else (2,):
            cases.append(
                {"magic": magic, "codec": codec, "timestamp_type": timestamp_type, "base_offset": 41, "gaps": True}
            )
    plain = {"magic": 2, "codec": "none", "timestamp_type": "CreateTime"}
    return [
        *cases,
        {**plain, "base_offset": 2**40, "leader_epoch": 2**31 - 1},
        {**plain, "base_offset": 7, "producer_id": 2**62, "producer_epoch": 32767, "base_sequence": 2**31 - 2},
        {**plain, "base_offset": 7, "producer_id": 1, "producer_epoch": 0, "base_sequence": 0, "transactional": True},
        {**plain, "base_offset": 7, "delete_horizon_ms": START_MS + 99, "codec": "zstd"},
        {**plain, "base_offset": 7, "last_offset": 100, "gaps": True, "codec": "gzip"},
    ]
