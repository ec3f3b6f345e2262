"""ConsumerGroup: a group whose partitions are assigned by the coordinator (KIP-848), as the log describes it.

Beside the state of any epoch group it has static members, resolved patterns, and the holder of each partition. Members
may use the classic protocol (`classic_protocol_members.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from tailrace.coordinator.groups.consumer.consumer_member import ConsumerMember
from tailrace.coordinator.groups.consumer.consumer_records import CONSUMER_RECORDS, group_tombstones
from tailrace.coordinator.groups.epoch.epoch_group import Assignment, EpochGroup
from tailrace.coordinator.groups.epoch.epoch_replay import EpochReplay
from tailrace.coordinator.groups.epoch.subscriptions import SharedNames, Subscription, Subscriptions
from tailrace.coordinator.groups.group import Committer, TopicCommit
from tailrace.coordinator.shard import CoordinatorRecord
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol.messages import ConsumerGroupPartitionMetadataKey, ConsumerGroupRegularExpressionKey


class ResolvedPattern(NamedTuple):
    """The topics that a regular expression matched."""

    topics: frozenset[str]
    version: int  # offset of the metadata in which they were found
    timestamp_ms: int


class ConsumerGroup(EpochGroup[ConsumerMember, Assignment]):
    type = "consumer"

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.static_members: dict[str, str] = {}  # instance id → member id
        self.patterns: dict[str, ResolvedPattern] = {}
        self.has_partition_metadata = False  # a record of Kafka before 4.1, which the next epoch removes
        self.subscriptions = Subscriptions()
        self._names = SharedNames()  # the topic names of members
        self._classic_members = 0  # how many use the classic protocol
        self._holders: dict[tuple[bytes, int], str] = {}  # the member that has a partition, or must revoke it

    # Replay

    def put_member(self, member: ConsumerMember) -> None:
        before = self.members.get(member.member_id)
        shared = self._names.share(member.topic_names)
        if shared is not member.topic_names:
            member = replace(member, topic_names=shared)
        if before is not None:
            self._release(before)
        self._count(before, member)
        self.members[member.member_id] = member
        for partition in _held(member):
            self._holders[partition] = member.member_id
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id

    def put_pattern(self, pattern: str, resolved: ResolvedPattern | None) -> None:
        """Store the topics of a pattern, or remove the pattern."""
        self.subscriptions.put_matches(pattern, None if resolved is None else resolved.topics)
        if resolved is None:
            self.patterns.pop(pattern, None)
        else:
            self.patterns[pattern] = resolved

    def remove_member(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is None:
            return
        self._release(member)
        self._count(member, None)
        if member.instance_id is not None and self.static_members.get(member.instance_id) == member_id:
            del self.static_members[member.instance_id]

    def _count(self, before: ConsumerMember | None, member: ConsumerMember | None) -> None:
        self.subscriptions.replace(_subscription(before), _subscription(member))
        self._classic_members += _is_classic(member) - _is_classic(before)

    def _release(self, member: ConsumerMember) -> None:
        self._names.release(member.topic_names)
        for partition in _held(member):
            if self._holders.get(partition) == member.member_id:
                del self._holders[partition]

    # Members

    def static_member(self, instance_id: str) -> ConsumerMember | None:
        member_id = self.static_members.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def target_of(self, member: ConsumerMember) -> Assignment:
        """Return the member's target assignment. A static replacement inherits its predecessor's."""
        if member.instance_id is None:
            return self.target.get(member.member_id, {})
        return self.target.get(self.static_members.get(member.instance_id, ""), {})

    def is_held(self, topic_id: bytes, partition: int) -> bool:
        return (topic_id, partition) in self._holders

    # Subscriptions

    def members_with(self, member: ConsumerMember) -> dict[str, ConsumerMember]:
        """Return the members after this one has joined or changed. It may replace a static member."""
        members = dict(self.members)
        if member.instance_id is not None:
            members.pop(self.static_members.get(member.instance_id, ""), None)
        members[member.member_id] = member
        return members

    def replaced_by(self, member: ConsumerMember) -> list[ConsumerMember]:
        """Return the members that this one replaces: its previous version, and the static member before it."""
        ids = {member.member_id, self.static_members.get(member.instance_id or "", member.member_id)}
        return [self.members[one] for one in ids if one in self.members]

    def topics_without(self, removed: Iterable[ConsumerMember], topics: Collection[str]) -> set[str]:
        """Return those of these topics that the group subscribes to once some members have left."""
        return self.subscriptions.among(topics, subscriptions_of(removed))

    def topics_with(self, member: ConsumerMember, topics: Collection[str]) -> set[str]:
        """Return those of these topics that the group subscribes to once this member has joined or changed."""
        return self.subscriptions.among(topics, subscriptions_of(self.replaced_by(member)), _subscription(member))

    def patterns_with(self, member: ConsumerMember) -> set[str]:
        """Return the patterns of the group once this member has joined or changed."""
        return self.subscriptions.patterns(subscriptions_of(self.replaced_by(member)), _subscription(member))

    def is_classic_without(self, removed: Collection[ConsumerMember]) -> bool:
        """Return True if all members use the classic protocol once some members have left."""
        left = len(self.members) - len(removed)
        return left > 0 and self._classic_members - sum(map(_is_classic, removed)) == left

    def topics_of(self, member: ConsumerMember) -> frozenset[str]:
        matches = self.matches_of(member)
        return member.topic_names | matches if matches else member.topic_names

    def matches_of(self, member: ConsumerMember) -> frozenset[str]:
        """Return the topics that the member's pattern matched."""
        resolved = self.patterns.get(member.topic_pattern or "")
        return frozenset() if resolved is None else resolved.topics

    def preferred_assignor(self, members: Iterable[ConsumerMember]) -> str | None:
        """Return the assignor that most members prefer, or None if no member prefers any."""
        wanted = Counter(member.server_assignor for member in members if member.server_assignor is not None)
        return wanted.most_common(1)[0][0] if wanted else None

    # Committed offsets

    def check_offset_commit(self, committer: Committer, topics: Sequence[TopicCommit]) -> None:
        """Allow a commit in an earlier epoch for partitions that the member has had since then."""
        member = self.stale_committer(committer)
        if member is None:
            return
        generation = committer.generation
        for topic in topics:
            for partition, *_ in topic.partitions:
                since = member.assigned_since(topic.topic_id, partition)
                where = f"artition {topic.name}-{partition}"
                if since is None:
                    raise self.stale(member, f"P{where} is not assigned or pending revocation for member.")
                if generation < since:
                    word = self.epoch_name(member)
                    raise self.stale(
                        member, f"Received {word} {generation} is older than assignment epoch {since} for p{where}."
                    )

    def needs_epochs(self, member: ConsumerMember) -> bool:
        return member.classic is None

    def epoch_name(self, member: ConsumerMember) -> str:
        return "member epoch" if member.classic is None else "generation id"

    def stale(self, member: ConsumerMember, message: str) -> KafkaError:
        code = ErrorCode.STALE_MEMBER_EPOCH if member.classic is None else ErrorCode.ILLEGAL_GENERATION
        return KafkaError(code, message)

    # All groups

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.subscriptions

    def tombstones(self) -> list[CoordinatorRecord]:
        return group_tombstones(self.group_id, self.members, self.patterns)


