"""A leader's batches at a follower: many at once or one by one, compiled and interpreted, the same log."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from tailrace.log.partition_log import PartitionLog
from tailrace.log.producers.producer_state import ProducerState
from tailrace.log.replicated import replicated_batches, replicated_kernels
from tailrace.log.replicated.replicated_batches import BatchRun, split_replicated
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import TopicPartition
from tailrace.records.batch import Buffer, Codec, CorruptBatch, RecordBatch
from tailrace.records.legacy import build_messages
from tailrace.records.record import Record, TimestampType
from tests.support.batches import batch, end_marker
from tests.support.interpreted import interpreted as interpreted_form
from tests.support.small_logs import NOW_MS, open_small

SETTINGS = {"internal.segment.bytes": "6000", "index.interval.bytes": "300", "segment.ms": "50000"}
LEADER_EPOCH = 7
PARTITION = TopicPartition("topic", 0)


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

    def answer(self) -> tuple[list[bytes], bytes]:
        """Return some whole batches, and perhaps the first bytes of the next one."""
        whole = [self.next() for _ in range(self.chance.randint(1, 6))]
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
def test_batches_appended_together_give_the_same_log_as_single_batches(
    kernels: Any, is_plain: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replicated_batches, "take_replicated", kernels.take_replicated)
    settings = {**SETTINGS, "internal.segment.bytes": "100000", "segment.ms": "600000000"}
    for seed in range(6):
        leader = Leader(seed, is_plain=is_plain)
        together, single = open_small(settings=settings), open_small(settings=settings)
        for _ in range(60):
            whole, cut = leader.answer()
            _append(together, b"".join(whole) + cut)
            for one in whole:
                _append(single, one)
            assert together.log_end_offset == leader.offset
            assert contents(together)[1:] == contents(single)[1:]
        assert contents(together) == contents(single)


@BOTH
def test_the_fast_path_for_producers_gives_the_same_log_as_the_full_check(
    kernels: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replicated_batches, "take_replicated", kernels.take_replicated)
    for seed in range(6):
        leader = Leader(seed, is_plain=False)
        quick, thorough = open_small(settings=SETTINGS), open_small(settings=SETTINGS)
        for _ in range(60):
            whole, cut = leader.answer()
            _append(quick, b"".join(whole) + cut)
            with monkeypatch.context() as patched:
                patched.setattr(ProducerState, "is_continued_by", lambda *_: False)
                _append(thorough, b"".join(whole) + cut)
            assert contents(quick) == contents(thorough)
        assert len(quick.segments) > 3


def _append(log: PartitionLog, data: bytes, leader_epoch: int = LEADER_EPOCH) -> None:
    log.append_as_follower(data, leader_epoch=leader_epoch, now_ms=NOW_MS)


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
def test_invalid_batches_are_refused_and_nothing_is_written(
    kernels: Any, spoil: Callable[[bytearray], None], error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replicated_batches, "take_replicated", kernels.take_replicated)
    log = open_small()
    log.append_as_follower(batch(b"first", leader_epoch=0), leader_epoch=0, now_ms=NOW_MS)
    before = contents(log)
    good, bad = batch(b"a", base_offset=1, leader_epoch=0), batch(b"b", base_offset=2, leader_epoch=0)
    spoil(bad)
    with pytest.raises(error):
        _append(log, bytes(good + bad), leader_epoch=0)
    assert contents(log) == before


def test_a_batch_of_a_later_epoch_than_the_fetch_is_not_appended() -> None:
    log = open_small()
    log.append_as_follower(batch(b"first", leader_epoch=0), leader_epoch=0, now_ms=NOW_MS)
    data = batch(b"a", base_offset=1, leader_epoch=0) + batch(b"b", base_offset=2, leader_epoch=1)
    _append(log, bytes(data), leader_epoch=0)
    assert log.log_end_offset == 2


@BOTH
def test_a_batch_whose_offsets_do_not_fit_into_64_bits_is_refused(
    kernels: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replicated_batches, "take_replicated", kernels.take_replicated)
    data = bytearray(batch(b"one", b"two"))
    RecordBatch(memoryview(data)).set_offset_and_epoch(2**63 - 2, LEADER_EPOCH)
    with pytest.raises(CorruptBatch, match="ends after the last possible offset"):
        follow(data, end=0, epoch=LEADER_EPOCH)


def follow(data: Buffer, *, end: int = 100, epoch: int = 4) -> BatchRun | None:
    return split_replicated(memoryview(data), end, epoch, PARTITION)


def replicated(offset: int, *values: bytes, epoch: int = 4) -> bytes:
    return bytes(batch(*values, base_offset=offset, leader_epoch=epoch, timestamp=NOW_MS + offset))


def test_an_empty_response_has_no_batches() -> None:
    assert follow(b"") is None


def test_a_follower_keeps_batches_unchanged() -> None:
    data = replicated(100, b"a", b"b") + replicated(105, b"c", epoch=3)
    plan = follow(data)
    assert plan is not None
    assert (plan.first_offset, plan.batches[-1][1]) == (100, 105)
    assert plan.max_timestamp == NOW_MS + 105
    assert bytes(plan.data) == data


def test_a_follower_leaves_out_a_last_batch_that_is_cut_short() -> None:
    whole = replicated(100, b"a")
    for cut in (1, 11, 12, 60):
        plan = follow(whole + replicated(101, b"b")[:cut])
        assert plan is not None
        assert bytes(plan.data) == whole


def test_a_follower_stops_before_a_later_epoch() -> None:
    plan = follow(replicated(100, b"a") + replicated(101, b"b", epoch=5) + replicated(102, b"c"))
    assert plan is not None
    assert plan.batches[-1][1] == 100
    assert follow(replicated(100, b"a", epoch=5)) is None


def test_a_follower_refuses_offsets_it_already_has() -> None:
    with pytest.raises(KafkaError, match="batch at offset 99 of topic-0 is below the next offset 100") as caught:
        follow(replicated(99, b"a"))
    assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    with pytest.raises(KafkaError, match="is below the next offset 102"):
        follow(replicated(100, b"a", b"b") + replicated(101, b"c"))


def test_a_follower_refuses_a_damaged_batch() -> None:
    data = bytearray(replicated(100, b"abc"))
    data[-2] ^= 1
    with pytest.raises(CorruptBatch, match="checksum"):
        follow(data)


@pytest.mark.parametrize("magic", [0, 1])
def test_a_follower_accepts_messages_of_old_formats_with_an_unknown_first_offset(magic: int) -> None:
    kind = TimestampType.CREATE_TIME if magic else TimestampType.NO_TIMESTAMP
    records = [Record(100 + n, NOW_MS if magic else -1, kind, None, b"v") for n in range(3)]
    data = build_messages(records, magic=magic)
    plan = follow(data)
    assert plan is not None
    assert (plan.first_offset, plan.batches[-1][1], len(plan.batches)) == (-1, 102, 3)
    damaged = bytearray(data)
    damaged[-1] ^= 1
    with pytest.raises(CorruptBatch, match="checksum"):
        follow(damaged)


def test_batches_too_far_apart_for_one_segment_are_not_taken_together() -> None:
    near, far = replicated(100, b"a"), replicated(100 + 2**31, b"b")
    plan = follow(near + far)
    assert plan is not None
    assert bytes(plan.data) == near
