"""Transformer: consume, transform and produce, with the group's offsets in the transaction. Each input counts once.

Several transformers share a group, so that partitions move between them. After an error the transformer starts again
from the committed offsets: the consumer joins again, and a failed producer is replaced by one with the same
transactional id.
"""

from __future__ import annotations

import time
from random import Random
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from tests.chaos.findings import Findings, Worker
from tests.chaos.producers import PATIENT
from tests.chaos.transactions import CALL_TIMEOUT_S, Deliveries, begin, end_transaction, transactional_producer

GROUP = "transform"
SILENCE_S = 30.0


class Transformer:
    def __init__(self, bootstrap: str, name: str, source: str, target: str, findings: Findings, seed: int) -> None:
        self._bootstrap = bootstrap
        self._name = name
        self._source = source
        self._target = target
        self._random = Random(f"{seed} {name}")
        self._producer: Producer | None = None
        self._consumer: Consumer | None = None
        self.transformed = 0
        self.done_again = 0
        self.last_error = ""
        self._received_s = time.monotonic()
        self._findings = findings
        self.worker = Worker(f"transformer {name}", findings, self._step)

    def successor(self) -> Transformer:
        """Return a transformer that replaces this one, whose client does not return from a call.

        The call is send_offsets_to_transaction, whose timeout librdkafka does not check while the group coordinator is
        away: tests/conformance/test_librdkafka_mistakes.py.
        """
        self.worker.is_ending.set()
        seed = self._random.randrange(1_000_000)
        made = Transformer(self._bootstrap, self._name, self._source, self._target, self._findings, seed)
        made.transformed, made.done_again = self.transformed, self.done_again + 1
        return made

    def _step(self) -> None:
        try:
            messages = self._ready_consumer().consume(50, 0.5)
            good = [one for one in messages if one.error() is None]
            if good:
                self._received_s = time.monotonic()
                self._transform(good)
            elif time.monotonic() - self._received_s > SILENCE_S:
                self._received_s = time.monotonic()
                self._join_again()  # after a response without brokers, the client may know no broker any longer
        except KafkaException as error:
            self.last_error = str(error)
            self._producer = None
            self._join_again()
        self.worker.is_ending.wait(0.05)

    def _ready_consumer(self) -> Consumer:
        if self._producer is None:
            made = transactional_producer(self._bootstrap, self._name)
            begin(made, self.worker)
            self._producer = made
        if self._consumer is None:
            self._consumer = Consumer(
                {
                    "bootstrap.servers": self._bootstrap,
                    "client.id": self._name,
                    "group.id": GROUP,
                    "enable.auto.commit": False,
                    "auto.offset.reset": "earliest",
                    "isolation.level": "read_committed",
                    "session.timeout.ms": 10_000,
                    "heartbeat.interval.ms": 1_000,
                    "max.poll.interval.ms": 60_000,
                    **PATIENT,
                }
            )
            self._consumer.subscribe([self._source])
        return self._consumer

    def _transform(self, messages: list[Any]) -> None:
        producer, consumer = self._producer, self._consumer
        assert producer is not None
        assert consumer is not None
        fate = self._random.choices(("commit", "abort", "abandon"), (9, 0.7, 0.3))[0]
        next_offsets: dict[int, int] = {}
        deliveries = Deliveries()
        producer.begin_transaction()
        try:
            for one in messages:
                deliveries.send(producer, self._target, one.value(), one.partition())
                next_offsets[one.partition()] = one.offset() + 1
            offsets = [TopicPartition(self._source, partition, offset) for partition, offset in next_offsets.items()]
            producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), CALL_TIMEOUT_S)
            if fate == "commit":
                end_transaction(producer, is_commit=True)
                self.transformed += len(messages)
                return
        except KafkaException as error:
            self.last_error = str(error)
            if error.args[0].fatal():
                raise
        if fate == "abandon":
            self._producer = None
        else:
            end_transaction(producer, is_commit=False)
            if not deliveries.are_known:
                self._producer = None
        self._join_again()

    def _join_again(self) -> None:
        self.done_again += 1
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
