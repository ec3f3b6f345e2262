"""L13: which transactions a walk over batches is inside of."""

from __future__ import annotations

from tailrace.log.compaction.cleaned_transactions import CleanedTransactions
from tailrace.log.segments.indexes.transaction_index import AbortedTransaction
from tailrace.records.batch import RecordBatch
from tests.support.batches import batch, end_marker


def data(offset: int, producer_id: int, *, transactional: bool = True) -> RecordBatch:
    return RecordBatch(
        memoryview(batch(b"v", base_offset=offset, producer_id=producer_id, sequence=0, transactional=transactional))
    )


def marker(offset: int, producer_id: int, *, commit: bool) -> RecordBatch:
    built = RecordBatch(memoryview(end_marker(producer_id, commit=commit)))
    built.set_offset_and_epoch(offset, 0)
    return built


def test_data_is_aborted_between_the_start_of_its_transaction_and_its_marker() -> None:
    walk = CleanedTransactions()
    walk.add_aborted([AbortedTransaction(1, 5, 8, 9), AbortedTransaction(1, 20, 22, 23)])
    assert not walk.on_data(data(4, 1))
    assert not walk.on_control(marker(4, 1, commit=True))
    assert walk.on_data(data(5, 1))
    assert not walk.on_data(data(6, 2))
    assert not walk.on_data(data(7, 1, transactional=False))
    assert not walk.on_control(marker(8, 1, commit=False))
    assert not walk.on_data(data(9, 1))
    assert walk.on_data(data(20, 1))


def test_a_marker_is_kept_while_data_of_its_transaction_is_left() -> None:
    walk = CleanedTransactions()
    walk.add_aborted([AbortedTransaction(1, 0, 3, 4), AbortedTransaction(2, 1, 5, 6)])
    walk.on_data(data(0, 1))
    walk.on_data(data(2, 3))
    assert not walk.on_control(marker(3, 1, commit=False))
    assert not walk.on_control(marker(4, 3, commit=True))
    assert walk.on_control(marker(5, 2, commit=False))
    assert walk.on_control(marker(6, 3, commit=True))


def test_the_cleaned_index_names_the_aborted_transactions_that_have_data_left() -> None:
    walk = CleanedTransactions()
    with_data, without = AbortedTransaction(1, 0, 3, 4), AbortedTransaction(2, 1, 5, 6)
    walk.add_aborted([with_data, without])
    walk.on_data(data(0, 1))
    walk.on_control(marker(3, 1, commit=False))
    walk.on_control(marker(5, 2, commit=False))
    assert walk.take_retained() == [with_data]
    assert walk.take_retained() == []


def test_an_aborted_transaction_may_be_in_the_index_of_several_segments() -> None:
    walk = CleanedTransactions()
    spanning = AbortedTransaction(1, 0, 30, 31)
    walk.add_aborted([spanning])
    assert walk.on_data(data(0, 1))
    walk.add_aborted([spanning])
    assert walk.on_data(data(20, 1))
    assert not walk.on_control(marker(30, 1, commit=False))
    assert not walk.on_data(data(31, 1))
    assert walk.take_retained() == [spanning]
