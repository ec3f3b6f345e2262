"""TransactionalLoad: transactions over several partitions that are committed, aborted, or abandoned to a next instance.

The outcome of each transaction is noted by its number: committed (the client got a success), aborted, or unknown after
a fatal error. A transaction with an unknown outcome must be in all of its partitions or in none.
"""

from __future__ import annotations

import logging
from random import Random
from typing import Any

from confluent_kafka import KafkaException, Producer

from tests.chaos.findings import Findings, Worker
from tests.chaos.producers import PATIENT

# librdkafka logs each zombie that is fenced, which is expected here
QUIET = logging.getLogger("tests.chaos.librdkafka")
QUIET.addHandler(logging.NullHandler())
QUIET.propagate = False

PER_PARTITION = 3
CALL_TIMEOUT_S = 10.0
CALLS_MAX = 5
STUCK_S = (2 * CALLS_MAX + 2) * CALL_TIMEOUT_S


def transactional_producer(bootstrap: str, transactional_id: str) -> Producer:
    return Producer(
        {
            "bootstrap.servers": bootstrap,
            "client.id": transactional_id,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": 60_000,
            "message.timeout.ms": 60_000,
            "linger.ms": 1,
            **PATIENT,
        },
        logger=QUIET,
    )


class Deliveries:
    """Number of records of a transaction that are known to be written.

    If librdkafka aborts a transaction whose records are still in flight, it gives their sequence numbers, in the same
    epoch, to the next records. If the first records were written, a broker (Kafka or Tailrace) takes the next ones for
    duplicates and acknowledges them without writing. So such a producer is not used again.
    """

    def __init__(self) -> None:
        self._sent = 0
        self._known = 0

    def send(self, producer: Producer, topic: str, value: bytes, partition: int) -> None:
        self._sent += 1
        producer.produce(topic, value, partition=partition, on_delivery=self._reported)

    def _reported(self, error: Any, message: Any) -> None:
        self._known += error is None

    @property
    def are_known(self) -> bool:
        return self._known == self._sent


class TransactionalLoad:
    def __init__(self, bootstrap: str, name: str, topic: str, partitions: int, findings: Findings, seed: int) -> None:
        """`first`: the number of the first transaction; the ranges of other loads are far away."""
        self.name = name
        self.topic = topic
        self._bootstrap = bootstrap
        self._partitions = partitions
        self._findings = findings
        self._random = Random(f"{seed} {name}")
        self._next = 0
        self._producer: Producer | None = None
        self.committed: dict[int, list[int]] = {}
        self.aborted: dict[int, list[int]] = {}
        self.unknown: dict[int, list[int]] = {}
        self.fenced = 0
        self.zombies = 0
        self.last_error = ""
        self.worker = Worker(f"transactions of {name}", findings, self._step)

    def successor(self) -> TransactionalLoad:
        """Return a load that continues this one, whose client does not return from a call."""
        self.worker.is_ending.set()
        made = TransactionalLoad(self._bootstrap, self.name, self.topic, self._partitions, self._findings, self._next)
        made._next = self._next + 1
        made.committed, made.aborted, made.unknown = self.committed, self.aborted, self.unknown
        made.fenced, made.zombies = self.fenced + 1, self.zombies
        return made

    def _step(self) -> None:
        try:
            producer = self._ready_producer()
            if producer is not None:
                self._transact(producer)
        except KafkaException as error:
            self._leave(error)
        self.worker.is_ending.wait(self._random.uniform(0.0, 0.1))

    def _ready_producer(self) -> Producer | None:
        if self._producer is None:
            made = transactional_producer(self._bootstrap, self.name)
            begin(made, self.worker)
            self._producer = made
        return self._producer

    def _leave(self, error: KafkaException) -> None:
        """Abandon an instance that cannot continue. The next instance ends its open transaction."""
        self._producer = None
        self.fenced += 1
        self.last_error = str(error)

    def _transact(self, producer: Producer) -> None:
        number, self._next = self._next, self._next + 1
        chosen = sorted(self._random.sample(range(self._partitions), self._random.randint(1, self._partitions)))
        fate = self._random.choices(("commit", "abort", "zombie"), (7, 3, 0.3))[0]
        self.unknown[number] = chosen
        deliveries = Deliveries()
        producer.begin_transaction()
        try:
            for partition in chosen:
                for _ in range(PER_PARTITION):
                    deliveries.send(producer, self.topic, b"%s %d" % (self.name.encode(), number), partition)
            producer.flush(CALL_TIMEOUT_S)
            if fate == "zombie":
                self._become_zombie(producer, number)
                return
            if fate == "commit":
                end_transaction(producer, is_commit=True)
                self.committed[number] = self.unknown.pop(number)
                return
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
        end_transaction(producer, is_commit=False)
        self.aborted[number] = self.unknown.pop(number)
        if not deliveries.are_known:
            self._producer = None

    def _become_zombie(self, producer: Producer, number: int) -> None:
        """Fence the old instance with a new one. The old instance's transaction is aborted, whatever it tries."""
        self._producer = None
        while self._producer is None:
            try:
                self._ready_producer()
            except KafkaException as error:
                self.last_error = str(error)
                if self.worker.is_ending.is_set():
                    return
        self.aborted[number] = self.unknown.pop(number)
        self.zombies += 1
        try:
            producer.commit_transaction(CALL_TIMEOUT_S)
        except KafkaException:
            return
        self._findings.add(f"a zombie of {self.name} got a success for transaction {number} after it was fenced")


def begin(producer: Producer, worker: Worker) -> None:
    """Retry until the coordinator has responded. A second instance could be fenced by the first one's request."""
    for left in reversed(range(CALLS_MAX)):
        try:
            producer.init_transactions(CALL_TIMEOUT_S)
            return
        except KafkaException as error:
            if not error.args[0].retriable() or worker.is_ending.is_set() or not left:
                raise


def end_transaction(producer: Producer, *, is_commit: bool) -> None:
    """Retry until the outcome is known; a call that has timed out may be repeated. Raise other errors."""
    for left in reversed(range(CALLS_MAX)):
        try:
            if is_commit:
                producer.commit_transaction(CALL_TIMEOUT_S)
            else:
                producer.abort_transaction(CALL_TIMEOUT_S)
            return
        except KafkaException as error:
            if not error.args[0].retriable() or not left:
                raise
