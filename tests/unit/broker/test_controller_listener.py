"""The controller listener of a node that is the controller of other brokers."""

from __future__ import annotations

from typing import Any

import pytest

from tailrace.broker.cluster.forwarding import serialized_principal
from tailrace.broker.requests.controller_table import CONTROLLER_TABLE
from tailrace.metadata.storage.metadata_log import MetadataLog
from tailrace.model.errors import ErrorCode
from tailrace.protocol import messages as m
from tailrace.protocol.api_keys import ApiKey
from tailrace.protocol.headers import RequestHeader, read_response_header, write_request_header
from tailrace.protocol.registry import response_class
from tailrace.records.batch import split_batches
from tests.support.controller_listener import PlayedController, metadata_fetch
from tests.support.memory_files import MemoryFiles

SESSION_MS = 9_000


def partition(controller: PlayedController, topic: str = "t") -> Any:
    return controller.image.topics[topic].partitions[0]


def sent_in_envelope(
    controller: PlayedController, request: Any, version: int, *, principal: bytes = serialized_principal("User:alice")
) -> Any:
    """Send a request as a broker forwards it. Return the response inside, or the error code of the Envelope."""
    key = request.SCHEMA.api_key
    data = write_request_header(RequestHeader(key, version, 77, "client")) + request.encode(version)
    envelope = m.EnvelopeRequest(
        request_data=data, request_principal=principal, client_host_address=b"\x7f\x00\x00\x01"
    )
    response = controller.ask(envelope, 0)
    if response.error_code:
        return ErrorCode(response.error_code)
    correlation_id, position = read_response_header(key, version, response.response_data)
    assert correlation_id == 77
    return response_class(key).decode(response.response_data, version, position)


# Registration and heartbeats


def test_a_broker_is_unfenced_when_it_has_read_its_registration() -> None:
    controller = PlayedController()
    broker = controller.broker(1)
    before = controller.image.offset
    assert broker.register() == ErrorCode.NONE
    assert broker.epoch == before + 1
    behind = broker.heartbeat(current_metadata_offset=before)
    assert (behind.is_caught_up, behind.is_fenced) == (False, True)
    waiting = broker.heartbeat(want_fence=True)
    assert (waiting.is_caught_up, waiting.is_fenced) == (True, True)
    assert not broker.heartbeat().is_fenced
    assert controller.image.is_active(1)


def test_a_registration_of_another_cluster_or_without_directories_is_refused() -> None:
    controller = PlayedController()
    broker = controller.broker(1)
    assert broker.register(cluster_id="x") == ErrorCode.INCONSISTENT_CLUSTER_ID
    assert broker.register(log_dirs=[]) == ErrorCode.INVALID_REGISTRATION
    assert broker.register(features=[]) == ErrorCode.INVALID_REGISTRATION
    assert controller.image.brokers == {}


def test_another_process_with_the_same_id_is_refused_until_the_session_expires() -> None:
    controller = PlayedController()
    (first,) = controller.brokers(1)
    second = controller.broker(1)
    second.incarnation_id = bytes(15) + b"\x77"
    assert second.register() == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    assert first.register() == ErrorCode.NONE  # the same process may register again
    controller.tick(SESSION_MS + 1_000)
    assert controller.image.brokers[1].fenced
    assert second.register() == ErrorCode.NONE
    assert first.heartbeat().error_code == ErrorCode.STALE_BROKER_EPOCH


def test_a_broker_without_heartbeats_loses_its_leaderships() -> None:
    controller = PlayedController()
    first, second = controller.brokers(2)
    controller.create_topic("t", [[1, 2]])
    assert partition(controller).leader == 1
    for _ in range(6):
        controller.tick(2_000)
        second.heartbeat()
    assert [one.fenced for one in controller.image.brokers.values()] == [True, False]
    assert (partition(controller).leader, partition(controller).isr) == (2, (2,))
    assert not first.heartbeat().is_fenced  # it was only silent


def test_time_in_which_the_controller_did_not_run_fences_nobody() -> None:
    controller = PlayedController()
    controller.brokers(1)
    controller.now_ms += 60_000
    controller.node.tick(controller.now_ms)
    assert controller.image.is_active(1)
    controller.tick(SESSION_MS + 1_000)
    assert not controller.image.is_active(1)


