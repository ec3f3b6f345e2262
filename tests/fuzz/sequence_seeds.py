"""Sequences to begin with: what members, transactional producers, share consumers and fetch sessions send, in order.

A step is a request of one client, or time that passes, or a connection that closes. Values that only the broker knows
(member ids, generations, producer ids, epochs) are placeholders. The target replaces them by values of responses.
"""

from __future__ import annotations

import struct
from typing import Any, Final

from tailrace.protocol import messages as m
from tests.fuzz.request_seeds import NOW_MS, request_frame
from tests.support.api_cases.common import batch

MEMBER: Final = "$member"
NUMBER: Final = 7_777  # a generation, a member's epoch, a producer's epoch or a session's epoch
LONG_NUMBER: Final = 777_777_777  # a producer's id or a fetch session's id
TOPIC_ID: Final = b"\x77" * 16
PLAIN, GUARDED, LIMITED = range(3)  # the clients, by the listener they use

_WAIT: Final = b"\xff\xff"
_CLOSE: Final = b"\xff\xfe"
_SUBSCRIPTION: Final = b"\0\1\0\0\0\1\0\6orders\xff\xff\xff\xff\0\0\0\0"


def wait(milliseconds: int) -> bytes:
    """Return a step in which time passes."""
    return _WAIT + struct.pack(">I", milliseconds)


def close(client: int) -> bytes:
    """Return a step in which a client's connection closes."""
    return _CLOSE + bytes([client])


def waited_ms(step: bytes) -> int | None:
    """Return how much time passes in a step, or None if it is something else."""
    return struct.unpack_from(">I", step, 2)[0] if step[:2] == _WAIT and len(step) >= 6 else None


def closed_client(step: bytes) -> int | None:
    """Return whose connection closes in a step, or None if it is something else."""
    return step[2] if step[:2] == _CLOSE and len(step) > 2 else None


def _step(client: int, request: Any, version: int) -> bytes:
    return request_frame(request, version, client)


def sequences() -> list[list[bytes]]:
    """Return the sequences, each a list of steps."""
    log_in = [
        _step(GUARDED, m.SaslHandshakeRequest(mechanism="PLAIN"), 1),
        _step(GUARDED, m.SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret"), 2),
    ]
    scram = [
        _step(GUARDED, m.SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 1),
        _step(GUARDED, m.SaslAuthenticateRequest(auth_bytes=b"n,,n=alice,r=abcdefgh"), 2),
        _step(GUARDED, m.SaslAuthenticateRequest(auth_bytes=b"c=biws,r=abcdefgh,p=AAAA"), 2),
        wait(1_000),
    ]
    # After version 0 of the handshake, tokens come without a header. Bytes 4 to 8 name the client here as well.
    bare = [
        _step(GUARDED, m.SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 0),
        b"n,a=alice,n=alice,r=abcdefgh",
        b"c=biws,r=abcdefgh,p=AAAA",
        wait(1_000),
    ]
    found = [
        scram,
        bare,
        [*log_in, *_classic_member(GUARDED)],
        _classic_member(PLAIN),
        _two_members(),
        _transaction(PLAIN),
        [*log_in, *_transaction(GUARDED)],
        _consumer_member(),
        _share_consumer(),
        _fetch_session(),
        _streams_member(),
        _classic_member(LIMITED),
    ]
    return [[*steps, wait(120_000)] for steps in found]


def _join(client: int, member: str = "") -> bytes:
    join = m.JoinGroupRequest(group_id="group", session_timeout_ms=45_000, rebalance_timeout_ms=5_000, member_id=member)
    join.protocol_type = "consumer"
    join.protocols = [join.JoinGroupRequestProtocol(name="range", metadata=_SUBSCRIPTION)]
    return _step(client, join, 9)


def _sync(client: int) -> bytes:
    sync = m.SyncGroupRequest(group_id="group", generation_id=NUMBER, member_id=MEMBER)
    sync.protocol_type, sync.protocol_name = "consumer", "range"
    sync.assignments = [sync.SyncGroupRequestAssignment(member_id=MEMBER, assignment=b"\0\0\0\0\0\0\0\0\0\0")]
    return _step(client, sync, 5)


def _commit(client: int, topic: str = "orders") -> bytes:
    commit = m.OffsetCommitRequest(group_id="group", generation_id_or_member_epoch=NUMBER, member_id=MEMBER)
    partition = commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=3, committed_metadata="note")
    commit.topics = [commit.OffsetCommitRequestTopic(name=topic, partitions=[partition])]
    return _step(client, commit, 8)


