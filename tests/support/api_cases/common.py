"""Shared by the cases: numbers and names at the limits, and batches."""

from __future__ import annotations

from typing import Any, TypeAlias

from tailrace.records.batch import Codec
from tailrace.records.builder import BatchBuilder
from tests.support.api_twins import Make

Case: TypeAlias = tuple[str, Make]

INT_MAX, LONG_MAX = 2**31 - 1, 2**63 - 1
LONG_NAME = "n" * 250
BAD_NAMES = ("", ".", "..", "a/b", "ä", "x" * 250, "with space")


def batch(base_ms: int, *values: bytes | None, codec: Codec = Codec.NONE, **producer: Any) -> bytes:
    builder = BatchBuilder(codec=codec, **producer)
    for number, value in enumerate(values):
        builder.append(base_ms + number, b"k%d" % number, value)
    return builder.build()
