"""SimulatedFetchers: the real replica fetchers of a broker, whose requests go over the simulated network."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicPartition
from tailrace.protocol.flat.fetch import ask_of
from tailrace.protocol.messages import FetchRequest, FetchResponse, ListOffsetsRequest, ListOffsetsResponse
from tailrace.replication.fetching.fetcher_settings import FetcherSettings
from tailrace.replication.fetching.replica_fetcher import CHANNEL
from tailrace.replication.fetching.replica_fetchers import ReplicaFetchers
from tailrace.replication.partition import Partition
from tailrace.waiting.outbox import Failure, Outbox, OutgoingRequest, Peer
from tests.simulation.node import LATEST_VERSION, Asked, response_of, sent_and_read

if TYPE_CHECKING:
    from tests.simulation.simulated_broker import SimulatedBroker

MAX_WAIT_MS = 100
TIMEOUT_MS = 400
_LATEST = -1

OffsetsTopic = ListOffsetsResponse.ListOffsetsTopicResponse
OffsetsPartition = ListOffsetsResponse.ListOffsetsPartitionResponse


class SimulatedFetchers:
    def __init__(self, broker: SimulatedBroker) -> None:
        self.broker = broker
        self.outbox = Outbox()
        self.fetchers = ReplicaFetchers(
            FetcherSettings(
                broker_id=broker.broker_id,
                broker_epoch=lambda: broker.epoch,
                wait_ms_max=MAX_WAIT_MS,
                bytes_min=1,
                partition_bytes_max=700,
                response_bytes_max=2_000,
                backoff_ms=20,
                timeout_ms=TIMEOUT_MS,
                ahead_bytes_min=1,
            ),
            self.outbox,
            broker.node.partitions,
            lambda leader_id: Peer(CHANNEL, "broker", leader_id),
            lambda key, _: broker.node.check(key),
        )
        self.outbox.on_flush(self.send_waiting)

    def follow(self, partition: Partition) -> None:
        self.fetchers.follow(partition)

    def step(self) -> None:
        self.fetchers.tick(self.broker.node.now_ms)
        self.send_waiting()

    def send_waiting(self) -> None:
        self.outbox.take_unneeded()
        for request in self.outbox.take_requests():
            self._send(request)

    def _send(self, request: OutgoingRequest) -> None:
        network = self.broker.network
        leader = self.broker.cluster.brokers[request.peer.port]

        def serve(answer: Callable[[Any], None]) -> None:
            node = leader.now()
            if isinstance(request.body, ListOffsetsRequest):
                answer(_offsets(leader, request.body))
                return
            assert isinstance(request.body, FetchRequest)
            asked = Answering(answer)
            body = ask_of(sent_and_read(request.body, LATEST_VERSION), LATEST_VERSION)
            asked.fetch = node.fetches.start(body, LATEST_VERSION, node.now_ms, asked.take)
            network.after(MAX_WAIT_MS, leader, lambda: leader.now() and None)

        def answered(response: Any) -> None:
            request.answered(response, self.broker.now().now_ms)
            self.send_waiting()

        def failed() -> None:
            """Open a new connection and a new session, because no response came."""
            request.failed(Failure.LOST, self.broker.now().now_ms)
            self.send_waiting()

        network.request(self.broker, leader, serve, answered, failed, TIMEOUT_MS)


class Answering(Asked):
    """Replies that send a response, decoded as the other side decodes it."""

    def __init__(self, send: Any) -> None:
        super().__init__(LATEST_VERSION)
        self._send = send

    def take(self, fetch: Any, now_ms: int) -> None:
        response = response_of(fetch, now_ms)
        self._send(FetchResponse.decode(self.response_bytes(response), LATEST_VERSION))


def _offsets(leader: SimulatedBroker, body: ListOffsetsRequest) -> ListOffsetsResponse:
    """Return the log end or log start of a leader, for a follower."""

    def answer(name: str, asked: ListOffsetsRequest.ListOffsetsPartition) -> OffsetsPartition:
        partition = leader.partition(TopicPartition(name, asked.partition_index))
        error = (
            ErrorCode.NOT_LEADER_OR_FOLLOWER
            if partition is None
            else partition.fencing_error(asked.current_leader_epoch, leader_only=True)
        )
        if partition is None or error is not None:
            return OffsetsPartition(partition_index=asked.partition_index, error_code=error or ErrorCode.NONE)
        log = partition.log
        offset = log.log_end_offset if asked.timestamp == _LATEST else log.log_start_offset
        return OffsetsPartition(partition_index=asked.partition_index, offset=offset)

    return ListOffsetsResponse(
        topics=[
            OffsetsTopic(name=topic.name, partitions=[answer(topic.name, one) for one in topic.partitions])
            for topic in body.topics
        ]
    )
