"""L9, L11: may a producer's batches be appended, and what do they change?"""

from __future__ import annotations

import pytest

from tailrace.log.producers.producer_append import EndedTransaction, ProducerAppend
from tailrace.log.producers.producer_state import AppendedBatch, ProducerState
from tailrace.log.segments.position import LogPosition
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import TopicPartition
from tailrace.records.batch import RecordBatch
from tailrace.records.checks.validation import Origin
from tests.support.batches import batch, end_marker

PARTITION = TopicPartition("orders", 3)
ID = 7


def sent(
    sequence: int, count: int = 1, *, epoch: int = 0, offset: int = 50, transactional: bool = False
) -> RecordBatch:
    values = [b"v"] * count
    data = batch(
        *values,
        timestamp=99,
        producer_id=ID,
        producer_epoch=epoch,
        sequence=sequence,
        transactional=transactional,
        base_offset=offset,
    )
    return RecordBatch(memoryview(data))


def marker(*, commit: bool = True, epoch: int = 0, offset: int = 60, coordinator_epoch: int = 0) -> RecordBatch:
    data = end_marker(ID, commit=commit, producer_epoch=epoch, coordinator_epoch=coordinator_epoch)
    one = RecordBatch(memoryview(data))
    one.set_offset_and_epoch(offset, 0)
    return one


def known(
    *, epoch: int = 0, last_sequence: int = 9, transaction: int | None = None, coordinator_epoch: int = 0
) -> ProducerState:
    state = ProducerState(ID, epoch, coordinator_epoch, 50, transaction)
    state.remember(AppendedBatch(last_sequence, 40, 0, 50))
    return state


def prepare(state: ProducerState | None = None, origin: Origin = Origin.CLIENT) -> ProducerAppend:
    return ProducerAppend(PARTITION, state or ProducerState(ID), origin)


def refusal(append: ProducerAppend, one: RecordBatch, transaction_version: int = 0) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        append.add(one, None, transaction_version)
    assert f"producer {ID}" in str(caught.value)
    assert "orders-3" in str(caught.value)
    return caught.value.code


def test_l9_an_unknown_producer_may_begin_with_any_sequence() -> None:
    append = prepare()
    append.add(sent(17, 3))
    assert append.updated.last_sequence == 19
    assert append.updated.last_timestamp == 99


def test_l9_the_next_sequence_is_accepted_and_a_gap_is_refused() -> None:
    prepare(known()).add(sent(10))
    assert refusal(prepare(known()), sent(11)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refusal(prepare(known()), sent(5)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_sequences_continue_within_one_append() -> None:
    append = prepare(known())
    append.add(sent(10, 2))
    append.add(sent(12, 2))
    assert refusal(append, sent(15)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_l9_sequences_wrap_to_zero() -> None:
    prepare(known(last_sequence=2**31 - 1)).add(sent(0))


def test_l9_a_new_epoch_starts_at_sequence_zero() -> None:
    append = prepare(known())
    append.add(sent(0, epoch=1))
    assert append.updated.producer_epoch == 1
    assert refusal(prepare(known()), sent(10, epoch=1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_l9_an_older_epoch_is_fenced() -> None:
    assert refusal(prepare(known(epoch=3)), sent(10, epoch=2)) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_follower_accepts_an_older_epoch_that_its_leader_accepted() -> None:
    append = prepare(known(epoch=3), Origin.REPLICATION)
    append.add(sent(99, epoch=2))
    assert append.updated.producer_epoch == 2


def test_a_producer_state_changes_only_when_the_append_is_applied() -> None:
    state = known()
    prepare(state).add(sent(10, transactional=True), LogPosition(50, 0, 0))
    assert (state.last_sequence, state.transaction_first_offset) == (9, None)


def test_a_transactional_batch_opens_a_transaction_and_the_next_continues_it() -> None:
    append = prepare(known())
    place = LogPosition(50, 0, 512)
    assert append.add(sent(10, transactional=True), place) is None
    append.add(sent(11, offset=51, transactional=True), LogPosition(51, 0, 600))
    assert append.updated.transaction_first_offset == 50
    assert [(one.producer_id, one.first) for one in append.started] == [(ID, place)]


def test_a_plain_batch_inside_a_transaction_is_refused() -> None:
    assert refusal(prepare(known(transaction=30)), sent(10)) is ErrorCode.INVALID_TXN_STATE


@pytest.mark.parametrize("commit", [True, False])
def test_a_marker_ends_the_transaction(commit: bool) -> None:
    append = prepare(known(transaction=30), Origin.COORDINATOR)
    ended = append.add(marker(commit=commit, coordinator_epoch=4))
    assert ended == EndedTransaction(ID, first_offset=30, last_offset=60, is_aborted=not commit)
    assert append.updated.transaction_first_offset is None
    assert append.updated.coordinator_epoch == 4


def test_a_marker_without_an_open_transaction_ends_no_transaction() -> None:
    append = prepare(known(), Origin.COORDINATOR)
    assert append.add(marker(epoch=1)) is None
    assert append.updated.producer_epoch == 1


def test_a_marker_of_an_older_coordinator_is_fenced() -> None:
    state = known(transaction=30, coordinator_epoch=5)
    append = prepare(state, Origin.COORDINATOR)
    assert refusal(append, marker(coordinator_epoch=4)) is ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert prepare(state, Origin.REPLICATION).add(marker(coordinator_epoch=4)) is not None


def test_a_marker_of_an_older_producer_epoch_is_fenced() -> None:
    append = prepare(known(epoch=3, transaction=30), Origin.COORDINATOR)
    assert refusal(append, marker(epoch=2)) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_since_transactions_v2_a_marker_must_raise_the_epoch() -> None:
    state = known(epoch=3, transaction=30)
    append = prepare(state, Origin.COORDINATOR)
    assert refusal(append, marker(epoch=3), transaction_version=2) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert append.add(marker(epoch=4), None, 2) is not None


def test_since_transactions_v2_a_repeated_marker_is_ignored() -> None:
    assert prepare(known(epoch=3), Origin.COORDINATOR).add(marker(epoch=3), None, 2) is None


def test_since_transactions_v2_a_marker_in_the_last_epoch_is_accepted_without_a_new_epoch() -> None:
    state = known(epoch=2**15 - 1, transaction=30)
    assert prepare(state, Origin.COORDINATOR).add(marker(epoch=2**15 - 1), None, 2) is not None
