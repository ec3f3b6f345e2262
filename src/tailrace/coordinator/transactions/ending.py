"""The response to a client's EndTxn, by state, result and epoch.

Before KIP-890 (`client_version` 0) the epoch must be the current one:

                      commit                    abort
    ONGOING           PREPARE_COMMIT            PREPARE_ABORT
    EMPTY             INVALID_TXN_STATE         INVALID_TXN_STATE
    PREPARE_COMMIT    CONCURRENT_TRANSACTIONS   INVALID_TXN_STATE
    PREPARE_ABORT     INVALID_TXN_STATE         CONCURRENT_TRANSACTIONS
    COMPLETE_COMMIT   done (a retry)            INVALID_TXN_STATE
    COMPLETE_ABORT    INVALID_TXN_STATE         done (a retry)

From KIP-890 on each end raises the epoch. So a request with the previous epoch is a retry, and a request with the
current epoch is about the next end. An abort without a transaction is allowed: a producer cannot always know whether
its writes have arrived.

                      commit, retry       current             abort, retry        current
    ONGOING           PRODUCER_FENCED     PREPARE_COMMIT      PRODUCER_FENCED     PREPARE_ABORT
    EMPTY             PRODUCER_FENCED     INVALID_TXN_STATE   PRODUCER_FENCED     PREPARE_ABORT
    COMPLETE_COMMIT   done                INVALID_TXN_STATE   INVALID_TXN_STATE   PREPARE_ABORT
    COMPLETE_ABORT    INVALID_TXN_STATE   INVALID_TXN_STATE   done                PREPARE_ABORT
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tailrace.coordinator.transactions.transaction import (
    BUMPS_EPOCH_FROM,
    ENDING,
    EPOCH_MAX,
    Facts,
    Transaction,
    TransactionState,
)
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, ProducerId

_S = TransactionState
_LAST_OF_A_CLIENT = EPOCH_MAX - 1


class EndRequest(NamedTuple):
    producer_id: ProducerId
    producer_epoch: int
    is_commit: bool
    client_version: int


class EndResult(NamedTuple):
    """The producer id and epoch that the client continues with; both -1 before KIP-890."""

    producer_id: ProducerId = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH


def plan_end(
    transaction: Transaction, request: EndRequest, new_producer_id: Callable[[], ProducerId], now_ms: int
) -> Facts | EndResult:
    """Return the state to write, or the response to a retry. Raise KafkaError if the request is refused."""
    if request.client_version < BUMPS_EPOCH_FROM:
        return _plan_end_v1(transaction, request, now_ms)
    return _plan_end_v2(transaction, request, new_producer_id, now_ms)


def _plan_end_v1(transaction: Transaction, request: EndRequest, now_ms: int) -> Facts | EndResult:
    facts = transaction.facts
    if facts.producer_id != request.producer_id:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if facts.producer_epoch != request.producer_epoch:
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    if transaction.pending is not None:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    if facts.state is _S.ONGOING:
        return transaction.prepare_end(
            is_commit=request.is_commit, client_version=0, next_producer_id=NO_PRODUCER_ID, now_ms=now_ms
        )
    if facts.state is (_S.COMPLETE_COMMIT if request.is_commit else _S.COMPLETE_ABORT):
        return EndResult()
    _refuse_while_ending(facts, request)
    raise _invalid_state(transaction, request)


def _plan_end_v2(
    transaction: Transaction, request: EndRequest, new_producer_id: Callable[[], ProducerId], now_ms: int
) -> Facts | EndResult:
    facts = transaction.facts
    if transaction.pending is not None:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    is_current = request.producer_epoch == facts.producer_epoch
    is_retry_over_ids = (
        facts.previous_producer_id == request.producer_id
        and request.producer_epoch == _LAST_OF_A_CLIENT
        and facts.producer_epoch == 0
    )
    is_retry = is_retry_over_ids or facts.producer_epoch == request.producer_epoch + 1
    if facts.producer_id != request.producer_id and not is_retry_over_ids:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if facts.state in ENDING:
        is_known = facts.producer_epoch == request.producer_epoch + 1
    elif facts.state in (_S.COMPLETE_COMMIT, _S.COMPLETE_ABORT):
        is_known = is_current or is_retry
    else:
        is_known = is_current
    if not is_known:
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    _refuse_while_ending(facts, request)
    is_open = facts.state is _S.ONGOING
    if not is_open and is_retry:
        if facts.state is (_S.COMPLETE_COMMIT if request.is_commit else _S.COMPLETE_ABORT):
            return EndResult(facts.producer_id, facts.producer_epoch)
        raise _invalid_state(transaction, request)
    if not is_open and request.is_commit:
        raise _invalid_state(transaction, request)
    return transaction.prepare_end(
        is_commit=request.is_commit,
        client_version=request.client_version,
        next_producer_id=new_producer_id() if facts.is_epoch_exhausted else NO_PRODUCER_ID,
        now_ms=now_ms,
        is_empty=not is_open,
    )


def _refuse_while_ending(facts: Facts, request: EndRequest) -> None:
    if facts.state is (_S.PREPARE_COMMIT if request.is_commit else _S.PREPARE_ABORT):
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)


def _invalid_state(transaction: Transaction, request: EndRequest) -> KafkaError:
    asked = "commit" if request.is_commit else "abort"
    return KafkaError(
        ErrorCode.INVALID_TXN_STATE,
        f"{transaction.transactional_id} is {transaction.facts.state.title}, so it cannot {asked}",
    )
