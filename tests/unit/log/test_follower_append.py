"""A follower's short way to append: the same log as the general one leaves, compiled and interpreted."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from tailrace.log import follower_append, replicated_kernels
from tailrace.log.partition_log import PartitionLog
from tailrace.model.errors import KafkaError
from tailrace.records.batch import Codec, CorruptBatch, RecordBatch
from tests.support.batches import batch, end_marker
from tests.support.interpreted import interpreted as interpreted_form
from tests.support.small_logs import NOW_MS, open_small

SETTINGS = {"internal.segment.bytes": "6000", "index.interval.bytes": "300", "segment.ms": "50000"}
LEADER_EPOCH = 7


BOTH = pytest.mark.parametrize(
    "kernels", [replicated_kernels, interpreted_form(replicated_kernels)], ids=["as installed", "interpreted"]
)


class Leader:
    """Batches as a leader has them: of several producers, in and out of transactions, with epochs, gaps and markers."""

    def __init__(self, seed: int, *, is_plain: bool) -> None:
        self.chance = random.Random(seed)
        self.is_plain = is_plain
        self.offset = 0
        self.epoch = 0
        self.sequences: dict[int, int] = {}
        self.open: set[int] = set()

    def next(self) -> bytes:
        chance = self.chance
        if chance.random() < 0.05 and self.epoch < LEADER_EPOCH:
            self.epoch += 1
        if chance.random() < 0.05:
            self.offset += chance.randrange(5)  # as compaction leaves it
        timestamp = NOW_MS + chance.choice([0, 1, 7, 2_000, 60_000])
        producer = chance.choice([-1, -1, 5, 5, 6, 7])
        if not self.is_plain and producer in self.open and chance.random() < 0.3:
            self.open.discard(producer)
            return self._placed(end_marker(producer, commit=chance.random() < 0.5, timestamp=timestamp))
        values = [chance.randbytes(chance.randrange(60))] * chance.randint(1, 3)
        fields: dict[str, Any] = {"timestamp": timestamp}
        if chance.random() < 0.1:
            fields["codec"] = Codec.GZIP
        if producer >= 0:
            is_transactional = producer == 7 and not self.is_plain
            if is_transactional:
                self.open.add(producer)
            sequence = self.sequences.get(producer, 0)
            fields |= {"producer_id": producer, "sequence": sequence, "transactional": is_transactional}
            self.sequences[producer] = sequence + len(values)
        return self._placed(batch(*values, **fields))

    def _placed(self, data: bytearray) -> bytes:
        one = RecordBatch(memoryview(data))
        one.set_offset_and_epoch(self.offset, self.epoch)
        self.offset = one.next_offset
        return bytes(data)

    def answer(self) -> tuple[bytes, bytes]:
        """Some whole batches, and perhaps the begin of another, which comes again."""
        whole = b"".join(self.next() for _ in range(self.chance.randint(1, 6)))
        return whole, self.chance.choice([b"", b"\0", bytes(batch(b"x" * 50)[:70])])


def contents(log: PartitionLog) -> list[object]:
    segments = [
        (
            one.base_offset,
            one.log.read(0, one.size),
            bytes(one.offset_index.file.data),
            bytes(one.time_index.file.data),
            one.largest,
        )
        for one in log.segments
    ]
    marks = log.marks
    return [segments, marks.log_end, marks.first_unstable, log.epochs.entries, log.producers.end_offset,
            log.producers.producers, log.producers.open_transactions]  # fmt: skip


@BOTH
@pytest.mark.parametrize("is_plain", [True, False], ids=["plain", "transactions"])
def test_the_short_way_leaves_the_log_that_the_general_one_leaves(
    kernels: Any, is_plain: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower_append, "take_plain", kernels.take_plain)
    took = 0
    for seed in range(6):
        leader = Leader(seed, is_plain=is_plain)
        short, general = open_small(settings=SETTINGS), open_small(settings=SETTINGS)
        for _ in range(60):
            whole, cut = leader.answer()
            took += _append(short, whole + cut)
            general.append_as_follower(whole + cut, leader_epoch=LEADER_EPOCH, now_ms=NOW_MS)
            assert short.log_end_offset == leader.offset
            assert contents(short) == contents(general)
    assert took > 100, "the short way is taken"


def _append(log: PartitionLog, data: bytes, leader_epoch: int = LEADER_EPOCH) -> bool:
    """As a follower does; whether it was the short way."""
    if follower_append.append_plain(log, memoryview(data), leader_epoch, NOW_MS):
        return True
    log.append_as_follower(data, leader_epoch=leader_epoch, now_ms=NOW_MS)
    return False


def _damaged(data: bytearray) -> None:
    data[-1] ^= 1


def _of_no_epoch(data: bytearray) -> None:
    RecordBatch(memoryview(data)).set_offset_and_epoch(1, -1)


def _below(data: bytearray) -> None:
    RecordBatch(memoryview(data)).set_offset_and_epoch(0, 0)


@BOTH
@pytest.mark.parametrize(
    ("spoil", "error"), [(_damaged, CorruptBatch), (_of_no_epoch, CorruptBatch), (_below, KafkaError)]
)
def test_what_is_wrong_is_refused_with_nothing_written(
    kernels: Any, spoil: Callable[[bytearray], None], error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower_append, "take_plain", kernels.take_plain)
    log = open_small()
    log.append_as_follower(batch(b"first", leader_epoch=0), leader_epoch=0, now_ms=NOW_MS)
    before = contents(log)
    good, bad = batch(b"a", base_offset=1, leader_epoch=0), batch(b"b", base_offset=2, leader_epoch=0)
    spoil(bad)
    with pytest.raises(error):
        _append(log, bytes(good + bad), leader_epoch=0)
    assert contents(log) == before


def test_a_later_epoch_than_was_asked_for_is_left_out() -> None:
    log = open_small()
    log.append_as_follower(batch(b"first", leader_epoch=0), leader_epoch=0, now_ms=NOW_MS)
    data = batch(b"a", base_offset=1, leader_epoch=0) + batch(b"b", base_offset=2, leader_epoch=1)
    _append(log, bytes(data), leader_epoch=0)
    assert log.log_end_offset == 2


@BOTH
def test_a_batch_whose_offsets_do_not_fit_into_64_bits_is_not_plain(kernels: Any) -> None:
    data = bytearray(batch(b"one", b"two"))
    RecordBatch(memoryview(data)).set_offset_and_epoch(2**63 - 2, LEADER_EPOCH)
    batches: list[Any] = []
    assert kernels.take_plain(memoryview(data), 0, LEADER_EPOCH, batches, []) == 0
    assert batches == []
