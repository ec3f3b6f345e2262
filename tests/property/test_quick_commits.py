"""The short way of OffsetCommit: the same answers, records and state as the general way.

Two brokers get the same requests; one of them has its short way taken away.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.broker.broker import Broker
from tailrace.broker.requests.request_context import ConnectionContext
from tailrace.protocol import request_kernels
from tailrace.protocol.api_keys import ApiKey
from tailrace.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    CreateTopicsRequest,
    FindCoordinatorRequest,
    JoinGroupRequest,
    OffsetCommitRequest,
    SyncGroupRequest,
)
from tests.property.test_quick_requests import frame, interpreted, stored, told
from tests.support.memory_node import NOW_MS, Client, start

CONTEXT = ConnectionContext(7)
TOPICS = {"one": 1, "many": 150}
_Topic = OffsetCommitRequest.OffsetCommitRequestTopic
_Partition = OffsetCommitRequest.OffsetCommitRequestPartition

metadata = st.sampled_from([None, "", "", "m", "a" * 126, "a" * 127, "ä", "x" * 5_000])
commits = st.builds(
    lambda *parts: parts,
    st.sampled_from(["free", "other", "classic", "consumer", ""]),
    st.sampled_from([-1, -1, 0, 1, 2]),
    st.sampled_from([None, "", "somebody"]),
    st.sampled_from([None, None, "instance"]),
    st.lists(
        st.tuples(
            st.sampled_from(["one", "many", "absent"]),
            st.lists(
                st.tuples(st.sampled_from([0, 0, 3, 77, 149, 150, -1]), st.integers(-1, 2**62), metadata), max_size=4
            ),
        ),
        max_size=3,
    ),
    st.integers(8, 10),
)


class Pair:
    """A broker, and one without the short way; both with a group of either kind that has a member."""

    def __init__(self) -> None:
        self.brokers = [start(static={"group.initial.rebalance.delay.ms": "0"}) for _ in range(2)]
        self.members: dict[str, str] = {}
        for broker in self.brokers:
            client = Client(broker)
            client.context = CONTEXT
            names = [
                CreateTopicsRequest.CreatableTopic(name=name, num_partitions=TOPICS[name], replication_factor=1)
                for name in ("one", "many")
            ]
            broker.services.controller.create_topics(CreateTopicsRequest(topics=names), NOW_MS)
            client.ask(FindCoordinatorRequest(key="free"), 1)
            client.ask(OffsetCommitRequest(group_id="free"), 8)  # what loads the handler, and with it the short way
            self._join(client)
        quick, slow = self.brokers
        assert ApiKey.OFFSET_COMMIT in quick.dispatcher._quick
        slow.dispatcher._quick.clear()
        self.ids = {name: topic.id for name, topic in quick.services.controller.image.topics.items()}
        assert self.ids == {name: topic.id for name, topic in slow.services.controller.image.topics.items()}

    def _join(self, client: Client) -> None:
        protocol = JoinGroupRequest.JoinGroupRequestProtocol(
            name="range", metadata=b"\0\0\0\0\0\1\0\3one\xff\xff\xff\xff"
        )
        joining = JoinGroupRequest(
            group_id="classic",
            session_timeout_ms=60_000,
            rebalance_timeout_ms=60_000,
            protocol_type="consumer",
            protocols=[protocol],
        )
        client.send(joining, 3)
        client.broker.tick(client.now_ms)
        group = next(shard for shard in client.broker.services.groups.runtime.active() if "classic" in shard.groups)
        (member,) = group.groups["classic"].members  # type: ignore[attr-defined]
        client.send(SyncGroupRequest(group_id="classic", generation_id=1, member_id=member), 3)
        beat = ConsumerGroupHeartbeatRequest(
            group_id="consumer",
            member_id="aaaaaaaaaaaaaaaaaaaaaa",
            member_epoch=0,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=["many"],
            topic_partitions=[],
        )
        assert client.ask(beat, 1).member_epoch == 2
        client.broker.take_replies()
        members = {"classic": member, "consumer": beat.member_id}
        assert self.members in ({}, members)
        self.members = members

    def ask(self, request: OffsetCommitRequest, version: int, damage: Any = lambda data: None) -> object:
        answers = []
        for broker in self.brokers:
            data = frame(request, version)
            damage(data)
            broker.handle(memoryview(data), CONTEXT, NOW_MS)
            data[:] = bytes(len(data))  # as the server does: the memory is used again
            answers.append([(told(reply.parts), reply.throttle_ms, reply.close) for reply in broker.take_replies()])
        assert answers[0] == answers[1]
        return answers[0]

    def check_state(self) -> None:
        quick, slow = (self.state(broker) for broker in self.brokers)
        assert quick == slow

    @staticmethod
    def state(broker: Broker) -> object:
        logs = {
            partition.key: (partition.log.high_watermark, stored(partition.log))
            for partition in broker.services.partitions
            if partition.key.topic == "__consumer_offsets"
        }
        offsets = [(shard.offsets._offsets, list(shard.groups)) for shard in broker.services.groups.runtime.active()]
        return logs, offsets, dict(broker.services.replies.errors[ApiKey.OFFSET_COMMIT])


@cache
def the_pair() -> Pair:
    """One for all examples: it takes longer to make than an example takes."""
    return Pair()


def build(pair: Pair, group: str, generation: int, member: str | None, instance: str | None, topics: Any) -> Any:
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=pair.members.get(group, "") if member is None else member,
        group_instance_id=instance,
        topics=[
            _Topic(
                name=name,
                topic_id=pair.ids.get(name, b"\1" * 16),
                partitions=[
                    _Partition(
                        partition_index=index,
                        committed_offset=offset,
                        committed_leader_epoch=3,
                        committed_metadata=text,
                    )
                    for index, offset, text in partitions
                ],
            )
            for name, partitions in topics
        ],
    )


@settings(max_examples=60, deadline=None)
@given(st.lists(commits, min_size=1, max_size=8))
def test_both_ways_do_the_same(wanted: list[Any]) -> None:
    pair = the_pair()
    for *parts, version in wanted:
        pair.ask(build(pair, *parts), version)
    pair.check_state()


@settings(max_examples=100, deadline=None)
@given(commits, st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=3), st.booleans())
def test_damaged_requests_are_refused_alike(wanted: Any, changes: Any, is_cut: bool) -> None:
    *parts, version = wanted

    def damage(data: bytearray) -> None:
        for place, byte in changes:
            data[12 + place % (len(data) - 12)] = byte
        if is_cut:
            del data[-3:]

    pair = the_pair()
    pair.ask(build(pair, *parts), version, damage)
    pair.check_state()


def test_what_comes_most_goes_the_short_way(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = Pair()
    monkeypatch.setattr(pair.brokers[0].dispatcher, "_handle_message", lambda *_: pytest.fail("the general way"))
    every = [(index, 1_000 + index, "") for index in range(150)]
    for group, generation, version in (("free", -1, 8), ("classic", 1, 9), ("consumer", 2, 10), ("free", -1, 10)):
        pair.ask(build(pair, group, generation, None, None, [("many", every), ("one", [(0, 5, "note")])]), version)
    pair.check_state()
    assert len(stored_of(pair, "free")["many"]) == 150


def stored_of(pair: Pair, group: str) -> Any:
    return next(
        shard.offsets._offsets[group]
        for shard in pair.brokers[0].services.groups.runtime.active()
        if group in shard.offsets._offsets
    )


@pytest.mark.skipif(not request_kernels.COMPILED, reason="the kernels were not compiled here")
@settings(max_examples=200, deadline=None)
@given(commits, st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=3))
def test_compiled_and_interpreted_do_the_same(wanted: Any, changes: Any) -> None:
    pair = the_pair()
    *parts, version = wanted
    data = frame(build(pair, *parts), version)
    for place, byte in changes:
        data[place % len(data)] = byte
    for cut in (len(data), len(data) // 2, 3):
        part = bytes(data[:cut])
        found = request_kernels.read_offset_commit(part)
        assert found == interpreted.read_offset_commit(part)
        if found is None:
            continue
        results: list[Any] = []
        for kernel in (request_kernels, interpreted):
            for _, _, position, number in found[-1]:
                out = bytearray(kernel.commits_size(number, b"key", b"end") + len(part))
                at = kernel.encode_commits(part, position, number, 149, 60, b"key", b"end", out)
                known: dict[int, Any] = {}
                kernel.take_commits(part, position, number, 5, 7, tuple, known)
                results.append((at, at >= 0 and bytes(out[:at]), known))
            results.append(bytes(kernel.commit_answer(part, found[1], found[-1], version >= 10, 16)))
        half = len(results) // 2
        assert results[:half] == results[half:]
