"""ConsumerGroup: a group whose partitions are assigned by the coordinator (KIP-848), as the log has it.

Three epochs tell how far a change has come. The group's own moves whenever subscriptions or topics change; the target's
follows when everybody's share is computed for it; a member's follows when that member has reached its share.

    Empty ──join──► Assigning (group epoch > target epoch) ──► Reconciling (members on their way) ──► Stable
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from tailrace.coordinator.groups.consumer.assignors import Assignment
from tailrace.coordinator.groups.consumer.consumer_member import LEAVE_EPOCH, ConsumerMember
from tailrace.coordinator.groups.consumer.consumer_records import group_tombstones
from tailrace.coordinator.groups.group import Committer, IdleSince, TopicCommit
from tailrace.coordinator.shard import CoordinatorRecord
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol.messages import ListGroupsResponse

NO_TARGET_EPOCH = -1
COMMIT_VERSION_MIN = 9  # of OffsetCommit: the first that knows member epochs


class ResolvedPattern(NamedTuple):
    """The topics that a regular expression stood for."""

    topics: frozenset[str]
    version: int  # offset of the metadata that was looked at
    timestamp_ms: int


class ConsumerGroup:
    type = "consumer"
    protocol_type = "consumer"

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = 1
        self.metadata_hash = 0
        self.members: dict[str, ConsumerMember] = {}
        self.static_members: dict[str, str] = {}  # instance id → member id
        self.target_epoch = 1
        self.target_timestamp_ms = 0
        self.target: dict[str, Assignment] = {}
        self.patterns: dict[str, ResolvedPattern] = {}
        self.has_partition_metadata = False  # a record of an older Kafka, which is to be taken back
        self.looked_at_topics: Any = None  # the topics of the image that the hash was last computed of
        self._holders: dict[tuple[bytes, int], str] = {}  # who has a partition, or has not let go of it

    # As the log says

    def put_member(self, member: ConsumerMember) -> None:
        before = self.members.get(member.member_id)
        if before is not None:
            self._let_go(before)
        self.members[member.member_id] = member
        for partition in _held(member):
            self._holders[partition] = member.member_id
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id

    def take_back_assignment(self, member_id: str) -> None:
        """The member is about to leave."""
        member = self.members.get(member_id)
        if member is not None:
            left = replace(member, member_epoch=LEAVE_EPOCH, previous_epoch=LEAVE_EPOCH, assigned={}, to_revoke={})
            self.put_member(left)

    def remove_member(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is None:
            return
        self._let_go(member)
        if member.instance_id is not None and self.static_members.get(member.instance_id) == member_id:
            del self.static_members[member.instance_id]

    def _let_go(self, member: ConsumerMember) -> None:
        for partition in _held(member):
            if self._holders.get(partition) == member.member_id:
                del self._holders[partition]

    # Members

    def member(self, member_id: str) -> ConsumerMember:
        member = self.members.get(member_id)
        if member is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.group_id}."
            )
        return member

    def static_member(self, instance_id: str) -> ConsumerMember | None:
        member_id = self.static_members.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def target_of(self, member: ConsumerMember) -> Assignment:
        """What a member shall have; of a static one, what the one before it in its place should have had."""
        if member.instance_id is None:
            return self.target.get(member.member_id, {})
        return self.target.get(self.static_members.get(member.instance_id, ""), {})

    def is_held(self, topic_id: bytes, partition: int) -> bool:
        return (topic_id, partition) in self._holders

    # Subscriptions

    def members_with(self, member: ConsumerMember) -> dict[str, ConsumerMember]:
        """The members as they will be with this one, who may take the place of a static one before it."""
        members = dict(self.members)
        if member.instance_id is not None:
            members.pop(self.static_members.get(member.instance_id, ""), None)
        members[member.member_id] = member
        return members

    def subscribed_topics(self, members: Iterable[ConsumerMember]) -> set[str]:
        topics: set[str] = set()
        patterns: set[str] = set()
        for member in members:
            topics |= member.topic_names
            if member.topic_pattern:
                patterns.add(member.topic_pattern)
        for pattern in patterns & self.patterns.keys():
            topics |= self.patterns[pattern].topics
        return topics

    def topics_of(self, member: ConsumerMember) -> Collection[str]:
        resolved = self.patterns.get(member.topic_pattern or "")
        return member.topic_names if resolved is None else member.topic_names | resolved.topics

    def pattern_count(self, pattern: str) -> int:
        return sum(member.topic_pattern == pattern for member in self.members.values())

    def preferred_assignor(self, members: Iterable[ConsumerMember]) -> str | None:
        """The one that most members want."""
        wanted = Counter(member.server_assignor for member in members if member.server_assignor is not None)
        return wanted.most_common(1)[0][0] if wanted else None

    # As a group

    @property
    def state_name(self) -> str:
        if not self.members:
            return "Empty"
        if self.epoch > self.target_epoch:
            return "Assigning"
        if all(member.is_reconciled_to(self.target_epoch) for member in self.members.values()):
            return "Stable"
        return "Reconciling"

    @property
    def is_empty(self) -> bool:
        return not self.members

    def check_offset_commit(self, committer: Committer, topics: Sequence[TopicCommit]) -> None:
        """Commits of an epoch before are welcome, of partitions that the member has had since then."""
        generation = committer.generation
        if (generation < 0 and not self.members) or committer.is_unnamed:  # the first is an administrator
            return
        member = self.member(committer.member_id)
        if not committer.is_transactional and member.classic is None and committer.version < COMMIT_VERSION_MIN:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                "OffsetCommit version 9 or above must be used by members using the consumer group protocol",
            )
        if generation == member.member_epoch:
            return
        if generation > member.member_epoch:
            raise self._stale(
                member, f"Received {{epoch}} {generation} is newer than current member epoch {member.member_epoch}."
            )
        for topic in topics:
            for commit in topic.partitions:
                since = member.assigned_since(topic.topic_id, commit.partition)
                where = f"partition {topic.name}-{commit.partition}"
                if since is None:
                    raise self._stale(member, f"P{where[1:]} is not assigned or pending revocation for member.")
                if generation < since:
                    raise self._stale(
                        member, f"Received {{epoch}} {generation} is older than assignment epoch {since} for {where}."
                    )

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        if member_id is None and member_epoch < 0:
            return
        member = self.member(member_id or "")
        if member_epoch != member.member_epoch:
            raise self._stale(
                member,
                f"The received {{epoch}} {member_epoch} does not match the expected member epoch "
                f"{member.member_epoch}.",
            )

    @staticmethod
    def _stale(member: ConsumerMember, message: str) -> KafkaError:
        """Members that speak the classic protocol know a member epoch as their generation."""
        if member.classic is None:
            return KafkaError(ErrorCode.STALE_MEMBER_EPOCH, message.replace("{epoch}", "member epoch"))
        return KafkaError(ErrorCode.ILLEGAL_GENERATION, message.replace("{epoch}", "generation id"))

    def check_offset_delete(self) -> None:
        """Offsets may go of topics that nobody subscribes to."""

    def check_delete(self) -> None:
        if self.members:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.subscribed_topics(self.members.values())

    def offsets_idle_since(self) -> IdleSince | None:
        return lambda committed: committed.commit_timestamp_ms

    def tombstones(self) -> list[CoordinatorRecord]:
        return group_tombstones(self.group_id, self.members, self.patterns)

    def listed(self) -> ListGroupsResponse.ListedGroup:
        return ListGroupsResponse.ListedGroup(
            group_id=self.group_id,
            protocol_type=self.protocol_type,
            group_state=self.state_name,
            group_type=self.type,
        )


def _held(member: ConsumerMember) -> Iterator[tuple[bytes, int]]:
    partitions: Mapping[bytes, Mapping[int, int]]
    for partitions in (member.assigned, member.to_revoke):
        for topic, epochs in partitions.items():
            for partition in epochs:
                yield topic, partition
