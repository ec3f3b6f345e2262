"""Share groups through requests: joining, state that is initialized, offsets that are set and forgotten, deletion."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tailrace.broker.broker import Broker
from tailrace.model.errors import ErrorCode
from tailrace.model.topic_config import InvalidConfig
from tailrace.protocol.messages import (
    AlterShareGroupOffsetsRequest,
    ConsumerGroupHeartbeatRequest,
    CreateTopicsRequest,
    DeleteGroupsRequest,
    DeleteShareGroupOffsetsRequest,
    DeleteTopicsRequest,
    DescribeShareGroupOffsetsRequest,
    FindCoordinatorRequest,
    JoinGroupRequest,
    ListGroupsRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    ReadShareGroupStateRequest,
    ReadShareGroupStateSummaryRequest,
    ShareGroupDescribeRequest,
    ShareGroupHeartbeatRequest,
    WriteShareGroupStateRequest,
)
from tests.support.memory_node import NOW_MS, Client, start

SETTINGS = {"offsets.topic.num.partitions": "1", "group.share.assignment.interval.ms": "0"}


def begin(**settings: str) -> tuple[Broker, Client]:
    broker = start(static={**SETTINGS, **{name.replace("_", "."): value for name, value in settings.items()}})
    client = Client(broker)
    client.ask(FindCoordinatorRequest(key="any"), 1)
    topics = [
        CreateTopicsRequest.CreatableTopic(name=name, num_partitions=count, replication_factor=1)
        for name, count in (("orders", 3), ("payments", 1))
    ]
    client.ask(CreateTopicsRequest(topics=topics, timeout_ms=1_000), 5)
    return broker, client


def beat(client: Client, member: str, epoch: int, topics: list[str] | None = None, group: str = "g") -> Any:
    return client.ask(
        ShareGroupHeartbeatRequest(group_id=group, member_id=member, member_epoch=epoch, subscribed_topic_names=topics),
        1,
    )


def assigned(broker: Broker, answer: Any) -> dict[str, list[int]]:
    return {
        broker.services.controller.image.topics_by_id[one.topic_id].name: one.partitions
        for one in answer.assignment.topic_partitions
    }


def offsets(client: Client, group: str = "g") -> dict[str, dict[int, int]]:
    wanted = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=None)
    (reported,) = client.ask(DescribeShareGroupOffsetsRequest(groups=[wanted]), 1).groups
    assert reported.error_code == 0
    return {
        topic.topic_name: {one.partition_index: one.start_offset for one in topic.partitions}
        for topic in reported.topics
    }


def alter(client: Client, topic: str, starts: dict[int, int], group: str = "g") -> Any:
    partitions = [
        AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestPartition(partition_index=number, start_offset=start)
        for number, start in starts.items()
    ]
    named = AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic(topic_name=topic, partitions=partitions)
    return client.ask(AlterShareGroupOffsetsRequest(group_id=group, topics=[named]), 0)


def test_share_partitions_are_assigned_after_their_state_is_initialized() -> None:
    broker, client = begin()
    first = beat(client, "a", 0, ["orders"])
    assert (first.error_code, first.member_epoch) == (0, 2)
    assert assigned(broker, first) == {}
    second = beat(client, "a", first.member_epoch)
    assert assigned(broker, second) == {"orders": [0, 1, 2]}
    assert offsets(client) == {"orders": {0: -1, 1: -1, 2: -1}}
    third = beat(client, "b", 0, ["orders"])
    shares = [
        *assigned(broker, third)["orders"],
        *assigned(broker, beat(client, "a", third.member_epoch - 1))["orders"],
    ]
    assert set(shares) == {0, 1, 2}


def test_a_share_member_is_removed_after_its_session_timeout() -> None:
    broker, client = begin()
    beat(client, "a", 0, ["orders"])
    broker.tick(NOW_MS + 44_000)
    assert len(broker.services.groups.runtime.shard(0).shares.group("g").members) == 1
    broker.tick(NOW_MS + 46_000)
    assert broker.services.groups.runtime.shard(0).shares.group("g").members == {}
    assert beat(client, "a", 2).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_share_offsets_can_be_altered_and_deleted_while_the_group_is_empty() -> None:
    _, client = begin()
    answer = alter(client, "orders", {0: 5, 2: 7, 9: 1})
    assert [(one.partition_index, one.error_code) for one in answer.responses[0].partitions] == [(0, 0), (2, 0), (9, 3)]
    assert offsets(client) == {"orders": {0: 5, 2: 7}}
    joined = beat(client, "a", 0, ["orders"])
    assert alter(client, "orders", {0: 1}).error_code == ErrorCode.NON_EMPTY_GROUP
    beat(client, "a", -1)
    assert joined.error_code == 0
    named = [
        DeleteShareGroupOffsetsRequest.DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in ("orders", "x")
    ]
    reported = client.ask(DeleteShareGroupOffsetsRequest(group_id="g", topics=named), 0)
    assert {one.topic_name: one.error_code for one in reported.responses} == {"orders": 0, "x": 3}
    assert offsets(client) == {}


def test_a_deleted_group_leaves_no_state() -> None:
    broker, client = begin()
    beat(client, "a", 0, ["orders"])
    assert client.ask(DeleteGroupsRequest(groups_names=["g"]), 2).results[0].error_code == ErrorCode.NON_EMPTY_GROUP
    beat(client, "a", -1)
    assert [group.group_type for group in client.ask(ListGroupsRequest(types_filter=["share"]), 5).groups] == ["share"]
    assert client.ask(DeleteGroupsRequest(groups_names=["g"]), 2).results[0].error_code == 0
    assert client.ask(ListGroupsRequest(), 5).groups == []
    assert all(shard.states == {} for shard in broker.services.share_coordinator.runtime.active())


def test_share_state_of_a_deleted_topic_is_deleted() -> None:
    broker, client = begin()
    beat(client, "a", 0, ["orders", "payments"])
    client.ask(DeleteTopicsRequest(topic_names=["orders"], timeout_ms=1_000), 5)
    assert offsets(client) == {"payments": {0: -1}}
    kept = [key for shard in broker.services.share_coordinator.runtime.active() for key in shard.states]
    assert [key.topic_id for key in kept] == [broker.services.controller.image.topics["payments"].id]


def test_a_share_group_refuses_requests_of_other_group_types() -> None:
    _, client = begin()
    beat(client, "a", 0, ["orders"])
    joining = ConsumerGroupHeartbeatRequest(
        group_id="g", member_id="m", rebalance_timeout_ms=1, subscribed_topic_names=["orders"], topic_partitions=[]
    )
    assert client.ask(joining, 1).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"")
    classic = JoinGroupRequest(group_id="g", session_timeout_ms=10_000, protocol_type="consumer", protocols=[protocol])
    assert client.ask(classic, 3).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert client.ask(OffsetDeleteRequest(group_id="g"), 0).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    topic = OffsetFetchRequest.OffsetFetchRequestTopic(name="orders", partition_indexes=[0])
    fetched = client.ask(OffsetFetchRequest(group_id="g", topics=[topic]), 7)
    assert (fetched.error_code, fetched.topics[0].partitions[0].committed_offset) == (0, -1)
    (reported,) = client.ask(ShareGroupDescribeRequest(group_ids=["other"]), 1).groups
    assert reported.error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_the_share_coordinator_returns_written_state_and_fences_older_leaders() -> None:
    broker, client = begin()
    beat(client, "a", 0, ["payments"])
    topic_id = broker.services.controller.image.topics["payments"].id
    batch = WriteShareGroupStateRequest.StateBatch(first_offset=3, last_offset=5, delivery_state=2, delivery_count=1)
    written = WriteShareGroupStateRequest.PartitionData(
        partition=0, state_epoch=2, leader_epoch=0, start_offset=3, delivery_complete_count=3, state_batches=[batch]
    )
    topic = WriteShareGroupStateRequest.WriteStateData(topic_id=topic_id, partitions=[written])
    reported = client.ask(WriteShareGroupStateRequest(group_id="g", topics=[topic]), 1)
    assert reported.results[0].partitions[0].error_code == 0
    read = ReadShareGroupStateRequest.ReadStateData(
        topic_id=topic_id, partitions=[ReadShareGroupStateRequest.PartitionData(partition=0, leader_epoch=4)]
    )
    (state,) = client.ask(ReadShareGroupStateRequest(group_id="g", topics=[read]), 0).results[0].partitions
    assert (state.start_offset, state.state_batches[0].last_offset) == (3, 5)
    late = client.ask(WriteShareGroupStateRequest(group_id="g", topics=[topic]), 1).results[0].partitions[0]
    assert late.error_code == ErrorCode.FENCED_LEADER_EPOCH
    asked = ReadShareGroupStateSummaryRequest.ReadStateSummaryData(
        topic_id=topic_id, partitions=[ReadShareGroupStateSummaryRequest.PartitionData(partition=0, leader_epoch=4)]
    )
    (summary,) = client.ask(ReadShareGroupStateSummaryRequest(group_id="g", topics=[asked]), 1).results[0].partitions
    assert (summary.start_offset, summary.leader_epoch, summary.delivery_complete_count) == (3, 4, 3)


def test_records_before_the_latest_snapshots_are_deleted() -> None:
    broker, client = begin(share_coordinator_state_topic_num_partitions="1")
    for start_offset in range(3):
        alter(client, "payments", {0: start_offset})
    broker.tick(NOW_MS + 300_000)
    log = broker.services.partitions.find(
        next(p.key for p in broker.services.partitions if p.key.topic == "__share_group_state")
    ).log
    assert log.log_start_offset == 2
    assert offsets(client) == {"payments": {0: 2}}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("group.share.assignors", "uniform"),
        ("group.share.persister.class.name", "org.example.Persister"),
        ("group.share.min.delivery.count.limit", "5"),
        ("group.share.max.share.sessions", "100"),
    ],
)
def test_an_invalid_share_group_config_is_refused(name: str, value: str) -> None:
    other = {"group.share.delivery.count.limit": "4"} if "delivery" in name else {}
    with pytest.raises(InvalidConfig, match=re.escape(name.replace("min.", ""))):
        start(static={**SETTINGS, name: value, **other})
