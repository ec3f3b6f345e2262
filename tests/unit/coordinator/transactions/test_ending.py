"""EndTxn, state by state: the tables in `ending.py`, and the id and epoch that a producer continues with."""

from __future__ import annotations

import pytest

from tailrace.coordinator.transactions.ending import EndRequest, EndResult, plan_end
from tailrace.coordinator.transactions.transaction import EPOCH_MAX, Facts, Transaction, TransactionState
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import TopicPartition

S = TransactionState
PARTITIONS = frozenset({TopicPartition("t", 0)})
NEW_ID = 77


def transaction(state: TransactionState, epoch: int = 5, **more: int) -> Transaction:
    partitions = PARTITIONS if state in (S.ONGOING, S.PREPARE_COMMIT, S.PREPARE_ABORT) else frozenset()
    return Transaction("t", Facts(state, 7, epoch, partitions=partitions, timeout_ms=100, start_ms=10, **more))


def outcome(one: Transaction, epoch: int, *, commit: bool, version: int, producer_id: int = 7) -> str:
    request = EndRequest(producer_id, epoch, commit, version)
    try:
        plan = plan_end(one, request, lambda: NEW_ID, 50)
    except KafkaError as error:
        return error.code.name
    return "done" if isinstance(plan, EndResult) else plan.state.name


BEFORE_KIP_890 = {
    S.ONGOING: ("PREPARE_COMMIT", "PREPARE_ABORT"),
    S.EMPTY: ("INVALID_TXN_STATE", "INVALID_TXN_STATE"),
    S.PREPARE_COMMIT: ("CONCURRENT_TRANSACTIONS", "INVALID_TXN_STATE"),
    S.PREPARE_ABORT: ("INVALID_TXN_STATE", "CONCURRENT_TRANSACTIONS"),
    S.COMPLETE_COMMIT: ("done", "INVALID_TXN_STATE"),
    S.COMPLETE_ABORT: ("INVALID_TXN_STATE", "done"),
}

# commit: retry, current; abort: retry, current
SINCE_KIP_890 = {
    S.ONGOING: ("PRODUCER_FENCED", "PREPARE_COMMIT", "PRODUCER_FENCED", "PREPARE_ABORT"),
    S.EMPTY: ("PRODUCER_FENCED", "INVALID_TXN_STATE", "PRODUCER_FENCED", "PREPARE_ABORT"),
    S.PREPARE_COMMIT: ("CONCURRENT_TRANSACTIONS", "PRODUCER_FENCED", "INVALID_TXN_STATE", "PRODUCER_FENCED"),
    S.PREPARE_ABORT: ("INVALID_TXN_STATE", "PRODUCER_FENCED", "CONCURRENT_TRANSACTIONS", "PRODUCER_FENCED"),
    S.COMPLETE_COMMIT: ("done", "INVALID_TXN_STATE", "INVALID_TXN_STATE", "PREPARE_ABORT"),
    S.COMPLETE_ABORT: ("INVALID_TXN_STATE", "INVALID_TXN_STATE", "done", "PREPARE_ABORT"),
}


@pytest.mark.parametrize("state", BEFORE_KIP_890, ids=lambda state: state.title)
def test_end_txn_before_kip_890_has_the_outcome_of_the_table(state: TransactionState) -> None:
    reported = tuple(outcome(transaction(state), 5, commit=commit, version=0) for commit in (True, False))
    assert reported == BEFORE_KIP_890[state]
    assert outcome(transaction(state), 4, commit=True, version=0) == "PRODUCER_FENCED"
    assert outcome(transaction(state), 6, commit=True, version=0) == "PRODUCER_FENCED"
    assert outcome(transaction(state), 5, commit=True, version=0, producer_id=8) == "INVALID_PRODUCER_ID_MAPPING"


@pytest.mark.parametrize("state", SINCE_KIP_890, ids=lambda state: state.title)
def test_end_txn_since_kip_890_has_the_outcome_of_the_table(state: TransactionState) -> None:
    reported = tuple(
        outcome(transaction(state), epoch, commit=commit, version=2) for commit in (True, False) for epoch in (4, 5)
    )
    assert reported == SINCE_KIP_890[state]
    assert outcome(transaction(state), 3, commit=True, version=2) == "PRODUCER_FENCED"
    assert outcome(transaction(state), 6, commit=True, version=2) == "PRODUCER_FENCED"
    assert outcome(transaction(state), 5, commit=True, version=2, producer_id=8) == "INVALID_PRODUCER_ID_MAPPING"


@pytest.mark.parametrize("version", [0, 2])
def test_while_a_step_is_pending_requests_get_concurrent_transactions(version: int) -> None:
    one = transaction(S.ONGOING)
    one.prepare_add_partitions([TopicPartition("t", 1)], 0, 60)
    assert outcome(one, 5, commit=True, version=version) == "CONCURRENT_TRANSACTIONS"
    one.give_up()
    assert outcome(one, 5, commit=True, version=version) == "PREPARE_COMMIT"


def test_an_end_raises_the_epoch_since_kip_890_only() -> None:
    for version, epoch, last in ((0, 5, -1), (2, 6, 5)):
        plan = plan_end(transaction(S.ONGOING), EndRequest(7, 5, True, version), lambda: NEW_ID, 50)
        assert isinstance(plan, Facts)
        assert (plan.producer_epoch, plan.last_producer_epoch, plan.next_producer_id) == (epoch, last, -1)
        assert plan.partitions == PARTITIONS


def test_a_producer_that_has_used_up_its_epochs_gets_a_new_id() -> None:
    one = transaction(S.ONGOING, EPOCH_MAX - 1)
    plan = plan_end(one, EndRequest(7, EPOCH_MAX - 1, True, 2), lambda: NEW_ID, 50)
    assert isinstance(plan, Facts)
    assert (plan.producer_id, plan.producer_epoch, plan.next_producer_id) == (7, EPOCH_MAX, NEW_ID)
    assert Transaction.after_end(plan) == (NEW_ID, 0)
    one.complete(plan)
    one.complete(one.prepare_complete(60))
    assert (one.facts.producer_id, one.facts.producer_epoch, one.facts.previous_producer_id) == (NEW_ID, 0, 7)
    # The client may not have the response, and retries with its old id.
    retry = plan_end(one, EndRequest(7, EPOCH_MAX - 1, True, 2), lambda: NEW_ID + 1, 70)
    assert retry == EndResult(NEW_ID, 0)


def test_an_abort_of_an_empty_transaction_has_its_end_time_as_start_time() -> None:
    plan = plan_end(transaction(S.EMPTY), EndRequest(7, 5, False, 2), lambda: NEW_ID, 50)
    assert isinstance(plan, Facts)
    assert (plan.start_ms, plan.last_update_ms, plan.partitions) == (50, 50, frozenset())


def test_a_transaction_in_the_last_possible_epoch_can_only_be_aborted() -> None:
    one = transaction(S.ONGOING, EPOCH_MAX)
    assert outcome(one, EPOCH_MAX, commit=True, version=2) == ErrorCode.UNKNOWN_SERVER_ERROR.name
    assert outcome(one, EPOCH_MAX, commit=False, version=2) == "PREPARE_ABORT"