def _subscription(member: ConsumerMember | None) -> Subscription | None:
    return None if member is None else Subscription(member.topic_names, member.topic_pattern or "")


def subscriptions_of(members: Iterable[ConsumerMember]) -> list[Subscription]:
    return [Subscription(member.topic_names, member.topic_pattern or "") for member in members]


def _is_classic(member: ConsumerMember | None) -> bool:
    return member is not None and member.classic is not None


def _held(member: ConsumerMember) -> Iterator[tuple[bytes, int]]:
    partitions: Mapping[bytes, Mapping[int, int]]
    for partitions in (member.assigned, member.to_revoke):
        for topic, epochs in partitions.items():
            for partition in epochs:
                yield topic, partition


def _replay_own(group: ConsumerGroup, key: Any, value: Any) -> None:
    """Replay a record that only consumer groups have."""
    if isinstance(key, ConsumerGroupPartitionMetadataKey):
        group.has_partition_metadata = value is not None
    elif value is None:
        group.put_pattern(key.regular_expression, None)
    else:
        resolved = ResolvedPattern(frozenset(value.topics), value.version, value.timestamp)
        group.put_pattern(key.regular_expression, resolved)


CONSUMER_REPLAY: Final = EpochReplay(
    ConsumerGroup,
    CONSUMER_RECORDS,
    (ConsumerGroupPartitionMetadataKey, ConsumerGroupRegularExpressionKey),
    _replay_own,
)
