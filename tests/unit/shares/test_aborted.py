"""Records of aborted transactions: a read_committed group never gets them; they count as finished."""

from __future__ import annotations

from tailrace.log.segments.batch_walk import BatchHeader
from tailrace.log.segments.indexes.transaction_index import AbortedTransaction
from tailrace.shares.aborted import aborted_batches, leave_out_aborted
from tailrace.shares.acquiring import AcquireMode, AcquireRequest, acquire
from tailrace.shares.delivery_settings import DeliverySettings
from tailrace.shares.in_flight import RecordState
from tailrace.shares.share_partition import SharePartition
from tailrace.shares.state.persisted_state import PersistedState

TRANSACTIONAL, MARKER = 0x10, 0x30


def batch(first: int, last: int, producer: int = -1, attributes: int = 0) -> BatchHeader:
    return BatchHeader(first * 100, 100, first, last, 0, 2, 0, attributes, 0, 0, producer, 0, 0, last - first + 1)


READ = [
    batch(0, 1),
    batch(2, 3, 7, TRANSACTIONAL),  # aborted
    batch(4, 5, 8, TRANSACTIONAL),  # committed
    batch(6, 6, 7, MARKER),
    batch(7, 8, 7, TRANSACTIONAL),  # of the producer's next transaction
    batch(9, 9, 8, MARKER),
]
ABORTED = [AbortedTransaction(7, 2, 6, 10)]


def test_a_marker_ends_the_transaction_whose_batches_are_left_out() -> None:
    assert [(one.base_offset, one.last_offset) for one in aborted_batches(READ, ABORTED)] == [(2, 3)]


def test_records_of_aborted_transactions_are_archived_at_once() -> None:
    partition, settings = SharePartition(0), DeliverySettings()
    partition.begin(PersistedState(0, 0, 0, 0, 0), 0)
    acquired = acquire(partition, AcquireRequest("a", AcquireMode.BATCH_OPTIMIZED, 500, 500), 0, READ, settings, 0)
    assert [tuple(one) for one in acquired] == [(0, 9, 1)]
    reported = leave_out_aborted(partition, acquired, READ, ABORTED)
    assert [tuple(one) for one in reported] == [(0, 1, 1), (4, 9, 1)]
    states = [(run.first_offset, run.last_offset, run.state) for run in partition.batches[0].runs]
    assert states == [
        (0, 1, RecordState.ACQUIRED),
        (2, 3, RecordState.ARCHIVED),
        (4, 9, RecordState.ACQUIRED),
    ]
    assert partition.delivery_complete_count == 2
