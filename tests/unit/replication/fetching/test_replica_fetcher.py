"""ReplicaFetcher: two brokers in memory, one leads and one fetches; the network between them is played."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicPartition
from tailrace.protocol.flat.fetch import ask_of
from tailrace.protocol.messages import FetchRequest, FetchResponse, ListOffsetsRequest, ListOffsetsResponse
from tailrace.replication.fetching.fetcher_settings import FetcherSettings
from tailrace.replication.fetching.replica_fetcher import ReplicaFetcher
from tailrace.replication.fetching.replica_fetchers import ReplicaFetchers
from tailrace.replication.follower import FollowerRole
from tailrace.replication.partition import Partition
from tailrace.waiting.outbox import Failure, Outbox, OutgoingRequest, Peer
from tests.simulation.node import LATEST_VERSION, NOW_MS, Asked, Node, broker, registration, sent_and_read
from tests.support.batches import stored_batches

BACKOFF_MS = 1_000


class Pair:
    """Broker 1 leads, broker 2 follows."""

    def __init__(self, partitions: int = 1, leader_epoch: int = 1, ahead_bytes_min: int = 65_536) -> None:
        self.leader, self.follower = Node(1), Node(2)
        self.now_ms = NOW_MS
        self.outbox = Outbox()
        self.moved: list[TopicPartition] = []
        self.sessions: list[tuple[int, int, int]] = []  # (id, epoch, how many partitions are named) of each Fetch
        self.peer: Peer | None = Peer("replica-fetch", "one", 9092)
        for node in (self.leader, self.follower):
            node.know(broker(1), broker(2))
        self.fetchers = ReplicaFetchers(
            FetcherSettings(
                broker_id=2,
                broker_epoch=lambda: 102,
                wait_ms_max=0,
                bytes_min=1,
                partition_bytes_max=1_000,
                response_bytes_max=10_000,
                backoff_ms=BACKOFF_MS,
                timeout_ms=30_000,
                ahead_bytes_min=ahead_bytes_min,
            ),
            self.outbox,
            self.follower.partitions,
            lambda broker_id: self.peer,
            lambda key, now_ms: self.moved.append(key),
        )
        state = registration(1, (1, 2), leader_epoch=leader_epoch)
        self.led = [self.leader.host(index=index, state=state) for index in range(partitions)]
        self.copies = [self.follower.host(index=index, state=state) for index in range(partitions)]
        for index, copy in enumerate(self.copies):
            self.leader.publish(TopicPartition("topic", index), state)
            self.fetchers.follow(copy)

    def take(self) -> OutgoingRequest:
        """Return the next request of the fetchers."""
        self.fetchers.tick(self.now_ms)
        (request,) = self.outbox.take_requests()
        return request

    def exchange(self, change: Callable[[Any], None] = lambda response: None) -> None:
        """Pass one request to the leader and its answer back. `change` is applied to a Fetch's answer."""
        request = self.take()
        body = request.body
        if isinstance(body, ListOffsetsRequest):
            request.answered(self._offsets(body), self.now_ms)
            return
        assert isinstance(body, FetchRequest)
        self.sessions.append((body.session_id, body.session_epoch, sum(len(one.partitions) for one in body.topics)))
        asked = Asked(LATEST_VERSION)
        self.leader.fetches.start(
            ask_of(sent_and_read(body, LATEST_VERSION), LATEST_VERSION), LATEST_VERSION, self.now_ms, asked.take
        )
        response = FetchResponse.decode(asked.response_bytes(asked.response), LATEST_VERSION)
        change(response)
        request.answered(response, self.now_ms)

    def _offsets(self, body: ListOffsetsRequest) -> ListOffsetsResponse:
        def offset(index: int, timestamp: int) -> int:
            log = self.led[index].log
            return log.log_end_offset if timestamp == -1 else log.log_start_offset

        return ListOffsetsResponse(
            topics=[
                ListOffsetsResponse.ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=[
                        ListOffsetsResponse.ListOffsetsPartitionResponse(
                            partition_index=one.partition_index, offset=offset(one.partition_index, one.timestamp)
                        )
                        for one in topic.partitions
                    ],
                )
                for topic in body.topics
            ]
        )

    def append(self, *values: bytes, index: int = 0) -> None:
        self.leader.append(self.led[index], *values)


def stored(partition: Partition) -> list[bytes]:
    return [one.data for one in stored_batches(partition.log)]


