"""ShareGroup: a group whose members share partitions and take single records of them (KIP-932), as the log has it.

Epochs move as in a consumer group, but nobody has to let go of a partition first: a member is at its target at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from tailrace.coordinator.groups.consumer.assignors import Assignment
from tailrace.coordinator.groups.consumer.consumer_member import LEAVE_EPOCH
from tailrace.coordinator.groups.group import Committer, IdleSince, TopicCommit
from tailrace.coordinator.groups.share.share_member import ShareMember
from tailrace.coordinator.groups.share.share_records import group_tombstones
from tailrace.coordinator.groups.share.share_topics import ShareTopics
from tailrace.coordinator.groups.streams.java_collections import (
    TIMELINE_CAPACITY_MIN,
    grown_timeline_capacity,
    timeline_order,
)
from tailrace.coordinator.shard import CoordinatorRecord
from tailrace.metadata.image.image import MetadataImage
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol.messages import ListGroupsResponse, ShareGroupDescribeResponse


class ShareGroup:
    type = "share"
    protocol_type = "share"

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = 1
        self.metadata_hash = 0
        self.members: dict[str, ShareMember] = {}
        self.target_epoch = 1
        self.target_timestamp_ms = 0
        self.target: dict[str, Assignment] = {}
        self.topics: ShareTopics | None = None
        self.looked_at_topics: Any = None  # the topics of the image that the hash was last computed of
        self._slots = TIMELINE_CAPACITY_MIN  # of the map that Kafka has its members in

    # Members

    def put_member(self, member: ShareMember) -> None:
        self.members[member.member_id] = member
        self._slots = grown_timeline_capacity(self._slots, len(self.members) + 1)

    def members_with(self, member: ShareMember) -> dict[str, ShareMember]:
        """The members as they will be with this one, in the order in which Kafka's map lists them."""
        members = {**self.members, member.member_id: member}
        slots = grown_timeline_capacity(self._slots, len(members))
        return {member_id: members[member_id] for member_id in timeline_order(reversed(members), slots)}

    def take_back_assignment(self, member_id: str) -> None:
        """The member is about to leave."""
        member = self.members.get(member_id)
        if member is not None:
            left = replace(member, member_epoch=LEAVE_EPOCH, previous_epoch=LEAVE_EPOCH, assigned={})
            self.put_member(left)

    def member(self, member_id: str) -> ShareMember:
        member = self.members.get(member_id)
        if member is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.group_id}."
            )
        return member

    @property
    def lacks_initialized(self) -> bool:
        """Whether there are partitions, whose state is initialized by now, that nobody has been assigned."""
        if self.topics is None or not self.topics.initialized:
            return False
        names = subscribed_names(self.members.values())
        assigned: dict[bytes, set[int]] = {}
        for share in self.target.values():
            for topic, partitions in share.items():
                assigned.setdefault(topic, set()).update(partitions)
        return any(
            one.name in names and (topic not in assigned or assigned[topic] != set(one.partitions))
            for topic, one in self.topics.initialized.items()
        )

    # As a group

    @property
    def state_name(self) -> str:
        return "Stable" if self.members else "Empty"

    @property
    def is_empty(self) -> bool:
        return not self.members

    def _has_no_offsets(self) -> KafkaError:
        return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {self.group_id} is not a consumer group.")

    def check_offset_commit(self, committer: Committer, topics: Sequence[TopicCommit]) -> None:
        raise self._has_no_offsets()

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Whoever asks is told that nothing was committed."""

    def check_offset_delete(self) -> None:
        raise self._has_no_offsets()

    def check_delete(self) -> None:
        if self.members:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP, "The group is not empty.")

    def is_subscribed_to(self, topic: str) -> bool:
        return any(topic in member.topic_names for member in self.members.values())

    def offsets_idle_since(self) -> IdleSince | None:
        return None

    def tombstones(self) -> list[CoordinatorRecord]:
        return group_tombstones(self.group_id, self.members)

    def listed(self) -> ListGroupsResponse.ListedGroup:
        return ListGroupsResponse.ListedGroup(
            group_id=self.group_id,
            protocol_type=self.protocol_type,
            group_state=self.state_name,
            group_type=self.type,
        )

    def described(self, assignor: str, image: MetadataImage) -> ShareGroupDescribeResponse.DescribedGroup:
        return ShareGroupDescribeResponse.DescribedGroup(
            group_id=self.group_id,
            group_state=self.state_name,
            group_epoch=self.epoch,
            assignment_epoch=self.target_epoch,
            assignor_name=assignor,
            members=[_described(member, image) for member in self.members.values()],
        )


def subscribed_names(members: Iterable[ShareMember]) -> set[str]:
    return {name for member in members for name in member.topic_names}


def _described(member: ShareMember, image: MetadataImage) -> ShareGroupDescribeResponse.Member:
    return ShareGroupDescribeResponse.Member(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topic_names),
        assignment=ShareGroupDescribeResponse.Assignment(
            topic_partitions=[
                ShareGroupDescribeResponse.TopicPartitions(
                    topic_id=topic_id, topic_name=image.topics_by_id[topic_id].name, partitions=sorted(partitions)
                )
                for topic_id, partitions in member.assigned.items()
                if topic_id in image.topics_by_id
            ]
        ),
    )
