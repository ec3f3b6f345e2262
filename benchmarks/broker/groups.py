"""Groups: offset commits and heartbeats, and how long a rebalance of many members takes."""

from __future__ import annotations

import selectors
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

from benchmarks.broker import frames
from benchmarks.broker.comparison import Comparison, compare, take_turns
from benchmarks.broker.contenders import Contender, cpu_s, delete_topic, make_topic
from benchmarks.broker.load import run_requests, send_many
from benchmarks.broker.requests import RequestCost
from tailrace.protocol.headers import read_response_header
from tailrace.protocol.messages import (
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
)
from tailrace.protocol.registry import response_class
from tests.support.raw_client import RawClient

TITLE = "Broker: groups"
TEXT = (
    "OffsetCommit of one partition and of a hundred, and Heartbeat, on 8 connections with 10 requests in flight "
    "each. CPU is the broker's, per request. In a rebalance, the given number of members join an empty group at "
    "once, the leader assigns partitions, and all members get them. Its cost is the broker's CPU for all members "
    "together. The time beside it contains group.initial.rebalance.delay.ms, three seconds, once or twice."
)
SECONDS = 3.0
WARM_UP_REQUESTS = 50_000
MEMBERS = (1, 50, 500)
CONTENDERS = ("Tailrace", "Apache Kafka")
_COMMIT_VERSION: Final = 10
_COMMIT_ERROR_AT: Final = (31,)
_HEARTBEAT_ERROR_AT: Final = (9,)
_JOIN_VERSION: Final = 3  # the last version in which a new member joins with one request
_SESSION_MS: Final = 1_800_000
_runs = count()


@dataclass(frozen=True)
class Rebalance:
    cpu_ms: float
    wall_s: float

    @property
    def cost(self) -> float:
        return self.cpu_ms

    def __str__(self) -> str:
        return f"{self.cpu_ms:.0f} ms, {self.wall_s:.2f} s"


def run(contenders: list[Contender], rounds: int) -> list[Comparison]:
    compared = [one for one in contenders if one.name in CONTENDERS]
    rows = []
    topics = {one.name: make_topic(one, "committed", 100) for one in compared}
    for one in compared:
        _find_coordinator(one)
    for partitions in (1, 100):
        sent = {one.name: _commit(topics[one.name], partitions) for one in compared}
        rows.append(_requests(compared, rounds, f"commit, {partitions} partitions", sent, _COMMIT_ERROR_AT))
    with ExitStack() as members:
        beats = {one.name: _heartbeat(one, members) for one in compared}
        rows.append(_requests(compared, rounds, "heartbeat", beats, _HEARTBEAT_ERROR_AT))
    for number in MEMBERS:
        for one in compared:
            if not one.is_warmed_up:
                _rebalance(one, number)
        figures = take_turns(compared, rounds, lambda one, number=number: _rebalance(one, number))
        rows.append(compare(f"rebalance, {number} members", dict(figures)))
    for one in compared:
        delete_topic(one, "committed")
    return rows


def _requests(
    compared: list[Contender], rounds: int, work: str, sent: dict[str, bytes], error_at: tuple[int, ...]
) -> Comparison:
    def measure(one: Contender) -> RequestCost:
        before = cpu_s(one.pid)
        result = run_requests(
            one.port, [sent[one.name]], connections=8, in_flight=10, seconds=SECONDS, error_at=error_at
        )
        cpu = cpu_s(one.pid) - before
        return RequestCost(cpu / result.requests * 1e6, result.requests / result.wall_s)

    for one in compared:
        if not one.is_warmed_up:
            send_many(one.port, sent[one.name], WARM_UP_REQUESTS, connections=8, in_flight=10)
    return compare(work, dict(take_turns(compared, rounds, measure)))


def _find_coordinator(one: Contender) -> None:
    with RawClient(f"127.0.0.1:{one.port}") as client:
        while client.ask(FindCoordinatorRequest(key="any"), 1).error_code:
            time.sleep(0.05)
        while client.ask(OffsetFetchRequest(group_id="any", topics=None), 2).error_code:
            time.sleep(0.05)


