"""Feeder: sends the shop's events to the broker at a steady rate, and resumes where the last run ended.

The position is not stored: each partition's end offset shows how many of its events are there, because the same seed
gives the same events. The producer is idempotent, so an event is duplicated only if the shop sent it twice.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Final

from examples.orders.events import ORDERS, PAYMENTS, Event, arrivals
from tailrace.client.admin import NewTopic, create_topic
from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.offsets import latest_offsets
from tailrace.client.producing.partitioner import partition_of_key
from tailrace.client.producing.producer import BatchProducer
from tailrace.model.ids import TopicPartition
from tailrace.records.builder import BatchBuilder

PARTITIONS: Final = 2
# Events of one request are close together in time: a reader that sees one partition first is not far ahead.
EVENTS_PER_SEND: Final = 100
_TICK_S: Final = 0.05


def create_topics(cluster: ClusterClient, *names: str) -> None:
    there = {topic.name for topic in cluster.topics()}
    for name in names:
        if name not in there:
            # The shop's time is long ago: retention by time would delete its events while they are read.
            config = {"retention.ms": "-1"}
            create_topic(cluster, NewTopic(name=name, partitions=PARTITIONS, replication_factor=1, config=config))


class Feeder(threading.Thread):
    def __init__(self, bootstrap: str, *, seed: int, rate: float, limit: int | None = None) -> None:
        """limit: the largest number of events, until it is lifted."""
        super().__init__(name="feeder", daemon=True)
        self._servers = bootstrap
        self._seed = seed
        self._rate = rate
        self._ended = threading.Event()
        self.limit = limit
        self.sent = 0
        self.shop_time_ms = 0
        self.failure: Exception | None = None

    def end(self) -> None:
        """Stop after the request in flight."""
        self._ended.set()
        self.join()

    def run(self) -> None:
        try:
            with ClusterClient(self._servers) as cluster:
                self._feed(cluster)
        except Exception as error:  # the watching thread reports it; this thread has no caller to raise it to
            self.failure = error

    def _feed(self, cluster: ClusterClient) -> None:
        events = remaining(cluster, self._seed)
        producer = BatchProducer(cluster)
        began, sent = time.monotonic(), 0
        while not self._ended.wait(_TICK_S):
            due = int((time.monotonic() - began) * self._rate) - sent
            if due > 20 * self._rate * _TICK_S:  # the machine was busy: continue from here instead of catching up
                began, sent, due = time.monotonic(), 0, EVENTS_PER_SEND
            if self.limit is not None:
                due = min(due, self.limit - self.sent)
            while due > 0 and not self._ended.is_set():
                due -= (count := min(due, EVENTS_PER_SEND))
                self.shop_time_ms = send(producer, list(islice(events, count)))
                sent += count
                self.sent += count


def feed(cluster: ClusterClient, *, seed: int, count: int) -> None:
    """Send a number of events at full speed."""
    events, producer = islice(remaining(cluster, seed), count), BatchProducer(cluster)
    while some := list(islice(events, EVENTS_PER_SEND)):
        send(producer, some)


def remaining(cluster: ClusterClient, seed: int) -> Iterator[Event]:
    """Yield the shop's events that are not yet in the topics."""
    partitions = [TopicPartition(topic, number) for topic in (ORDERS, PAYMENTS) for number in range(PARTITIONS)]
    written = latest_offsets(cluster, partitions)
    passed: Counter[TopicPartition] = Counter()
    left = sum(written.values())
    for event in arrivals(seed):
        if left:
            partition = _partition(event)
            if passed[partition] < written[partition]:
                passed[partition] += 1
                left -= 1
                continue
        yield event


def send(producer: BatchProducer, events: list[Event]) -> int:
    """Send all these events in one request, and return the time of the last."""
    batches: dict[TopicPartition, BatchBuilder] = {}
    for event in events:
        batch = batches.setdefault(_partition(event), BatchBuilder())
        batch.append(event.time_ms, key=event.key, value=event.value)
    producer.send({partition: batch.build() for partition, batch in batches.items()})
    return events[-1].time_ms


def _partition(event: Event) -> TopicPartition:
    return TopicPartition(event.topic, partition_of_key(event.key, PARTITIONS))
