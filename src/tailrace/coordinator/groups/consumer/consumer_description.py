"""The ConsumerGroupDescribe response of a group: epochs, members, current and target assignments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tailrace.coordinator.groups.consumer.consumer_group import ConsumerGroup
from tailrace.coordinator.groups.consumer.consumer_member import ConsumerMember
from tailrace.coordinator.groups.epoch.epoch_description import group_fields, member_fields, named_partitions
from tailrace.metadata.image.image import MetadataImage
from tailrace.protocol.messages import ConsumerGroupDescribeResponse

CLASSIC_MEMBER = 0
CONSUMER_MEMBER = 1


def describe_consumer_group(
    group: ConsumerGroup, default_assignor: str, image: MetadataImage
) -> ConsumerGroupDescribeResponse.DescribedGroup:
    members = group.members.values()
    return ConsumerGroupDescribeResponse.DescribedGroup(
        **group_fields(group),
        assignor_name=group.preferred_assignor(members) or default_assignor,
        members=[_described(group, member, image) for member in members],
    )


def _described(
    group: ConsumerGroup, member: ConsumerMember, image: MetadataImage
) -> ConsumerGroupDescribeResponse.Member:
    held: dict[bytes, list[int]] = {}
    for partitions in (member.assigned, member.to_revoke):
        for topic, epochs in partitions.items():
            held.setdefault(topic, []).extend(epochs)
    return ConsumerGroupDescribeResponse.Member(
        **member_fields(member),
        instance_id=member.instance_id,
        subscribed_topic_names=sorted(member.topic_names),
        subscribed_topic_regex=member.topic_pattern,
        assignment=_assignment(held, image),
        target_assignment=_assignment(group.target.get(member.member_id, {}), image),
        member_type=CONSUMER_MEMBER if member.classic is None else CLASSIC_MEMBER,
    )


def _assignment(
    partitions: Mapping[bytes, Iterable[int]], image: MetadataImage
) -> ConsumerGroupDescribeResponse.Assignment:
    return ConsumerGroupDescribeResponse.Assignment(
        topic_partitions=named_partitions(ConsumerGroupDescribeResponse.TopicPartitions, partitions, image)
    )
