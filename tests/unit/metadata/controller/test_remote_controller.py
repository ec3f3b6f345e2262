"""RemoteController and ControllerChannel: what is asked of the active controller, and of the next one."""

from __future__ import annotations

from typing import Any

import pytest

from tailrace.metadata.controller.remote_controller import RemoteController
from tailrace.metadata.image.registrations import BrokerRegistration
from tailrace.metadata.quorum.broker_lifecycle import BrokerLifecycle, LifecycleState
from tailrace.metadata.quorum.quorum_observer import ControllerAddress, ObserverSettings
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol import messages as m
from tailrace.waiting.outbox import Failure, OutgoingRequest
from tests.unit.metadata.played_quorum import PORTS, Observing, PlayedQuorum

DIRECTORIES = (b"a" * 16, b"b" * 16)


class Broker:
    """A RemoteController whose requests the test answers."""

    def __init__(self) -> None:
        log = Observing(PlayedQuorum()).log
        registration = BrokerRegistration(id=7, epoch=-1, incarnation_id=b"i" * 16, directories=DIRECTORIES)
        lifecycle = BrokerLifecycle(registration, "cluster", epoch=5)
        addresses = [ControllerAddress("127.0.0.1", port) for port in PORTS]
        self.now_ms = 0
        self.controller = RemoteController(
            log, Observing(PlayedQuorum()).outbox, ObserverSettings(addresses, "CONTROLLER"), lifecycle
        )
        self.controller.outbox.take_requests()
        self.controller.observer.leader = addresses[0]

    def sent(self) -> list[OutgoingRequest]:
        return self.controller.outbox.take_requests()

    def only(self) -> OutgoingRequest:
        (request,) = self.sent()
        return request

    def pass_time(self) -> None:
        due_ms = self.controller.next_deadline_ms()
        assert due_ms is not None
        self.now_ms = max(self.now_ms, due_ms)
        self.controller.tick(self.now_ms)


@pytest.fixture
def broker() -> Broker:
    return Broker()


def test_a_request_is_sent_again_to_the_next_leader(broker: Broker) -> None:
    reported: list[Any] = []
    broker.controller.forward(
        b"r", b"p", b"h", lambda one, _: reported.append(one), lambda one, _: reported.append(one), 0
    )
    first = broker.only()
    assert (first.peer.channel, first.peer.port) == ("forwarding", PORTS[0])
    first.answered(m.EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER), 1)
    broker.controller.observer.leader = None
    broker.pass_time()
    assert broker.sent() == []
    broker.controller.observer.leader = ControllerAddress("127.0.0.1", PORTS[1])
    broker.controller.channel.leader_changed(500)
    second = broker.only()
    assert second.peer.port == PORTS[1]
    second.failed(Failure.LOST, 600)
    broker.pass_time()
    third = broker.only()
    third.answered(m.EnvelopeResponse(response_data=b"answer"), 700)
    assert [one.response_data for one in reported] == [b"answer"]


def test_a_request_without_a_response_fails_after_a_minute(broker: Broker) -> None:
    reported: list[Any] = []
    broker.controller.observer.leader = None
    broker.controller.forward(
        b"r", b"p", b"h", lambda one, _: reported.append(one), lambda one, _: reported.append(one), 0
    )
    while not reported:
        broker.pass_time()
    assert reported == [Failure.TIMED_OUT]
    assert broker.now_ms >= 60_000


def test_alter_partition_is_sent_with_the_brokers_epoch(broker: Broker) -> None:
    reported: list[Any] = []
    state = m.AlterPartitionRequest.BrokerState
    partition = m.AlterPartitionRequest.PartitionData(
        partition_index=0, leader_epoch=3, new_isr_with_epochs=[state(broker_id=7, broker_epoch=5)], partition_epoch=9
    )
    topic = m.AlterPartitionRequest.TopicData(topic_id=b"t" * 16, partitions=[partition])
    broker.controller.alter_partition(
        [topic], lambda one, _: reported.append(one), lambda one, _: reported.append(one), 0
    )
    request = broker.only()
    assert isinstance(request.body, m.AlterPartitionRequest)
    assert (request.body.broker_id, request.body.broker_epoch, request.body.topics) == (7, 5, [topic])
    request.answered(m.AlterPartitionResponse(error_code=ErrorCode.STALE_BROKER_EPOCH), 1)
    assert reported[0].error_code == ErrorCode.STALE_BROKER_EPOCH


