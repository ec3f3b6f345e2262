"""TransactionLoad: librdkafka transactions, committed and aborted at random, some of fenced zombies, across restarts.

Each transaction writes its number to several partitions. Its possible outcome is noted: committed (the client got a
success), aborted, or unknown because the broker stopped before it responded. `check` compares this with what consumers
see:

    read_committed     every committed transaction in all of its partitions, no aborted one anywhere, an unknown one in
                       all or in none; in order, and nothing twice
    read_uncommitted   everything that read_committed has, in the same order, and more
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable
from random import Random
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from tests.support.confluent import TIMEOUT_S

PER_PARTITION = 3
_QUICK = {
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 100,
    "retry.backoff.ms": 20,
    "log_level": 0,
    "linger.ms": 1,
}


class TransactionLoad:
    def __init__(self, bootstrap: str, topic: str, partitions: int, seed: int) -> None:
        self._bootstrap = bootstrap
        self._topic = topic
        self._partitions = partitions
        self.random = Random(seed)
        self.committed: dict[int, list[int]] = {}  # number → partitions, in order of their commits
        self.aborted: dict[int, list[int]] = {}
        self.unknown: dict[int, list[int]] = {}
        self._zombies: list[Producer] = []
        self._producers: dict[str, Producer] = {}
        self._next = 0

    def _producer(self, transactional_id: str) -> Producer:
        if transactional_id not in self._producers:
            made = Producer(
                {
                    "bootstrap.servers": self._bootstrap,
                    "transactional.id": transactional_id,
                    "transaction.timeout.ms": 30_000,
                    **_QUICK,
                }
            )
            made.init_transactions(TIMEOUT_S)
            self._producers[transactional_id] = made
        return self._producers[transactional_id]

    def run(self, transactions: int) -> None:
        for _ in range(transactions):
            self.one()

    def one(self) -> None:
        """Run one transaction: committed, aborted, or left open by an instance that another one replaces."""
        transactional_id = self.random.choice(["a", "b"])
        number, self._next = self._next, self._next + 1
        chosen = self.random.sample(range(self._partitions), self.random.randint(1, self._partitions))
        fate = self.random.choices(["commit", "abort", "zombie"], [6, 3, 1])[0]
        self.unknown[number] = chosen
        producer = self._producer(transactional_id)
        try:
            producer.begin_transaction()
            for partition in chosen:
                for _ in range(PER_PARTITION):
                    producer.produce(self._topic, b"%d" % number, partition=partition)
            assert producer.flush(TIMEOUT_S) == 0  # so that records of aborted transactions are in the log too
            if fate == "commit":
                producer.commit_transaction(TIMEOUT_S)
                self.committed[number] = self.unknown.pop(number)
            elif fate == "abort":
                producer.abort_transaction(TIMEOUT_S)
                self.aborted[number] = self.unknown.pop(number)
            else:
                self._replace(transactional_id, number)
        except KafkaException as error:
            self._after(error, producer, transactional_id, number)

    def _replace(self, transactional_id: str, number: int) -> None:
        """Fence the old instance with a new one. The old instance's transaction is aborted, whatever it tries."""
        zombie = self._producers.pop(transactional_id)
        self._zombies.append(zombie)
        self._producer(transactional_id)
        self.aborted[number] = self.unknown.pop(number)
        try:
            zombie.commit_transaction(5)
        except KafkaException:
            return
        raise AssertionError(f"a zombie has committed transaction {number}")

    def _after(self, error: Any, producer: Producer, transactional_id: str, number: int) -> None:
        """Replace an instance that cannot continue. Its open transaction is aborted, unless its end was in flight."""
        self._producers.pop(transactional_id, None)
        self._zombies.append(producer)
        with contextlib.suppress(KafkaException):
            self._producer(transactional_id)

    # Checks of consumers

    def check(self) -> None:
        for partition in range(self._partitions):
            committed = self._read(partition, "read_committed")
            everything = self._read(partition, "read_uncommitted")
            self._check_committed(partition, committed)
            rest = iter(everything)
            assert all(one in rest for one in committed), f"{partition}: order differs from read_uncommitted"
        for number, chosen in self.unknown.items():
            seen = [number in self._read(partition, "read_committed") for partition in chosen]
            assert len(set(seen)) == 1, (
                f"transaction {number} is partly visible: {list(zip(chosen, seen, strict=True))}"
            )

    def _check_committed(self, partition: int, read: list[int]) -> None:
        expected = {number for number, chosen in self.committed.items() if partition in chosen}
        seen = set(read)
        assert expected <= seen, f"{partition}: committed but missing: {sorted(expected - seen)[:10]}"
        wrong = seen & {number for number, chosen in self.aborted.items() if partition in chosen}
        assert not wrong, f"{partition}: aborted but visible: {sorted(wrong)[:10]}"
        assert len(read) == PER_PARTITION * len(seen), f"{partition}: a transaction is duplicated or incomplete"
        assert _is_grouped(read), f"{partition}: transactions of one producer are interleaved"

    def _read(self, partition: int, isolation: str) -> list[int]:
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": "nobody",
                "enable.auto.commit": False,
                "isolation.level": isolation,
                "enable.partition.eof": True,
                "log_level": 0,
            }
        )
        read: list[int] = []
        deadline = time.monotonic() + TIMEOUT_S
        try:
            consumer.assign([TopicPartition(self._topic, partition, 0)])
            while time.monotonic() < deadline:
                message = consumer.poll(1.0)
                if message is None:
                    continue
                if message.error() is None:
                    read.append(int(message.value()))
                elif message.error().name() == "_PARTITION_EOF":
                    return read
            raise AssertionError(f"{partition} has no end")
        finally:
            consumer.close()


def _is_grouped(read: Iterable[int]) -> bool:
    """Return True if the records of each number are adjacent: one transaction is written after the other."""
    seen: set[int] = set()
    last = None
    for one in read:
        if one != last and one in seen:
            return False
        seen.add(one)
        last = one
    return True
