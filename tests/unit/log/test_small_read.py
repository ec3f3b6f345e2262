"""Small reads: the bytes that `read_log` says to send, or none."""

from __future__ import annotations

import random

import pytest

from tailrace.log.partition_log import PartitionLog
from tailrace.log.reading.small_read import SMALL_READ_BYTES, read_small
from tailrace.log.watermarks import Isolation
from tailrace.records.batch import CorruptBatch
from tests.support.small_logs import append, open_small, replicate


def many_sizes(seed: int) -> PartitionLog:
    """Return a log of several segments, with batches of one to three records. Some are larger than a small read."""
    chance = random.Random(seed)
    log = open_small(settings={"internal.segment.bytes": "60000", "index.interval.bytes": "1000"})
    for number in range(300):
        size = chance.choice([1, 50, 400, 3_000, 9_000]) if number % 10 == 0 else chance.randrange(100)
        append(log, *([chance.randbytes(size)] * chance.randint(1, 3)))
        if number == 290:
            replicate(log)
    return log


def small(log: PartitionLog, start: int, max_bytes: int) -> bytes | None:
    marks = log.placed_marks()
    found = read_small(log.segments, start, max_bytes, marks.high_watermark, marks.log_end.offset)
    return None if found is None else found[1]


def whole(log: PartitionLog, start: int, max_bytes: int) -> bytes:
    read = log.read(start, max_bytes, Isolation.READ_UNCOMMITTED, at_least_one=True)
    return read.slice.read() if read.slice else b""


@pytest.mark.parametrize("seed", range(3))
def test_a_small_read_returns_the_same_as_a_read(seed: int) -> None:
    log = many_sizes(seed)
    taken = 0
    for start in range(log.high_watermark):
        for max_bytes in (1, 100, 1_000, SMALL_READ_BYTES, 10**6):
            found = small(log, start, max_bytes)
            assert found in (None, whole(log, start, max_bytes)), (start, max_bytes)
            taken += found is not None
    assert taken > log.high_watermark


def test_large_ranges_are_left_to_the_general_path() -> None:
    log = many_sizes(0)
    assert len(whole(log, 0, 10**6)) > SMALL_READ_BYTES
    assert small(log, 0, 10**6) is None


@pytest.mark.parametrize("place", [8, 16, 23])
def test_damage_is_left_to_the_general_path(place: int) -> None:
    """A length, a format and an offset that cannot be."""
    log = open_small()
    append(log, b"one")
    replicate(log)
    file = log.segments.active.log
    file.write(place, b"\x7f")
    try:
        expected: bytes | None = whole(log, 0, 10**6)
    except CorruptBatch:
        expected = None
    assert expected is None
    assert small(log, 0, 10**6) is None


def test_a_wrong_index_is_left_to_the_general_path() -> None:
    log = many_sizes(1)
    index = log.segments.first.offset_index
    entry = index.entry(1)
    data = bytearray(index.file.data)
    data[8:12] = (entry.offset - 1).to_bytes(4, "big")
    index.file._data = data
    assert small(log, entry.offset, 100) is None
    assert whole(log, entry.offset, 100)
