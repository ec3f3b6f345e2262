"""Batches that are placed one by one and written together: the same log as when each is appended by itself."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from tailrace.log.partition_log import PartitionLog
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.topic_config import TopicConfig
from tailrace.records.batch import Codec, RecordBatch
from tailrace.records.checks.validation import Origin, check_produced
from tests.support.batches import batch, end_marker
from tests.support.memory_files import MemoryFile
from tests.support.small_logs import NOW_MS, append, open_small

SETTINGS = {"internal.segment.bytes": "4000", "index.interval.bytes": "300", "segment.ms": "5000"}


class Producers:
    """Batches of clients and coordinators, with times that make segments roll; some are refused, some repeated."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.sequences = {5: 0, 6: 0, 7: 0}
        self.in_transaction = False
        self.last: dict[int, bytes] = {}

    def next(self) -> tuple[bytes, Origin]:
        chance = self.chance
        if self.in_transaction and chance.random() < 0.1:
            self.in_transaction = False
            return bytes(end_marker(7, commit=chance.random() < 0.5, timestamp=NOW_MS)), Origin.COORDINATOR
        values = [chance.randbytes(chance.randrange(60))] * chance.randint(1, 3)
        fields: dict[str, Any] = {"timestamp": NOW_MS + chance.choice([0, 1, 7, 2_000, 2_000, 6_000])}
        if chance.random() < 0.1:
            fields["codec"] = chance.choice([Codec.GZIP, Codec.ZSTD])
        producer = chance.choice([-1, -1, 5, 6, 7])
        if producer < 0:
            return bytes(batch(*values, **fields)), Origin.CLIENT
        if producer in self.last and chance.random() < 0.1:
            return self.last[producer], Origin.CLIENT
        if chance.random() < 0.05:
            fields |= {"sequence": self.sequences[producer] + 9}  # out of order
        else:
            fields |= {"sequence": self.sequences[producer]}
            self.sequences[producer] += len(values)
        if producer == 7:
            self.in_transaction = True
        fields |= {"producer_id": producer, "producer_epoch": 0, "transactional": producer == 7}
        made = bytes(batch(*values, **fields))
        if fields["sequence"] < self.sequences[producer]:
            self.last[producer] = made
        return made, Origin.CLIENT


def contents(log: PartitionLog) -> list[object]:
    segments = [
        (one.base_offset, one.log.read(0, one.size), bytes(one.offset_index.file.data), bytes(one.time_index.file.data),
         one.largest, one.transaction_index.entries)
        for one in log.segments
    ]  # fmt: skip
    states = log.producers
    return [segments, log.marks.log_end, log.marks.first_unstable, log.epochs.entries, states.end_offset,
            list(states.producers.items()), states.open_transactions, states.ended_transactions]  # fmt: skip


def outcome(call: Callable[[], Any]) -> Any:
    try:
        return tuple(call())
    except KafkaError as error:
        return error.code, str(error)


@pytest.mark.parametrize("seed", range(8))
def test_batches_placed_together_give_the_same_log_as_single_appends(seed: int) -> None:
    one_by_one, together = open_small(settings=SETTINGS), open_small(settings=SETTINGS)
    producers, chance = Producers(seed), random.Random(seed)
    placed = largest = 0
    for _ in range(160):
        data, origin = producers.next()
        epoch = len(one_by_one.segments) // 2
        expected = outcome(
            lambda data=data, origin=origin, epoch=epoch: one_by_one.append_as_leader(
                data, leader_epoch=epoch, now_ms=NOW_MS, origin=origin
            )
        )
        sent = bytearray(data)
        end = together.log_end_offset
        found = outcome(
            lambda sent=sent, origin=origin, epoch=epoch: together.place(memoryview(sent), epoch, NOW_MS, origin)
        )
        assert found == expected
        if isinstance(found[0], ErrorCode):
            assert sent == data, "a refused batch is left as it was"
        placed = 1 if together.log_end_offset > end else placed + 1
        largest = max(largest, placed)
        if chance.random() < 0.1:
            together.write_placed(NOW_MS)
            assert contents(together) == contents(one_by_one)
    together.write_placed(NOW_MS)
    assert contents(together) == contents(one_by_one)
    assert len(together.segments) > 3
    assert largest > 3


