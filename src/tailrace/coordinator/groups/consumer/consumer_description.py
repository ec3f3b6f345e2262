"""What is told of a consumer group: its epochs, its members, what each has and what it shall have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tailrace.coordinator.groups.consumer.consumer_group import ConsumerGroup
from tailrace.coordinator.groups.consumer.consumer_member import ConsumerMember
from tailrace.metadata.image.image import MetadataImage
from tailrace.protocol.messages import ConsumerGroupDescribeResponse

CLASSIC_MEMBER = 0
CONSUMER_MEMBER = 1


def describe_consumer_group(
    group: ConsumerGroup, default_assignor: str, image: MetadataImage
) -> ConsumerGroupDescribeResponse.DescribedGroup:
    members = group.members.values()
    return ConsumerGroupDescribeResponse.DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=group.preferred_assignor(members) or default_assignor,
        members=[_described(group, member, image) for member in members],
    )


def _described(
    group: ConsumerGroup, member: ConsumerMember, image: MetadataImage
) -> ConsumerGroupDescribeResponse.Member:
    has: dict[bytes, list[int]] = {}
    for partitions in (member.assigned, member.to_revoke):
        for topic, epochs in partitions.items():
            has.setdefault(topic, []).extend(epochs)
    return ConsumerGroupDescribeResponse.Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topic_names),
        subscribed_topic_regex=member.topic_pattern,
        assignment=_assignment(has, image),
        target_assignment=_assignment(group.target.get(member.member_id, {}), image),
        member_type=CONSUMER_MEMBER if member.classic is None else CLASSIC_MEMBER,
    )


def _assignment(
    partitions: Mapping[bytes, Iterable[int]], image: MetadataImage
) -> ConsumerGroupDescribeResponse.Assignment:
    return ConsumerGroupDescribeResponse.Assignment(
        topic_partitions=[
            ConsumerGroupDescribeResponse.TopicPartitions(
                topic_id=topic_id, topic_name=image.topics_by_id[topic_id].name, partitions=sorted(numbers)
            )
            for topic_id, numbers in partitions.items()
            if topic_id in image.topics_by_id
        ]
    )
