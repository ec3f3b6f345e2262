"""ShareFetch and ShareAcknowledge through a whole broker in memory: the records that a member acquires, holds and
releases."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from tailrace.broker.broker import Broker
from tailrace.log.disk.files import Files
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import TopicId, TopicPartition
from tailrace.protocol.messages import (
    CreateTopicsRequest,
    DeleteRecordsRequest,
    IncrementalAlterConfigsRequest,
    ProduceRequest,
    ShareAcknowledgeRequest,
    ShareFetchRequest,
)
from tailrace.records.batch import split_batches
from tailrace.records.builder import BatchBuilder
from tailrace.shares.state.persisted_state import SharePartitionKey, ShareWrite, StateBatch
from tests.support.memory_files import MemoryFiles
from tests.support.memory_node import Client, start

ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
LOCK_MS = 30_000
TOPIC, GROUP = "orders", "workers"
Acks = Sequence[tuple[int, int, Sequence[int]]]


class Member:
    """A member that fetches from partition 0 of a topic, with its own session."""

    def __init__(self, broker: Broker, name: str, connection_id: int, topic_id: bytes) -> None:
        self.client = Client(broker, connection_id=connection_id)
        self.name = name
        self.topic_id = topic_id
        self.epoch = 0

    def request(self, acks: Acks = (), **changes: Any) -> ShareFetchRequest:
        batches = [
            ShareFetchRequest.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=list(types))
            for first, last, types in acks
        ]
        partition = ShareFetchRequest.FetchPartition(partition_index=0, acknowledgement_batches=batches)
        request = ShareFetchRequest(
            group_id=GROUP,
            member_id=self.name,
            share_session_epoch=self.epoch,
            max_wait_ms=0,
            min_bytes=1,
            max_bytes=1 << 20,
            max_records=500,
            batch_size=500,
            topics=[ShareFetchRequest.FetchTopic(topic_id=self.topic_id, partitions=[partition])],
        )
        for name, value in changes.items():
            setattr(request, name, value)
        return request

    def fetch(self, acks: Acks = (), **changes: Any) -> Any:
        """Return the partition of the response, or None if the response does not contain it."""
        answer = self.ask(acks, **changes)
        assert answer.error_code == 0
        return answer.responses[0].partitions[0] if answer.responses else None

    def ask(self, acks: Acks = (), **changes: Any) -> Any:
        answer = self.client.ask(self.request(acks, **changes), 2)
        if answer.error_code == 0:
            self.epoch += 1
        return answer

    def acquire(self, acks: Acks = (), **changes: Any) -> list[tuple[int, int, int]]:
        reported = self.fetch(acks, **changes)
        return [] if reported is None else acquired(reported)

    def acknowledge(self, *acks: tuple[int, int, Sequence[int]], **changes: Any) -> Any:
        batches = [
            ShareAcknowledgeRequest.AcknowledgementBatch(
                first_offset=first, last_offset=last, acknowledge_types=list(types)
            )
            for first, last, types in acks
        ]
        partition = ShareAcknowledgeRequest.AcknowledgePartition(partition_index=0, acknowledgement_batches=batches)
        request = ShareAcknowledgeRequest(
            group_id=GROUP,
            member_id=self.name,
            share_session_epoch=self.epoch,
            topics=[ShareAcknowledgeRequest.AcknowledgeTopic(topic_id=self.topic_id, partitions=[partition])],
        )
        for name, value in changes.items():
            setattr(request, name, value)
        answer = self.client.ask(request, 2)
        if answer.error_code == 0:
            self.epoch += 1
        return answer

    def ack_code(self, *acks: tuple[int, int, Sequence[int]], **changes: Any) -> int:
        code: int = self.acknowledge(*acks, **changes).responses[0].partitions[0].error_code
        return code


def acquired(reported: Any) -> list[tuple[int, int, int]]:
    return [(one.first_offset, one.last_offset, one.delivery_count) for one in reported.acquired_records]


class World:
    def __init__(self, files: Files | None = None, **settings: str) -> None:
        self.files = files or MemoryFiles()
        self.settings = {key.replace("_", "."): text for key, text in settings.items()}
        self.broker = start(self.files, self.settings)
        self.admin = Client(self.broker, connection_id=99)
        if TOPIC not in self.broker.services.controller.image.topics:
            topic = CreateTopicsRequest.CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)
            assert self.admin.ask(CreateTopicsRequest(topics=[topic]), 7).topics[0].error_code == 0
            self.begin(0)

    @property
    def topic_id(self) -> bytes:
        return self.broker.services.controller.image.topics[TOPIC].id

    def begin(self, start_offset: int) -> None:
        """Initialize the state, like the group coordinator before it assigns the partition."""
        answers: list[Any] = []
        key = SharePartitionKey(GROUP, self.topic_id, 0)
        self.broker.services.share_coordinator.initialize(
            key,
            0,
            start_offset,
            lambda code, _: answers.append(code),
            lambda e, _: answers.append(e),
            self.admin.now_ms,
        )
        assert answers == [ErrorCode.NONE]

    def produce(self, *sizes: int) -> None:
        """Append batches with the given numbers of records."""
        for size in sizes:
            builder = BatchBuilder(base_offset=0)
            for number in range(size):
                builder.append(self.admin.now_ms, None, b"record %d" % number)
            data = ProduceRequest.PartitionProduceData(index=0, records=bytes(builder.build()))
            request = ProduceRequest(
                acks=1,
                timeout_ms=1_000,
                topic_data=[ProduceRequest.TopicProduceData(name=TOPIC, partition_data=[data])],
            )
            assert self.admin.ask(request, 9).responses[0].partition_responses[0].error_code == 0

    def configure(self, **values: str) -> None:
        configs = [
            IncrementalAlterConfigsRequest.AlterableConfig(name=name.replace("_", "."), config_operation=0, value=value)
            for name, value in values.items()
        ]
        resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
            resource_type=32, resource_name=GROUP, configs=configs
        )
        answer = self.admin.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
        assert answer.responses[0].error_code == 0, answer.responses[0].error_message

    def member(self, name: str, connection_id: int) -> Member:
        return Member(self.broker, name, connection_id, self.topic_id)

    def members(self, *names: str) -> list[Member]:
        return [self.member(name, number) for number, name in enumerate(names, 1)]

    def pass_time(self, ms: int, *members: Member) -> None:
        for client in (self.admin, *(member.client for member in members)):
            client.now_ms += ms
        self.broker.tick(self.admin.now_ms)


@pytest.fixture
def world() -> World:
    return World()


def test_records_are_acquired_by_one_member_and_complete_when_accepted(world: World) -> None:
    world.produce(3, 4)
    one, other = world.members("one", "other")
    reported = one.fetch()
    assert acquired(reported) == [(0, 6, 1)]
    assert [batch.last_offset for batch in split_batches(reported.records)] == [2, 6]
    assert other.acquire() == []
    assert one.ack_code((0, 6, [ACCEPT])) == ErrorCode.NONE
    assert other.acquire() == []
    world.produce(1)
    assert other.acquire() == [(7, 7, 1)]


def test_released_records_are_delivered_again_with_a_higher_delivery_count(world: World) -> None:
    world.produce(2, 2, 2)
    one, other = world.members("one", "other")
    assert one.acquire() == [(0, 5, 1)]
    assert one.ack_code((0, 1, [ACCEPT]), (2, 3, [RELEASE, ACCEPT]), (4, 5, [REJECT])) == ErrorCode.NONE
    reported = other.fetch()
    assert acquired(reported) == [(2, 2, 2)]
    assert [batch.base_offset for batch in split_batches(reported.records)] == [2]


def test_a_share_fetch_can_carry_acknowledgements(world: World) -> None:
    world.produce(2)
    (one,) = world.members("one")
    assert one.acquire() == [(0, 1, 1)]
    world.produce(2)
    reported = one.fetch([(0, 1, [ACCEPT])])
    assert (reported.acknowledge_error_code, acquired(reported)) == (0, [(2, 3, 1)])


def test_an_acquisition_lock_expires_unless_it_is_renewed(world: World) -> None:
    world.produce(2)
    one, other = world.members("one", "other")
    assert one.acquire() == [(0, 1, 1)]
    world.pass_time(LOCK_MS - 1, one, other)
    assert one.ack_code((0, 0, [RENEW]), is_renew_ack=True) == ErrorCode.NONE
    world.pass_time(1, one, other)
    assert other.acquire() == [(1, 1, 2)]
    world.pass_time(LOCK_MS - 1, one, other)
    assert one.acquire() == [(0, 0, 2)]


def test_a_waiting_share_fetch_completes_when_records_are_released(world: World) -> None:
    world.produce(1)
    one, other = world.members("one", "other")
    assert one.acquire() == [(0, 0, 1)]
    assert other.client.send(other.request(max_wait_ms=5_000), 2) == []
    replies = one.client.send(
        ShareAcknowledgeRequest(
            group_id=GROUP,
            member_id="one",
            share_session_epoch=1,
            topics=[
                ShareAcknowledgeRequest.AcknowledgeTopic(
                    topic_id=world.topic_id,
                    partitions=[
                        ShareAcknowledgeRequest.AcknowledgePartition(
                            partition_index=0,
                            acknowledgement_batches=[
                                ShareAcknowledgeRequest.AcknowledgementBatch(
                                    first_offset=0, last_offset=0, acknowledge_types=[RELEASE]
                                )
                            ],
                        )
                    ],
                )
            ],
        ),
        2,
    )
    reported = {reply.connection_id: reply for reply in replies}
    assert sorted(reported) == [1, 2]
    answer = Client.decode(reported[2], ShareFetchRequest.SCHEMA.api_key, 2)
    assert acquired(answer.responses[0].partitions[0]) == [(0, 0, 2)]


def test_a_waiting_share_fetch_completes_when_records_are_produced(world: World) -> None:
    (one,) = world.members("one")
    assert one.client.send(one.request(max_wait_ms=5_000), 2) == []
    builder = BatchBuilder(base_offset=0)
    builder.append(1, None, b"v")
    data = ProduceRequest.PartitionProduceData(index=0, records=bytes(builder.build()))
    request = ProduceRequest(
        acks=1, timeout_ms=1_000, topic_data=[ProduceRequest.TopicProduceData(name=TOPIC, partition_data=[data])]
    )
    reported = {reply.connection_id: reply for reply in world.admin.send(request, 9)}
    answer = Client.decode(reported[1], ShareFetchRequest.SCHEMA.api_key, 2)
    assert acquired(answer.responses[0].partitions[0]) == [(0, 0, 1)]


def test_acquired_records_are_released_when_the_connection_or_session_ends(world: World) -> None:
    world.produce(2)
    one, other, third = world.members("one", "other", "third")
    third.acquire(max_records=0)
    assert one.acquire() == [(0, 1, 1)]
    world.broker.connection_closed(1, world.admin.now_ms)
    assert other.acquire() == [(0, 1, 2)]
    assert other.acknowledge(share_session_epoch=-1).error_code == 0
    assert third.acquire() == [(0, 1, 3)]


def test_wrong_share_session_epochs_are_refused(world: World) -> None:
    world.produce(1)
    (one,) = world.members("one")
    not_found, invalid = ErrorCode.SHARE_SESSION_NOT_FOUND, ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert one.ask(share_session_epoch=1).error_code == not_found
    assert one.ask(share_session_epoch=-1).error_code == not_found
    assert one.acknowledge(share_session_epoch=3).error_code == not_found
    assert one.acknowledge(share_session_epoch=0).error_code == invalid
    assert one.ask([(0, 0, [ACCEPT])], share_session_epoch=0).error_code == ErrorCode.INVALID_REQUEST
    assert one.ask().error_code == 0
    assert one.ask(share_session_epoch=2).error_code == invalid
    assert one.acknowledge((0, 0, [ACCEPT]), share_session_epoch=7).error_code == invalid
    assert one.ask().error_code == 0


def test_sessions_above_the_limit_are_refused_after_max_wait_ms() -> None:
    world = World(group_share_max_share_sessions="1", group_share_max_size="1")
    one, other = world.members("one", "other")
    assert one.ask().error_code == 0
    assert other.ask().error_code == ErrorCode.SHARE_SESSION_LIMIT_REACHED
    assert other.client.send(other.request(max_wait_ms=300), 2) == []
    world.pass_time(300)
    (reply,) = world.broker.take_replies()
    assert Client.decode(reply, 78, 2).error_code == ErrorCode.SHARE_SESSION_LIMIT_REACHED


def test_only_the_owner_of_acquired_records_can_acknowledge_them(world: World) -> None:
    world.produce(2, 2)
    one, other = world.members("one", "other")
    other.acquire(max_records=0)
    assert one.acquire() == [(0, 3, 1)]
    assert other.ack_code((0, 3, [ACCEPT])) == ErrorCode.INVALID_RECORD_STATE
    assert one.ack_code((0, 4, [ACCEPT])) == ErrorCode.INVALID_REQUEST
    assert one.ack_code((3, 2, [ACCEPT])) == ErrorCode.INVALID_REQUEST
    assert one.ack_code((0, 3, [ACCEPT, REJECT])) == ErrorCode.INVALID_REQUEST
    assert one.ack_code((0, 3, [RENEW])) == ErrorCode.INVALID_REQUEST  # the request does not say that it renews
    assert one.ack_code((0, 1, [ACCEPT]), (2, 3, [RELEASE])) == ErrorCode.NONE
    assert one.ack_code((2, 3, [ACCEPT])) == ErrorCode.INVALID_RECORD_STATE
    assert one.acquire() == [(2, 3, 2)]


def test_a_partly_invalid_acknowledgement_changes_nothing(world: World) -> None:
    world.produce(4)
    one, other = world.members("one", "other")
    assert one.acquire() == [(0, 3, 1)]
    assert one.ack_code((0, 1, [RELEASE]), (2, 9, [ACCEPT])) == ErrorCode.INVALID_REQUEST
    assert other.acquire() == []
    assert one.ack_code((0, 3, [ACCEPT])) == ErrorCode.NONE


def test_a_record_that_is_released_too_often_is_isolated_and_archived(world: World) -> None:
    world.produce(8)
    (one,) = world.members("one")
    deliveries = [one.acquire()]
    while deliveries[-1]:
        acks = [(first, last, [RELEASE if first <= 3 <= last else ACCEPT]) for first, last, _ in deliveries[-1]]
        deliveries.append(one.acquire(acks))
    assert deliveries[:3] == [[(0, 7, 1)], [(0, 7, 2)], [(0, 7, 3)]]
    assert deliveries[3] == [(0, 3, 4)]  # only half of the records, because they were delivered often
    counts = [one for delivery in deliveries for one in delivery if one[0] <= 3 <= one[1]]
    assert [count for _, _, count in counts] == [1, 2, 3, 4, 5]
    assert counts[-1][:2] == (3, 3)


def test_record_limit_mode_acquires_parts_of_batches(world: World) -> None:
    world.produce(10)
    one, other = world.members("one", "other")
    assert one.acquire(max_records=4, share_acquire_mode=1) == [(0, 3, 1)]
    assert other.acquire(max_records=4, share_acquire_mode=1) == [(4, 7, 1)]
    assert one.acquire(max_records=4, share_acquire_mode=1) == [(8, 9, 1)]


def test_records_in_flight_are_limited() -> None:
    world = World(group_share_partition_max_record_locks="100")
    world.produce(*[30] * 5)
    one, other = world.members("one", "other")
    assert one.acquire() == [(0, 119, 1)]
    assert other.acquire() == []
    assert one.ack_code((0, 59, [ACCEPT])) == ErrorCode.NONE
    assert other.acquire() == [(120, 149, 1)]


def test_deleted_records_are_skipped(world: World) -> None:
    world.produce(5, 5)
    one, other = world.members("one", "other")
    assert one.acquire(max_records=5) == [(0, 4, 1)]
    assert one.ack_code((0, 4, [ACCEPT])) == ErrorCode.NONE
    partition = DeleteRecordsRequest.DeleteRecordsPartition(partition_index=0, offset=7)
    topic = DeleteRecordsRequest.DeleteRecordsTopic(name=TOPIC, partitions=[partition])
    assert (
        world.admin.ask(DeleteRecordsRequest(topics=[topic], timeout_ms=100), 2).topics[0].partitions[0].error_code == 0
    )
    assert other.acquire() == []
    assert other.acquire() == [(7, 9, 1)]


def test_a_share_group_resumes_after_a_restart() -> None:
    world = World()
    world.produce(4, 4)
    (one,) = world.members("one")
    assert one.acquire() == [(0, 7, 1)]
    assert one.ack_code((0, 1, [ACCEPT]), (3, 3, [REJECT]), (5, 5, [RELEASE])) == ErrorCode.NONE
    world.broker.close(world.admin.now_ms)
    again = World(world.files)
    (one,) = again.members("one")
    assert one.client.send(one.request(max_wait_ms=5_000), 2) == []  # the persisted state is still being read
    again.pass_time(20)
    again.pass_time(20)
    (reply,) = again.broker.take_replies()
    reported = Client.decode(reply, ShareFetchRequest.SCHEMA.api_key, 2).responses[0].partitions[0]
    assert acquired(reported) == [(2, 2, 1), (4, 4, 1), (5, 5, 2), (6, 7, 1)]


def test_share_auto_offset_reset_sets_the_start_offset() -> None:
    for reset, expected in (("earliest", [(0, 2, 1)]), ("latest", []), ("by_duration:PT1H", [(0, 2, 1)])):
        world = World()
        world.begin(-1)
        world.produce(3)
        world.configure(share_auto_offset_reset=reset)
        (one,) = world.members("one")
        assert one.acquire() == expected, reset


def test_renewal_and_the_delivery_limit_follow_the_groups_configs(world: World) -> None:
    world.configure(share_renew_acknowledge_enable="false", share_delivery_count_limit="2")
    world.produce(1)
    (one,) = world.members("one")
    assert one.acquire() == [(0, 0, 1)]
    assert one.ack_code((0, 0, [RENEW]), is_renew_ack=True) == ErrorCode.INVALID_RECORD_STATE
    assert one.acquire([(0, 0, [RELEASE])]) == [(0, 0, 2)]
    assert one.acquire([(0, 0, [RELEASE])]) == []


def test_a_new_state_epoch_fences_members_with_the_old_one(world: World) -> None:
    world.produce(2, 2)
    (one,) = world.members("one")
    assert one.acquire(max_records=2) == [(0, 1, 1)]
    answers: list[Any] = []
    world.broker.services.share_coordinator.initialize(
        SharePartitionKey(GROUP, world.topic_id, 0), 1, 2, lambda *_: answers.append(_), lambda *_: None, 0
    )
    assert len(answers) == 1
    reported = one.acknowledge((0, 1, [ACCEPT])).responses[0].partitions[0]
    assert reported.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert reported.current_leader.leader_id == 1
    assert one.acquire() == [(2, 3, 1)]


def test_records_acknowledged_at_another_leader_are_not_delivered_again(world: World) -> None:
    """No member has fetched here meanwhile, so only the leader epoch shows that another broker was the leader."""
    world.produce(4)
    one, other = world.members("one", "other")
    assert one.acquire() == [(0, 3, 1)]
    place = TopicPartition(TOPIC, 0)
    replica, state = (
        world.broker.services.partitions.find(place),
        world.broker.services.controller.image.partition(place),
    )
    assert state is not None
    epoch = state.leader_epoch
    replica.make_follower(replace(state, leader=2, leader_epoch=epoch + 1, partition_epoch=1))
    answers: list[Any] = []
    key = SharePartitionKey(GROUP, world.topic_id, 0)
    world.broker.services.share_coordinator.read(
        key, epoch + 1, lambda *_: None, lambda e, _: answers.append(e), world.admin.now_ms
    )
    write = ShareWrite(0, epoch + 1, 0, 3, (StateBatch(0, 2, 2, 1),))
    world.broker.services.share_coordinator.write(
        key, write, lambda code, _: answers.append(code), lambda e, _: answers.append(e), world.admin.now_ms
    )
    assert answers == [ErrorCode.NONE]
    replica.make_leader(replace(state, leader_epoch=epoch + 2, partition_epoch=2), world.admin.now_ms)
    assert other.acquire() == [(3, 3, 1)]
    assert one.ack_code((0, 3, [ACCEPT])) == ErrorCode.INVALID_RECORD_STATE


def test_a_share_fetch_of_an_unknown_group_is_refused(world: World) -> None:
    (one,) = world.members("one")
    answer = one.ask(group_id="strangers")
    assert answer.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_share_session_reports_unknown_topics_and_partitions(world: World) -> None:
    (one,) = world.members("one")
    partitions = [ShareFetchRequest.FetchPartition(partition_index=5)]
    topics = [
        ShareFetchRequest.FetchTopic(topic_id=bytes(15) + b"\x09", partitions=partitions),
        ShareFetchRequest.FetchTopic(topic_id=world.topic_id, partitions=partitions),
    ]
    answer = one.ask(topics=topics)
    reported = {topic.topic_id: topic.partitions[0].error_code for topic in answer.responses}
    assert reported == {
        bytes(15) + b"\x09": ErrorCode.UNKNOWN_TOPIC_ID,
        world.topic_id: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_share_groups_have_metrics(world: World) -> None:
    world.produce(4)
    (one,) = world.members("one")
    assert one.acquire() == [(0, 3, 1)]
    assert one.ack_code((0, 0, [ACCEPT]), (1, 2, [REJECT])) == ErrorCode.NONE
    world.pass_time(LOCK_MS, one)
    reported = {
        (family.name, *sample.labels.values()): sample.value
        for family in world.broker.metric_families(world.admin.now_ms)
        for sample in family.samples
        if "share" in family.name
    }
    acknowledged = "kafka_server_sharegroupmetrics_recordacknowledgements"
    assert (reported[acknowledged, "accept"], reported[acknowledged, "reject"]) == (1, 2)
    assert reported["kafka_server_sharesessioncache_sharesessionscount",] == 1
    assert reported["tailrace_share_records_acquired",] == 4
    assert reported["tailrace_share_lock_timeouts",] == 1


def test_a_state_that_cannot_be_read_is_logged_once_and_names_the_topic_id(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.produce(1)
    (member,) = world.members("one")
    refusal = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "no coordinator")

    class Unreadable:
        def read(self, key: Any, leader_epoch: int, answer: Any, refuse: Any, now_ms: int) -> None:
            refuse(refusal, now_ms)

    world.broker.services.shares.partitions._persister = Unreadable()  # type: ignore[assignment]
    for _ in range(50):
        member.client.now_ms += 150
        assert member.fetch().error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    (line,) = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert line.__dict__["fields"] == {
        "share_partition": f"{GROUP}:{TopicId(UUID(bytes=member.topic_id))}:0",
        "error": "no coordinator",
    }
