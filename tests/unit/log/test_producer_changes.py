"""The changes of producer states by placed batches."""

from __future__ import annotations

from unittest import mock

import pytest

from tailrace.log.partition_log import PartitionLog
from tailrace.log.producers.producer_changes import ProducerChanges
from tailrace.log.producers.producer_state import ProducerState
from tailrace.log.segments.position import LogPosition
from tailrace.records.batch import Buffer, RecordBatch
from tailrace.records.checks.validation import Origin
from tests.support.batches import batch, end_marker
from tests.support.small_logs import NOW_MS, append, open_small


def at(offset: int, data: Buffer) -> RecordBatch:
    one = RecordBatch(memoryview(data))
    one.set_offset_and_epoch(offset, 0)
    return one


def changes_of(log: PartitionLog) -> ProducerChanges:
    return ProducerChanges(log.producers)


def test_l9_a_duplicate_is_recognised_before_anything_is_written() -> None:
    log = open_small()
    append(log, b"a", b"b", producer_id=7, sequence=0)
    again = at(2, batch(b"a", b"b", timestamp=NOW_MS, producer_id=7, sequence=0))
    changes = changes_of(log)
    assert not changes.add_next(again)
    known = changes.plan([(LogPosition(2), again)], Origin.CLIENT, 0)
    assert known is not None
    assert (known.first_offset, known.last_offset, changes.placed) == (0, 1, {})


@pytest.mark.parametrize("transactional", [False, True])
def test_the_fast_path_for_the_next_batch_makes_the_same_changes_as_the_full_check(transactional: bool) -> None:
    log, other = open_small(), open_small()
    options = {"producer_id": 7, "transactional": transactional}
    for one in (log, other):
        append(one, b"a", b"b", sequence=0, **options)
    for sequence in range(2, 14, 2):
        append(log, b"a", b"b", sequence=sequence, **options)
        with mock.patch.object(ProducerState, "is_continued_by", return_value=False):
            append(other, b"a", b"b", sequence=sequence, **options)
    assert log.producers.producers == other.producers.producers
    assert log.producers.open_transactions == other.producers.open_transactions
    assert log.last_stable_offset == other.last_stable_offset
    assert [one.last_sequence for one in log.producers.producers[7].batches] == [5, 7, 9, 11, 13]


def test_only_the_next_batch_of_the_same_epoch_and_transaction_continues_a_producer() -> None:
    log = open_small()
    append(log, b"a", producer_id=7, sequence=0)
    for change in ({"sequence": 0}, {"sequence": 2}, {"sequence": 1, "producer_epoch": 1}, {"transactional": True}):
        data = batch(b"a", timestamp=NOW_MS, **{"producer_id": 7, "sequence": 1, **change})
        assert not changes_of(log).add_next(at(1, data))
    assert changes_of(log).add_next(at(1, batch(b"a", timestamp=NOW_MS, producer_id=7, sequence=1)))


def test_a_batch_continues_a_placed_one() -> None:
    log = open_small()
    append(log, b"a", producer_id=7, sequence=0)
    changes = changes_of(log)
    assert changes.add_next(at(1, batch(b"a", b"b", timestamp=NOW_MS, producer_id=7, sequence=1)))
    assert not changes.add_next(at(3, batch(b"a", timestamp=NOW_MS, producer_id=7, sequence=1)))
    assert changes.add_next(at(3, batch(b"a", timestamp=NOW_MS, producer_id=7, sequence=3)))
    assert [one.last_sequence for one in log.producers.producers[7].batches] == [0], "nothing is applied yet"
    assert changes.apply() is None
    assert [one.last_sequence for one in log.producers.producers[7].batches] == [0, 2, 3]


def test_the_fast_path_is_not_used_after_a_planned_batch() -> None:
    log = open_small()
    changes = changes_of(log)
    first = at(0, batch(b"a", timestamp=NOW_MS, producer_id=7, sequence=0))
    assert changes.plan([(LogPosition(0), first)], Origin.CLIENT, 0) is None
    assert 7 in changes.placed
    assert not changes.add_next(at(1, batch(b"a", timestamp=NOW_MS, producer_id=7, sequence=1)))


def test_an_open_transaction_has_the_position_of_its_first_batch() -> None:
    log = open_small()
    append(log, b"first")
    size = log.segments.active.size
    append(log, b"a", producer_id=7, sequence=0, transactional=True)
    assert [tuple(one.first) for one in log.producers.open_transactions.values()] == [(1, 0, size)]


def test_a_marker_ends_a_transaction_when_the_changes_are_applied() -> None:
    log = open_small()
    append(log, b"a", producer_id=7, sequence=0, transactional=True)
    changes = changes_of(log)
    changes.plan([(LogPosition(1), at(1, end_marker(7, commit=False, timestamp=NOW_MS)))], Origin.COORDINATOR, 0)
    assert list(log.producers.open_transactions) == [0]
    assert changes.apply() == [(7, 0, 1, 2)]
    assert list(log.producers.open_transactions) == []