def _classic_member(client: int) -> list[bytes]:
    beat = m.HeartbeatRequest(group_id="group", generation_id=NUMBER, member_id=MEMBER)
    leave = m.LeaveGroupRequest(group_id="group")
    leave.members = [leave.MemberIdentity(member_id=MEMBER, reason="done")]
    asked = m.OffsetFetchRequest()
    asked.groups = [asked.OffsetFetchRequestGroup(group_id="group", topics=None)]
    return [
        _step(client, m.FindCoordinatorRequest(key="group"), 3),
        _join(client),
        _join(client, MEMBER),
        wait(3_100),
        _sync(client),
        _step(client, beat, 4),
        _commit(client),
        wait(10_000),
        _step(client, beat, 4),
        _step(client, asked, 9),
        _step(client, m.DescribeGroupsRequest(groups=["group"]), 5),
        _step(client, leave, 5),
        _commit(client),
    ]


def _two_members() -> list[bytes]:
    steps = [_join(PLAIN), _join(LIMITED), _join(PLAIN, MEMBER), _join(LIMITED, MEMBER), wait(3_100)]
    steps += [_sync(PLAIN), _sync(LIMITED), close(LIMITED), wait(20_000), _commit(PLAIN)]
    return [*steps, _join(PLAIN, MEMBER), wait(60_000), _sync(PLAIN)]


def _transaction(client: int) -> list[bytes]:
    begin = m.InitProducerIdRequest(transactional_id="transaction", transaction_timeout_ms=60_000)
    ids: dict[str, Any] = {"producer_id": LONG_NUMBER, "producer_epoch": NUMBER}
    add = m.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="transaction",
        v3_and_below_producer_id=LONG_NUMBER,
        v3_and_below_producer_epoch=NUMBER,
    )
    add.v3_and_below_topics = [add.AddPartitionsToTxnTopic(name="orders", partitions=[0, 1])]
    offsets = m.AddOffsetsToTxnRequest(transactional_id="transaction", group_id="group", **ids)
    commit = m.TxnOffsetCommitRequest(transactional_id="transaction", group_id="group", **ids)
    partition = commit.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=5)
    commit.topics = [commit.TxnOffsetCommitRequestTopic(name="orders", partitions=[partition])]
    end = m.EndTxnRequest(transactional_id="transaction", committed=True, **ids)
    described = m.DescribeTransactionsRequest(transactional_ids=["transaction"])
    steps = [
        _step(client, m.FindCoordinatorRequest(key="transaction", key_type=1), 3),
        _step(client, begin, 4),
        _step(client, add, 3),
        _step(client, offsets, 3),
        _step(client, commit, 3),
        _step(client, described, 0),
        _step(client, end, 3),
        wait(1_000),
        _step(client, begin, 4),
        _step(client, add, 3),
    ]
    return [*steps, wait(61_000), _step(client, end, 3), _step(client, m.ListTransactionsRequest(), 1)]


def _consumer_member() -> list[bytes]:
    join = m.ConsumerGroupHeartbeatRequest(group_id="modern", member_id="m1", member_epoch=0)
    join.rebalance_timeout_ms, join.subscribed_topic_names, join.topic_partitions = 10_000, ["orders"], []
    beat = m.ConsumerGroupHeartbeatRequest(group_id="modern", member_id="m1", member_epoch=NUMBER)
    pattern = m.ConsumerGroupHeartbeatRequest(group_id="modern", member_id="m2", member_epoch=0)
    pattern.rebalance_timeout_ms, pattern.subscribed_topic_regex, pattern.topic_partitions = 10_000, "or.*", []
    leave = m.ConsumerGroupHeartbeatRequest(group_id="modern", member_id="m1", member_epoch=-1)
    steps = [_step(PLAIN, join, 1), _step(LIMITED, pattern, 1), wait(5_000), _step(PLAIN, beat, 1), wait(12_000)]
    described = m.ConsumerGroupDescribeRequest(group_ids=["modern"])
    return [*steps, _step(PLAIN, beat, 1), _step(PLAIN, described, 1), _step(PLAIN, leave, 1)]