def test_a_fetch_copies_records_and_the_high_watermark() -> None:
    pair = Pair()
    pair.append(b"a", b"b")
    pair.exchange()
    assert stored(pair.copies[0]) == stored(pair.led[0])
    assert (pair.led[0].log.high_watermark, pair.copies[0].log.high_watermark) == (0, 0)
    pair.exchange()  # this fetch reports that the follower has them
    assert (pair.led[0].log.high_watermark, pair.copies[0].log.high_watermark) == (2, 2)
    assert pair.moved == [TopicPartition("topic", 0)] * 2
    assert pair.copies[0].traffic.replication_bytes_in == pair.led[0].log.size


def test_the_largest_lag_is_reported() -> None:
    pair = Pair(partitions=2)
    for _ in range(4):
        pair.append(b"x" * 400, index=1)
    pair.led[1].log.advance_high_watermark(4)
    pair.exchange()
    lag = 4 - pair.copies[1].log.log_end_offset
    assert 0 < lag == pair.fetchers.max_lag
    pair.exchange()
    pair.exchange()
    assert pair.fetchers.max_lag == 0


def test_a_fetcher_with_a_request_under_way_is_not_visited_by_a_tick(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[int] = []

    class NotingFetcher(ReplicaFetcher):
        def step(self, now_ms: int) -> None:
            steps.append(now_ms)
            super().step(now_ms)

    monkeypatch.setattr("tailrace.replication.fetching.replica_fetchers.ReplicaFetcher", NotingFetcher)
    pair = Pair()
    request = pair.take()
    steps.clear()
    pair.fetchers.tick(pair.now_ms + 1)
    assert (steps, pair.fetchers.next_deadline_ms()) == ([], None)
    request.failed(Failure.LOST, pair.now_ms)
    assert pair.fetchers.next_deadline_ms() == pair.now_ms + BACKOFF_MS
    pair.fetchers.tick(pair.now_ms + BACKOFF_MS)
    assert steps == [pair.now_ms + BACKOFF_MS]


def test_requests_of_a_session_list_only_changed_partitions() -> None:
    pair = Pair(partitions=3)
    pair.exchange()
    pair.append(b"a", index=1)
    pair.exchange()
    pair.exchange()
    session = pair.sessions[1][0]
    assert pair.sessions == [(0, 0, 3), (session, 1, 0), (session, 2, 1)]


def test_a_session_that_the_leader_dropped_is_opened_again_at_once() -> None:
    pair = Pair(partitions=2)
    pair.exchange()
    pair.take().answered(FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND), pair.now_ms)
    pair.exchange()
    assert pair.sessions[-1][1:] == (0, 2)


def test_after_a_lost_connection_the_fetcher_waits_and_opens_a_new_session() -> None:
    pair = Pair()
    pair.exchange()
    pair.take().failed(Failure.LOST, pair.now_ms)
    assert pair.fetchers.next_deadline_ms() == pair.now_ms + BACKOFF_MS
    pair.fetchers.tick(pair.now_ms + BACKOFF_MS - 1)
    assert pair.outbox.take_requests() == []
    pair.now_ms += BACKOFF_MS
    pair.append(b"a")
    pair.exchange()
    assert pair.sessions[-1][1:] == (0, 1)
    assert stored(pair.copies[0]) == stored(pair.led[0])


def test_an_error_of_one_partition_does_not_hold_up_the_others() -> None:
    pair = Pair(partitions=2)

    def spoil(response: Any) -> None:
        for one in response.responses[0].partitions:
            if one.partition_index == 0:
                one.error_code, one.records = ErrorCode.UNKNOWN_LEADER_EPOCH, b""

    pair.append(b"a", index=0)
    pair.append(b"b", index=1)
    pair.exchange(spoil)
    assert [one.log.log_end_offset for one in pair.copies] == [0, 1]
    pair.exchange()
    assert pair.copies[0].log.log_end_offset == 0
    pair.now_ms += BACKOFF_MS
    pair.exchange()  # this one was on its way already
    pair.exchange()
    assert pair.copies[0].log.log_end_offset == 1


