"""Conversion of a group with live members: a classic group becomes a consumer group, and the reverse.

An application is upgraded member by member. The first member with the new protocol converts the classic group into a
consumer group. The other members stay in the group with the classic protocol (`classic_protocol_members.py`). When the
last member with the new protocol has left, the rest becomes a classic group again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tailrace.coordinator.groups.classic.classic_group import ClassicGroup
from tailrace.coordinator.groups.classic.classic_member import ClassicMember
from tailrace.coordinator.groups.classic.classic_records import value_record
from tailrace.coordinator.groups.consumer.consumer_group import ConsumerGroup
from tailrace.coordinator.groups.consumer.consumer_member import ClassicMetadata, ConsumerMember
from tailrace.coordinator.groups.consumer.consumer_protocol import read_assignment, read_subscription, write_assignment
from tailrace.coordinator.groups.consumer.consumer_records import CONSUMER_RECORDS
from tailrace.coordinator.groups.consumer.consumer_settings import ConsumerSettings
from tailrace.coordinator.shard import CoordinatorRecord
from tailrace.metadata.image.image import MetadataImage
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol.errors import ProtocolError
from tailrace.protocol.messages import GroupMetadataValue, JoinGroupResponse, SyncGroupResponse

CONSUMER_PROTOCOL = "consumer"


# ------------------------------------------------------------------------------------------- to a consumer group


def upgrade(
    classic: ClassicGroup,
    settings: ConsumerSettings,
    image: MetadataImage,
    hash_of: Callable[[Iterable[str]], int],
    records: list[CoordinatorRecord],
    now_ms: int,
) -> ConsumerGroup:
    """Return the classic group as a consumer group, and append the records of the conversion. Raise a KafkaError if the
    group cannot be converted."""
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
    group.metadata_hash = hash_of(group.subscriptions.among(image.topics))
    for waiting in tuple(classic.members.values()):
        error = ErrorCode.REBALANCE_IN_PROGRESS
        classic.answer_join(waiting, JoinGroupResponse(error_code=error, member_id=waiting.member_id), now_ms)
        waiting.answer_sync(SyncGroupResponse(error_code=error), now_ms)
    members = group.members.values()
    records += classic.tombstones()
    records += [CONSUMER_RECORDS.member_record(group_id, member) for member in members]
    records.append(CONSUMER_RECORDS.group_record(group_id, group.epoch, group.metadata_hash))
    records += [CONSUMER_RECORDS.target_record(group_id, member_id, share) for member_id, share in group.target.items()]
    records.append(CONSUMER_RECORDS.target_epoch_record(group_id, group.target_epoch, group.target_timestamp_ms))
    records += [CONSUMER_RECORDS.current_record(group_id, member) for member in members]
    return group


def _cannot(group_id: str, reason: str) -> KafkaError:
    return KafkaError(
        ErrorCode.GROUP_ID_NOT_FOUND, f"Cannot upgrade classic group {group_id} to consumer group because {reason}."
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


# -------------------------------------------------------------------------------------------- to a classic group


def can_downgrade(members: Sequence[ConsumerMember], settings: ConsumerSettings) -> bool:
    """Return True if the remaining members become a classic group."""
    if not members or any(member.classic is None for member in members):
        return False
    return settings.may_downgrade and len(members) <= settings.classic_size_max


def downgrade(group: ConsumerGroup, members: Sequence[ConsumerMember], image: MetadataImage) -> list[CoordinatorRecord]:
    """Return the records that convert the group into a classic group of these members."""
    protocol = _common_protocol(members)
    members_of_record = []
    for member in members:
        assert member.classic is not None, f"{member.member_id} does not use the classic protocol"
        subscription = dict(member.classic.protocols)[protocol]
        members_of_record.append(
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
        members=members_of_record,
    )
    return [*group.tombstones(), value_record(group.group_id, value)]


def _common_protocol(members: Sequence[ConsumerMember]) -> str:
    """Return the first protocol that all members support. There is one, because no member joins without."""
    first, *others = ([name for name, _ in member.classic.protocols] for member in members if member.classic)
    for name in first:
        if all(name in other for other in others):
            return name
    raise AssertionError("members of a group support no common protocol")
