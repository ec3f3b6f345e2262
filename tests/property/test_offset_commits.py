"""OffsetCommit against a small model: what each partition's response says, and what OffsetFetch finds afterwards.

The model knows which topics, partitions and members there are. Random requests of all versions go to a broker in
memory, also damaged ones, and the broker is started again on its log, which must hold the same offsets.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.coordinator.offsets.committed_offsets import CommittedOffsets
from tailrace.model.errors import ErrorCode
from tailrace.protocol.api_keys import ApiKey
from tailrace.protocol.headers import RequestHeader, write_request_header
from tailrace.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    CreateTopicsRequest,
    FindCoordinatorRequest,
    JoinGroupRequest,
    OffsetCommitRequest,
    SyncGroupRequest,
)
from tests.support.memory_files import MemoryFiles
from tests.support.memory_node import NOW_MS, Client, start

TOPICS = {"one": 1, "many": 150}
LIMIT = 4_096  # offset.metadata.max.bytes
STATIC = {"group.initial.rebalance.delay.ms": "0"}
_Topic = OffsetCommitRequest.OffsetCommitRequestTopic
_Partition = OffsetCommitRequest.OffsetCommitRequestPartition

metadata = st.sampled_from([None, "", "", "m", "a" * 127, "ä", "😀" * 2_048, "😀" * 2_049, "x" * 5_000])
commits = st.tuples(
    st.sampled_from(["free", "other", "classic", "consumer"]),
    st.sampled_from([-1, -1, 0, 1, 2]),
    st.sampled_from([None, None, "", "somebody"]),  # None: the group's member, if it has one
    st.lists(
        st.tuples(
            st.sampled_from(["one", "many", "absent"]),
            st.lists(
                st.tuples(st.sampled_from([0, 0, 3, 77, 149, 150, -1]), st.integers(-1, 2**62), metadata), max_size=4
            ),
        ),
        max_size=3,
    ),
    st.integers(2, 10),
)


class World:
    """A broker with a classic group and a consumer group, which have a member each, and the model of its offsets."""

    def __init__(self) -> None:
        self.files = MemoryFiles()
        self.broker = start(self.files, static=STATIC)
        self.client = client = Client(self.broker)
        names = [
            CreateTopicsRequest.CreatableTopic(name=name, num_partitions=number, replication_factor=1)
            for name, number in TOPICS.items()
        ]
        self.broker.services.controller.create_topics(CreateTopicsRequest(topics=names), NOW_MS)
        client.ask(FindCoordinatorRequest(key="free"), 1)
        self.ids = {name: topic.id for name, topic in self.broker.services.controller.image.topics.items()}
        self.members = {"classic": self._join(), "consumer": "aaaaaaaaaaaaaaaaaaaaaa"}
        beat = ConsumerGroupHeartbeatRequest(
            group_id="consumer",
            member_id=self.members["consumer"],
            member_epoch=0,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=["many"],
            topic_partitions=[],
        )
        self.epoch = client.ask(beat, 1).member_epoch
        self.known: dict[tuple[str, str, int], tuple[int, int, str]] = {}  # group, topic, partition → what it has
        self.groups = {"classic", "consumer"}

    def _join(self) -> str:
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
        self.client.send(joining, 3)
        self.broker.tick(NOW_MS)
        self.broker.take_replies()
        shard = next(one for one in self.broker.services.groups.runtime.active() if "classic" in one.groups)
        (member,) = shard.groups["classic"].members  # type: ignore[attr-defined]
        self.client.send(SyncGroupRequest(group_id="classic", generation_id=1, member_id=member), 3)
        return str(member)

    def request(self, group: str, generation: int, member: str | None, topics: Any) -> OffsetCommitRequest:
        return OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=generation,
            member_id=self.member(group, member),
            topics=[
                _Topic(
                    name=name,
                    topic_id=self.ids.get(name, b"\1" * 16),
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

    def member(self, group: str, member: str | None) -> str:
        return self.members.get(group, "") if member is None else member

    def group_error(self, group: str, generation: int, member: str, version: int) -> ErrorCode:
        """Return the coordinator's error for the whole commit, as the model has it."""
        if group == "classic":
            if generation < 0 and not member:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if member != self.members["classic"]:
                return ErrorCode.UNKNOWN_MEMBER_ID
            return ErrorCode.NONE if generation == 1 else ErrorCode.ILLEGAL_GENERATION
        if group == "consumer":
            if member != self.members["consumer"]:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if version < 9:
                return ErrorCode.UNSUPPORTED_VERSION
            return ErrorCode.NONE if generation == self.epoch else ErrorCode.STALE_MEMBER_EPOCH
        if group not in self.groups:
            if generation >= 0:
                return ErrorCode.GROUP_ID_NOT_FOUND if version >= 9 else ErrorCode.ILLEGAL_GENERATION
            return ErrorCode.NONE
        return ErrorCode.NONE if generation < 0 else ErrorCode.UNKNOWN_MEMBER_ID

    def expected(self, group: str, generation: int, member: str, topics: Any, version: int) -> list[list[int]]:
        """Return the error of each partition, and note what is committed."""
        refusal = self.group_error(group, generation, member, version)
        absent = ErrorCode.UNKNOWN_TOPIC_ID if version >= 10 else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        codes = []
        for name, partitions in topics:
            row: list[int] = []
            for index, offset, text in partitions:
                if name not in TOPICS:
                    row.append(absent)
                elif not 0 <= index < TOPICS[name]:
                    row.append(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                elif refusal is not ErrorCode.NONE:
                    row.append(refusal)
                elif len((text or "").encode("utf-16-le")) // 2 > LIMIT:
                    self.groups.add(group)
                    row.append(ErrorCode.OFFSET_METADATA_TOO_LARGE)
                else:
                    row.append(ErrorCode.NONE)
                    self.groups.add(group)
                    self.known[group, name, index] = (offset, 3 if version >= 6 else -1, text or "")
            codes.append(row)
        return codes

    def commit(self, group: str, generation: int, member: str | None, topics: Any, version: int) -> None:
        expected = self.expected(group, generation, self.member(group, member), topics, version)
        answer = self.client.ask(self.request(group, generation, member, topics), version)
        assert [[one.error_code for one in topic.partitions] for topic in answer.topics] == expected
        by_id = version >= 10
        assert [(topic.topic_id if by_id else topic.name) for topic in answer.topics] == [
            self.ids.get(name, b"\1" * 16) if by_id else name for name, _ in topics
        ]
        assert [[one.partition_index for one in topic.partitions] for topic in answer.topics] == [
            [index for index, _, _ in partitions] for _, partitions in topics
        ]


def offsets_in(shards: Any) -> dict[tuple[str, str, int], tuple[int, int, str]]:
    found = {}
    for shard in shards:
        kept: CommittedOffsets = shard.offsets
        for group in shard.groups:
            for topic, partitions in kept.fetch(group, None, require_stable=False):
                for one in partitions:
                    found[group, topic, one.partition] = (one.offset, one.leader_epoch, one.metadata)
    return found


@cache
def the_world() -> World:
    """Return one world for all examples, because building it takes longer than an example."""
    return World()


@settings(max_examples=60, deadline=None)
@given(st.lists(commits, min_size=1, max_size=6))
def test_each_partition_of_a_commit_gets_the_error_of_the_model_and_its_offset_is_kept(wanted: list[Any]) -> None:
    world = the_world()
    for commit in wanted:
        world.commit(*commit)
    assert offsets_in(world.broker.services.groups.runtime.active()) == world.known


def test_a_broker_that_starts_again_has_the_same_offsets() -> None:
    world = World()
    every = [(index, 1_000 + index, "ä" * (index % 3)) for index in range(150)]
    for group, generation, version in (
        ("free", -1, 7),
        ("free", -1, 8),
        ("classic", 1, 9),
        ("consumer", world.epoch, 10),
    ):
        world.commit(group, generation, None, [("many", every), ("one", [(0, 5, "note")])], version)
    world.broker.close(NOW_MS)
    again = start(world.files, static=STATIC)
    again.services.groups.runtime.load_all(NOW_MS)
    assert offsets_in(again.services.groups.runtime.active()) == world.known
    assert len(world.known) == 3 * 151


@settings(max_examples=100, deadline=None)
@given(commits, st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=3), st.booleans())
def test_a_damaged_commit_is_answered_or_closes_its_connection(wanted: Any, changes: Any, is_cut: bool) -> None:
    world = damaged_world()
    *parts, version = wanted
    header = write_request_header(RequestHeader(ApiKey.OFFSET_COMMIT, version, 5, "client"))
    data = bytearray(header + world.request(*parts).encode(version))
    for place, byte in changes:
        data[12 + place % (len(data) - 12)] = byte
    if is_cut:
        del data[-3:]
    world.broker.handle(memoryview(data), world.client.context, NOW_MS)
    (reply,) = world.broker.take_replies()
    assert reply.close or reply.parts
    assert world.client.ask(FindCoordinatorRequest(key="free"), 1).error_code == ErrorCode.NONE


@cache
def damaged_world() -> World:
    return World()


@pytest.mark.parametrize("version", [7, 8])
def test_a_commit_larger_than_a_batch_is_refused_whole(version: int) -> None:
    """Kafka refuses it in the same way: its records do not fit one batch."""
    world = World()
    topics = [("many", [(index, 5, "x" * 4_000) for index in range(150)])] * 2
    answer = world.client.ask(world.request("free", -1, None, topics), version)
    assert {one.error_code for topic in answer.topics for one in topic.partitions} == {ErrorCode.UNKNOWN_SERVER_ERROR}
    assert offsets_in(world.broker.services.groups.runtime.active()) == {}
    assert world.broker.services.replies.errors_of(ApiKey.OFFSET_COMMIT)[ErrorCode.UNKNOWN_SERVER_ERROR] == 300