def _commit(topic_id: bytes, partitions: int) -> bytes:
    parts = [
        OffsetCommitRequest.OffsetCommitRequestPartition(
            partition_index=index, committed_offset=4711, committed_metadata=""
        )
        for index in range(partitions)
    ]
    topic = OffsetCommitRequest.OffsetCommitRequestTopic(topic_id=topic_id, partitions=parts)
    request = OffsetCommitRequest(group_id="committing", generation_id_or_member_epoch=-1, topics=[topic])
    return frames.frame(request, _COMMIT_VERSION)


def _join(group: str) -> JoinGroupRequest:
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff")
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=_SESSION_MS,
        rebalance_timeout_ms=60_000,
        protocol_type="consumer",
        protocols=[protocol],
    )


def _heartbeat(one: Contender, members: ExitStack) -> bytes:
    client = members.enter_context(RawClient(f"127.0.0.1:{one.port}"))
    group = f"beating-{next(_runs)}"
    joined = client.ask(_join(group), _JOIN_VERSION)
    client.ask(SyncGroupRequest(group_id=group, generation_id=joined.generation_id, member_id=joined.member_id), 3)
    request = HeartbeatRequest(group_id=group, generation_id=joined.generation_id, member_id=joined.member_id)
    return frames.frame(request, 4)


def _rebalance(one: Contender, number: int) -> Rebalance:
    group = f"many-{number}-{next(_runs)}"
    sockets = [socket.create_connection(("127.0.0.1", one.port)) for _ in range(number)]
    try:
        cpu, began = cpu_s(one.pid), time.perf_counter()
        joined = _exchange(sockets, [(_join(group), _JOIN_VERSION)] * number)
        leader = next(answer for answer in joined if answer.member_id == answer.leader)
        work = [
            SyncGroupRequest.SyncGroupRequestAssignment(member_id=member.member_id, assignment=b"x" * 100)
            for member in leader.members
        ]
        assert len(work) == number, f"{len(work)} of {number} members joined in time"
        asked = [
            SyncGroupRequest(
                group_id=group,
                generation_id=answer.generation_id,
                member_id=answer.member_id,
                assignments=work if answer is leader else [],
            )
            for answer in joined
        ]
        given = _exchange(sockets, [(request, 3) for request in asked])
        assert all(answer.assignment for answer in given)
        result = Rebalance((cpu_s(one.pid) - cpu) * 1000, time.perf_counter() - began)
        leaving = [LeaveGroupRequest.MemberIdentity(member_id=answer.member_id) for answer in joined]
        _exchange(sockets[:1], [(LeaveGroupRequest(group_id=group, members=leaving), 3)])
        return result
    finally:
        for connection in sockets:
            connection.close()


def _exchange(sockets: list[socket.socket], asked: list[tuple[Any, int]]) -> list[Any]:
    """Send one request on each connection, all before the first response is awaited, and return the responses."""
    for connection, (request, version) in zip(sockets, asked, strict=True):
        connection.sendall(frames.frame(request, version))
    answers: dict[socket.socket, Any] = {}
    versions = dict(zip(sockets, asked, strict=True))
    for connection, data in _received(sockets):
        request, version = versions[connection]
        key = request.SCHEMA.api_key
        answers[connection] = response_class(key).decode(data, version, read_response_header(key, version, data)[1])
    return [answers[connection] for connection in sockets]


def _received(sockets: list[socket.socket]) -> Iterator[tuple[socket.socket, bytes]]:
    """Yield each connection's response as it arrives."""
    with selectors.DefaultSelector() as selector:
        for connection in sockets:
            selector.register(connection, selectors.EVENT_READ, bytearray())
        while selector.get_map():
            for key, _ in selector.select(60):
                connection = key.fileobj
                assert isinstance(connection, socket.socket)
                piece = connection.recv(1 << 20)
                if not piece:
                    raise ConnectionError("the broker closed a connection")
                key.data.extend(piece)
                if len(key.data) >= 4 and len(key.data) >= 4 + struct.unpack_from(">i", key.data)[0]:
                    selector.unregister(connection)
                    yield connection, bytes(key.data[4:])
