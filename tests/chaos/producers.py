"""IdempotentLoad: a producer with acks=all that sends numbered records to each partition of a topic and never gives up.

Each acknowledged record is noted with its offset. No record may be refused for good: a record that the cluster cannot
accept now is sent again until it is acknowledged.
"""

from __future__ import annotations

import time
from array import array
from functools import partial
from typing import Any

from confluent_kafka import Producer

from tests.chaos.findings import Findings, Worker

PATIENT = {
    "reconnect.backoff.ms": 100,
    "reconnect.backoff.max.ms": 1_000,
    "retry.backoff.ms": 50,
    "retry.backoff.max.ms": 500,
    "socket.timeout.ms": 5_000,
    "topic.metadata.refresh.interval.ms": 5_000,
    "log_level": 0,
}
NOT_ACKNOWLEDGED = -1
STUCK_S = 40.0


def record_value(name: str, number: int) -> bytes:
    """Return a value with the producer's name, the record's number in the partition, and padding of varying length."""
    return b"%s %d %s" % (name.encode(), number, b"." * (number * 7919 % 200))


class Instance:
    """One producer and the offsets that were acknowledged to it."""

    def __init__(self, bootstrap: str, name: str, partitions: int) -> None:
        self.name = name
        self.offsets = [array("q") for _ in range(partitions)]  # offset by partition and record number
        self.waiting = 0
        self.received_s = time.monotonic()
        # With several requests in flight librdkafka renumbers batches after a refused batch, also batches that may have
        # been written. Those are then written twice: tests/conformance/test_librdkafka_mistakes.py.
        self.producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "client.id": name,
                "enable.idempotence": True,
                "max.in.flight.requests.per.connection": 1,
                "message.timeout.ms": 0,
                "linger.ms": 5,
                "queue.buffering.max.messages": 2_000,
                **PATIENT,
            }
        )

    def end(self) -> None:
        """Stop sending. Records without a response have an unknown outcome."""
        del self.producer

    @property
    def is_stuck(self) -> bool:
        return self.waiting > 0 and time.monotonic() - self.received_s > STUCK_S


class IdempotentLoad:
    def __init__(
        self, bootstrap: str, name: str, topic: str, partitions: int, findings: Findings, pause_s: float = 0.01
    ) -> None:
        self.topic = topic
        self.acknowledged = 0
        self.instances = [Instance(bootstrap, f"{name}0", partitions)]
        self._bootstrap = bootstrap
        self._name = name
        self._partitions = partitions
        self._findings = findings
        self._pause_s = pause_s
        self.worker = Worker(f"producer {name}", findings, self._step)

    def _step(self) -> None:
        instance = self.instances[-1]
        if instance.is_stuck:
            # librdkafka forgets all brokers when a response says that none is alive, and does not recover from that.
            instance.end()
            instance = Instance(self._bootstrap, f"{self._name}{len(self.instances)}", self._partitions)
            self.instances.append(instance)
        for partition in range(self._partitions):
            self._send(instance, partition)
        instance.producer.poll(0)
        self.worker.is_ending.wait(self._pause_s)
        instance.producer.poll(0)

    def _send(self, instance: Instance, partition: int) -> None:
        offsets = instance.offsets[partition]
        number = len(offsets)
        reported = partial(self._delivered, instance, partition, number)
        try:
            instance.producer.produce(
                self.topic, record_value(instance.name, number), partition=partition, on_delivery=reported
            )
        except BufferError:
            return  # the cluster cannot keep up
        if not instance.waiting:
            instance.received_s = time.monotonic()
        offsets.append(NOT_ACKNOWLEDGED)
        instance.waiting += 1

    def _delivered(self, instance: Instance, partition: int, number: int, error: Any, message: Any) -> None:
        if error is not None:
            text = f"{self.topic}-{partition}: record {number} of {instance.name} was refused: {error}"
            self._findings.add(text)
            return
        instance.offsets[partition][number] = message.offset()
        instance.waiting -= 1
        instance.received_s = time.monotonic()
        self.acknowledged += 1

    def flush(self, patience_s: float) -> None:
        """Wait until all records of the last instance are acknowledged. The outcome of earlier instances' records is
        unknown.
        """
        left = self.instances[-1].producer.flush(patience_s)
        if left and not self.instances[-1].is_stuck:
            text = f"{left} records of {self._name} are not acknowledged after {patience_s:g} s of calm"
            self._findings.add(text, is_late=True)