def test_a_response_that_refuses_a_hundred_partitions_is_handled_to_its_end(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    pair = Pair(partitions=101)

    def spoil(response: Any) -> None:
        for one in response.responses[0].partitions[:100]:
            one.error_code, one.records = ErrorCode.UNKNOWN_LEADER_EPOCH, b""

    pair.append(b"a", index=100)
    pair.exchange(spoil)
    assert pair.copies[100].log.log_end_offset == 1
    assert [one.getMessage() for one in caplog.records].count("partition not fetched") == 1


def test_damaged_records_are_not_appended() -> None:
    pair = Pair(partitions=2)

    def spoil(response: Any) -> None:
        for one in response.responses[0].partitions:
            if one.partition_index == 0:
                one.records = bytes(one.records[:-1]) + bytes([one.records[-1] ^ 1])

    pair.append(b"a", index=0)
    pair.append(b"b", index=1)
    pair.exchange(spoil)
    assert [one.log.log_end_offset for one in pair.copies] == [0, 1]


def test_a_failed_disk_takes_only_its_partition_offline() -> None:
    pair = Pair(partitions=2)
    copy = pair.copies[0]

    def fail(*_: Any, **__: Any) -> None:
        raise OSError("no")

    copy.log.append_as_follower = fail  # type: ignore[method-assign]
    pair.append(b"a", index=0)
    pair.append(b"b", index=1)
    pair.exchange()
    assert pair.follower.partitions.offline == {copy.key}
    assert pair.copies[1].log.log_end_offset == 1
    body = pair.take().body
    assert isinstance(body, FetchRequest)
    assert [one.partitions for one in body.forgotten_topics_data] == [[0]]


def test_diverging_records_are_truncated_and_fetched_again() -> None:
    pair = Pair()
    pair.append(b"a")
    pair.exchange()
    copy = pair.copies[0]
    # The follower leads for a while, alone, and writes what nobody gets.
    pair.follower.apply(copy, registration(2, (1, 2), (2,), leader_epoch=2, partition_epoch=1))
    pair.follower.append(copy, b"lost", b"too")
    for node, one in ((pair.leader, pair.led[0]), (pair.follower, copy)):
        node.apply(one, registration(1, (1, 2), (1,), leader_epoch=3, partition_epoch=2))
    pair.append(b"b")
    pair.fetchers.follow(copy)
    pair.exchange()  # this one was on its way already: it asks for an epoch that is over
    pair.exchange()
    assert copy.log.log_end_offset == 1
    pair.exchange()
    assert stored(copy) == stored(pair.led[0])


def test_the_high_watermark_of_a_diverging_response_is_sent_again() -> None:
    """A session sends only changes. After the truncation nothing changes, so it would never be sent again."""
    pair = Pair()
    pair.append(b"a")
    pair.exchange()
    copy = pair.copies[0]
    pair.follower.apply(copy, registration(2, (1, 2), leader_epoch=2, partition_epoch=1))
    pair.follower.append(copy, b"lost")
    for node, one in ((pair.leader, pair.led[0]), (pair.follower, copy)):
        node.apply(one, registration(1, (1, 2), (1,), leader_epoch=3, partition_epoch=2))
    pair.fetchers.follow(copy)
    pair.exchange()  # this one was on its way already
    pair.exchange()
    assert (copy.log.log_end_offset, copy.log.high_watermark) == (1, 0)
    pair.exchange()
    assert copy.log.high_watermark == pair.led[0].log.high_watermark == 1


def test_a_follower_below_the_leaders_log_start_restarts_there() -> None:
    pair = Pair()
    pair.append(b"a")
    pair.exchange()
    for value in (b"b", b"c", b"d"):
        pair.append(value)
    log = pair.led[0].log
    log.advance_high_watermark(4)
    log.delete_records(3, pair.now_ms)
    pair.exchange()  # OFFSET_OUT_OF_RANGE
    pair.exchange()  # the leader's end
    assert isinstance(pair.outbox.waiting[0].body, ListOffsetsRequest)
    request = pair.outbox.take_requests()[0]
    request.answered(pair._offsets(request.body), pair.now_ms)  # type: ignore[arg-type]
    assert pair.copies[0].log.log_start_offset == 3
    pair.outbox.waiting.clear()


def test_offsets_that_cannot_be_are_asked_for_again_later() -> None:
    pair = Pair()
    pair.append(b"a")
    pair.exchange()
    pair.exchange(lambda response: setattr(_first(response), "error_code", ErrorCode.OFFSET_OUT_OF_RANGE))
    request = pair.take()
    assert isinstance(request.body, ListOffsetsRequest)
    response = pair._offsets(request.body)
    response.topics[0].partitions[0].offset = -1
    request.answered(response, pair.now_ms)
    assert pair.copies[0].log.log_end_offset == 1
    assert not pair.outbox.waiting
    pair.now_ms += BACKOFF_MS
    pair.exchange()
    assert pair.copies[0].log.log_end_offset == 1


def _first(response: FetchResponse) -> FetchResponse.PartitionData:
    return response.responses[0].partitions[0]


def test_a_response_for_an_earlier_role_is_ignored() -> None:
    pair = Pair()
    pair.append(b"a")
    copy = pair.copies[0]
    pair.exchange(
        lambda _: pair.follower.apply(copy, registration(1, (1, 2), leader_epoch=2, partition_epoch=1)),
    )
    assert copy.log.log_end_offset == 0


def test_a_partition_that_is_no_longer_followed_is_not_fetched() -> None:
    pair = Pair()
    pair.exchange()
    pair.take().failed(Failure.LOST, pair.now_ms)
    pair.follower.partitions.remove(pair.copies[0].key)
    pair.fetchers.tick(pair.now_ms + BACKOFF_MS)
    assert pair.outbox.take_requests() == []
    assert pair.outbox.take_unneeded() == [pair.peer]
    assert pair.fetchers.next_deadline_ms() is None


def test_a_leader_that_moved_is_asked_at_its_new_address_in_a_new_session() -> None:
    pair = Pair()
    pair.exchange()
    before, pair.peer = pair.peer, Peer("replica-fetch", "two", 9092)
    pair.take().failed(Failure.LOST, pair.now_ms)
    pair.now_ms += BACKOFF_MS
    pair.exchange()
    assert pair.outbox.take_unneeded() == [before]
    assert pair.sessions[-1] == (0, 0, 1)


def test_a_partition_without_a_leader_is_not_fetched() -> None:
    pair = Pair()
    orphan = pair.follower.host("orphan", state=registration(-1, (1, 2), leader_epoch=4))
    assert isinstance(orphan.role, FollowerRole)
    pair.fetchers.follow(orphan)
    body = pair.take().body
    assert isinstance(body, FetchRequest)
    assert len(body.topics) == 1


def test_the_next_records_below_the_high_watermark_are_fetched_before_these_are_appended() -> None:
    pair = Pair(ahead_bytes_min=1)
    for _ in range(6):
        pair.append(b"x" * 400)
    pair.led[0].log.advance_high_watermark(6)
    sent: list[tuple[int, int, int]] = []  # fetch offset, last epoch, our log end when the request was sent
    pair.outbox.on_flush(lambda: sent.append((*_asked_for(pair.outbox.waiting[-1]), pair.copies[0].log.log_end_offset)))
    pair.exchange()
    pair.exchange()
    pair.exchange()
    assert sent == [(2, 1, 0), (4, 1, 2)]  # the third response reaches the high watermark: its records come first
    assert pair.copies[0].log.log_end_offset == 6
    assert stored(pair.copies[0]) == stored(pair.led[0])


def test_records_that_reach_the_high_watermark_are_appended_before_the_next_fetch() -> None:
    pair = Pair(ahead_bytes_min=1)
    pair.append(b"x" * 400)
    pair.append(b"x" * 400)
    pair.led[0].log.advance_high_watermark(2)
    pair.outbox.on_flush(lambda: pytest.fail("a claim at the high watermark would bring the replica into the ISR"))
    pair.exchange()
    assert pair.copies[0].log.log_end_offset == 2


def test_records_that_cannot_be_appended_after_the_next_fetch_was_sent_are_fetched_again() -> None:
    pair = Pair(ahead_bytes_min=1)
    for _ in range(6):
        pair.append(b"x" * 400)
    pair.led[0].log.advance_high_watermark(6)

    def damage(response: Any) -> None:
        answer = response.responses[0].partitions[0]
        answer.records = bytes(answer.records[:100]) + b"!" + bytes(answer.records[101:])

    pair.exchange(damage)
    assert pair.copies[0].log.log_end_offset == 0
    pair.exchange()  # the response to the fetch that was already on its way does not fit
    pair.now_ms += BACKOFF_MS
    for _ in range(4):
        pair.exchange()
    assert stored(pair.copies[0]) == stored(pair.led[0])
    assert pair.sessions[2][:2] == (pair.sessions[1][0], 0)  # a new session, since the two sides disagreed


def _asked_for(request: OutgoingRequest) -> tuple[int, int]:
    body: Any = request.body
    asked = body.topics[0].partitions[0]
    return asked.fetch_offset, asked.last_fetched_epoch
