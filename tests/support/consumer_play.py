"""ConsumerPlay: random members of a consumer group at both twins. They join, hand over partitions, commit, leave and
misbehave.

The group uses the range assignor. Its order is defined; that of the uniform assignor is that of a Java hash map.
"""

from __future__ import annotations

from random import Random
from typing import Any

from tailrace.protocol.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    DeleteGroupsRequest,
    ListGroupsRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
)
from tests.support.group_play import TOPICS
from tests.support.group_twins import GroupTwins

REBALANCE_MS = 600_000


class Member:
    def __init__(self, name: str, instance: str | None) -> None:
        self.name = name
        self.lives = 0
        self.instance = instance
        self.epoch = 0
        self.owned: tuple[dict[bytes, list[int]], dict[bytes, list[int]]] = ({}, {})  # at Kafka, at ours
        self.topics: list[str] = []

    @property
    def member_id(self) -> str:
        return f"{self.name}-{self.lives}"


class ConsumerPlay:
    def __init__(self, twins: GroupTwins, seed: int, topic_ids: tuple[dict[str, bytes], dict[str, bytes]]) -> None:
        self.twins = twins
        self.random = Random(seed)
        self.group = f"consumers-{seed}"
        self.topic_ids = topic_ids
        self.members = [Member(f"c{seed}-{number}", f"i{number}" if number > 2 else None) for number in range(5)]

    def run(self, steps: int) -> None:
        actions = [
            (self.join, 5), (self.heartbeat, 30), (self.partial, 6), (self.leave, 2), (self.subscribe, 2),
            (self.misbehave, 4), (self.commit, 5), (self.fetch, 3), (self.describe, 3), (self.admin, 1),
        ]  # fmt: skip
        for _ in range(steps):
            action = self.random.choices([one for one, _ in actions], [weight for _, weight in actions])[0]
            action(self.random.choice(self.members))

    def step(self, name: str, make: Any, version: int) -> dict[str, Any]:
        answer: dict[str, Any] = self.twins.step(name, make(0), version, make(1))[name]
        return answer

    def _beat(self, member: Member, *, full: bool, **changes: Any) -> dict[str, Any]:
        def make(side: int) -> ConsumerGroupHeartbeatRequest:
            request = ConsumerGroupHeartbeatRequest(
                group_id=self.group, member_id=member.member_id, member_epoch=member.epoch, instance_id=member.instance
            )
            if full:
                request.rebalance_timeout_ms = REBALANCE_MS
                request.subscribed_topic_names = list(member.topics)
                request.server_assignor = "range"
                request.topic_partitions = [
                    ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=topic, partitions=partitions)
                    for topic, partitions in member.owned[side].items()
                ]
            for name, value in changes.items():
                setattr(request, name, value)
            return request

        answer = self.step(member.name, make, 1)
        if not changes:
            self._learn(member, answer)
        return answer

    def _learn(self, member: Member, answer: dict[str, Any]) -> None:
        code = answer["errorCode"]
        if code == 0:
            member.epoch = answer["memberEpoch"]
            if answer["assignment"] is not None:
                member.owned = ({}, {})
                for topic in answer["assignment"]["topicPartitions"]:
                    name = topic["topicId"].removeprefix("(id of ").removesuffix(")")
                    for owned, ids in zip(member.owned, self.topic_ids, strict=True):
                        owned[ids[name]] = topic["partitions"]
        elif code in (25, 110, 69, 82):  # unknown member, fenced epoch, group gone, instance fenced
            member.epoch = 0
            member.owned = ({}, {})

    # Members

    def join(self, member: Member) -> None:
        if member.epoch == 0:
            if self.random.random() < 0.5:
                member.lives += 1
            # Never without topics: Kafka counts a member without topics as a subscriber of all other members' topics.
            member.topics = self.random.choice([["orders"], ["orders", "payments"], ["payments"]])
        self._beat(member, full=True)

    def heartbeat(self, member: Member) -> None:
        if member.epoch > 0:
            self._beat(member, full=True)

    def partial(self, member: Member) -> None:
        if member.epoch > 0:
            self._beat(member, full=False)

    def subscribe(self, member: Member) -> None:
        if member.epoch > 0:
            member.topics = self.random.choice([["orders"], ["orders", "payments"], ["payments", "missing"]])
            self._beat(member, full=True)

    def leave(self, member: Member) -> None:
        epoch = -2 if member.instance is not None and self.random.random() < 0.7 else -1
        self._beat(member, full=False, member_epoch=epoch)
        member.epoch = 0
        member.owned = ({}, {})

    def misbehave(self, member: Member) -> None:
        member.topics = member.topics or ["orders"]
        kinds: list[dict[str, Any]] = [
            {"member_epoch": member.epoch + 1},
            {"member_epoch": max(member.epoch - 1, 1)},
            {"member_epoch": -3},
            {"member_id": ""},
            {"member_id": "nobody", "member_epoch": 5},
            {"group_id": ""},
            {"group_id": "no-such-group", "member_epoch": 3},
            {"server_assignor": "best"},
            {"rebalance_timeout_ms": -1, "member_epoch": 0},
            {"topic_partitions": None, "member_epoch": 0},
            {"subscribed_topic_names": None, "member_epoch": 0},
            {"instance_id": "nobody's", "member_epoch": 4},
            {"instance_id": "", "member_epoch": 4},
            {"rack_id": " "},
            {"subscribed_topic_regex": "a(", "member_epoch": 0, "member_id": "with-pattern"},
            {"member_epoch": -2, "instance_id": None},
        ]
        self._beat(member, full=True, **self.random.choice(kinds))

    # Offsets

    def commit(self, member: Member) -> None:
        epoch = self.random.choice([member.epoch, member.epoch, member.epoch - 1, -1, 99])
        version = self.random.choice([8, 9, 10])
        topic = self.random.choice(list(TOPICS))
        partition = self.random.randrange(TOPICS[topic])
        offset = self.random.randrange(1_000)

        def make(side: int) -> OffsetCommitRequest:
            named = OffsetCommitRequest.OffsetCommitRequestTopic(
                partitions=[
                    OffsetCommitRequest.OffsetCommitRequestPartition(
                        partition_index=partition, committed_offset=offset, committed_metadata=""
                    )
                ]
            )
            if version >= 10:
                named.topic_id = self.topic_ids[side][topic]
            else:
                named.name = topic
            return OffsetCommitRequest(
                group_id=self.group,
                member_id=member.member_id,
                generation_id_or_member_epoch=epoch,
                group_instance_id=member.instance,
                topics=[named],
            )

        self.step(member.name, make, version)

    def fetch(self, member: Member) -> None:
        epoch = self.random.choice([member.epoch, member.epoch, -1, 99])
        known = epoch != -1
        group = OffsetFetchRequest.OffsetFetchRequestGroup(
            group_id=self.group,
            member_id=member.member_id if known else None,
            member_epoch=epoch,
            topics=[
                OffsetFetchRequest.OffsetFetchRequestTopics(name=name, partition_indexes=list(range(count)))
                for name, count in TOPICS.items()
            ],
        )
        self.step(member.name, lambda _: OffsetFetchRequest(groups=[group]), 9)

    # Describe and list requests

    def describe(self, member: Member) -> None:
        asked = [self.group, "no-such-group"]
        self.step(member.name, lambda _: ConsumerGroupDescribeRequest(group_ids=asked), self.random.choice([0, 1]))

    def admin(self, member: Member) -> None:
        if self.random.random() < 0.5:
            self.step(member.name, lambda _: ListGroupsRequest(), 5)
            return
        self.step(member.name, lambda _: DeleteGroupsRequest(groups_names=[self.group]), 2)
