"""TransactionWorld: the transaction coordinator over a log in memory that delays writes, fails, and loses its leader.

Everything is drawn from one seed. Producers, some of them zombies, send requests. Writes are committed late or refused.
Partitions refuse markers for a while. The coordinator is replaced by one that has only the log. These invariants are
checked during the run and at the end:

    1. A successful response holds for every later coordinator.
    2. Producer ids and epochs given out for a transactional id never repeat, and only grow.
    3. In every partition a transaction ends once, as decided. A fenced producer decides nothing.
    4. An unexpected exception, in an append or while a marker is written, does not break the other invariants.
    5. Once faults have ended, a replay of the log gives the coordinator's state. While the outcome of a
       write is unknown, the two may differ, as in Kafka: the next step writes everything again.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from random import Random
from typing import Any, NamedTuple

from tailrace.coordinator.runtime import CoordinatorRuntime
from tailrace.coordinator.transactions.ending import EndRequest
from tailrace.coordinator.transactions.markers import TransactionEnd
from tailrace.coordinator.transactions.timeouts import TimeoutConfig
from tailrace.coordinator.transactions.transaction import ENDING, Facts, TransactionState
from tailrace.coordinator.transactions.transaction_coordinator import (
    ClusterView,
    EndAnswer,
    MarkerRoutes,
    TransactionConfig,
    TransactionCoordinator,
)
from tailrace.coordinator.transactions.transaction_shard import InitAnswer, ProducerIdAndEpoch
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import TopicPartition
from tailrace.records.batch import RecordBatch
from tailrace.waiting.purgatory import Purgatory

STATE = TopicPartition("__transaction_state", 0)
PARTITIONS = [TopicPartition("t", number) for number in range(3)]
TIMEOUT_MS = 1_000
NONE = ErrorCode.NONE


class PlantedBug(Exception):
    """An exception that only a bug would raise."""


class _Log:
    """One partition: the appended batches, and how many of them are committed."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.batches: list[tuple[int, int, bytes]] = []  # base offset, next offset, bytes
        self.committed = 0
        self.is_leader = True
        self.refuses = 0.0
        self.waits = 0.0
        self.breaks = 0.0  # probability that an append raises an unexpected exception after it was made

    @property
    def end(self) -> int:
        return self.batches[-1][1] if self.batches else 0

    def _lead(self) -> None:
        if not self.is_leader:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def bounds(self, key: TopicPartition) -> tuple[int, int]:
        self._lead()
        return 0, self.end

    def read(self, key: TopicPartition, offset: int, max_bytes: int) -> bytes:
        return b"".join(data for base, after, data in self.batches if after > offset)

    def batch_bytes_max(self, key: TopicPartition) -> int:
        return 1_000_000

    def append(self, key: TopicPartition, batch: bytes, now_ms: int, transaction_version: int = 0) -> int:
        self._lead()
        if self._random.random() < self.refuses:
            raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
        base = self.end
        placed = base.to_bytes(8, "big") + batch[8:]
        self.batches.append((base, RecordBatch(placed).next_offset, placed))
        if self._random.random() >= self.waits:
            self.committed = self.end
        if self._random.random() < self.breaks:
            raise PlantedBug
        return self.end

    def commit_error(self, key: TopicPartition, end: int) -> ErrorCode | None:
        if not self.is_leader:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return NONE if self.committed >= end else None


class Ended(NamedTuple):
    producer_id: int
    producer_epoch: int
    is_commit: bool


