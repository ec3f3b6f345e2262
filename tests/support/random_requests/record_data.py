"""RecordData: random records of a Produce request for a partition.

A `Recipe` gives the same bytes each time, except for the producer id, which each broker hands out itself.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from random import Random
from typing import Any, Final, NamedTuple

from tailrace.records.batch import (
    ATTRIBUTES_POSITION,
    CRC_POSITION,
    LAST_OFFSET_DELTA_POSITION,
    LENGTH_POSITION,
    MAGIC_POSITION,
    MAX_TIMESTAMP_POSITION,
    RECORD_COUNT_POSITION,
    Codec,
)
from tailrace.records.builder import BatchBuilder
from tailrace.records.codecs.crc32c import crc32c
from tailrace.records.legacy import build_messages
from tailrace.records.record import Record, TimestampType
from tests.support.random_requests.settings import DAY_MS, HOUR_MS

NO_PRODUCER: Final = (-1, -1)
Recipe = Callable[[tuple[int, int]], bytes | None]  # from producer id and epoch
Change = Callable[[bytearray], None]

_SHIFTS: Final = (0, 0, 0, 0, 1, 2, -1000, -1000, -HOUR_MS, -30 * DAY_MS, -60 * DAY_MS, HOUR_MS // 6, 5 * DAY_MS)


class Sequenced(NamedTuple):
    """The producer id, epoch and sequence of a batch."""

    base_sequence: int = -1
    is_transactional: bool = False


class RecordData:
    def __init__(self, dice: Random, start_ms: int) -> None:
        self._dice = dice
        self._start_ms = start_ms

    def timestamp(self) -> int:
        if self._dice.random() < 0.02:
            return self._dice.choice([-1, 0, 1])
        return self._start_ms + self._dice.choice(_SHIFTS)

    def draw(self, sequenced: Sequenced | None = None) -> tuple[Recipe, int]:
        """Return a recipe, and the number of records if it is one whole batch that no check refuses for its form."""
        dice = self._dice
        luck = dice.random()
        if luck < 0.72 or (sequenced is not None and luck < 0.9):
            return self._batch(sequenced)
        if luck < 0.76:
            return self._several(), 0
        if luck < 0.80:
            return self._old(), 0
        if luck < 0.82:
            data = dice.choice([b"", b"\0" * 70, dice.randbytes(dice.choice([1, 12, 16, 17, 61, 90]))])
            return lambda _: data, 0
        return self._damaged(sequenced), 0

    def _records(self) -> list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]]:
        dice = self._dice
        shape = dice.choice([5, 5, 20, 100, 400])
        if dice.random() < 0.02:
            shape = 60_000
        shared = self.timestamp()
        return [
            (
                shared if dice.random() < 0.7 else self.timestamp(),
                None if dice.random() < 0.15 else b"k%d" % dice.randrange(20),
                None if dice.random() < 0.1 else (b"v%d " % dice.randrange(99)) * (1 + dice.randrange(shape) // 4),
                [("h", dice.choice([b"x", None, b""]))] if dice.random() < 0.1 else [],
            )
            for _ in range(dice.choice([1, 1, 1, 2, 3, 10, 40]))
        ]

    def _batch(self, sequenced: Sequenced | None, **more: Any) -> tuple[Recipe, int]:
        dice = self._dice
        records = self._records()
        codec = Codec(dice.choice([0, 0, 0, 1, 2, 3, 4]))
        base_offset = dice.choice([0] * 9 + [3])

        def build(producer: tuple[int, int]) -> bytes:
            fields: dict[str, Any] = {}
            if sequenced is not None and producer != NO_PRODUCER:
                fields = {
                    "producer_id": producer[0],
                    "producer_epoch": producer[1],
                    "base_sequence": sequenced.base_sequence,
                    "transactional": sequenced.is_transactional,
                }
            builder = BatchBuilder(codec=codec, base_offset=base_offset, **fields, **more)
            for timestamp, key, value, headers in records:
                builder.append(timestamp, key, value, headers)
            return builder.build()

        return build, len(records)

    def _several(self) -> Recipe:
        parts = [self._batch(None)[0] for _ in range(2)]
        return lambda producer: b"".join(part(producer) or b"" for part in parts)

    def _old(self) -> Recipe:
        dice = self._dice
        magic = dice.choice([0, 1])
        codec = Codec(dice.choice([0, 0, 1, 2, 3]))
        kind = TimestampType.CREATE_TIME if magic else TimestampType.NO_TIMESTAMP
        records = [
            Record(number, timestamp if magic else -1, kind, key, value)
            for number, (timestamp, key, value, _) in enumerate(self._records())
        ]
        data = bytearray(build_messages(records, magic=magic, codec=codec))
        if dice.random() < 0.3:
            data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
        return lambda _: bytes(data)

    def _damaged(self, sequenced: Sequenced | None) -> Recipe:
        whole, _ = self._batch(sequenced, control=self._dice.random() < 0.05)
        change = self._change()

        def build(producer: tuple[int, int]) -> bytes:
            data = bytearray(whole(producer) or b"")
            change(data)
            return bytes(data)

        return build

    def _change(self) -> Change:
        """Return a way to damage a batch; most keep the checksum right, so that later checks are reached."""
        dice = self._dice
        place, bit = dice.random(), 1 << dice.randrange(8)
        kind = dice.choice(
            ["checksum", "flip", "flip", "count", "delta", "attributes", "length", "max", "magic", "cut"]
        )
        number = dice.choice([-1, 0, 1, 2, 5, 2**31 - 1, -(2**31)])
        added = dice.choice([-1, 1, 7])

        def change(data: bytearray) -> None:
            if kind == "checksum":
                data[CRC_POSITION] ^= bit
            elif kind == "flip":
                data[ATTRIBUTES_POSITION + int(place * (len(data) - ATTRIBUTES_POSITION))] ^= bit
            elif kind == "count":
                struct.pack_into(">i", data, RECORD_COUNT_POSITION, number)
            elif kind == "delta":
                struct.pack_into(">i", data, LAST_OFFSET_DELTA_POSITION, number)
            elif kind == "attributes":
                data[ATTRIBUTES_POSITION + 1] ^= bit
            elif kind == "length":
                (length,) = struct.unpack_from(">i", data, LENGTH_POSITION)
                struct.pack_into(">i", data, LENGTH_POSITION, number if place < 0.3 else length + added)
            elif kind == "max":
                struct.pack_into(">q", data, MAX_TIMESTAMP_POSITION, self._start_ms + added)
            elif kind == "magic":
                data[MAGIC_POSITION] = (number & 0x7F) if place < 0.9 else 0xFF
            else:
                del data[int(place * len(data)) :]
            if kind in ("flip", "count", "delta", "attributes", "max"):
                struct.pack_into(">I", data, CRC_POSITION, crc32c(bytes(data[ATTRIBUTES_POSITION:])))

        return change