def _streams_member() -> list[bytes]:
    topology = m.StreamsGroupHeartbeatRequest.Topology(epoch=1)
    topology.subtopologies = [m.StreamsGroupHeartbeatRequest.Subtopology(subtopology_id="0", source_topics=["orders"])]
    join = m.StreamsGroupHeartbeatRequest(group_id="streams", member_id="s1", member_epoch=0, topology=topology)
    join.rebalance_timeout_ms, join.process_id = 10_000, "process"
    join.active_tasks, join.standby_tasks, join.warmup_tasks = [], [], []
    beat = m.StreamsGroupHeartbeatRequest(group_id="streams", member_id="s1", member_epoch=NUMBER)
    described = m.StreamsGroupDescribeRequest(group_ids=["streams"])
    return [_step(PLAIN, join, 0), wait(4_000), _step(PLAIN, beat, 0), _step(PLAIN, described, 0), wait(30_000)]


def _share_consumer() -> list[bytes]:
    join = m.ShareGroupHeartbeatRequest(group_id="shared", member_id="s1", member_epoch=0)
    join.subscribed_topic_names = ["orders"]
    beat = m.ShareGroupHeartbeatRequest(group_id="shared", member_id="s1", member_epoch=NUMBER)
    fetch = m.ShareFetchRequest(group_id="shared", member_id="s1", share_session_epoch=0, max_wait_ms=100)
    fetch.min_bytes, fetch.max_bytes, fetch.max_records, fetch.batch_size = 1, 100_000, 100, 100
    fetch.topics = [fetch.FetchTopic(topic_id=TOPIC_ID, partitions=[fetch.FetchPartition(partition_index=0)])]
    acknowledge = m.ShareAcknowledgeRequest(group_id="shared", member_id="s1", share_session_epoch=NUMBER)
    done = acknowledge.AcknowledgementBatch(first_offset=0, last_offset=1, acknowledge_types=[1])
    partition = acknowledge.AcknowledgePartition(partition_index=0, acknowledgement_batches=[done])
    acknowledge.topics = [acknowledge.AcknowledgeTopic(topic_id=TOPIC_ID, partitions=[partition])]
    produce = m.ProduceRequest(acks=-1, timeout_ms=1000)
    data = produce.PartitionProduceData(index=0, records=batch(NOW_MS, b"a", b"b", b"c"))
    produce.topic_data = [produce.TopicProduceData(name="orders", partition_data=[data])]
    steps = [_step(PLAIN, join, 1), wait(4_000), _step(PLAIN, beat, 1), _step(PLAIN, fetch, 1), wait(200)]
    steps += [_step(LIMITED, produce, 9), _step(PLAIN, beat, 1), _step(PLAIN, acknowledge, 1), wait(31_000)]
    return [*steps, _step(PLAIN, acknowledge, 1), close(PLAIN), wait(50_000)]


def _fetch_session() -> list[bytes]:
    first = m.FetchRequest(max_wait_ms=100, min_bytes=1, max_bytes=100_000, session_epoch=0)
    partition = first.FetchPartition(partition=0, partition_max_bytes=10_000)
    first.topics = [first.FetchTopic(topic="orders", partitions=[partition])]
    again = m.FetchRequest(
        max_wait_ms=100, min_bytes=1, max_bytes=100_000, session_id=LONG_NUMBER, session_epoch=NUMBER
    )
    forget = m.FetchRequest(
        max_wait_ms=100, min_bytes=1, max_bytes=100_000, session_id=LONG_NUMBER, session_epoch=NUMBER
    )
    forget.forgotten_topics_data = [forget.ForgottenTopic(topic="orders", partitions=[0])]
    steps = [_step(PLAIN, first, 12), _step(PLAIN, again, 12), wait(200), _step(PLAIN, forget, 12)]
    return [*steps, _step(PLAIN, again, 12), wait(130_000), _step(PLAIN, again, 12)]