def test_the_next_block_of_producer_ids_is_requested_ahead(broker: Broker) -> None:
    controller = broker.controller
    with pytest.raises(KafkaError) as refused:
        controller.allocate_producer_ids(0)
    assert refused.value.code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    first = broker.only()
    with pytest.raises(KafkaError):
        controller.allocate_producer_ids(0)
    assert broker.sent() == []  # one request at a time
    first.answered(m.AllocateProducerIdsResponse(producer_id_start=1000, producer_id_len=1000), 1)
    assert controller.allocate_producer_ids(2) == range(1000, 2000)
    second = broker.only()
    second.answered(m.AllocateProducerIdsResponse(error_code=ErrorCode.STALE_BROKER_EPOCH), 3)
    broker.pass_time()
    broker.only().answered(m.AllocateProducerIdsResponse(producer_id_start=5000, producer_id_len=1000), 4)
    assert controller.allocate_producer_ids(5) == range(5000, 6000)


def test_assignments_are_reported_together_and_refused_ones_again(broker: Broker) -> None:
    controller = broker.controller
    controller.assign_directories([(DIRECTORIES[0], b"t" * 16, 0)], 0)
    controller.assign_directories([(DIRECTORIES[0], b"t" * 16, 1), (DIRECTORIES[1], b"t" * 16, 2)], 0)
    response = m.AssignReplicasToDirsResponse

    def places(request: OutgoingRequest) -> list[tuple[bytes, bytes, int]]:
        assert isinstance(request.body, m.AssignReplicasToDirsRequest)
        return [
            (directory.id, topic.topic_id, one.partition_index)
            for directory in request.body.directories
            for topic in directory.topics
            for one in topic.partitions
        ]

    first = broker.only()
    assert places(first) == [(DIRECTORIES[0], b"t" * 16, 0)]
    first.answered(response(), 1)
    second = broker.only()
    assert places(second) == [(DIRECTORIES[0], b"t" * 16, 1), (DIRECTORIES[1], b"t" * 16, 2)]
    refused = response.PartitionData(partition_index=2, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    topic = response.TopicData(topic_id=b"t" * 16, partitions=[refused])
    second.answered(response(directories=[response.DirectoryData(id=DIRECTORIES[1], topics=[topic])]), 2)
    assert broker.sent() == []
    broker.pass_time()
    assert places(broker.only()) == [(DIRECTORIES[1], b"t" * 16, 2)]


def test_failed_directories_are_reported_with_the_heartbeats(broker: Broker) -> None:
    broker.controller.directories_online([DIRECTORIES[0]], 0)
    assert broker.controller.lifecycle.inputs.offline == (DIRECTORIES[1],)


def test_a_broker_stops_when_the_controller_allows_it(broker: Broker) -> None:
    reported: list[str] = []
    lifecycle = broker.controller.lifecycle
    lifecycle.state = LifecycleState.RUNNING
    broker.controller.prepare_stop(0, lambda: reported.append("ready"))
    assert lifecycle.inputs.leaves
    assert reported == []
    lifecycle.state = LifecycleState.LEFT
    broker.controller.lifecycle_changed()
    assert broker.controller.next_deadline_ms() == 0
    broker.controller.tick(1_000)
    assert reported == []  # other nodes need time to learn of it
    assert broker.controller.next_deadline_ms() == 1_100
    broker.controller.tick(1_100)
    broker.controller.tick(400_000)
    assert reported == ["ready"]


def test_a_broker_whose_shutdown_is_not_confirmed_stops_after_five_minutes(broker: Broker) -> None:
    reported: list[str] = []
    broker.controller.prepare_stop(0, lambda: reported.append("ready"))
    while not reported:
        broker.pass_time()
    assert broker.now_ms == 300_000


def test_a_broker_registers_its_directories_when_metadata_version_supports_them(broker: Broker) -> None:
    controller = broker.controller
    controller.lifecycle.inputs.is_ready = True
    quorum = PlayedQuorum()
    follower = Observing(quorum)
    follower.run()
    quorum.commit(m.RegisterBrokerRecord(broker_id=7, incarnation_id=b"i" * 16, broker_epoch=5, fenced=False))
    quorum.commit(m.FeatureLevelRecord(name="group.version", feature_level=1))
    follower.run()
    controller.log = follower.log
    before = controller.lifecycle.inputs.registration
    for change in follower.changes:
        controller._changed(change, 0)
    assert controller.lifecycle.inputs.registration > before
    assert controller.lifecycle.inputs.cordoned == ()


def test_a_broker_without_controlled_shutdown_stops_at_once(broker: Broker) -> None:
    reported: list[str] = []
    broker.controller._uses_controlled_shutdown = False
    broker.controller.prepare_stop(0, lambda: reported.append("ready"))
    assert reported == ["ready"]
