"""acks=all at a fixed rate: the time until a record is acknowledged."""

from __future__ import annotations

import time
from typing import Any

from benchmarks.broker.comparison import Comparison
from benchmarks.cluster.clusters import Cluster
from benchmarks.cluster.producing import RECORD_BYTES, producer_for
from benchmarks.cluster.samples import Samples

TITLE = "Cluster: latency"
TEXT = (
    "An idempotent librdkafka producer without linger sends 1,000 records of 1 KB per second with acks=all to one "
    "partition on three brokers. The time is from the call that sends a record to the callback that acknowledges "
    "it."
)
RATE = 1_000
SECONDS = 15
WARM_UP_SECONDS = 5


def measure(cluster: Cluster, samples: Samples, *, quick: bool) -> None:
    topic = cluster.new_topic("latency", min_insync_replicas="2")
    before = cluster.cpu_s()
    taken = sorted(_run(cluster, topic, WARM_UP_SECONDS, (SECONDS // 3 if quick else SECONDS)))
    spent = sum(cluster.cpu_s().values()) - sum(before.values())
    samples.add("p50", cluster.kind, taken[len(taken) // 2] * 1e3)
    samples.add("p99", cluster.kind, taken[len(taken) * 99 // 100] * 1e3)
    samples.add("cpu", cluster.kind, spent / (len(taken) + WARM_UP_SECONDS * RATE) * 1e6)
    cluster.delete_topic(topic)


def _run(cluster: Cluster, topic: str, warm_up_s: int, seconds: int) -> list[float]:
    producer = producer_for(cluster.bootstrap, linger_ms=0)
    taken: list[float] = []
    value = bytes(range(250)) * (RECORD_BYTES // 250)
    clock = time.perf_counter
    producer.list_topics(topic, timeout=30)
    began = clock()

    def send(due: float) -> None:
        def delivered(error: Any, message: Any) -> None:
            if error is not None:
                raise RuntimeError(f"a record was refused: {error}")
            if due - began > warm_up_s:
                taken.append(clock() - due)

        producer.produce(topic, value, partition=0, on_delivery=delivered)

    for number in range((warm_up_s + seconds) * RATE):
        due = began + number / RATE
        while (left := due - clock()) > 0:
            producer.poll(left)
        send(due)
        producer.poll(0)
    if producer.flush(60):
        raise RuntimeError("records were not acknowledged")
    return taken


def rows(samples: Samples) -> list[Comparison]:
    return [
        samples.row("p50", lambda ms: f"{ms:.2f} ms", at_most=0.7, title="acknowledged, p50"),
        samples.row("p99", lambda ms: f"{ms:.2f} ms", at_most=0.7, title="acknowledged, p99"),
        samples.row("cpu", lambda us: f"{us:.0f} CPU µs", at_most=0.5, title="a record, all three brokers"),
    ]