def test_a_controlled_shutdown_waits_until_other_brokers_have_read_it() -> None:
    controller = PlayedController()
    first, second = controller.brokers(2)
    controller.create_topic("t", [[1, 2]])
    second.heartbeat()
    leaving = first.heartbeat(want_shut_down=True)
    assert not leaving.should_shut_down
    assert partition(controller).leader == 2
    assert controller.image.brokers[1].in_controlled_shutdown
    assert not first.heartbeat(want_shut_down=True).should_shut_down  # the second broker has not read that
    second.heartbeat()
    assert first.heartbeat(want_shut_down=True).should_shut_down
    assert controller.image.brokers[1].fenced


def test_a_failed_directory_takes_its_leaderships() -> None:
    controller = PlayedController()
    brokers = [controller.broker(number) for number in (1, 2)]
    for one in brokers:
        one.directories.append(bytes([201, one.id]) * 8)
        one.register()
        one.heartbeat()
    controller.create_topic("t", [[1, 2]])
    topic = controller.image.topics["t"].id
    kind = m.AssignReplicasToDirsRequest
    place = kind.DirectoryData(
        id=brokers[0].directories[0],
        topics=[kind.TopicData(topic_id=topic, partitions=[kind.PartitionData(partition_index=0)])],
    )
    assigned = controller.ask(kind(broker_id=1, broker_epoch=brokers[0].epoch, directories=[place]), 0)
    assert assigned.directories[0].topics[0].partitions[0].error_code == ErrorCode.NONE
    assert partition(controller).directory_of(1) == brokers[0].directories[0]
    brokers[0].heartbeat(offline_log_dirs=[brokers[0].directories[0]])
    assert partition(controller).leader == 2
    stale = controller.ask(kind(broker_id=1, broker_epoch=1, directories=[place]), 0)
    assert stale.error_code == ErrorCode.STALE_BROKER_EPOCH


# In-sync replicas


def test_a_leader_changes_the_isr() -> None:
    controller = PlayedController()
    first, second = controller.brokers(2)
    controller.create_topic("t", [[1, 2]])
    shrunk = first.propose("t", [(1, first.epoch)])
    assert (shrunk.error_code, shrunk.isr, shrunk.partition_epoch) == (0, [1], 1)
    grown = first.propose("t", [(1, -1), (2, second.epoch)])
    assert (grown.error_code, grown.isr, grown.leader_epoch) == (0, [1, 2], 0)


