"""Groups of batches: the same log as when each is appended by itself."""

from __future__ import annotations

import random

import pytest

from tailrace.log.partition_log import PartitionLog
from tests.support.batches import batch
from tests.support.small_logs import NOW_MS, open_small

SETTINGS = {"internal.segment.bytes": "4000", "index.interval.bytes": "300", "segment.ms": "5000"}


def some_batches(seed: int) -> list[bytes]:
    """Of one to three records, with times that make segments roll, some of two idempotent producers."""
    chance = random.Random(seed)
    sequences = {5: 0, 6: 0}
    made = []
    for _ in range(120):
        values = [chance.randbytes(chance.randrange(60))] * chance.randint(1, 3)
        fields = {"timestamp": NOW_MS + chance.choice([0, 1, 7, 2_000, 2_000, 6_000])}
        if chance.random() < 0.4:
            producer = chance.choice([5, 6])
            fields |= {"producer_id": producer, "producer_epoch": 0, "sequence": sequences[producer]}
            sequences[producer] += len(values)
        made.append(bytes(batch(*values, **fields)))
    return made


def contents(log: PartitionLog) -> list[object]:
    segments = [
        (one.base_offset, one.log.read(0, one.size), bytes(one.offset_index.file.data), bytes(one.time_index.file.data),
         one.largest)
        for one in log.segments
    ]  # fmt: skip
    return [segments, log.marks.log_end, log.epochs.entries, log.producers.end_offset, log.producers.producers]


@pytest.mark.parametrize("seed", range(5))
def test_a_group_leaves_the_log_that_single_appends_leave(seed: int) -> None:
    one_by_one, in_groups = open_small(settings=SETTINGS), open_small(settings=SETTINGS)
    chance = random.Random(seed)
    largest = 0
    for data in some_batches(seed):
        expected = one_by_one.append_as_leader(bytes(data), leader_epoch=0, now_ms=NOW_MS)
        group, records = in_groups.group, bytearray(data)
        offset = group.place(in_groups, memoryview(records), 0, NOW_MS)
        if offset < 0 and group:
            group.write(in_groups, NOW_MS)
            offset = group.place(in_groups, memoryview(records), 0, NOW_MS)
        if offset < 0:
            assert records == data, "what is refused is left as it was"
            offset = in_groups.append_as_leader(bytes(data), leader_epoch=0, now_ms=NOW_MS).first_offset
        assert offset == expected.first_offset
        largest = max(largest, len(group))
        if group and chance.random() < 0.2:
            group.write(in_groups, NOW_MS)
    if in_groups.group:
        in_groups.group.write(in_groups, NOW_MS)
    assert contents(in_groups) == contents(one_by_one)
    assert len(in_groups.segments) > 3
    assert largest > 3


def test_nothing_can_be_read_before_it_is_written() -> None:
    log = open_small()
    log.append_as_leader(bytes(batch(b"first")), leader_epoch=0, now_ms=NOW_MS)
    for number in range(3):
        assert log.group.place(log, memoryview(bytearray(batch(b"more"))), 0, NOW_MS) == 1 + number
    assert (log.log_end_offset, len(log.group)) == (1, 3)
    log.group.write(log, NOW_MS)
    assert (log.log_end_offset, len(log.group)) == (4, 0)
