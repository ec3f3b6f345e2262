"""Real clients: librdkafka and Kafka's own performance tools."""

from __future__ import annotations

import re
import subprocess
import time
from dataclasses import dataclass

from confluent_kafka import Consumer, Producer, TopicPartition

from benchmarks.broker.comparison import Comparison, compare, take_turns
from benchmarks.broker.contenders import Contender, cpu_s, delete_topic, make_topic, production_installation
from benchmarks.broker.throughput import ByteCost

TITLE = "Broker: real clients"
TEXT = (
    "librdkafka (through confluent-kafka) produces 300,000 records of 1,000 bytes with acks=all and its default "
    "linger and batch size, and reads them again. Kafka's `ProducerPerformance` sends the same number. The clients "
    "cost more than any of the brokers, so GB/s are limited by the clients; CPU is the broker's. `EndToEndLatency` "
    "sends one record of 100 bytes and waits for it, 5,000 times."
)
RECORDS = 300_000
SIZE = 1_000


@dataclass(frozen=True)
class RoundTrip:
    mean_ms: float
    p99_ms: float

    @property
    def cost(self) -> float:
        return self.mean_ms

    def __str__(self) -> str:
        return f"mean {self.mean_ms:.2f} ms, p99 {self.p99_ms:g} ms"


def run(contenders: list[Contender], rounds: int) -> list[Comparison]:
    rows = []
    numbers = {one.name: 0 for one in contenders}

    def topic_for(one: Contender, name: str) -> str:
        numbers[one.name] += 1
        topic = f"{name}-{numbers[one.name]}"
        make_topic(one, topic)
        return topic

    consumed: dict[str, list[ByteCost]] = {one.name: [] for one in contenders}

    def librdkafka(one: Contender) -> ByteCost:
        topic = topic_for(one, "librdkafka")
        produced = _measured(one, lambda: _produce(one, topic))
        consumed[one.name].append(_measured(one, lambda: _consume(one, topic)))
        delete_topic(one, topic)
        return produced

    def java(one: Contender) -> ByteCost:
        topic = topic_for(one, "java")
        cost = _measured(one, lambda: _java_produce(one, topic))
        delete_topic(one, topic)
        return cost

    def round_trip(one: Contender) -> RoundTrip:
        topic = topic_for(one, "round-trip")
        found = _java_round_trip(one, topic)
        delete_topic(one, topic)
        return found

    for one in contenders:
        if not one.is_warmed_up:
            for _ in range(2):
                librdkafka(one)
    for found in consumed.values():
        found.clear()
    rows.append(compare("librdkafka producer", dict(take_turns(contenders, rounds, librdkafka)), at_most=0.5))
    medians = {name: sorted(found, key=lambda each: each.cost)[len(found) // 2] for name, found in consumed.items()}
    rows.append(compare("librdkafka consumer", dict(medians), at_most=1.0))
    rows.append(compare("Java ProducerPerformance", dict(take_turns(contenders, rounds, java)), at_most=0.5))
    rows.append(compare("Java EndToEndLatency", dict(take_turns(contenders, 1, round_trip))))
    return rows


def _measured(one: Contender, work: object) -> ByteCost:
    before, began = cpu_s(one.pid), time.perf_counter()
    work()  # type: ignore[operator]
    seconds = time.perf_counter() - began
    gigabytes = RECORDS * SIZE / 1e9
    return ByteCost((cpu_s(one.pid) - before) / gigabytes, gigabytes / seconds)


def _produce(one: Contender, topic: str) -> None:
    producer = Producer(
        {
            "bootstrap.servers": f"127.0.0.1:{one.port}",
            "acks": "all",
            "queue.buffering.max.messages": 1_000_000,
            "queue.buffering.max.kbytes": 1_048_576,
        }
    )
    value = bytes(range(250)) * 4
    for number in range(RECORDS):
        producer.produce(topic, value)
        if not number % 10_000:
            producer.poll(0)
    left = producer.flush(120)
    if left:
        raise RuntimeError(f"{left} records were not delivered to {one.name}")


def _consume(one: Contender, topic: str) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": f"127.0.0.1:{one.port}",
            "group.id": "bench",
            "enable.auto.commit": False,
            # The default of one second makes a fast broker look slow.
            "fetch.queue.backoff.ms": 1,
            "queued.max.messages.kbytes": 1_048_576,
            "queued.min.messages": 1_000_000,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    left = RECORDS
    deadline = time.monotonic() + 120
    while left > 0:
        for message in consumer.consume(10_000, 1):
            if message.error():
                raise RuntimeError(f"{one.name}: {message.error()}")
            left -= 1
        if time.monotonic() > deadline:
            raise RuntimeError(f"{left} records did not come from {one.name}")
    consumer.close()


def _tool(main_class: str, *arguments: str, may_fail: bool = False) -> str:
    command = production_installation().command(main_class, *arguments, heap="512m")
    done = subprocess.run(
        [word for word in command if word != "-Xms1g"], capture_output=True, text=True, timeout=300, check=False
    )
    if done.returncode and not may_fail:
        raise RuntimeError(f"{main_class} ended with {done.returncode}: {(done.stdout + done.stderr)[-500:]}")
    return done.stdout


def _java_produce(one: Contender, topic: str) -> None:
    _tool(
        "org.apache.kafka.tools.ProducerPerformance",
        *("--topic", topic, "--num-records", str(RECORDS), "--record-size", str(SIZE), "--throughput", "-1"),
        *("--producer-props", f"bootstrap.servers=127.0.0.1:{one.port}", "acks=all"),
    )


def _java_round_trip(one: Contender, topic: str) -> RoundTrip:
    arguments = (f"127.0.0.1:{one.port}", topic, "5000", "all", "100")
    # The tool commits offsets at the end, and fails without a group coordinator; its figures are printed before that.
    reported = _tool("org.apache.kafka.tools.EndToEndLatency", *arguments, may_fail=True)
    mean = re.search(r"Avg latency: ([\d.]+) ms", reported)
    percentiles = re.search(r"99th = (\d+)", reported)
    if mean is None or percentiles is None:
        raise RuntimeError(f"EndToEndLatency said {reported[-300:]}")
    return RoundTrip(float(mean[1]), float(percentiles[1]))
