"""Several fetchers for one leader, and what a throttle holds back: two brokers in memory, the network is played."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tailrace.model.configs.topic_settings import parse_topic_config
from tailrace.model.ids import TopicPartition
from tailrace.protocol.flat.fetch import ask_of
from tailrace.protocol.messages import FetchResponse
from tailrace.quota.rate import Windows
from tailrace.quota.replication_quota import ReplicationQuota
from tailrace.replication.fetching.fetcher_settings import FetcherSettings
from tailrace.replication.fetching.replica_fetchers import ReplicaFetchers, fetcher_of
from tailrace.replication.fetching.throttles import FollowerThrottle
from tailrace.waiting.outbox import Outbox, OutgoingRequest, Peer
from tests.simulation.node import LATEST_VERSION, NOW_MS, Asked, Node, broker, registration, sent_and_read

STEP_MS = 100


class Pair:
    """Broker 1 leads, broker 2 follows with several fetchers and, if there is a rate, with a throttle."""

    def __init__(
        self, partitions: int, *, count: int = 1, rate: int | None = None, response_bytes: int = 10_000
    ) -> None:
        self.leader, self.follower = Node(1), Node(2)
        self.now_ms = NOW_MS
        self.outbox = Outbox()
        self.bytes: Counter[int] = Counter()  # that came of each partition
        for node in (self.leader, self.follower):
            node.know(broker(1), broker(2))
        throttle = None
        if rate is not None:
            throttle = FollowerThrottle(2, ReplicationQuota(Windows(11, 1_000), lambda: rate))
        self.fetchers = ReplicaFetchers(
            FetcherSettings(
                broker_id=2,
                broker_epoch=lambda: 102,
                wait_ms_max=0,
                bytes_min=1,
                partition_bytes_max=5_000,
                response_bytes_max=response_bytes,
                backoff_ms=STEP_MS,
                timeout_ms=30_000,
                throttle=throttle,
            ),
            self.outbox,
            self.follower.partitions,
            lambda broker_id: Peer("replica-fetch", "one", 9092),
            lambda key, now_ms: None,
            count=count,
        )
        self.state = registration(1, (1, 2), leader_epoch=1)
        self.led = [self.leader.host(index=index, state=self.state) for index in range(partitions)]
        self.copies = [self.follower.host(index=index, state=self.state) for index in range(partitions)]
        for index, copy in enumerate(self.copies):
            self.leader.publish(TopicPartition("topic", index), self.state)
            self.fetchers.follow(copy)

    def name_throttled(self, *indexes: int) -> None:
        named = ",".join(f"{index}:2" for index in indexes)
        for copy in self.copies:
            copy.log.update_config(parse_topic_config({"follower.replication.throttled.replicas": named}))

    def fill(self, index: int, count: int, size: int = 1_000) -> None:
        for _ in range(count):
            self.leader.append(self.led[index], b"x" * size)
        self.led[index].log.advance_high_watermark(self.led[index].log.log_end_offset)

    def take(self) -> list[OutgoingRequest]:
        self.fetchers.tick(self.now_ms)
        self.outbox.take_unneeded()
        return self.outbox.take_requests()

    def answer(self, request: OutgoingRequest) -> set[int]:
        """Let the leader answer. Return the partitions that had records."""
        asked = Asked(LATEST_VERSION)
        body: Any = request.body
        self.leader.fetches.start(
            ask_of(sent_and_read(body, LATEST_VERSION), LATEST_VERSION), LATEST_VERSION, self.now_ms, asked.take
        )
        response = FetchResponse.decode(asked.response_bytes(asked.response), LATEST_VERSION)
        sizes = {
            one.partition_index: len(one.records or b"") for topic in response.responses for one in topic.partitions
        }
        self.bytes.update(sizes)
        request.answered(response, self.now_ms)
        return {index for index, size in sizes.items() if size}

    def run(self, ms: int, each_ms: int = 20) -> None:
        """Fetch as often as may be, where a request takes that time."""
        until_ms = self.now_ms + ms
        while self.now_ms < until_ms:
            for request in self.take() or ():
                self.answer(request)
            self.now_ms += each_ms

    def are_same(self) -> bool:
        return [one.log.log_end_offset for one in self.copies] == [one.log.log_end_offset for one in self.led]


def partitions_of(request: OutgoingRequest) -> set[int]:
    body: Any = request.body
    return {one.partition for topic in body.topics for one in topic.partitions}


@pytest.mark.parametrize(
    ("topic", "partition", "count", "number"),
    [
        ("topic", 0, 3, 1),
        ("topic", 1, 3, 0),
        ("orders", 7, 4, 2),
        ("__consumer_offsets", 49, 5, 3),
        ("Größe-漢字-😀", 11, 7, 6),
        ("polygenelubricants", 0, 8, 0),
    ],
)
def test_a_partition_belongs_to_the_fetcher_that_kafkas_hash_selects(
    topic: str, partition: int, count: int, number: int
) -> None:
    """The numbers are those that Java computes."""
    assert fetcher_of(TopicPartition(topic, partition), count) == number


def test_each_fetcher_has_a_connection_and_a_session_of_its_own() -> None:
    pair = Pair(7, count=3)
    requests = pair.take()
    assert {one.peer.channel for one in requests} == {"replica-fetch", "replica-fetch-1", "replica-fetch-2"}
    shares = [partitions_of(one) for one in requests]
    assert sorted(index for share in shares for index in share) == list(range(7))
    for index in range(7):
        pair.fill(index, 1)
    for request in requests:
        pair.answer(request)
    assert pair.are_same()
    later = pair.take()
    assert len({one.body.session_id for one in later} - {0}) == 3  # type: ignore[attr-defined]


def test_a_changed_number_of_fetchers_distributes_the_partitions_again() -> None:
    pair = Pair(7, count=1)
    (on_its_way,) = pair.take()
    pair.fetchers.resize(3)
    assert len(pair.fetchers) == 3
    for index in range(7):
        pair.fill(index, 1)
    pair.answer(on_its_way)  # nobody asked for this any more but for the one that is left
    pair.run(1_000)
    assert pair.are_same()
    pair.fetchers.resize(2)
    for index in range(7):
        pair.fill(index, 1)
    pair.run(1_000)
    assert len(pair.fetchers) == 2
    assert pair.are_same()


def test_a_throttled_follower_catches_up_at_the_rate() -> None:
    pair = Pair(2, rate=20_000)
    pair.name_throttled(0)
    pair.fill(0, 600)
    pair.fill(1, 600)
    pair.run(10_000, each_ms=50)
    assert pair.copies[1].log.size == pair.led[1].log.size  # it is not named
    pair.run(10_000, each_ms=50)
    assert pair.bytes[0] == pytest.approx(20 * 20_000, rel=0.05)
    pair.run(20_000, each_ms=50)
    assert pair.are_same()


def test_an_in_sync_follower_is_not_throttled_but_its_traffic_counts() -> None:
    pair = Pair(2, rate=1_000)
    pair.name_throttled(0, 1)
    pair.fill(0, 1)
    pair.run(100)
    for _ in range(50):
        pair.fill(0, 4)
        pair.run(100)
        assert pair.copies[0].log.log_end_offset == pair.led[0].log.log_end_offset
    pair.fill(1, 100)
    copied = pair.bytes[1]
    pair.run(1_000)
    assert pair.bytes[1] - copied <= 5_000  # one request at most, before the leader's end was known


def test_a_partition_is_fetched_although_others_never_catch_up() -> None:
    pair = Pair(6, rate=10_000, response_bytes=5_000)
    pair.name_throttled(*range(6))
    for index in range(6):
        pair.fill(index, 100)
    for _ in range(60):
        for index in range(3):
            pair.fill(index, 6)  # more than the rate
        pair.run(1_000)
    assert min(pair.bytes[index] for index in range(6)) > 60_000


def test_without_a_limit_nothing_is_throttled() -> None:
    pair = Pair(1, rate=2**63 - 1)
    pair.name_throttled(0)
    pair.fill(0, 500)
    pair.run(4_000)
    assert pair.are_same()


def test_a_star_throttles_all_replicas_of_a_topic() -> None:
    pair = Pair(2, rate=0)
    for copy in pair.copies:
        copy.log.update_config(parse_topic_config({"follower.replication.throttled.replicas": "*"}))
    pair.fill(0, 100)
    pair.run(1_000)
    assert pair.bytes[0] == 5_000  # of the first request, before which there was nothing to count


def test_other_partitions_are_fetched_while_one_is_throttled() -> None:
    pair = Pair(2, rate=0)
    pair.name_throttled(0)
    pair.fill(0, 100)
    pair.run(100)
    pair.fill(1, 100)
    pair.run(1_000)
    assert pair.copies[1].log.log_end_offset == 100
    assert pair.copies[0].log.log_end_offset < 100


def test_a_batch_above_every_limit_is_still_fetched() -> None:
    pair = Pair(3)
    for index in range(3):
        pair.fill(index, 2, size=50_000)
    pair.run(500)
    assert pair.are_same()
