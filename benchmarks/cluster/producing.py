"""A librdkafka producer, idempotent and with acks=all."""

from __future__ import annotations

import time
from typing import Any

from confluent_kafka import Producer

RECORD_BYTES = 1_000


def producer_for(bootstrap: str, **settings: Any) -> Producer:
    return Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "queue.buffering.max.messages": 1_000_000,
            "queue.buffering.max.kbytes": 8_192,
            "batch.num.messages": 1_000_000,
            "message.timeout.ms": 300_000,
            **{key.replace("_", "."): value for key, value in settings.items()},
        }
    )


def produce_for(bootstrap: str, topic: str, seconds: float, batch_bytes: int) -> tuple[int, float]:
    """Produce at full speed. Return the bytes of acknowledged records, and the seconds."""
    producer = producer_for(bootstrap, batch_size=batch_bytes, linger_ms=5)
    failed: list[Any] = []

    def delivered(error: Any, message: Any) -> None:
        if error is not None:
            failed.append(error)

    value = bytes(range(250)) * (RECORD_BYTES // 250)
    produce, poll = producer.produce, producer.poll
    producer.list_topics(topic, timeout=60)
    number, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        for _ in range(100):
            while True:
                try:
                    produce(topic, value, partition=0, on_delivery=delivered)
                    break
                except BufferError:
                    poll(0.01)
            number += 1
        poll(0)
    left = producer.flush(300)
    took = time.perf_counter() - began
    if left or failed:
        raise RuntimeError(f"{left + len(failed)} records were not acknowledged: {failed[:1]}")
    return number * RECORD_BYTES, took
