"""The last batches of one producer in a partition."""

from __future__ import annotations

from tailrace.log.producers.producer_state import BATCHES_REMEMBERED, AppendedBatch, ProducerState
from tailrace.records.batch import RecordBatch
from tests.support.batches import batch


def sent(sequence: int, count: int = 1, epoch: int = 0) -> RecordBatch:
    values = [b"v"] * count
    return RecordBatch(memoryview(batch(*values, producer_id=7, producer_epoch=epoch, sequence=sequence)))


def state_of(*batches: tuple[int, int], epoch: int = 0) -> ProducerState:
    """Return a state with batches given as (first sequence, count), at offset 100 plus their sequence."""
    state = ProducerState(7, epoch)
    for first, count in batches:
        last = (first + count - 1) & 0x7FFFFFFF
        state.remember(AppendedBatch(last, 100 + first + count - 1, count - 1, 5))
    return state


def test_a_remembered_batch_has_its_first_sequence_and_offset() -> None:
    memory = AppendedBatch(last_sequence=12, last_offset=110, offset_delta=2, timestamp=5)
    assert (memory.first_sequence, memory.first_offset) == (10, 108)


def test_the_first_sequence_is_computed_across_a_wrap() -> None:
    memory = AppendedBatch(last_sequence=1, last_offset=110, offset_delta=3, timestamp=5)
    assert memory.first_sequence == 2**31 - 2


def test_l9_a_repeated_batch_is_recognized_as_a_duplicate() -> None:
    state = state_of((0, 3), (3, 2))
    assert state.duplicate_of(sent(0, 3)) == AppendedBatch(2, 102, 2, 5)
    assert state.duplicate_of(sent(3, 2)) == AppendedBatch(4, 104, 1, 5)
    assert state.duplicate_of(sent(5, 1)) is None
    assert state.duplicate_of(sent(3, 1)) is None, "it is not the same batch"
    assert state.duplicate_of(sent(0, 3, epoch=1)) is None


def test_l9_the_last_five_batches_are_remembered() -> None:
    state = state_of(*((n, 1) for n in range(7)))
    assert len(state.batches) == BATCHES_REMEMBERED == 5
    assert state.duplicate_of(sent(1)) is None
    assert state.duplicate_of(sent(2)) is not None
    assert (state.last_sequence, state.last_offset) == (6, 106)


def test_a_new_epoch_discards_the_batches_of_the_old_one() -> None:
    state = state_of((0, 3))
    state.enter_epoch(0)
    assert state.last_sequence == 2
    state.enter_epoch(1)
    assert (state.last_sequence, state.last_offset, state.producer_epoch) == (-1, -1, 1)


def test_merge_adds_the_batches_and_the_transaction_of_an_append() -> None:
    state = state_of((0, 1), (1, 1))
    newer = state_of((2, 1))
    newer.coordinator_epoch, newer.transaction_first_offset, newer.last_timestamp = 4, 102, 99
    state.merge(newer)
    assert [memory.last_sequence for memory in state.batches] == [0, 1, 2]
    assert (state.coordinator_epoch, state.transaction_first_offset, state.last_timestamp) == (4, 102, 99)


def test_merge_with_a_newer_epoch_replaces_the_batches() -> None:
    state = state_of((0, 1), (1, 1))
    state.merge(state_of((0, 2), epoch=3))
    assert (state.producer_epoch, [memory.last_sequence for memory in state.batches]) == (3, [1])


def test_a_snapshot_keeps_the_last_batch_and_the_open_transaction() -> None:
    state = state_of((0, 3), (3, 2))
    state.coordinator_epoch, state.transaction_first_offset, state.last_timestamp = 4, 100, 99
    again = ProducerState.from_snapshot(state.to_snapshot())
    assert list(again.batches) == [AppendedBatch(4, 104, 1, 99)]
    assert (again.producer_id, again.producer_epoch, again.coordinator_epoch) == (7, 0, 4)
    assert (again.transaction_first_offset, again.last_timestamp) == (100, 99)


def test_a_state_without_batches_survives_its_snapshot() -> None:
    entry = ProducerState(7, 2, 4, 99).to_snapshot()
    assert (entry.last_sequence, entry.last_offset, entry.current_transaction_first_offset) == (-1, -1, -1)
    assert ProducerState.from_snapshot(entry) == ProducerState(7, 2, 4, 99)