@pytest.mark.parametrize(
    ("isr", "fields", "code"),
    [
        ([(2, -1)], {}, ErrorCode.INVALID_REQUEST),  # without the leader
        ([(1, -1), (3, -1)], {}, ErrorCode.INVALID_REQUEST),  # not a replica
        ([(1, -1), (1, -1)], {}, ErrorCode.INVALID_REQUEST),
        ([(1, -1), (2, 5)], {}, ErrorCode.INELIGIBLE_REPLICA),
        ([(1, -1)], {"leader_epoch": 9}, ErrorCode.NOT_CONTROLLER),
        ([(1, -1)], {"leader_epoch": -1}, ErrorCode.FENCED_LEADER_EPOCH),
        ([(1, -1)], {"partition_epoch": -1}, ErrorCode.INVALID_UPDATE_VERSION),
        ([(1, -1)], {"partition_index": 4}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ([(1, -1)], {"leader_recovery_state": 1}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_an_impossible_isr_is_refused(isr: list[tuple[int, int]], fields: dict[str, int], code: ErrorCode) -> None:
    controller = PlayedController()
    first, *_ = controller.brokers(3)
    controller.create_topic("t", [[1, 2]])
    before = controller.image
    assert first.propose("t", isr, **fields).error_code == code
    assert controller.image is before


def test_only_the_registered_leader_may_change_the_isr() -> None:
    controller = PlayedController()
    first, second = controller.brokers(2)
    controller.create_topic("t", [[1, 2]])
    assert second.propose("t", [(1, -1)]).error_code == ErrorCode.INVALID_REQUEST
    first.epoch = 1
    assert first.propose("t", [(1, -1)]).error_code == ErrorCode.STALE_BROKER_EPOCH


def test_preferred_leaders_lead_again_after_a_while() -> None:
    controller = PlayedController({"leader.imbalance.check.interval.seconds": "10"})
    first, second = controller.brokers(2)
    controller.create_topic("t", [[1, 2]])
    first.heartbeat(want_fence=True)
    assert partition(controller).leader == 2
    first.heartbeat()
    second.propose("t", [(2, -1), (1, first.epoch)])
    for _ in range(6):
        controller.tick(2_000)
        first.heartbeat()
        second.heartbeat()
    assert partition(controller).leader == 1


# The metadata log


def test_an_observer_gets_the_leader_and_then_the_log() -> None:
    controller = PlayedController()
    first = controller.ask(metadata_fetch(0, 0, 0), 17)
    answer = first.responses[0].partitions[0]
    assert answer.error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert (answer.current_leader.leader_id, answer.current_leader.leader_epoch) == (3000, 1)
    assert [(one.node_id, one.host, one.port) for one in first.node_endpoints] == [(3000, "127.0.0.1", 9093)]
    answer = controller.ask(metadata_fetch(0, 0, 1), 17).responses[0].partitions[0]
    assert answer.error_code == ErrorCode.NONE
    assert [one.last_offset for one in split_batches(answer.records)][-1] == controller.image.offset
    assert answer.high_watermark == controller.image.offset + 1


def test_an_observer_that_is_at_the_end_waits_for_the_next_change() -> None:
    controller = PlayedController()
    end = controller.image.offset + 1
    waiting = controller.client()
    assert waiting.send(metadata_fetch(end, 1, 1, wait_ms=500), 17) == []
    replies = controller.client().send(controller.broker(1).registration(), 4)
    (reply,) = [one for one in replies if one.connection_id == waiting.context.connection_id]
    answer = waiting.decode(reply, ApiKey.FETCH, 17)
    assert next(iter(split_batches(answer.responses[0].partitions[0].records))).base_offset == end


def test_an_observer_with_a_log_of_its_own_is_cut_back() -> None:
    controller = PlayedController()
    answer = controller.ask(metadata_fetch(100_000, 1, 1), 17).responses[0].partitions[0]
    assert (answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset) == (1, controller.image.offset + 1)
    ahead = controller.ask(metadata_fetch(0, 0, 9), 17).responses[0].partitions[0]
    assert ahead.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_an_observer_that_is_too_far_behind_loads_a_snapshot() -> None:
    controller = PlayedController(
        {
            "metadata.log.max.record.bytes.between.snapshots": "1000",
            "metadata.max.retention.bytes": "0",
        }
    )
    controller.brokers(3)
    for number in range(30):
        controller.create_topic(f"topic-{number}", [[1, 2, 3]])
        controller.tick(200)
    controller.tick(120_000)
    wanted = controller.ask(metadata_fetch(0, 0, 1), 17).responses[0].partitions[0].snapshot_id
    assert wanted.end_offset > 0
    kind = m.FetchSnapshotRequest
    data, size = b"", 1
    while len(data) < size:
        asked = kind.PartitionSnapshot(
            current_leader_epoch=1,
            snapshot_id=kind.SnapshotId(end_offset=wanted.end_offset, epoch=wanted.epoch),
            position=len(data),
        )
        request = kind(max_bytes=700, topics=[kind.TopicSnapshot(name="__cluster_metadata", partitions=[asked])])
        answer = controller.ask(request, 1).topics[0].partitions[0]
        assert answer.error_code == ErrorCode.NONE
        data, size = data + bytes(answer.unaligned_records), answer.size
    assert len(list(split_batches(data))) >= 3  # header, records, footer
    asked.position = size
    assert controller.ask(request, 1).topics[0].partitions[0].error_code == ErrorCode.POSITION_OUT_OF_RANGE
    asked.snapshot_id.end_offset = 7
    assert controller.ask(request, 1).topics[0].partitions[0].error_code == ErrorCode.SNAPSHOT_NOT_FOUND


def test_time_passes_in_the_log_while_somebody_observes_it() -> None:
    controller = PlayedController()
    before = controller.image.offset
    controller.tick(3_000)
    assert controller.image.offset == before
    controller.ask(metadata_fetch(0, 0, 1), 17)
    controller.tick(3_000)
    assert 4 <= controller.image.offset - before <= 6


def test_describe_quorum_lists_the_observers() -> None:
    controller = PlayedController()
    controller.ask(metadata_fetch(5, 1, 1, node_id=9), 17)
    kind = m.DescribeQuorumRequest
    topic = kind.TopicData(topic_name="__cluster_metadata", partitions=[kind.PartitionData(partition_index=0)])
    described = controller.ask(kind(topics=[topic]), 2).topics[0].partitions[0]
    assert [one.replica_id for one in described.current_voters] == [3000]
    assert [(one.replica_id, one.log_end_offset) for one in described.observers] == [(9, 5)]


# Forwarded requests, and what is not served


def test_a_forwarded_request_is_answered_inside_the_response() -> None:
    controller = PlayedController()
    controller.brokers(1)
    kind = m.CreateTopicsRequest
    wanted = kind(topics=[kind.CreatableTopic(name="t", num_partitions=2, replication_factor=1)])
    created = sent_in_envelope(controller, wanted, 7)
    assert [(one.name, one.error_code, one.num_partitions) for one in created.topics] == [("t", 0, 2)]
    assert "t" in controller.image.topics


def test_a_forwarded_request_has_the_rights_of_its_client() -> None:
    controller = PlayedController(
        {
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS;User:root",
        }
    )
    kind = m.CreateTopicsRequest
    wanted = kind(topics=[kind.CreatableTopic(name="t", num_partitions=2, replication_factor=1)])
    refused = sent_in_envelope(controller, wanted, 7)
    assert refused.topics[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    allowed = sent_in_envelope(controller, wanted, 7, principal=serialized_principal("User:root"))
    assert allowed.topics[0].error_code == ErrorCode.INVALID_REPLICATION_FACTOR  # no broker is registered


def test_a_client_without_the_right_of_brokers_is_refused() -> None:
    controller = PlayedController(
        {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer", "super.users": "User:x"}
    )
    assert controller.broker(1).register() == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert controller.ask(metadata_fetch(0, 0, 1), 17).error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    answered = sent_in_envelope(controller, m.UnregisterBrokerRequest(broker_id=1), 0)
    assert answered is ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_an_envelope_that_cannot_be_read_is_refused() -> None:
    controller = PlayedController()
    request = m.UnregisterBrokerRequest(broker_id=1)
    broken = sent_in_envelope(controller, request, 0, principal=b"\x00\x09")
    assert broken is ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE
    heartbeat = sent_in_envelope(controller, m.BrokerHeartbeatRequest(), 0)
    assert heartbeat is ErrorCode.INVALID_REQUEST
    envelope = m.EnvelopeRequest(request_data=b"\x00", request_principal=b"", client_host_address=b"")
    assert controller.ask(envelope, 0).error_code == ErrorCode.INVALID_REQUEST


def test_producer_ids_are_allocated_once() -> None:
    controller = PlayedController()
    first, second = controller.brokers(2)
    starts = [
        controller.ask(m.AllocateProducerIdsRequest(broker_id=one.id, broker_epoch=one.epoch), 0).producer_id_start
        for one in (first, second, first)
    ]
    assert starts == [0, 1000, 2000]
    stale = controller.ask(m.AllocateProducerIdsRequest(broker_id=1, broker_epoch=1), 0)
    assert stale.error_code == ErrorCode.STALE_BROKER_EPOCH


def test_the_listener_lists_its_own_apis() -> None:
    controller = PlayedController()
    versions = controller.ask(m.ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3)
    assert {one.api_key for one in versions.api_keys} == set(CONTROLLER_TABLE)
    assert ApiKey.PRODUCE not in CONTROLLER_TABLE


def test_describe_cluster_returns_the_controller() -> None:
    controller = PlayedController()
    described = controller.ask(m.DescribeClusterRequest(endpoint_type=2), 1)
    assert (described.cluster_id, described.controller_id) == (controller.image.cluster_id, 3000)
    assert [(one.broker_id, one.port) for one in described.brokers] == [(3000, 9093)]
    refused = controller.ask(m.DescribeClusterRequest(endpoint_type=1), 1)
    assert refused.error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE


def test_a_broker_whose_process_has_ended_is_fenced_at_once_and_may_be_replaced() -> None:
    controller = PlayedController()
    first, second = controller.brokers(2)
    controller.node.broker_ended(1, controller.now_ms)
    assert [one.fenced for one in controller.image.brokers.values()] == [True, False]
    again = controller.broker(1)
    again.incarnation_id = b"x" * 16
    assert again.register() == 0
    assert not again.heartbeat().is_fenced
    assert not second.heartbeat().is_fenced
    controller.node.broker_ended(7, controller.now_ms)  # an unknown broker
    assert first.epoch < again.epoch


def test_a_restarted_controller_knows_everything_and_gives_brokers_a_session() -> None:
    files = MemoryFiles()
    controller = PlayedController(files=files)
    first, second = controller.brokers(2)
    controller.create_topic("t", [[1, 2]])
    first.propose("t", [(1, -1)])
    before = controller.image
    controller.node.abandon()
    again = PlayedController(files=files, now_ms=controller.now_ms)
    assert again.image.topics == before.topics
    assert again.image.brokers == before.brokers
    for one in (first, second):
        one.controller = again
    again.tick(5_000)
    assert not first.heartbeat().is_fenced
    again.tick(5_000)
    assert [one.fenced for one in again.image.brokers.values()] == [False, True]


def test_a_node_with_both_roles_leads_and_follows_beside_other_brokers() -> None:
    controller = PlayedController(
        {
            "process.roles": "broker,controller",
            "node.id": "1",
            "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
        }
    )
    other = controller.broker(2)
    other.register()
    other.heartbeat()
    controller.create_topic("t", [[1, 2], [2, 1]])
    hosted = controller.node.services.partitions
    assert sorted(one.key.partition for one in hosted) == [0, 1]
    assert [one.key.partition for one in hosted.leaders()] == [0]
    other.heartbeat(want_fence=True)
    assert [controller.image.topics["t"].partitions[number].leader for number in (0, 1)] == [1, 1]
    assert len(list(hosted.leaders())) == 2
    stopped: list[bool] = []
    other.heartbeat()
    controller.node.prepare_stop(controller.now_ms, lambda: stopped.append(True))
    controller.tick(400)
    assert stopped == [True]


def test_a_large_request_of_a_broker_is_decided_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    controller = PlayedController()
    broker, _ = controller.brokers(2)
    controller.create_topic("t", [[1, 2]] * 300)
    topic_id = controller.image.topics["t"].id
    sizes: list[int] = []
    prepare = MetadataLog.prepare
    monkeypatch.setattr(
        MetadataLog, "prepare", lambda self, records: (sizes.append(len(records)), prepare(self, records))[1]
    )
    epochs = [(one.leader_epoch, one.partition_epoch) for one in controller.image.topics["t"].partitions.values()]
    alter = m.AlterPartitionRequest
    proposals = [
        alter.PartitionData(
            partition_index=number,
            leader_epoch=leader_epoch,
            partition_epoch=partition_epoch,
            new_isr_with_epochs=[alter.BrokerState(broker_id=1, broker_epoch=broker.epoch)],
        )
        for number, (leader_epoch, partition_epoch) in enumerate(epochs)
    ]
    topics = [alter.TopicData(topic_id=topic_id, partitions=proposals)]
    answer = controller.ask(alter(broker_id=1, broker_epoch=broker.epoch, topics=topics), 3)
    (topic,) = answer.topics
    assert [(one.partition_index, one.error_code, list(one.isr)) for one in topic.partitions] == [
        (number, 0, [1]) for number in range(300)
    ]
    assign = m.AssignReplicasToDirsRequest
    places = [assign.PartitionData(partition_index=number) for number in range(300)]
    directory = assign.DirectoryData(
        id=broker.directories[0], topics=[assign.TopicData(topic_id=topic_id, partitions=places)]
    )
    assigned = controller.ask(assign(broker_id=1, broker_epoch=broker.epoch, directories=[directory]), 0)
    numbers = [one.partition_index for one in assigned.directories for one in one.topics for one in one.partitions]
    assert numbers == list(range(300))
    assert max(sizes) <= 64
