"""OffsetRequests: OffsetCommit, OffsetFetch, TxnOffsetCommit and OffsetDelete, drawn at random.

Groups are of four kinds: without members, of the classic protocol, of the consumer protocol, and unknown.
"""

from __future__ import annotations

from random import Random
from typing import Any, Final

from tailrace.protocol import messages as m
from tests.support.random_requests.data_requests import DataRequests, Drawn
from tests.support.random_requests.random_twins import RandomTwins, Side

CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"
GROUPS: Final = ("free", "free", "other", CLASSIC, CONSUMER, "")
_MEMBER: Final = "M" * 22  # of the consumer group: a client chooses its own id


class OffsetRequests:
    def __init__(self, dice: Random, data: DataRequests, metadata_limit: int) -> None:
        self._dice = dice
        self._data = data
        self._limit = metadata_limit

    def join(self, twins: RandomTwins, topic: str) -> None:
        """Give the two groups with members one member each."""
        protocol = m.JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"")
        for side in twins.sides:
            request = m.JoinGroupRequest(
                group_id=CLASSIC, session_timeout_ms=1_800_000, rebalance_timeout_ms=60_000,
                protocol_type="consumer", protocols=[protocol],
            )  # fmt: skip
            request.member_id = side.ask(request, 7).member_id
            joined = side.ask(request, 7)
            assert (joined.error_code, joined.generation_id) == (0, 1)
            side.members[CLASSIC] = joined.member_id
            side.answers.members[joined.member_id] = "(classic member)"
            synced = side.ask(m.SyncGroupRequest(group_id=CLASSIC, generation_id=1, member_id=joined.member_id), 3)
            assert synced.error_code == 0
            beat = m.ConsumerGroupHeartbeatRequest(
                group_id=CONSUMER, member_id=_MEMBER, member_epoch=0, rebalance_timeout_ms=60_000,
                subscribed_topic_names=[topic], topic_partitions=[],
            )  # fmt: skip
            answer = side.ask(beat, 1)
            assert answer.error_code == 0, answer.error_message
            side.members[CONSUMER] = _MEMBER

    def _member(self, group: str) -> tuple[str | None, str, int]:
        """Return whose member id to send (or None), an id to send as it is, and a generation or epoch."""
        dice = self._dice
        epochs = [-1, 0, 1, 1, 1, 2, 3, -2]
        if dice.random() < 0.15:
            return None, dice.choice(["", "somebody"]), dice.choice(epochs)
        if group in (CLASSIC, CONSUMER):
            return group, "", 1 if dice.random() < 0.7 else dice.choice(epochs)
        return None, "", -1

    def _places(self, most: int) -> dict[str, list[int]]:
        places: dict[str, list[int]] = {}
        for _ in range(self._dice.randrange(most + 1)):
            name, number = self._data.topic(with_internal=True)
            places.setdefault(name, []).append(number)
        return places

    def _metadata(self) -> str | None:
        dice = self._dice
        limit = self._limit
        return dice.choice([None, "", "m", "m" * limit, "m" * (limit + 1), "ä" * (limit // 2), "ä" * (limit // 2 + 1)])

    def _position(self) -> dict[str, Any]:
        dice = self._dice
        return {
            "committed_offset": dice.choice([0, 5, dice.randrange(10**6), 2**63 - 1, -1, -2]),
            "committed_metadata": self._metadata(),
        }

    def commit(self, versions: list[int]) -> Drawn:
        dice = self._dice
        version = dice.choice(versions)
        group = dice.choice(GROUPS)
        owner, literal, epoch = self._member(group)
        positions = {
            name: [(number, self._position(), dice.choice([-1, 0, 7])) for number in numbers]
            for name, numbers in self._places(3).items()
        }
        instance = dice.choice([None] * 12 + ["instance"]) if version >= 7 else None
        retention = dice.choice([-1, -1, -1, 600_000_000]) if 2 <= version <= 4 else -1

        def make(side: Side) -> Any:
            topics = []
            for name, given in positions.items():
                topic = m.OffsetCommitRequest.OffsetCommitRequestTopic()
                if version >= 10:
                    topic.topic_id = side.topic_id(name)
                else:
                    topic.name = name
                for number, position, leader_epoch in given:
                    one = m.OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=number, **position)
                    if version >= 6:
                        one.committed_leader_epoch = leader_epoch
                    topic.partitions.append(one)
                topics.append(topic)
            return m.OffsetCommitRequest(
                group_id=group, generation_id_or_member_epoch=epoch, topics=topics, group_instance_id=instance,
                member_id=literal if owner is None else side.members[owner], retention_time_ms=retention,
            )  # fmt: skip

        return Drawn(f"OffsetCommit {group!r} {owner or literal!r} {epoch} {positions}", make, version)

    def fetch(self, versions: list[int]) -> Drawn:
        dice = self._dice
        version = dice.choice(versions)
        count = dice.choice([1, 1, 2, 0]) if version >= 8 else 1
        groups = []
        for _ in range(count):
            group = dice.choice([*GROUPS, "unknown"])
            places = None if version >= 2 and dice.random() < 0.3 else self._places(4)
            groups.append((group, self._member(group), places))
        require_stable = version >= 7 and dice.random() < 0.5
        has_member = dice.random() < 0.5

        def make(side: Side) -> Any:
            if version < 8:
                group, _, places = groups[0]
                topics = None if places is None else [
                    m.OffsetFetchRequest.OffsetFetchRequestTopic(name=name, partition_indexes=numbers)
                    for name, numbers in places.items()
                ]  # fmt: skip
                return m.OffsetFetchRequest(group_id=group, topics=topics, require_stable=require_stable)
            return m.OffsetFetchRequest(
                groups=[self._fetched_group(side, version, has_member, *one) for one in groups],
                require_stable=require_stable,
            )

        return Drawn(f"OffsetFetch {require_stable=} {groups}", make, version)

    @staticmethod
    def _fetched_group(
        side: Side,
        version: int,
        has_member: bool,
        group: str,
        member: tuple[str | None, str, int],
        places: dict[str, list[int]] | None,
    ) -> Any:
        made = m.OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=None)
        if places is not None:
            made.topics = []
            for name, numbers in places.items():
                topic = m.OffsetFetchRequest.OffsetFetchRequestTopics(partition_indexes=numbers)
                if version >= 10:
                    topic.topic_id = side.topic_id(name)
                else:
                    topic.name = name
                made.topics.append(topic)
        if version >= 9 and has_member:
            owner, literal, epoch = member
            made.member_id = literal if owner is None else side.members[owner]
            made.member_epoch = epoch
        return made

    def commit_in_transaction(self, versions: list[int], transaction: str) -> Drawn:
        dice = self._dice
        version = dice.choice(versions)
        group = dice.choice(GROUPS)
        owner, literal, epoch = self._member(group) if version >= 3 else (None, "", -1)
        positions = {
            name: [(number, self._position()) for number in numbers] for name, numbers in self._places(3).items()
        }
        shift = dice.choice([0] * 12 + [1, -1])

        def make(side: Side) -> Any:
            producer_id, producer_epoch = side.producer(transaction)
            request = m.TxnOffsetCommitRequest(
                transactional_id=transaction, group_id=group, producer_id=producer_id,
                producer_epoch=producer_epoch + shift, generation_id=epoch,
                member_id=literal if owner is None else side.members[owner],
            )  # fmt: skip
            for name, given in positions.items():
                request.topics.append(
                    m.TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(
                        name=name,
                        partitions=[
                            m.TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(partition_index=number, **position)
                            for number, position in given
                        ],
                    )
                )
            return request

        return Drawn(f"TxnOffsetCommit {transaction} {group!r} {owner or literal!r} {epoch} {positions}", make, version)

    def delete(self, versions: list[int]) -> Drawn:
        group = self._dice.choice(GROUPS)
        request = m.OffsetDeleteRequest(
            group_id=group,
            topics=[
                m.OffsetDeleteRequest.OffsetDeleteRequestTopic(
                    name=name,
                    partitions=[
                        m.OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=number) for number in numbers
                    ],
                )
                for name, numbers in self._places(2).items()
            ],
        )
        return Drawn(f"OffsetDelete {group!r}", lambda side: request, self._dice.choice(versions))
