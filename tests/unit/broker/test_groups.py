"""Groups over the wire protocol, on a broker in memory: what needs time, restarts, or odd requests."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tailrace.broker.broker import Broker
from tailrace.coordinator.groups.group_coordinator import GROUPS_AT_ONCE
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicPartition
from tailrace.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeGroupsRequest,
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    ListGroupsRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
)
from tests.support.memory_files import MemoryFiles
from tests.support.memory_node import NOW_MS, Client, start

SETTINGS = {"offsets.topic.num.partitions": "2", "group.min.session.timeout.ms": "1000"}
SESSION_MS = 10_000
DELAY_MS = 3_000
DAY_MS = 86_400_000


class GroupClient(Client):
    """A client that may have to wait for its answers."""

    def later(self, request: Any, version: int) -> None:
        assert self.send(request, version) == []

    def join(self, group: str = "g", member_id: str = "", instance: str | None = None, **settings: Any) -> Any:
        return JoinGroupRequest(
            group_id=group,
            member_id=member_id,
            group_instance_id=instance,
            session_timeout_ms=settings.get("session_ms", SESSION_MS),
            rebalance_timeout_ms=settings.get("rebalance_ms", 60_000),
            protocol_type="consumer",
            protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"\0\0\0\0\0\0")],
        )

    def sync(self, joined: Any, work: dict[str, bytes] | None = None, instance: str | None = None) -> SyncGroupRequest:
        return SyncGroupRequest(
            group_id="g",
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            group_instance_id=instance,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[
                SyncGroupRequest.SyncGroupRequestAssignment(member_id=member_id, assignment=part)
                for member_id, part in (work or {}).items()
            ],
        )


@pytest.fixture
def broker() -> Broker:
    broker = start(static=SETTINGS)
    client = Client(broker)
    topics = [CreateTopicsRequest.CreatableTopic(name="t", num_partitions=3, replication_factor=1)]
    client.ask(CreateTopicsRequest(topics=topics), 5)
    assert client.ask(FindCoordinatorRequest(key="g"), 3).error_code == ErrorCode.NONE
    return broker


def pass_time(broker: Broker, *clients: Client, ms: int) -> dict[int, Any]:
    """Let time pass; the replies that it brings, by connection."""
    now_ms = max(client.now_ms for client in clients) + ms
    for client in clients:
        client.now_ms = now_ms
    broker.tick(now_ms)
    return {reply.connection_id: reply for reply in broker.take_replies()}


def stable_group(broker: Broker, count: int = 2) -> tuple[list[GroupClient], list[Any]]:
    """Make group g stable, with an assignment for each member. Return the clients and their JoinGroup responses."""
    clients = [GroupClient(broker, connection_id=10 + number) for number in range(count)]
    for client in clients:
        client.later(client.join(), 3)
    replies = pass_time(broker, *clients, ms=DELAY_MS)
    if count > 1:
        replies = pass_time(broker, *clients, ms=DELAY_MS)
    joined = [GroupClient.decode(replies[client.context.connection_id], 11, 3) for client in clients]
    leader = next(one for one in joined if one.member_id == one.leader)
    work = {one.member_id: f"work of {number}".encode() for number, one in enumerate(joined)}
    for client, one in zip(clients, joined, strict=True):
        if one is not leader:
            client.later(client.sync(one), 5)
    at = joined.index(leader)
    replied = {reply.connection_id: reply for reply in clients[at].send(clients[at].sync(leader, work), 5)}
    for number, client in enumerate(clients):
        answer = GroupClient.decode(replied[client.context.connection_id], 14, 5)
        assert answer.assignment == f"work of {number}".encode()
    return clients, joined


def commit(
    client: Client, group: str, offset: int, *, partition: int = 0, version: int = 9, joined: Any = None, **extra: Any
) -> int:
    part = OffsetCommitRequest.OffsetCommitRequestPartition(
        partition_index=partition, committed_offset=offset, committed_metadata="note"
    )
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=-1 if joined is None else joined.generation_id,
        member_id="" if joined is None else joined.member_id,
        topics=[OffsetCommitRequest.OffsetCommitRequestTopic(name="t", partitions=[part])],
        **extra,
    )
    return int(client.ask(request, version).topics[0].partitions[0].error_code)


def committed(client: Client, group: str) -> dict[int, int]:
    answer = client.ask(OffsetFetchRequest(group_id=group, topics=None), 5)
    assert answer.error_code == ErrorCode.NONE
    return {one.partition_index: one.committed_offset for topic in answer.topics for one in topic.partitions}


def state_of(client: Client, group: str) -> str:
    (described,) = client.ask(DescribeGroupsRequest(groups=[group]), 5).groups
    return str(described.group_state)


def heartbeat(client: Client, joined: Any) -> int:
    request = HeartbeatRequest(group_id="g", generation_id=joined.generation_id, member_id=joined.member_id)
    return int(client.ask(request, 3).error_code)


# Time


def test_a_first_rebalance_is_delayed_by_new_members_up_to_the_rebalance_timeout(broker: Broker) -> None:
    clients = [GroupClient(broker, connection_id=10 + number) for number in range(30)]
    for client in clients:
        client.now_ms = clients[0].now_ms
        client.later(client.join(rebalance_ms=20_000), 3)
        replies = pass_time(broker, *clients, ms=1_000)
        if replies:
            break
    # New members delay the rebalance, up to the rebalance timeout.
    assert clients[0].now_ms - NOW_MS == 20_000
    assert len(replies) == 20


def test_a_member_without_heartbeats_is_removed_and_the_group_rebalances(broker: Broker) -> None:
    (first, second), (one, _) = stable_group(broker)
    pass_time(broker, first, second, ms=SESSION_MS - 1)
    assert heartbeat(first, one) == ErrorCode.NONE
    pass_time(broker, first, second, ms=1)
    assert heartbeat(first, one) == ErrorCode.REBALANCE_IN_PROGRESS
    (reply,) = first.send(first.join(member_id=one.member_id), 3)
    again = GroupClient.decode(reply, 11, 3)
    assert (again.generation_id, [member.member_id for member in again.members]) == (2, [one.member_id])


def test_a_commit_keeps_a_member_alive(broker: Broker) -> None:
    (client,), (one,) = stable_group(broker, 1)
    for number in range(4):
        pass_time(broker, client, ms=SESSION_MS - 1)
        assert commit(client, "g", number, joined=one) == ErrorCode.NONE
    assert heartbeat(client, one) == ErrorCode.NONE


def test_a_member_that_does_not_rejoin_within_the_rebalance_timeout_is_removed(broker: Broker) -> None:
    (first, second), (one, other) = stable_group(broker)
    third = GroupClient(broker, connection_id=30)
    third.now_ms = first.now_ms
    third.later(third.join(), 3)
    first.later(first.join(member_id=one.member_id), 3)
    for _ in range(20):  # the other one is alive, but does not join
        replies = pass_time(broker, first, second, third, ms=SESSION_MS // 2)
        if replies:
            break
        assert heartbeat(second, other) == ErrorCode.REBALANCE_IN_PROGRESS
    assert set(replies) == {10, 30}
    assert heartbeat(second, other) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_does_not_sync_in_time_is_removed(broker: Broker) -> None:
    client = GroupClient(broker, connection_id=10)
    client.later(client.join(rebalance_ms=5_000), 3)
    joined = GroupClient.decode(pass_time(broker, client, ms=DELAY_MS)[10], 11, 3)
    for _ in range(2):
        pass_time(broker, client, ms=2_000)
        assert heartbeat(client, joined) == ErrorCode.NONE
    pass_time(broker, client, ms=2_000)
    assert state_of(client, "g") == "Empty"


def test_a_member_id_that_is_not_used_expires(broker: Broker) -> None:
    client = GroupClient(broker, connection_id=10)
    reported = client.ask(client.join(), 4)
    assert reported.error_code == ErrorCode.MEMBER_ID_REQUIRED
    pass_time(broker, client, ms=SESSION_MS)
    assert client.ask(client.join(member_id=reported.member_id), 4).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_offsets_of_a_group_without_members_expire_and_the_group_with_them(broker: Broker) -> None:
    client = Client(broker)
    commit(client, "g", 5)
    for _ in range(7 * 24):
        assert committed(client, "g") == {0: 5}
        pass_time(broker, client, ms=DAY_MS // 24)
    pass_time(broker, client, ms=3_600_000)
    assert committed(client, "g") == {}
    assert client.ask(ListGroupsRequest(), 4).groups == []


def test_offsets_of_many_groups_expire_some_groups_at_a_time(broker: Broker) -> None:
    client = Client(broker)
    number = 2 * GROUPS_AT_ONCE + 50
    for one in range(number):
        commit(client, f"g{one}", 5)
    client.now_ms += 8 * DAY_MS
    left = []
    for _ in range(4):
        broker.tick(client.now_ms)
        client.now_ms += 1
        left.append(len(client.ask(ListGroupsRequest(), 4).groups))
    assert number > left[0] > left[-1] == 0


def test_offsets_of_a_stable_group_do_not_expire_while_it_reads_the_topic(broker: Broker) -> None:
    (client,), (one,) = stable_group(broker, 1)
    commit(client, "g", 5, joined=one)
    for _ in range(20):
        pass_time(broker, client, ms=SESSION_MS // 2)
        assert heartbeat(client, one) == ErrorCode.NONE
    assert committed(client, "g") == {0: 5}


def test_an_offset_expires_after_the_retention_time_of_its_commit(broker: Broker) -> None:
    client = Client(broker)
    commit(client, "g", 5, version=2, retention_time_ms=1_000)
    commit(client, "g", 6, partition=1, version=2)
    pass_time(broker, client, ms=600_000)
    assert committed(client, "g") == {1: 6}


# Static members


def test_a_static_member_that_rejoins_gets_its_assignment_without_a_rebalance(broker: Broker) -> None:
    client = GroupClient(broker, connection_id=10)
    client.later(client.join(instance="i"), 5)
    joined = GroupClient.decode(pass_time(broker, client, ms=DELAY_MS)[10], 11, 5)
    client.ask(client.sync(joined, {joined.member_id: b"work"}, "i"), 5)
    back = GroupClient(broker, connection_id=11)
    back.now_ms = client.now_ms
    again = back.ask(back.join(instance="i"), 9)
    assert again.error_code == ErrorCode.NONE
    assert (again.generation_id, again.skip_assignment) == (joined.generation_id, True)
    assert again.member_id != joined.member_id
    assert back.ask(back.sync(again, {}, "i"), 5).assignment == b"work"
    late = HeartbeatRequest(
        group_id="g", generation_id=joined.generation_id, member_id=joined.member_id, group_instance_id="i"
    )
    assert client.ask(late, 3).error_code == ErrorCode.FENCED_INSTANCE_ID


def test_a_static_member_is_removed_after_its_session_timeout(broker: Broker) -> None:
    client = GroupClient(broker, connection_id=10)
    client.later(client.join(instance="i"), 5)
    joined = GroupClient.decode(pass_time(broker, client, ms=DELAY_MS)[10], 11, 5)
    client.ask(client.sync(joined, {joined.member_id: b"work"}, "i"), 5)
    pass_time(broker, client, ms=SESSION_MS - 1)
    assert state_of(client, "g") == "Stable"
    pass_time(broker, client, ms=1)
    assert state_of(client, "g") == "Empty"


# Restarts, deletions


def test_groups_and_offsets_are_there_after_a_restart() -> None:
    files = MemoryFiles()
    broker = start(files, SETTINGS)
    client = Client(broker)
    topics = [CreateTopicsRequest.CreatableTopic(name="t", num_partitions=3, replication_factor=1)]
    client.ask(CreateTopicsRequest(topics=topics), 5)
    client.ask(FindCoordinatorRequest(key="g"), 3)
    (member,), (joined,) = stable_group(broker, 1)
    commit(member, "g", 5, joined=joined)
    commit(client, "simple", 7)
    broker.close(member.now_ms)

    broker = start(files, SETTINGS, now_ms=member.now_ms + 1_000)
    back = GroupClient(broker, connection_id=10)
    back.now_ms = member.now_ms + 1_000
    assert back.ask(OffsetFetchRequest(group_id="g", topics=None), 5).error_code in (
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NONE,
    )
    broker.tick(back.now_ms)
    assert heartbeat(back, joined) == ErrorCode.NONE
    assert committed(back, "g") == {0: 5}
    assert committed(back, "simple") == {0: 7}
    assert commit(back, "g", 6, joined=joined) == ErrorCode.NONE
    pass_time(broker, back, ms=SESSION_MS)
    assert state_of(back, "g") == "Empty"


def test_offsets_of_a_deleted_topic_are_forgotten(broker: Broker) -> None:
    client = Client(broker)
    commit(client, "g", 5)
    client.ask(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1_000), 4)
    assert committed(client, "g") == {}


def test_waiting_joins_get_not_coordinator_when_the_offsets_topic_is_deleted(broker: Broker) -> None:
    client = GroupClient(broker, connection_id=10)
    client.later(client.join(), 3)
    other = Client(broker)
    replies = other.send(DeleteTopicsRequest(topic_names=["__consumer_offsets"], timeout_ms=1_000), 4)
    reported = {reply.connection_id: reply for reply in replies}
    assert GroupClient.decode(reported[10], 11, 3).error_code == ErrorCode.NOT_COORDINATOR
    assert commit(other, "g", 5) == ErrorCode.NOT_COORDINATOR


def test_a_large_offsets_topic_is_loaded_in_pieces() -> None:
    files = MemoryFiles()
    broker = start(files, {"offsets.topic.num.partitions": "1"})
    client = Client(broker)
    topics = [CreateTopicsRequest.CreatableTopic(name="t", num_partitions=3, replication_factor=1)]
    client.ask(CreateTopicsRequest(topics=topics), 5)
    client.ask(FindCoordinatorRequest(key="g"), 3)
    note = "x" * 4_000
    for number in range(600):
        part = OffsetCommitRequest.OffsetCommitRequestPartition(
            partition_index=number % 3, committed_offset=number, committed_metadata=note
        )
        topic = OffsetCommitRequest.OffsetCommitRequestTopic(name="t", partitions=[part])
        client.ask(OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=-1, topics=[topic]), 9)
    broker.close(NOW_MS)
    broker = start(files, {"offsets.topic.num.partitions": "1"})
    client = Client(broker)
    ticks = 0
    while commit(client, "g", 999) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        assert client.ask(ListGroupsRequest(), 4).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert broker.next_deadline_ms() == 0
        broker.tick(NOW_MS)
        ticks += 1
    assert ticks >= 2
    assert committed(client, "g") == {0: 999, 1: 598, 2: 599}


# Odd requests


def test_offset_commit_of_versions_0_and_1_stores_the_offset(broker: Broker) -> None:
    client = Client(broker)
    assert commit(client, "g", 5, version=0) == ErrorCode.NONE
    assert commit(client, "g", 6, partition=1, version=1) == ErrorCode.NONE
    assert committed(client, "g") == {0: 5, 1: 6}


def test_a_client_outside_the_group_cannot_commit_while_it_has_members(broker: Broker) -> None:
    (client,), (one,) = stable_group(broker, 1)
    assert commit(client, "g", 5) == ErrorCode.UNKNOWN_MEMBER_ID
    one.generation_id += 1
    assert commit(client, "g", 5, joined=one) == ErrorCode.ILLEGAL_GENERATION


def test_a_group_is_empty_after_its_last_member_has_left(broker: Broker) -> None:
    (client,), (one,) = stable_group(broker, 1)
    assert client.ask(LeaveGroupRequest(group_id="g", member_id=one.member_id), 2).error_code == ErrorCode.NONE
    assert state_of(client, "g") == "Empty"
    assert client.ask(LeaveGroupRequest(group_id="g", member_id=one.member_id), 2).error_code == (
        ErrorCode.UNKNOWN_MEMBER_ID
    )


def test_a_commit_that_cannot_be_written_changes_nothing(broker: Broker) -> None:
    partition = broker.services.partitions.find(
        TopicPartition("__consumer_offsets", broker.services.groups.partition_of("g"))
    )
    leader = partition.leader
    assert leader is not None
    client = Client(broker)
    commit(client, "g", 5)
    isr, leader.isr.committed = leader.isr.committed, ()
    assert commit(client, "g", 6) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    leader.isr.committed = isr
    assert committed(client, "g") == {0: 5}


def test_a_consumer_group_member_without_an_id_gets_a_random_id(broker: Broker) -> None:
    joining = ConsumerGroupHeartbeatRequest(
        group_id="new", rebalance_timeout_ms=1_000, subscribed_topic_names=["t"], topic_partitions=[]
    )
    answer = Client(broker).ask(joining, 0)
    assert answer.error_code == ErrorCode.NONE
    assert re.fullmatch(r"[A-Za-z0-9_-]{22}", answer.member_id)
