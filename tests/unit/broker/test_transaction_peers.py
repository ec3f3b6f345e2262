"""TransactionPeers: markers for partitions that others lead, and questions to coordinators elsewhere."""

from __future__ import annotations

from typing import Any

from tailrace.broker.cluster.transaction_peers import TransactionPeers
from tailrace.coordinator.transactions.markers import RETRY_MS, Markers, TransactionEnd
from tailrace.coordinator.transactions.transaction_shard import ProducerIdAndEpoch
from tailrace.metadata.image.image import MetadataImage
from tailrace.metadata.image.registrations import BrokerRegistration, Endpoint
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicPartition
from tailrace.protocol.messages import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from tailrace.waiting.outbox import Failure, Outbox, OutgoingRequest

A, B, C = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


class World:
    """Brokers 2 and 3, who lead what `leaders` says; broker 9 is not registered."""

    def __init__(self) -> None:
        self.leaders = {A: 2, B: 3, C: 2}
        self.written: list[TransactionEnd] = []
        self.outbox = Outbox()
        self.markers = Markers(
            lambda key: self.leaders.get(key), lambda end, _: self.written.append(end), lambda end, key: None
        )
        brokers = {
            one: BrokerRegistration(
                id=one,
                epoch=1,
                incarnation_id=bytes(16),
                endpoints={"INSIDE": Endpoint("INSIDE", "127.0.0.1", 9000 + one)},
            )
            for one in (2, 3)
        }
        image = MetadataImage(brokers=brokers)
        self.peers = TransactionPeers(self.outbox, lambda: image, listener="INSIDE", timeout_ms=1_000)

    def end(self, producer_id: int, *partitions: TopicPartition) -> TransactionEnd:
        after: Any = None
        end = TransactionEnd(0, f"t{producer_id}", producer_id, 4, True, 7, 2, after, set(partitions))
        self.markers.add(end, 0)
        self.peers.send_markers(self.markers, 0)
        return end

    def sent(self) -> dict[int, OutgoingRequest]:
        return {request.peer.port: request for request in self.outbox.take_requests()}


def marked(request: OutgoingRequest, codes: dict[TopicPartition, ErrorCode] | None = None) -> WriteTxnMarkersResponse:
    """Return the response of a broker that writes all markers except the given ones."""
    body = request.body
    assert isinstance(body, WriteTxnMarkersRequest)
    response = WriteTxnMarkersResponse
    return response(
        markers=[
            response.WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    response.WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            response.WritableTxnMarkerPartitionResult(
                                partition_index=index,
                                error_code=(codes or {}).get(TopicPartition(topic.name, index), ErrorCode.NONE),
                            )
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in body.markers
        ]
    )


def test_every_leader_gets_the_markers_of_its_partitions() -> None:
    world = World()
    end = world.end(5, A, B, C)
    sent = world.sent()
    assert sorted(sent) == [9002, 9003]
    (marker,) = sent[9002].body.markers  # type: ignore[attr-defined]
    assert (marker.producer_id, marker.producer_epoch, marker.coordinator_epoch) == (5, 4, 7)
    assert (marker.transaction_result, marker.transaction_version) == (True, 2)
    assert [(one.name, one.partition_indexes) for one in marker.topics] == [("a", [0]), ("b", [0])]
    sent[9002].answered(marked(sent[9002]), 1)
    assert world.written == []
    sent[9003].answered(marked(sent[9003]), 2)
    assert world.written == [end]


def test_a_failed_marker_is_sent_to_the_new_leader() -> None:
    world = World()
    end = world.end(5, A, C)
    first = world.sent()[9002]
    first.answered(marked(first, {C: ErrorCode.NOT_LEADER_OR_FOLLOWER}), 1)
    world.leaders[C] = 3
    world.markers.tick(1 + RETRY_MS)
    world.peers.send_markers(world.markers, 1 + RETRY_MS)
    again = world.sent()
    assert list(again) == [9003]
    again[9003].failed(Failure.LOST, 200)
    world.markers.tick(200 + RETRY_MS)
    world.peers.send_markers(world.markers, 200 + RETRY_MS)
    last = world.sent()[9003]
    last.answered(marked(last), 400)
    assert world.written == [end]


def test_a_marker_waits_until_the_leader_is_registered() -> None:
    world = World()
    world.leaders[A] = 9
    end = world.end(5, A)
    assert world.sent() == {}
    world.leaders[A] = 2
    world.markers.tick(RETRY_MS)
    world.peers.send_markers(world.markers, RETRY_MS)
    request = world.sent()[9002]
    request.answered(marked(request), 1)
    assert world.written == [end]


def ask(world: World, coordinator: int, *, is_added: bool = True) -> tuple[list[Any], dict[int, OutgoingRequest]]:
    reported: list[Any] = []
    world.peers.ask_coordinator(
        coordinator,
        "t",
        ProducerIdAndEpoch(5, 4),
        [A, B],
        lambda errors, _: reported.append(errors),
        0,
        is_added=is_added,
    )
    return reported, world.sent()


def test_partitions_are_verified_at_a_coordinator_on_another_broker() -> None:
    reported, sent = ask(World(), 3, is_added=False)
    body = sent[9003].body
    assert isinstance(body, AddPartitionsToTxnRequest)
    (one,) = body.transactions
    assert (one.transactional_id, one.producer_id, one.producer_epoch, one.verify_only) == ("t", 5, 4, True)
    response = AddPartitionsToTxnResponse
    results = [
        response.AddPartitionsToTxnPartitionResult(partition_index=0),
        response.AddPartitionsToTxnPartitionResult(
            partition_index=1, partition_error_code=ErrorCode.TRANSACTION_ABORTABLE
        ),
    ]
    topic = response.AddPartitionsToTxnTopicResult(name="a", results_by_partition=results)
    sent[9003].answered(
        response(
            results_by_transaction=[response.AddPartitionsToTxnResult(transactional_id="t", topic_results=[topic])]
        ),
        1,
    )
    assert reported == [{A: ErrorCode.NONE, B: ErrorCode.TRANSACTION_ABORTABLE}]


def test_an_unreachable_or_refusing_coordinator_gives_an_error_for_each_partition() -> None:
    reported, sent = ask(World(), 3)
    sent[9003].failed(Failure.LOST, 1)
    assert reported == [dict.fromkeys([A, B], ErrorCode.NETWORK_EXCEPTION)]
    reported, sent = ask(World(), 3)
    sent[9003].answered(AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED), 1)
    assert reported == [dict.fromkeys([A, B], ErrorCode.INVALID_TXN_STATE)]
    reported, sent = ask(World(), 9)
    assert not sent
    assert reported == [dict.fromkeys([A, B], ErrorCode.COORDINATOR_NOT_AVAILABLE)]
