"""Groups that change their kind while their members go on: classic to consumer and back.

A consumer application is rolled over member by member. The first that speaks the new protocol makes a consumer group of
a classic one, whose other members stay in it with the protocol they know (`classic_members.py`); when the last that
speaks the new one is gone, what is left is a classic group again.
"""

from __future__ import annotations

from collections.abc import Sequence

from tailrace.coordinator.groups.classic.classic_group import ClassicGroup
from tailrace.coordinator.groups.classic.member import ClassicMember
from tailrace.coordinator.groups.consumer import consumer_records as records_of
from tailrace.coordinator.groups.consumer.consumer_group import ConsumerGroup
from tailrace.coordinator.groups.consumer.consumer_member import ClassicMetadata, ConsumerMember
from tailrace.coordinator.groups.consumer.consumer_protocol import read_assignment, read_subscription, write_assignment
from tailrace.coordinator.groups.consumer.consumer_settings import ConsumerSettings
from tailrace.coordinator.groups.group_records import GROUP_VERSION
from tailrace.coordinator.groups.metadata_hash import TopicHashes
from tailrace.coordinator.shard import CoordinatorRecord
from tailrace.metadata.image.image import MetadataImage
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol.errors import ProtocolError
from tailrace.protocol.messages import GroupMetadataKey, GroupMetadataValue, JoinGroupResponse, SyncGroupResponse

CONSUMER_PROTOCOL = "consumer"


# ---------------------------------------------------------------------------------------------------------------- up


def upgrade(
    classic: ClassicGroup,
    settings: ConsumerSettings,
    image: MetadataImage,
    hashes: TopicHashes,
    records: list[CoordinatorRecord],
    now_ms: int,
) -> ConsumerGroup:
    """The classic group as a consumer group; `records` make it so. A KafkaError if it cannot be."""
    group_id = classic.group_id
    if not settings.may_upgrade:
        raise _cannot(group_id, "online upgrade is disabled")
    if classic.protocol_type != CONSUMER_PROTOCOL or classic.protocol is None:
        raise _cannot(group_id, "the group does not use the consumer embedded protocol")
    if len(classic.members) > settings.size_max:
        raise _cannot(group_id, "the group size exceeds the consumer group maximum size")
    group = ConsumerGroup(group_id)
    group.epoch = group.target_epoch = classic.generation
    for one in classic.members.values():
        member = _upgraded(classic, one, image)
        group.put_member(member)
        group.target[one.member_id] = {topic: frozenset(epochs) for topic, epochs in member.assigned.items()}
    group.metadata_hash = hashes.of(group.subscribed_topics(group.members.values()), image)
    for waiting in tuple(classic.members.values()):
        error = ErrorCode.REBALANCE_IN_PROGRESS
        classic.answer_join(waiting, JoinGroupResponse(error_code=error, member_id=waiting.member_id), now_ms)
        waiting.answer_sync(SyncGroupResponse(error_code=error), now_ms)
    members = group.members.values()
    records += classic.tombstones()
    records += [records_of.member_record(group_id, member) for member in members]
    records.append(records_of.epoch_record(group_id, group.epoch, group.metadata_hash))
    records += [records_of.target_record(group_id, member_id, share) for member_id, share in group.target.items()]
    records.append(records_of.target_epoch_record(group_id, group.target_epoch, group.target_timestamp_ms))
    records += [records_of.current_record(group_id, member) for member in members]
    return group


def _cannot(group_id: str, why: str) -> KafkaError:
    return KafkaError(
        ErrorCode.GROUP_ID_NOT_FOUND, f"Cannot upgrade classic group {group_id} to consumer group because {why}."
    )


def _upgraded(classic: ClassicGroup, one: ClassicMember, image: MetadataImage) -> ConsumerMember:
    assigned: dict[bytes, dict[int, int]] = {}
    try:
        if one.assignment:
            assignment = read_assignment(one.assignment)
            if assignment.user_data:
                raise _cannot(classic.group_id, "an unsupported custom assignor is in use")
            for topic in assignment.assigned_partitions:
                if topic.topic in image.topics:
                    epochs = dict.fromkeys(topic.partitions, classic.generation)
                    assigned[image.topics[topic.topic].id] = epochs
        subscription = read_subscription(one.metadata(classic.protocol))
    except ProtocolError as error:
        raise _cannot(classic.group_id, "the embedded consumer protocol is malformed") from error
    return ConsumerMember(
        one.member_id,
        member_epoch=classic.generation,
        previous_epoch=classic.generation,
        instance_id=one.instance_id,
        rack_id=subscription.rack_id or None,
        client_id=one.client_id,
        client_host=one.client_host,
        rebalance_timeout_ms=one.rebalance_timeout_ms,
        topic_names=frozenset(subscription.topics),
        classic=ClassicMetadata(one.session_timeout_ms, tuple(one.protocols)),
        assigned=assigned,
    )


# -------------------------------------------------------------------------------------------------------------- down


def can_downgrade(group: ConsumerGroup, members: Sequence[ConsumerMember], settings: ConsumerSettings) -> bool:
    """Whether these members, who are left, go on as a classic group."""
    if not members or any(member.classic is None for member in members):
        return False
    return settings.may_downgrade and len(members) <= settings.classic_size_max


def downgrade(group: ConsumerGroup, members: Sequence[ConsumerMember], image: MetadataImage) -> list[CoordinatorRecord]:
    """Records that make a classic group of members that all speak its protocol."""
    protocol = _common_protocol(members)
    told = []
    for member in members:
        assert member.classic is not None, f"{member.member_id} does not speak the classic protocol"
        subscription = dict(member.classic.protocols)[protocol]
        told.append(
            GroupMetadataValue.MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.classic.session_timeout_ms,
                subscription=subscription,
                assignment=write_assignment(group.target_of(member), image, subscription),
            )
        )
    value = GroupMetadataValue(
        protocol_type=CONSUMER_PROTOCOL,
        generation=group.epoch,
        protocol=protocol,
        leader=members[0].member_id,
        current_state_timestamp=-1,
        members=told,
    )
    return [*group.tombstones(), CoordinatorRecord(GroupMetadataKey(group=group.group_id), value, GROUP_VERSION)]


def _common_protocol(members: Sequence[ConsumerMember]) -> str:
    """The first that everybody supports; there is one, since nobody joins without."""
    first, *others = ([name for name, _ in member.classic.protocols] for member in members if member.classic)
    for name in first:
        if all(name in other for other in others):
            return name
    raise AssertionError("members of a group support no common protocol")
