"""Requests whose records cannot be written: refused as Kafka refuses them, with nothing changed and appended."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pytest

from tailrace.broker.broker import Broker
from tailrace.coordinator.groups.consumer.consumer_group import ConsumerGroup
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import TopicPartition
from tailrace.protocol.errors import UnwritableMessage
from tailrace.protocol.messages import (
    ConfigRecord,
    ConsumerGroupHeartbeatRequest,
    CreateTopicsRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    ListGroupsRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
    WriteTxnMarkersRequest,
)
from tailrace.records.builder import BatchBuilder
from tailrace.records.checks.validation import Origin
from tailrace.replication.partition import ALL_ACKS
from tests.support.memory_files import MemoryFiles
from tests.support.memory_node import NOW_MS, Client, start
from tests.unit.broker.test_broker_metrics import samples

SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
}
OFFSETS, TRANSACTIONS = TopicPartition("__consumer_offsets", 0), TopicPartition("__transaction_state", 0)
WRONG_NAME = b"\x8c\xa0" + "\ufffd".encode() * 12_000  # 36,000 bytes, a length that reads as negative
UNEXPECTED = ErrorCode.UNKNOWN_SERVER_ERROR


def started(files: MemoryFiles | None = None) -> tuple[Broker, Client]:
    broker = start(files, static=SETTINGS)
    client = Client(broker)
    client.ask(
        CreateTopicsRequest(
            topics=[CreateTopicsRequest.CreatableTopic(name="t", num_partitions=1, replication_factor=1)]
        ),
        5,
    )
    for key_type in (0, 1):
        client.ask(FindCoordinatorRequest(key="g", key_type=key_type), 3)
    while broker.services.groups.runtime.is_loading or broker.services.transactions.coordinator.runtime.is_loading:
        broker.tick(NOW_MS)
    return broker, client


def commit_request(group: str, **settings: Any) -> OffsetCommitRequest:
    partition = OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=5)
    topic = OffsetCommitRequest.OffsetCommitRequestTopic(name="t", partitions=[partition])
    return OffsetCommitRequest(group_id=group, topics=[topic], **settings)


def commit(client: Client, group: str, version: int = 8, **settings: Any) -> int:
    return int(client.ask(commit_request(group, **settings), version).topics[0].partitions[0].error_code)


def committed(client: Client, group: str) -> list[int]:
    asked = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=None)
    topics = client.ask(OffsetFetchRequest(groups=[asked]), 8).groups[0].topics
    return [one.committed_offset for topic in topics for one in topic.partitions]


def listed(client: Client) -> set[str]:
    return {one.group_id for one in client.ask(ListGroupsRequest(), 4).groups}


def end_of(broker: Broker, key: TopicPartition) -> int:
    return broker.services.partitions.find(key).log.log_end_offset


def append(broker: Broker, key: TopicPartition, *records: tuple[bytes, bytes]) -> None:
    """Append what no coordinator of this version would."""
    builder = BatchBuilder()
    for record_key, value in records:
        builder.append(NOW_MS, record_key, value)
    broker.services.partitions.find(key).append_as_leader(
        bytearray(builder.build()), required_acks=ALL_ACKS, now_ms=NOW_MS, origin=Origin.COORDINATOR
    )


def join_request(**settings: Any) -> JoinGroupRequest:
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"\0\0\0\0\0\0")
    return JoinGroupRequest(
        **{
            "group_id": "g",
            "session_timeout_ms": 10_000,
            "rebalance_timeout_ms": 10_000,
            "protocol_type": "consumer",
            "protocols": [protocol],
            **settings,
        }
    )


@pytest.mark.parametrize(("client_id", "instance"), [("c" * 32_767, None), ("c", "i" * 32_767), ("c" * 32_731, None)])
def test_a_member_id_that_is_too_long_is_refused_and_its_group_is_not_created(
    client_id: str, instance: str | None
) -> None:
    broker, client = started()
    client.client_id = client_id
    assert client.ask(join_request(group_instance_id=instance), 5).error_code == UNEXPECTED
    assert (end_of(broker, OFFSETS), listed(client)) == (0, set())
    client.client_id = "c" * 32_730  # with a UUID behind it, as long as a string can be
    assert client.ask(join_request(), 5).error_code == ErrorCode.MEMBER_ID_REQUIRED


def test_a_refused_join_leaves_an_empty_consumer_group_as_it_was() -> None:
    broker, client = started()
    beat = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=1_000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    assert client.ask(beat, 0).error_code == ErrorCode.NONE
    beat.member_epoch = -1
    assert client.ask(beat, 0).error_code == ErrorCode.NONE
    client.client_id = "c" * 32_767
    assert client.ask(join_request(), 5).error_code == UNEXPECTED
    assert isinstance(broker.services.groups.runtime.shard(0).groups["g"], ConsumerGroup)


def test_a_group_whose_first_commit_is_refused_is_not_created() -> None:
    broker, client = started()
    broker.services.groups.runtime.shard(0).offsets.plan_commit = _refusing  # type: ignore[method-assign]
    assert commit(client, "g", version=7) == ErrorCode.UNKNOWN_SERVER_ERROR
    assert listed(client) == set()
    del broker.services.groups.runtime.shard(0).offsets.plan_commit  # type: ignore[method-assign]
    assert commit(client, "g", version=7) == ErrorCode.NONE
    assert listed(client) == {"g"}


def _refusing(*_: Any, **__: Any) -> Any:
    raise UnwritableMessage("a string is too long")


def test_an_offset_commit_with_a_group_id_beyond_a_strings_limit_costs_its_connection_only() -> None:
    """The kernel leaves it to the message reader, which refuses it."""
    _, client = started()
    assert commit(client, "g") == ErrorCode.NONE
    data = commit_request("g").encode(8)
    assert data[:2] == b"\2g"
    size = 40_000
    length = bytes(((size + 1) & 0x7F | 0x80, (size + 1) >> 7 & 0x7F | 0x80, (size + 1) >> 14))
    frame = struct.pack(">hhih", 8, 8, 1, -1) + b"\0" + length + b"g" * size + data[2:]
    client.broker.handle(memoryview(bytearray(frame)), client.context, NOW_MS)
    (reply,) = client.broker.take_replies()
    assert reply.close
    assert committed(client, "g") == [5]


@pytest.mark.parametrize("retention_ms", [2**63 - 1, -(2**63), -5])
def test_a_retention_time_beyond_any_clock_is_accepted_as_by_kafka(retention_ms: int) -> None:
    _, client = started()
    assert commit(client, "g", version=3, retention_time_ms=retention_ms) == ErrorCode.NONE
    assert committed(client, "g") == [5]


@pytest.mark.parametrize("topic", ["t", OFFSETS.topic])
@pytest.mark.parametrize(("producer_id", "epoch"), [(-1, -1), (-1, 0), (7, -1)])
def test_a_marker_with_an_invalid_producer_id_or_epoch_is_refused(topic: str, producer_id: int, epoch: int) -> None:
    broker, client = started()
    marker = WriteTxnMarkersRequest.WritableTxnMarker(
        producer_id=producer_id,
        producer_epoch=epoch,
        topics=[WriteTxnMarkersRequest.WritableTxnMarkerTopic(name=topic, partition_indexes=[0])],
    )
    answer = client.ask(WriteTxnMarkersRequest(markers=[marker]), 1)
    assert answer.markers[0].topics[0].partitions[0].error_code == UNEXPECTED
    assert end_of(broker, TopicPartition(topic, 0)) == 0


def test_a_metadata_record_that_cannot_be_written_is_refused_before_anything_is_written() -> None:
    broker, _ = started()
    log = broker.services.local_controller.log
    before = log.next_offset
    record = ConfigRecord(resource_type=2, resource_name="t", name="n", value="€" * 12_000)
    with pytest.raises(KafkaError) as refused:
        log.commit([record], NOW_MS)
    assert refused.value.code is UNEXPECTED
    assert log.next_offset == before


def bad_group_records() -> list[tuple[bytes, bytes]]:
    return [
        (b"\0\2" + WRONG_NAME, b"\0\3"),  # a group's name
        (b"\0\1" + WRONG_NAME + b"\0\1t\0\0\0\0", b"\0\4" + bytes(22)),  # a commit's
        (b"\0\1\0\1g\0\1t\0\0\0\0", b"\0\4\0\0"),  # a value that is cut short
        (b"\0\5\0\1s\0\1m", b"\0\0"),  # a consumer's, likewise
        (b"\0\1\0\1g\0\1t", b"\0\4"),  # a key
        (b"", b""),
        (b"\x7f\0", b""),  # a kind that a later version may have
    ]


def bad_transaction_records() -> list[tuple[bytes, bytes]]:
    state = struct.pack(">hqhib", 1, 5, 0, 60_000, 99) + b"\0" + bytes(16) + b"\0"
    return [(b"\0\0" + WRONG_NAME, b"\0\1"), (b"\0\0\0\1x", state), (b"\0\0\0\1y", b"\0\1\0"), (b"\0", b"")]


@pytest.mark.parametrize(
    ("key", "bad"), [(OFFSETS, bad_group_records), (TRANSACTIONS, bad_transaction_records)], ids=["groups", "ids"]
)
def test_a_load_skips_bad_records_and_serves_the_rest(
    key: TopicPartition, bad: Callable[[], list[tuple[bytes, bytes]]], caplog: pytest.LogCaptureFixture
) -> None:
    files = MemoryFiles()
    broker, client = started(files)
    assert commit(client, "before") == ErrorCode.NONE
    first = client.ask(InitProducerIdRequest(transactional_id="before", transaction_timeout_ms=1_000), 4)
    append(broker, key, *bad())
    for record in bad():
        append(broker, key, record)
    assert commit(client, "after") == ErrorCode.NONE
    broker.close(NOW_MS)
    caplog.clear()
    broker, client = started(files)
    assert (committed(client, "before"), committed(client, "after")) == ([5], [5])
    again = client.ask(InitProducerIdRequest(transactional_id="before", transaction_timeout_ms=1_000), 4)
    assert (again.producer_id, again.producer_epoch) == (first.producer_id, first.producer_epoch + 1)
    skipped = 2 * len(bad())
    assert samples(broker)["tailrace_coordinator_skipped_records", key.topic] == skipped
    lines = [one for one in caplog.records if "skipped while loading" in one.message]
    assert len(lines) == 1, "one line for many"
    assert vars(lines[0])["fields"]["partition"] == str(key)
    (loaded,) = [
        vars(one)["fields"]
        for one in caplog.records
        if one.message == "coordinator loaded" and vars(one)["fields"]["partition"] == str(key)
    ]
    assert loaded["skipped"] == skipped


def test_static_members_with_no_time_to_rebalance_do_not_hold_the_loop() -> None:
    """The end of a rebalance that nobody has joined is scheduled again; with a rebalance timeout of 0, for now."""
    broker, client = started()
    assert client.send(join_request(group_instance_id="i"), 5) == []
    broker.tick(NOW_MS)
    (reply,) = broker.take_replies()
    joined = client.decode(reply, 11, 5)
    hasty = join_request(group_instance_id="i", member_id=joined.member_id, rebalance_timeout_ms=0)
    for again in (joined, None):
        joined = again or client.ask(hasty, 5)
        sync = SyncGroupRequest(
            group_id="g", generation_id=joined.generation_id, member_id=joined.member_id, group_instance_id="i"
        )
        assert client.ask(sync, 3).error_code == ErrorCode.NONE
    other = Client(broker, connection_id=2)
    member_id = other.ask(join_request(rebalance_timeout_ms=0), 5).member_id
    assert other.send(join_request(rebalance_timeout_ms=0, member_id=member_id), 5) == []
    leave = LeaveGroupRequest(
        group_id="g", members=[LeaveGroupRequest.MemberIdentity(member_id=member_id, group_instance_id=None)]
    )
    third = Client(broker, connection_id=3)
    assert len(third.send(leave, 3)) == 2  # the join that waited is refused, too
    for now_ms in range(NOW_MS, NOW_MS + 20):
        broker.tick(now_ms)
    assert listed(third) == {"g"}
