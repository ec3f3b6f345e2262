"""ShareGroup: a group whose members share partitions and take single records of them (KIP-932).

Epochs work as in the other epoch groups (consumer and streams). No member has to revoke a partition first: a member has
its target at once. A share group has no committed offsets; the share coordinator keeps the state of its partitions
(`share_topics.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tailrace.coordinator.groups.epoch.epoch_description import group_fields, member_fields, named_partitions
from tailrace.coordinator.groups.epoch.epoch_group import NO_TARGET_EPOCH, Assignment, EpochGroup
from tailrace.coordinator.groups.epoch.subscriptions import Subscription, Subscriptions
from tailrace.coordinator.groups.group import Committer, IdleSince, TopicCommit
from tailrace.coordinator.groups.share.share_member import ShareMember
from tailrace.coordinator.groups.share.share_records import group_tombstones
from tailrace.coordinator.groups.share.share_topics import ShareTopics
from tailrace.coordinator.shard import CoordinatorRecord
from tailrace.metadata.image.image import MetadataImage
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.java.java_order import (
    TIMELINE_CAPACITY_MIN,
    grown_timeline_capacity,
    timeline_order,
)
from tailrace.protocol.messages import ShareGroupDescribeResponse


class ShareGroup(EpochGroup[ShareMember, Assignment]):
    type = "share"

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.topics: ShareTopics | None = None
        self.subscriptions = Subscriptions()
        # target epoch, and the partitions that its target assigns, by topic id
        self._assigned: tuple[int, dict[bytes, set[int]]] = (NO_TARGET_EPOCH, {})
        self._slots = TIMELINE_CAPACITY_MIN  # capacity of Kafka's hash map of members, which decides their order

    def put_topics(self, topics: ShareTopics | None) -> None:
        self.topics = topics

    # Members

    def put_member(self, member: ShareMember) -> None:
        before = self.members.get(member.member_id)
        self.subscriptions.replace(_subscription(before), Subscription(member.topic_names))
        super().put_member(member)
        self._slots = grown_timeline_capacity(self._slots, len(self.members) + 1)

    def remove_member(self, member_id: str) -> None:
        before = self.members.get(member_id)
        self.subscriptions.replace(_subscription(before), None)
        super().remove_member(member_id)

    def topics_with(self, member: ShareMember, topics: Collection[str]) -> set[str]:
        """Return the topics among `topics` to which the group subscribes after this member has joined or changed."""
        before = self.members.get(member.member_id)
        removed = [] if before is None else [Subscription(before.topic_names)]
        return self.subscriptions.among(topics, removed, Subscription(member.topic_names))

    def members_with(self, member: ShareMember) -> dict[str, ShareMember]:
        """Return the members after this one has joined or changed, in the order of Kafka's map."""
        members = {**self.members, member.member_id: member}
        slots = grown_timeline_capacity(self._slots, len(members))
        return {member_id: members[member_id] for member_id in timeline_order(reversed(members), slots)}

    @property
    def lacks_initialized_partitions(self) -> bool:
        """Return True if partitions whose state is initialized are not in the target assignment."""
        if self.topics is None or not self.topics.initialized:
            return False
        epoch, assigned = self._assigned
        if epoch != self.target_epoch:
            assigned = {}
            for assignment in self.target.values():
                for topic, partitions in assignment.items():
                    assigned.setdefault(topic, set()).update(partitions)
            self._assigned = (self.target_epoch, assigned)
        return any(
            one.name in self.subscriptions and (topic not in assigned or assigned[topic] != set(one.partitions))
            for topic, one in self.topics.initialized.items()
        )

    # All groups

    @property
    def state_name(self) -> str:
        return "Stable" if self.members else "Empty"

    def _no_offsets_error(self) -> KafkaError:
        return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {self.group_id} is not a consumer group.")

    def check_offset_commit(self, committer: Committer, topics: Sequence[TopicCommit]) -> None:
        raise self._no_offsets_error()

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Allow it: there are no committed offsets to return."""

    def check_offset_delete(self) -> None:
        raise self._no_offsets_error()

    def is_subscribed_to(self, topic: str) -> bool:
        return any(topic in member.topic_names for member in self.members.values())

    def offsets_idle_since(self) -> IdleSince | None:
        return None

    def tombstones(self) -> list[CoordinatorRecord]:
        return group_tombstones(self.group_id, self.members)

    def described(self, assignor: str, image: MetadataImage) -> ShareGroupDescribeResponse.DescribedGroup:
        return ShareGroupDescribeResponse.DescribedGroup(
            **group_fields(self),
            assignor_name=assignor,
            members=[_described(member, image) for member in self.members.values()],
        )


def _subscription(member: ShareMember | None) -> Subscription | None:
    return None if member is None else Subscription(member.topic_names)


def _described(member: ShareMember, image: MetadataImage) -> ShareGroupDescribeResponse.Member:
    struct = ShareGroupDescribeResponse.TopicPartitions
    return ShareGroupDescribeResponse.Member(
        **member_fields(member),
        subscribed_topic_names=sorted(member.topic_names),
        assignment=ShareGroupDescribeResponse.Assignment(
            topic_partitions=named_partitions(struct, member.assigned, image)
        ),
    )