class TransactionWorld:
    def __init__(self, seed: int, *, server_version: int = 2) -> None:
        self.random = Random(seed)
        self.now_ms = 1_000_000
        self.server_version = server_version
        self.client_version = 2 if server_version >= 2 else 0
        self.log = _Log(self.random)
        self.ids = [f"id{number}" for number in range(3)]
        self.producer_ids = count(100)
        self.given: dict[str, list[tuple[int, int]]] = {one: [] for one in self.ids}
        self.clients: dict[str, list[ProducerIdAndEpoch]] = {one: [] for one in self.ids}
        self.markers: dict[TopicPartition, list[Ended]] = {one: [] for one in PARTITIONS}
        self.promised: list[tuple[str, Ended, frozenset[TopicPartition]]] = []
        self.refuse_markers = 0.0
        self.bugs = 0  # markers whose writing raised
        self.survived = 0  # failures that were survived by coordinators that have been replaced
        self.epoch = 0
        self.trace: list[str] = []
        self.coordinator = self._new_coordinator()

    def _new_coordinator(self) -> TransactionCoordinator:
        self.purgatory = Purgatory()
        made = TransactionCoordinator(
            TransactionConfig(60_000, TimeoutConfig(expiration_ms=10**9, abort_interval_ms=50, expire_interval_ms=500)),
            lambda make, reload: CoordinatorRuntime(
                STATE.topic,
                self.log,
                self.purgatory,
                lambda index, _: make(index),
                write_timeout_ms=200,
                reload=reload,
            ),
            broker_id=1,
            cluster=ClusterView(
                log_partitions=lambda: 1,
                log_epoch=lambda _: self.epoch,
                server_version=lambda: self.server_version,
                leader_of=lambda _: 1,
            ),
            new_producer_id=lambda _: next(self.producer_ids),
            marker_routes=MarkerRoutes(self._write_marker),
            now_ms=self.now_ms,
        )
        made.lead(0, self.now_ms)
        made.runtime.load_all(self.now_ms)
        return made

    def _write_marker(
        self, end: TransactionEnd, key: TopicPartition, answer: Callable[[ErrorCode, int], None], now_ms: int
    ) -> None:
        if self.random.random() < self.log.breaks:
            self.bugs += 1
            raise PlantedBug
        if self.random.random() < self.refuse_markers:
            answer(ErrorCode.NOT_ENOUGH_REPLICAS, now_ms)
            return
        marker = Ended(end.producer_id, end.producer_epoch, end.is_commit)
        if marker not in self.markers[key]:  # a coordinator that took over may write it again
            self.markers[key].append(marker)
        answer(NONE, now_ms)

    # Events

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.step()
        self.calm_down()
        self.check()

    def step(self) -> None:
        random = self.random
        self.now_ms += random.choice([0, 1, 1, 5, 40])
        kind = random.choices(["init", "add", "end", "tick", "commit", "weather", "takeover"], [5, 8, 6, 4, 5, 1, 0.5])[
            0
        ]
        getattr(self, f"_{kind}")()

    def _note(self, what: str) -> None:
        self.trace.append(f"{self.now_ms} {what}")

    def _client(self, one: str) -> ProducerIdAndEpoch | None:
        known = self.clients[one]
        if not known:
            return None
        return known[-1] if self.random.random() < 0.85 else self.random.choice(known)

    def _init(self) -> None:
        one = self.random.choice(self.ids)
        expected = self._client(one) if self.random.random() < 0.3 else None

        def answer(reported: InitAnswer, now_ms: int) -> None:
            self._note(f"init {one} {expected} → {reported}")
            if reported.error is NONE:
                got = reported.producer_id, reported.producer_epoch
                retried = expected is not None and self.given[one] and got == self.given[one][-1]
                assert retried or not self.given[one] or got > self.given[one][-1], f"{one} got {got} again"
                self.given[one].append(got)
                self.clients[one].append(ProducerIdAndEpoch(*got))

        self.coordinator.init_producer(one, TIMEOUT_MS, expected, answer, self.now_ms)

    def _add(self) -> None:
        one = self.random.choice(self.ids)
        client = self._client(one)
        if client is None:
            return
        partitions = self.random.sample(PARTITIONS, self.random.randint(1, 2))

        def answer(error: ErrorCode, now_ms: int) -> None:
            self._note(f"add {one} {client} {partitions} → {error.name}")
            if error is NONE:
                assert client == self.clients[one][-1], f"{client} is a zombie of {one} and may write"

        self.coordinator.add_partitions(one, client, partitions, self.client_version, answer, self.now_ms)

    def _end(self) -> None:
        one = self.random.choice(self.ids)
        client = self._client(one)
        if client is None:
            return
        is_commit, version = self.random.random() < 0.6, self.client_version
        before = self._facts(one)

        def answer(reported: EndAnswer, now_ms: int) -> None:
            self._note(f"end {one} {client} commit {is_commit} v{version} → {reported}")
            if reported.error is not NONE:
                return
            if version == 2 and (reported.ended.producer_id, reported.ended.producer_epoch) > self.given[one][-1]:
                self.given[one].append((reported.ended.producer_id, reported.ended.producer_epoch))
                self.clients[one].append(ProducerIdAndEpoch(*reported.ended))
            if before is not None and before.state is TransactionState.ONGOING:
                bump = 1 if version == 2 else 0
                ended = Ended(before.producer_id, before.producer_epoch + bump, is_commit)
                self.promised.append((one, ended, before.partitions))

        self.coordinator.end(one, EndRequest(*client, is_commit, version), answer, self.now_ms)

    def _tick(self) -> None:
        self.now_ms += self.random.choice([1, 1, 60, 60, 60, 1_100])
        self.purgatory.expire(self.now_ms)
        self.coordinator.tick(self.now_ms)

    def _commit(self) -> None:
        self.log.committed = self.log.end
        self.purgatory.check(STATE, self.now_ms)

    def _weather(self) -> None:
        self.log.refuses, self.log.waits, self.refuse_markers = (self.random.choice([0, 0, 0.3]) for _ in range(3))
        self.log.breaks = self.random.choice([0, 0, 0, 0.1])

    def _takeover(self) -> None:
        """Let another broker become the leader. It has the committed records, and perhaps more."""
        self.log.is_leader = False
        self.survived += self.coordinator.runtime.failures.operations
        self.coordinator.resign(0, self.now_ms)
        self.purgatory.check(STATE, self.now_ms)
        self.purgatory.expire(10**12)
        keep = self.random.randint(self.log.committed, self.log.end) if self.log.end else 0
        self.log.batches = [one for one in self.log.batches if one[1] <= keep]
        self.log.committed = self.log.end
        self.log.is_leader = True
        self.epoch += 1
        self._note(f"takeover in epoch {self.epoch}")
        self.coordinator = self._new_coordinator()

    def calm_down(self) -> None:
        """End the faults: all messages in flight arrive."""
        self.log.refuses = self.log.waits = self.log.breaks = self.refuse_markers = 0.0
        for _ in range(5):
            self.now_ms += 300
            self._commit()
            self.purgatory.expire(self.now_ms)
            self.coordinator.tick(self.now_ms)

    # Invariants

    def _facts(self, one: str) -> Facts | None:
        found = self._transactions().get(one)
        return found.facts if found is not None else None

    def _transactions(self) -> dict[str, Any]:
        self.coordinator.runtime.load_all(self.now_ms)  # after an append that raised
        return self.coordinator.runtime.shard(0).transactions

    def check(self) -> None:
        context = "\n".join(self.trace[-60:])
        survived = self.survived + self.coordinator.runtime.failures.operations
        assert survived == self.bugs, f"an operation failed without a planted bug\n{context}"
        now = {one.transactional_id: one for one in self._transactions().values()}
        assert not [one for one in now.values() if one.pending is not None or one.facts.state in ENDING], context
        for one, ended, partitions in self.promised:
            for key in partitions:
                assert ended in self.markers[key], f"{one} was promised {ended} in {key}\n{context}"
                if self.client_version == 2:  # before version 2, one epoch ends several transactions, in either way
                    against = ended._replace(is_commit=not ended.is_commit)
                    assert against not in self.markers[key], f"{one} has both ends in {key}\n{context}"
        for one in self.ids:
            self._restart(one)
        known = {one: self._written(transaction.facts) for one, transaction in self._transactions().items()}
        self._takeover()
        replayed = {one: self._written(transaction.facts) for one, transaction in self._transactions().items()}
        assert replayed == known, f"the replayed log differs from the coordinator\n{context}"

    def _restart(self, one: str) -> None:
        reported: list[InitAnswer] = []
        for _ in range(2):  # an open transaction is aborted first
            self.coordinator.init_producer(
                one, TIMEOUT_MS, None, lambda answer, _: reported.append(answer), self.now_ms
            )
        assert reported[-1].error is NONE, reported

    def _written(self, facts: Facts) -> Facts:
        """Return the facts without fields that are not in the log."""
        facts = facts._replace(last_producer_epoch=-1)
        if self.server_version == 0:
            facts = facts._replace(previous_producer_id=-1, next_producer_id=-1, client_version=0)
        return facts
