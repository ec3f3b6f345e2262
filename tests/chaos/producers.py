"""IdempotentLoad: a producer with acks=all that sends numbered records to each partition of a topic and never gives up.

What was acknowledged is noted with its offset. Nothing may be refused: a record that the cluster cannot take now is
sent again until it can.
"""

from __future__ import annotations

import threading
from array import array
from functools import partial
from typing import Any

from confluent_kafka import Producer

from tests.chaos.findings import Findings, Worker

PATIENT = {
    "reconnect.backoff.ms": 50,
    "reconnect.backoff.max.ms": 500,
    "retry.backoff.ms": 50,
    "retry.backoff.max.ms": 500,
    "socket.timeout.ms": 5_000,
    "topic.metadata.refresh.interval.ms": 5_000,
    "log_level": 0,
}
NOT_ACKNOWLEDGED = -1


def record_value(name: str, number: int) -> bytes:
    """Who sent it and its number in the partition, and something more, of a different length each time."""
    return b"%s %d %s" % (name.encode(), number, b"." * (number * 7919 % 200))


class IdempotentLoad:
    def __init__(
        self, bootstrap: str, name: str, topic: str, partitions: int, findings: Findings, pause_s: float = 0.01
    ) -> None:
        self.name = name
        self.topic = topic
        self.offsets = [array("q") for _ in range(partitions)]  # by partition and number
        self.acknowledged = 0
        self._findings = findings
        self._pause_s = pause_s
        self._lock = threading.Lock()
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "client.id": name,
                "enable.idempotence": True,
                "message.timeout.ms": 0,
                "linger.ms": 5,
                "queue.buffering.max.messages": 2_000,
                **PATIENT,
            }
        )
        self.worker = Worker(f"producer {name}", findings, self._step)

    def _step(self) -> None:
        for partition, offsets in enumerate(self.offsets):
            number = len(offsets)
            value = record_value(self.name, number)
            try:
                self._producer.produce(
                    self.topic, value, partition=partition, on_delivery=partial(self._delivered, partition, number)
                )
                offsets.append(NOT_ACKNOWLEDGED)
            except BufferError:
                break  # the cluster is behind
        self._producer.poll(0)
        self.worker.is_ending.wait(self._pause_s)
        self._producer.poll(0)

    def _delivered(self, partition: int, number: int, error: Any, message: Any) -> None:
        if error is not None:
            self._findings.add(f"{self.topic}-{partition}: record {number} of {self.name} was refused: {error}")
            return
        with self._lock:
            self.offsets[partition][number] = message.offset()
            self.acknowledged += 1

    def flush(self, patience_s: float) -> None:
        left = self._producer.flush(patience_s)
        if left:
            self._findings.add(f"{left} records of {self.name} are not acknowledged after {patience_s:g} s of calm")