def test_a_placed_batch_cannot_be_read_before_it_is_written() -> None:
    log = open_small()
    log.append_as_leader(bytes(batch(b"first")), leader_epoch=0, now_ms=NOW_MS)
    for number in range(3):
        result = log.place(memoryview(bytearray(batch(b"more"))), 0, NOW_MS)
        assert (result.first_offset, result.last_offset) == (1 + number, 1 + number)
    assert log.log_end_offset == 1
    log.write_placed(NOW_MS)
    assert log.log_end_offset == 4
    log.write_placed(NOW_MS)
    assert log.log_end_offset == 4


def test_placed_batches_of_one_producer_are_written_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_small()
    append(log, b"a", producer_id=7, sequence=0)
    writes = count_writes(monkeypatch)
    for sequence in range(1, 6):
        log.place(batch(b"a", timestamp=NOW_MS, producer_id=7, sequence=sequence), 0, NOW_MS)
    again = log.place(batch(b"a", timestamp=NOW_MS, producer_id=7, sequence=3), 0, NOW_MS)
    assert (again.first_offset, again.is_duplicate) == (3, True), "a repeated batch is known, though only placed"
    log.write_placed(NOW_MS)
    assert (log.log_end_offset, len(writes)) == (6, 1)


def test_records_checked_earlier_are_written_together_with_placed_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_small()
    append(log, b"a")
    writes = count_writes(monkeypatch)
    checked = check_produced(batch(b"b", b"c", codec=Codec.ZSTD, timestamp=NOW_MS), config=TopicConfig(), now_ms=NOW_MS)
    log.place(batch(b"x", timestamp=NOW_MS), 0, NOW_MS)
    result = log.place(checked, 0, NOW_MS)
    assert (result.first_offset, result.last_offset) == (2, 3)
    log.place(batch(b"y", timestamp=NOW_MS), 0, NOW_MS)
    log.write_placed(NOW_MS)
    assert (log.log_end_offset, len(writes)) == (5, 1)
    found = log.read(0, 10_000).slice
    assert found is not None
    headers = [(one.base_offset, one.codec) for one in split(found.read())]
    assert headers == [(0, Codec.NONE), (1, Codec.NONE), (2, Codec.ZSTD), (4, Codec.NONE)]


def test_a_failed_write_leaves_log_and_producers_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_small()
    append(log, b"a", producer_id=7, sequence=0)
    before = contents(log)
    log.place(batch(b"a", timestamp=NOW_MS, producer_id=7, sequence=1), 0, NOW_MS)
    log.place(batch(b"a", timestamp=NOW_MS, producer_id=8, sequence=0, transactional=True), 0, NOW_MS)
    with monkeypatch.context() as broken:
        broken.setattr(MemoryFile, "write", fail)
        with pytest.raises(OSError, match="no space"):
            log.write_placed(NOW_MS)
    assert contents(log) == before
    assert append(log, b"a", producer_id=7, sequence=1).first_offset == 1


def test_a_batch_is_not_placed_if_the_write_before_it_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_small()
    append(log, b"a", producer_id=7, sequence=0)
    before = contents(log)
    log.place(batch(b"a", timestamp=NOW_MS, producer_id=7, sequence=1), 0, NOW_MS)
    with monkeypatch.context() as broken:
        broken.setattr(MemoryFile, "write", fail)
        with pytest.raises(OSError, match="no space"):
            log.place(batch(b"a", timestamp=NOW_MS, producer_id=7, sequence=1), 0, NOW_MS)
    log.write_placed(NOW_MS)
    assert contents(log) == before


def fail(*_: object) -> None:
    raise OSError(28, "no space")


def split(data: bytes) -> list[RecordBatch]:
    found, position = [], 0
    while position < len(data):
        one = RecordBatch(memoryview(data)[position:])
        found.append(one)
        position += one.size
    return found


def count_writes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that collects the positions of later writes."""
    writes: list[int] = []
    write = MemoryFile.write

    def noting(self: MemoryFile, position: int, data: Any) -> None:
        writes.append(position)
        write(self, position, data)

    monkeypatch.setattr(MemoryFile, "write", noting)
    return writes
