"""GroupPlay: random members of two groups at both twins. They join, sync, commit, leave and misbehave."""

from __future__ import annotations

from random import Random
from typing import Any

from tailrace.protocol.messages import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    ListGroupsRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
)
from tests.support.group_twins import GroupTwins

SIDES = (0, 1)
SESSION_MS = 600_000
TOPICS = {"orders": 3, "payments": 1}
_SUBSCRIBED = b"\0\1\0\0\0\1\0\6orders\xff\xff\xff\xff\0\0\0\0"


class Player:
    """The ids and generations that an actor knows from its responses."""

    def __init__(self, name: str, group: str, instance: str | None) -> None:
        self.name = name
        self.group = group
        self.instance = instance
        self.generation = -1
        self.is_member = False
        self.is_pending = False
        self.is_leader = False
        self.waits = False


class GroupPlay:
    def __init__(self, twins: GroupTwins, seed: int) -> None:
        self.twins = twins
        self.random = Random(seed)
        self.players = [
            Player(f"p{seed}-{group}{number}", f"group-{seed}-{group}", f"i{number}" if number == 3 else None)
            for group in "ab"
            for number in range(4)
        ]
        self.by_name = {player.name: player for player in self.players}
        self.topic_ids = ({}, {})  # type: tuple[dict[str, bytes], dict[str, bytes]]

    def run(self, steps: int) -> None:
        actions = [
            (self.join, 10), (self.sync, 14), (self.heartbeat, 3), (self.leave, 2), (self.commit, 5), (self.fetch, 3),
            (self.describe, 2), (self.list, 1), (self.delete_groups, 1), (self.delete_offsets, 1),
        ]  # fmt: skip
        for _ in range(steps):
            free = [player for player in self.players if not player.waits]
            action = self.random.choices([one for one, _ in actions], [weight for _, weight in actions])[0]
            action(self.random.choice(free) if free else None)
            self.twins.check_quiet()

    # Requests to both sides

    def step(self, player: Player | None, make: Any, version: int) -> None:
        """Send a request to both sides; `make(side)` makes it with the ids of a side."""
        name = "admin" if player is None else player.name
        if player is not None:
            player.waits = True
        answers = self.twins.step(name, make(0), version, make(1))
        for reported in answers:
            if reported in self.by_name:
                self._learn(self.by_name[reported], answers[reported])

    def _learn(self, player: Player, answer: dict[str, Any]) -> None:
        player.waits = False
        if "skipAssignment" in answer or ("generationId" in answer and "leader" in answer):
            self._learn_join(player, answer)
        elif answer.get("errorCode") in (16, 25, 82):
            player.is_member = player.is_leader = player.is_pending = False

    def _learn_join(self, player: Player, answer: dict[str, Any]) -> None:
        code = answer["errorCode"]
        player.is_pending = code == 79
        player.is_member = code == 0
        if code == 0:
            player.generation = answer["generationId"]
            for other in self.players:
                if other.group == player.group:
                    other.is_leader = False if other is player else other.is_leader
            player.is_leader = answer["leader"] == answer["memberId"]

    def _member_id(self, player: Player, side: int) -> str:
        return self.twins.actor(player.name).member_ids[side]

    def _group(self, player: Player | None) -> str:
        return self.random.choice(self.players).group if player is None else player.group

    # Members

    def join(self, player: Player | None) -> None:
        if player is None:
            return
        version = self.random.choice([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9])
        kind = self.random.random()
        protocols = self.random.choice([["range"], ["range", "sticky"], ["sticky", "range"]])
        odd = {"type": "consumer", "session": SESSION_MS, "group": player.group}
        member = self.twins.actor(player.name).member_ids if player.is_member or player.is_pending else ("", "")
        if kind < 0.05:
            odd["type"] = self.random.choice(["connect", ""])
        elif kind < 0.08:
            odd["session"] = self.random.choice([1, 99_000_000])
        elif kind < 0.1:
            odd["group"] = ""
        elif kind < 0.14:
            member = ("nobody", "nobody")
        elif kind < 0.17:
            protocols = self.random.choice([[], ["other"]])
        elif kind < 0.3 and not player.is_pending:
            member = ("", "")
        if version < 5 and player.instance is not None:
            version = 5
        if not player.instance and member == ("", "") and player.is_member:
            return  # a second member of the same client is another player's job
        self.step(
            player,
            lambda side: JoinGroupRequest(
                group_id=odd["group"],
                session_timeout_ms=odd["session"],
                rebalance_timeout_ms=SESSION_MS if version >= 1 else -1,
                member_id=member[side],
                group_instance_id=None if player.is_pending else player.instance,
                protocol_type=odd["type"],
                protocols=[
                    JoinGroupRequest.JoinGroupRequestProtocol(name=name, metadata=_SUBSCRIBED) for name in protocols
                ],
                reason="because" if version >= 8 else None,
            ),
            version,
        )

    def sync(self, player: Player | None) -> None:
        if player is None or not player.is_member:
            return
        version = self.random.choice([0, 1, 2, 3, 4, 5, 5])
        if player.instance is not None and version < 3:
            version = 3
        generation = player.generation + (self.random.random() < 0.05)
        others = [one for one in self.players if one.group == player.group and one.is_member]
        handed_out = [one for one in others if self.random.random() < 0.9]
        wrong = self.random.random()
        self.step(
            player,
            lambda side: SyncGroupRequest(
                group_id=player.group,
                generation_id=generation,
                member_id=self._member_id(player, side),
                group_instance_id=player.instance,
                protocol_type=(("connect" if wrong < 0.03 else "consumer") if version >= 5 else None),
                protocol_name=((None if wrong > 0.97 else "range") if version >= 5 else None),
                assignments=[
                    SyncGroupRequest.SyncGroupRequestAssignment(
                        member_id=self._member_id(one, side), assignment=b"work of " + one.name.encode()
                    )
                    for one in handed_out
                ]
                if player.is_leader
                else [],
            ),
            version,
        )

    def heartbeat(self, player: Player | None) -> None:
        if player is None:
            return
        version = self.random.choice([0, 3, 4])
        generation = player.generation + self.random.choice([0, 0, 0, 1, -1])
        instance = player.instance if version >= 3 else None
        self.step(
            player,
            lambda side: HeartbeatRequest(
                group_id=player.group,
                generation_id=generation,
                member_id=self._member_id(player, side),
                group_instance_id=instance,
            ),
            version,
        )

    def leave(self, player: Player | None) -> None:
        if player is None:
            return
        if self.twins.is_leader_of_many(player.group, player.name):
            return  # Kafka's next leader depends on the order of its hash map
        version = self.random.choice([0, 1, 2, 3, 4, 5])
        if version < 3:
            self.step(
                player,
                lambda side: LeaveGroupRequest(group_id=player.group, member_id=self._member_id(player, side)),
                version,
            )
        else:
            by_instance = player.instance is not None and self.random.random() < 0.5
            self.step(
                player,
                lambda side: LeaveGroupRequest(
                    group_id=player.group,
                    members=[
                        LeaveGroupRequest.MemberIdentity(
                            member_id="" if by_instance else self._member_id(player, side),
                            group_instance_id=player.instance,
                        ),
                        LeaveGroupRequest.MemberIdentity(member_id="nobody", group_instance_id=None),
                    ],
                ),
                version,
            )
        player.is_member = player.is_leader = player.is_pending = False

    # Offsets

    def commit(self, player: Player | None) -> None:
        version = self.random.choice([2, 3, 4, 5, 6, 7, 8, 9, 10])
        simple = player is None or self.random.random() < 0.3
        group = self._group(player)
        generation = -1 if player is None or simple else player.generation + (self.random.random() < 0.1)
        topic = self.random.choice(["orders", "orders", "payments", "missing"])
        numbers = [(self.random.randrange(4), self.random.randrange(1000)) for _ in range(self.random.randrange(1, 4))]
        metadata = self.random.choice([None, "", "note", "x" * 4096, "x" * 4097])
        retention = self.random.choice([-1, -1, 3_600_000]) if version in (2, 3, 4) else -1
        instance = player.instance if player is not None and not simple and version >= 7 else None
        self.step(
            player,
            lambda side: OffsetCommitRequest(
                group_id=group,
                generation_id_or_member_epoch=generation,
                member_id="" if player is None or simple else self._member_id(player, side),
                group_instance_id=instance,
                retention_time_ms=retention,
                topics=[
                    OffsetCommitRequest.OffsetCommitRequestTopic(
                        name=topic if version < 10 else "",
                        topic_id=self.topic_ids[side].get(topic, b"\7" * 16) if version >= 10 else bytes(16),
                        partitions=[
                            OffsetCommitRequest.OffsetCommitRequestPartition(
                                partition_index=partition,
                                committed_offset=offset,
                                committed_leader_epoch=3 if version >= 6 else -1,
                                committed_metadata=metadata,
                            )
                            for partition, offset in dict(numbers).items()
                        ],
                    )
                ],
            ),
            version,
        )

    def fetch(self, player: Player | None) -> None:
        version = self.random.choice([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
        group = self._group(player)
        everything = version >= 2 and self.random.random() < 0.4
        topic = self.random.choice(["orders", "payments", "missing"])
        if version < 8:
            asked = (
                None
                if everything
                else [OffsetFetchRequest.OffsetFetchRequestTopic(name=topic, partition_indexes=[0, 1, 7])]
            )
            self.step(
                player,
                lambda _: OffsetFetchRequest(group_id=group, topics=asked, require_stable=version >= 7),
                version,
            )
            return
        groups = [group, f"{group}-unknown"]
        self.step(
            player,
            lambda side: OffsetFetchRequest(
                require_stable=self.random.random() < 0.0,
                groups=[
                    OffsetFetchRequest.OffsetFetchRequestGroup(
                        group_id=one,
                        topics=None
                        if everything
                        else [
                            OffsetFetchRequest.OffsetFetchRequestTopics(
                                name=topic if version < 10 else "",
                                topic_id=self.topic_ids[side].get(topic, b"\7" * 16) if version >= 10 else bytes(16),
                                partition_indexes=[0, 1, 7],
                            )
                        ],
                    )
                    for one in groups
                ],
            ),
            version,
        )

    def delete_offsets(self, player: Player | None) -> None:
        group = self._group(player)
        topics = [
            OffsetDeleteRequest.OffsetDeleteRequestTopic(
                name=name,
                partitions=[OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=one) for one in (0, 1)],
            )
            for name in self.random.choice([["orders"], ["payments"], ["orders", "missing"]])
        ]
        self.step(player, lambda _: OffsetDeleteRequest(group_id=group, topics=topics), 0)

    # Administrators

    def describe(self, player: Player | None) -> None:
        version = self.random.randrange(7)
        groups = [self._group(None), self._group(None) + "-unknown"]
        self.step(
            player,
            lambda _: DescribeGroupsRequest(groups=groups, include_authorized_operations=version >= 3),
            version,
        )

    def list(self, player: Player | None) -> None:
        version = self.random.randrange(6)
        states = self.random.choice([[], ["Stable"], ["empty", "PreparingRebalance"]]) if version >= 4 else []
        types = self.random.choice([[], ["Classic"], ["consumer"]]) if version >= 5 else []
        self.step(player, lambda _: ListGroupsRequest(states_filter=states, types_filter=types), version)

    def delete_groups(self, player: Player | None) -> None:
        group = self._group(player)
        self.step(
            player, lambda _: DeleteGroupsRequest(groups_names=[group, f"{group}-unknown"]), self.random.randrange(3)
        )
