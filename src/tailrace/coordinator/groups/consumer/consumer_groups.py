"""ConsumerGroups: what ConsumerGroupHeartbeat does: join, tell, be told, leave.

A heartbeat is worked off in steps, each of which may leave records:

    member     who is it, is its epoch current; what is new about it
    epoch      have subscriptions or topics changed: the group moves to its next epoch
    target     everybody's share is computed for that epoch, at most once in a while
    current    this member takes its next step towards its share

The state is what replaying those records makes of it, so nothing here changes a group.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import replace
from typing import TypeVar

from tailrace.coordinator.groups.classic.classic_group import ClassicGroup
from tailrace.coordinator.groups.consumer import consumer_records as records_of
from tailrace.coordinator.groups.consumer.assignors import ASSIGNORS, Assignment, MemberSpec
from tailrace.coordinator.groups.consumer.consumer_description import describe_consumer_group
from tailrace.coordinator.groups.consumer.consumer_group import ConsumerGroup
from tailrace.coordinator.groups.consumer.consumer_member import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    LEAVE_STATIC_EPOCH,
    ConsumerMember,
    MemberState,
)
from tailrace.coordinator.groups.consumer.consumer_settings import ConsumerSettings
from tailrace.coordinator.groups.consumer.group_conversion import can_downgrade, downgrade, upgrade
from tailrace.coordinator.groups.consumer.heartbeat import Heartbeat, Sees, check_epoch, check_instance, told_of
from tailrace.coordinator.groups.consumer.pattern_subscriptions import PatternSubscriptions
from tailrace.coordinator.groups.consumer.reconciliation import Owned, reconcile
from tailrace.coordinator.groups.group import Group
from tailrace.coordinator.groups.metadata_hash import TopicHashes
from tailrace.coordinator.shard import CoordinatorRecord, StateChange
from tailrace.coordinator.timers import Timers
from tailrace.metadata.image.image import MetadataImage
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol.messages import ConsumerGroupDescribeResponse, ConsumerGroupHeartbeatResponse

_log = logging.getLogger(__name__)

Records = list[CoordinatorRecord]
R = TypeVar("R")


class ConsumerGroups:
    def __init__(
        self,
        groups: MutableMapping[str, Group],
        timers: Timers,
        settings: Callable[[str], ConsumerSettings],
        image: Callable[[], MetadataImage],
        new_member_id: Callable[[], str],
        downgraded: Callable[[str, int], None],
    ) -> None:
        """`settings(group_id)` are the broker's, with what is set for the group itself; `downgraded(group_id, now_ms)`
        is told of a group that has become a classic one."""
        self._groups = groups
        self._timers = timers
        self._settings = settings
        self._image = image
        self._new_member_id = new_member_id
        self._downgraded = downgraded
        self._hashes = TopicHashes()
        self._patterns = PatternSubscriptions(groups, timers, image, self._hashes)

    def _group(self, group_id: str) -> ConsumerGroup:
        group = self._groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            what = "not found" if group is None else "is not a consumer group"
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {what}.")
        return group

    def describe(self, group_id: str) -> ConsumerGroupDescribeResponse.DescribedGroup:
        group = self._group(group_id)
        return describe_consumer_group(group, self._settings(group_id).assignors[0], self._image())

    # ------------------------------------------------------------------------------------------------------- heartbeat

    def heartbeat(self, beat: Heartbeat, now_ms: int) -> StateChange[ConsumerGroupHeartbeatResponse]:
        if beat.member_epoch in (LEAVE_EPOCH, LEAVE_STATIC_EPOCH):
            return self._leave(beat)
        records: Records = []
        joins = beat.member_epoch == JOIN_EPOCH
        group = self._group_to_join(beat.group_id, records, now_ms) if joins else self._group(beat.group_id)
        settings = self._settings(beat.group_id)
        if len(group.members) >= settings.size_max and beat.member_id not in group.members:
            raise KafkaError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The consumer group has reached its maximum capacity of {settings.size_max} members.",
            )
        member_id = beat.member_id or self._new_member_id()
        before = self._member(group, beat, member_id, records)
        moved = self.advance(group, before, told_of(before, beat), beat.owned, records, now_ms, beat.sees)
        self.watch_session(group.group_id, moved, now_ms)
        response = ConsumerGroupHeartbeatResponse(
            member_id=member_id, member_epoch=moved.member_epoch, heartbeat_interval_ms=settings.heartbeat_interval_ms
        )
        if joins or beat.is_full or moved.assigned != before.assigned:
            response.assignment = ConsumerGroupHeartbeatResponse.Assignment(
                topic_partitions=[
                    ConsumerGroupHeartbeatResponse.TopicPartitions(topic_id=topic, partitions=sorted(partitions))
                    for topic, partitions in moved.assigned.items()
                ]
            )
        return StateChange(records, response)

    def advance(
        self,
        group: ConsumerGroup,
        before: ConsumerMember,
        member: ConsumerMember,
        owned: Owned | None,
        records: Records,
        now_ms: int,
        sees: Sees,
    ) -> ConsumerMember:
        """What follows from what is new about a member, for the group and for the member itself."""
        settings = self._settings(group.group_id)
        if member != before:
            records.append(records_of.member_record(group.group_id, member))
        names_changed = member.topic_names != before.topic_names
        pattern_changed, pattern_counts = self._patterns.change(group, before, member, settings, records, now_ms, sees)
        epoch = self._next_epoch(group, member, names_changed or pattern_counts, records)
        target_epoch, target = self._next_target(group, epoch, member, settings, records, now_ms)
        changed = names_changed or pattern_changed
        return self._reconcile(group, member, target_epoch, target, owned, changed, records, now_ms)

    def _group_to_join(self, group_id: str, records: Records, now_ms: int) -> ConsumerGroup:
        group = self._groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return group
        if group is None:
            return ConsumerGroup(group_id)
        if not isinstance(group, ClassicGroup):
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
        if group.is_empty:
            records += group.tombstones()
            return ConsumerGroup(group_id)
        upgraded = upgrade(group, self._settings(group_id), self._image(), self._hashes, records, now_ms)
        for member in upgraded.members.values():
            self.watch_session(upgraded.group_id, member, now_ms)
        return upgraded

    def _member(self, group: ConsumerGroup, beat: Heartbeat, member_id: str, records: Records) -> ConsumerMember:
        """The member that the heartbeat is of, as it was so far; a KafkaError if it is not current."""
        if beat.instance_id is None:
            if beat.member_epoch == JOIN_EPOCH:
                return group.members.get(member_id) or ConsumerMember(member_id)
            member = group.member(member_id)
        else:
            found = group.static_member(beat.instance_id)
            if beat.member_epoch == JOIN_EPOCH:
                return self.static_newcomer(group, found, beat.instance_id, member_id, records)
            member = check_instance(found, beat.instance_id, member_id)
        check_epoch(member, beat.member_epoch, beat.owned)
        return member

    def static_newcomer(
        self,
        group: ConsumerGroup,
        found: ConsumerMember | None,
        instance_id: str,
        member_id: str,
        records: Records,
        *,
        may_take_over: bool = False,
    ) -> ConsumerMember:
        """A member with an instance id joins, and takes the place of the one before it."""
        if found is None:
            return group.members.get(member_id) or ConsumerMember(member_id)
        if not may_take_over and found.classic is None and found.member_epoch != LEAVE_STATIC_EPOCH:
            raise KafkaError(
                ErrorCode.UNRELEASED_INSTANCE_ID,
                f"Static member {member_id} with instance id {instance_id} cannot join the group because the instance "
                f"id is owned by {found.member_id} member.",
            )
        member = replace(found, member_id=member_id, member_epoch=JOIN_EPOCH, previous_epoch=JOIN_EPOCH)
        records += records_of.member_tombstones(group.group_id, found.member_id)
        records.append(records_of.member_record(group.group_id, member))
        records.append(records_of.target_record(group.group_id, member_id, group.target.get(found.member_id, {})))
        records.append(records_of.current_record(group.group_id, member))
        return member

    # ----------------------------------------------------------------------------------------------------- the epochs

    def _next_epoch(self, group: ConsumerGroup, member: ConsumerMember, bump: bool, records: Records) -> int:
        """The group's epoch; the next one if subscriptions have changed, or the topics that they stand for."""
        image = self._image()
        if not bump and group.looked_at_topics is image.topics:
            return group.epoch
        topics = group.subscribed_topics(group.members_with(member).values())
        metadata_hash = self._hashes.of(topics, image)
        if metadata_hash == group.metadata_hash:  # not before the epoch with the new hash is written
            group.looked_at_topics = image.topics
        epoch = group.epoch
        if bump or metadata_hash != group.metadata_hash:
            epoch += 1
            records.append(records_of.epoch_record(group.group_id, epoch, metadata_hash))
        if group.has_partition_metadata:
            records.append(records_of.partition_metadata_tombstone(group.group_id))
        return epoch

    def _next_target(
        self,
        group: ConsumerGroup,
        epoch: int,
        member: ConsumerMember,
        settings: ConsumerSettings,
        records: Records,
        now_ms: int,
    ) -> tuple[int, Assignment]:
        """The epoch of the target, and what this member shall have by it."""
        too_soon = group.target_timestamp_ms and now_ms < group.target_timestamp_ms + settings.assignment_interval_ms
        if group.target_epoch >= epoch or too_soon:
            return group.target_epoch, group.target_of(member)
        members = group.members_with(member)
        image = self._image()
        specs = {
            one.member_id: MemberSpec(_topic_ids(group, one, image), group.target_of(one), one.instance_id)
            for one in members.values()
        }
        counts = {topic: len(image.topics_by_id[topic].partitions) for spec in specs.values() for topic in spec.topics}
        assignor = group.preferred_assignor(members.values()) or settings.assignors[0]
        target = ASSIGNORS[assignor](specs, counts)
        for member_id in specs:
            assignment = target.get(member_id, {})
            if assignment != group.target.get(member_id):
                records.append(records_of.target_record(group.group_id, member_id, assignment))
        records.append(records_of.target_epoch_record(group.group_id, epoch, now_ms))
        _log.info("group %s: target of epoch %d for %d members, %s", group.group_id, epoch, len(specs), assignor)
        return epoch, target.get(member.member_id, {})

    def _reconcile(
        self,
        group: ConsumerGroup,
        member: ConsumerMember,
        target_epoch: int,
        target: Assignment,
        owned: Owned | None,
        subscription_changed: bool,
        records: Records,
        now_ms: int,
    ) -> ConsumerMember:
        if not subscription_changed and member.is_reconciled_to(target_epoch):
            return member
        moved = reconcile(
            member,
            target_epoch,
            target,
            _topic_ids(group, member, self._image()),
            owned,
            group.is_held,
            subscription_changed=subscription_changed,
        )
        if moved != member:
            records.append(records_of.current_record(group.group_id, moved))
            self._watch_revocation(group.group_id, moved, now_ms)
        return moved

    # -------------------------------------------------------------------------------------------------------- leaving

    def _leave(self, beat: Heartbeat) -> StateChange[ConsumerGroupHeartbeatResponse]:
        group = self._group(beat.group_id)
        response = ConsumerGroupHeartbeatResponse(member_id=beat.member_id, member_epoch=beat.member_epoch)
        if beat.instance_id is None:
            return self.fence(group, [group.member(beat.member_id)], response)
        found = group.static_member(beat.instance_id)
        member = check_instance(found, beat.instance_id, beat.member_id)
        if beat.member_epoch == LEAVE_EPOCH:
            return self.fence(group, [member], response)
        # It will be back: what it has is kept for whoever comes with its instance id.
        kept = {topic: dict.fromkeys(partitions, 0) for topic, partitions in member.assigned.items()}
        away = replace(member, member_epoch=LEAVE_STATIC_EPOCH, assigned=kept, to_revoke={})
        response.member_epoch = LEAVE_STATIC_EPOCH
        return StateChange([records_of.current_record(group.group_id, away)], response)

    def fence(self, group: ConsumerGroup, members: Sequence[ConsumerMember], response: R) -> StateChange[R]:
        """Members are members no more, by their own will or not; the others share what they had."""
        if not members:
            return StateChange((), response)
        gone = {member.member_id for member in members}
        for member_id in gone:
            for timer in ("session", "rebalance", "rejoin", "sync"):
                self._timers.cancel((timer, group.group_id, member_id))
        stay = [member for member in group.members.values() if member.member_id not in gone]
        if can_downgrade(group, stay, self._settings(group.group_id)):
            return self.downgrade(group, stay, response)
        records: Records = []
        for member_id in gone:
            records += records_of.member_tombstones(group.group_id, member_id)
        patterns = {member.topic_pattern for member in stay}
        for pattern in {member.topic_pattern for member in members if member.topic_pattern} - patterns:
            records.append(records_of.pattern_tombstone(group.group_id, pattern))
        metadata_hash = self._hashes.of(group.subscribed_topics(stay), self._image())
        records.append(records_of.epoch_record(group.group_id, group.epoch + 1, metadata_hash))
        return StateChange(records, response)

    def downgrade(self, group: ConsumerGroup, members: Sequence[ConsumerMember], response: R) -> StateChange[R]:
        """Only members that speak the classic protocol are left: they go on as a classic group."""
        records = downgrade(group, members, self._image())

        def done(error: ErrorCode, now_ms: int) -> None:
            if error is ErrorCode.NONE:
                for member in members:
                    for timer in ("session", "rejoin", "sync"):
                        self._timers.cancel((timer, group.group_id, member.member_id))
                self._downgraded(group.group_id, now_ms)

        return StateChange(records, response, on_done=done)

    # ---------------------------------------------------------------------------------------------------------- time

    def watch_session(self, group_id: str, member: ConsumerMember, now_ms: int) -> None:
        """It was heard of: from now on it may be silent for as long as its session lasts."""
        timeout_ms = (
            self._settings(group_id).session_timeout_ms if member.classic is None else member.classic.session_timeout_ms
        )
        self._timers.schedule(
            ("session", group_id, member.member_id),
            now_ms + timeout_ms,
            lambda now_ms: self.fence_silent(group_id, member.member_id, "its session has expired"),
        )

    def _watch_revocation(self, group_id: str, member: ConsumerMember, now_ms: int) -> None:
        """A member that has to let go of partitions gets as long for it as it asked for."""
        key = ("rebalance", group_id, member.member_id)
        if member.state is not MemberState.UNREVOKED_PARTITIONS:
            self._timers.cancel(key)
            return

        def expired(_: int) -> StateChange[None] | None:
            return self._did_not_revoke(group_id, member.member_id, member.member_epoch)

        self._timers.schedule(key, now_ms + member.rebalance_timeout_ms, expired)

    def _did_not_revoke(self, group_id: str, member_id: str, epoch: int) -> StateChange[None] | None:
        group = self._groups.get(group_id)
        member = group.members.get(member_id) if isinstance(group, ConsumerGroup) else None
        if member is None or member.member_epoch != epoch:
            return None
        return self.fence_silent(group_id, member_id, f"it did not leave epoch {epoch} in time")

    def fence_silent(self, group_id: str, member_id: str, reason: str) -> StateChange[None] | None:
        group = self._groups.get(group_id)
        if not isinstance(group, ConsumerGroup) or member_id not in group.members:
            return None
        _log.info("group %s: member %s is fenced: %s", group_id, member_id, reason)
        return self.fence(group, [group.members[member_id]], None)

    def loaded(self, group: ConsumerGroup, now_ms: int) -> None:
        """The log has been read to its end: everybody has a whole session to show up."""
        for member in group.members.values():
            self.watch_session(group.group_id, member, now_ms)
            self._watch_revocation(group.group_id, member, now_ms)


def _topic_ids(group: ConsumerGroup, member: ConsumerMember, image: MetadataImage) -> frozenset[bytes]:
    return frozenset(image.topics[name].id for name in group.topics_of(member) if name in image.topics)
