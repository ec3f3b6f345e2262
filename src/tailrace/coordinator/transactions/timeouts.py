"""Timeouts: aborts transactions that are open for too long, and removes transactional ids that nobody uses.

Both are sweeps over all transactional ids, with pauses. Clients may leave thousands of transactions open that time out
together.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from tailrace.coordinator.runtime import CoordinatorRuntime
from tailrace.coordinator.shard import StateChange
from tailrace.coordinator.transactions.sweep import Sweep
from tailrace.coordinator.transactions.transaction import IDLE, Transaction, TransactionState
from tailrace.coordinator.transactions.transaction_records import tombstone
from tailrace.coordinator.transactions.transaction_shard import TransactionShard
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.steps import Steps
from tailrace.model.topic_config import INT_MAX

_log = logging.getLogger(__name__)

ABORTS_AT_ONCE = 4  # transactions that are aborted without a pause
IDS_AT_ONCE = 500  # transactional ids that are checked, and perhaps removed, without a pause


class TimeoutConfig(NamedTuple):
    expiration_ms: int  # transactional.id.expiration.ms
    abort_interval_ms: int  # transaction.abort.timed.out.transaction.cleanup.interval.ms
    expire_interval_ms: int  # transaction.remove.expired.transaction.cleanup.interval.ms


class Timeouts:
    def __init__(
        self,
        runtime: CoordinatorRuntime[TransactionShard],
        config: TimeoutConfig,
        warn: Callable[[str, str, KafkaError, int], None],
        now_ms: int,
    ) -> None:
        """`warn(event, transactional_id, error, now_ms)` logs work that failed."""
        self._runtime = runtime
        self._expiration_ms = config.expiration_ms
        self._warn = warn
        self._sweeps = (
            Sweep(config.abort_interval_ms, now_ms, self._abort_timed_out),
            Sweep(config.expire_interval_ms, now_ms, self._expire),
        )

    def tick(self, now_ms: int, is_turn_over: Callable[[], bool]) -> None:
        for sweep in self._sweeps:
            sweep.tick(now_ms, is_turn_over)

    def next_deadline_ms(self) -> int:
        return min(sweep.next_deadline_ms() for sweep in self._sweeps)

    def _ids(self) -> Iterator[tuple[int, Sequence[str]]]:
        """Yield the transactional ids of each partition of the log, some at a time."""
        for shard in tuple(self._runtime.active()):
            ids = tuple(shard.transactions)
            for first in range(0, len(ids), IDS_AT_ONCE):
                yield shard.partition, ids[first : first + IDS_AT_ONCE]

    def _abort_timed_out(self, now_ms: int) -> Steps[None]:
        for partition, ids in self._ids():
            try:
                found = timed_out(self._runtime.shard(partition), ids, now_ms)
            except KafkaError:
                continue  # the leadership has ended
            for number, transactional_id in enumerate(found):
                self._runtime.write(
                    partition,
                    partial(abort_timed_out, transactional_id=transactional_id, now_ms=now_ms),
                    _nothing,
                    partial(self._warn, "a transaction timed out and could not be aborted", transactional_id),
                    now_ms,
                )
                if number % ABORTS_AT_ONCE == ABORTS_AT_ONCE - 1:
                    now_ms = yield
            now_ms = yield

    def _expire(self, now_ms: int) -> Steps[None]:
        for partition, ids in self._ids():
            self._runtime.write(
                partition,
                partial(expire, ids=ids, latest_ms=now_ms - self._expiration_ms),
                _nothing,
                partial(self._warn, "transactional ids have expired and could not be removed", ids[0]),
                now_ms,
                reads_wait=False,
            )
            now_ms = yield


def timed_out(shard: TransactionShard, ids: Iterable[str], now_ms: int) -> list[str]:
    """Return those of these transactional ids whose transaction is open for longer than its timeout."""
    found = [one for one in map(shard.transactions.get, ids) if one is not None and _is_timed_out(one, now_ms)]
    return [one.transactional_id for one in found]


def abort_timed_out(shard: TransactionShard, transactional_id: str, now_ms: int) -> StateChange[None]:
    """Abort a transaction, unless its client has ended it meanwhile."""
    transaction = shard.transactions.get(transactional_id)
    if transaction is None or not _is_timed_out(transaction, now_ms):
        return StateChange((), None)
    _log.info("the transaction of %s has timed out and is aborted", transactional_id)
    return shard.fence(transaction, None, now_ms)


def expire(shard: TransactionShard, ids: Iterable[str], latest_ms: int) -> StateChange[None]:
    """Remove those of these transactional ids that were not used after a time."""
    expired = [
        one
        for one in map(shard.transactions.get, ids)
        if one is not None and one.facts.state in IDLE and one.pending is None and one.facts.last_update_ms <= latest_ms
    ]
    if not expired:
        return StateChange((), None)
    for one in expired:
        one.prepare_dead()

    def done(code: ErrorCode, now_ms: int) -> None:
        for one in expired:
            if code is ErrorCode.NONE:
                shard.transactions.pop(one.transactional_id, None)
            else:
                one.give_up()

    records = [tombstone(one.transactional_id) for one in expired]
    return StateChange(records, None, is_atomic=False, is_replayed=False, on_done=done)


def _is_timed_out(transaction: Transaction, now_ms: int) -> bool:
    facts = transaction.facts
    return (
        facts.state is TransactionState.ONGOING
        and transaction.pending is None
        and facts.timeout_ms != INT_MAX  # two-phase commit: only the client ends it
        and facts.start_ms + facts.timeout_ms < now_ms
    )


def _nothing(_: None, __: int) -> None:
    """Ignore the result of a sweep."""
