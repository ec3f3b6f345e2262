"""ConsumerGroups: the ConsumerGroupHeartbeat request: join, report changes, get an assignment, leave.

The steps are those of any epoch group (`epoch/epoch_engine.py`). What consumer groups add:

    member     static members, which keep their place by an instance id
    epoch      subscriptions by regular expression, which are looked up later (`pattern_subscriptions.py`)
    leave      conversion into a classic group when only members with the classic protocol are left
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import replace
from typing import TypeVar

from tailrace.coordinator.groups.classic.classic_group import ClassicGroup
from tailrace.coordinator.groups.consumer.consumer_assignors import consumer_target, topic_ids
from tailrace.coordinator.groups.consumer.consumer_description import describe_consumer_group
from tailrace.coordinator.groups.consumer.consumer_group import ConsumerGroup
from tailrace.coordinator.groups.consumer.consumer_heartbeat import ConsumerHeartbeat, check_instance, with_heartbeat
from tailrace.coordinator.groups.consumer.consumer_member import ConsumerMember
from tailrace.coordinator.groups.consumer.consumer_reconciliation import Owned, reconcile
from tailrace.coordinator.groups.consumer.consumer_records import (
    CONSUMER_RECORDS,
    partition_metadata_tombstone,
    pattern_tombstone,
)
from tailrace.coordinator.groups.consumer.consumer_settings import ConsumerSettings
from tailrace.coordinator.groups.consumer.group_conversion import can_downgrade, downgrade, upgrade
from tailrace.coordinator.groups.consumer.pattern_subscriptions import PatternSubscriptions
from tailrace.coordinator.groups.epoch.epoch_engine import EpochEngine, Records
from tailrace.coordinator.groups.epoch.epoch_group import Assignment
from tailrace.coordinator.groups.epoch.epoch_member import JOIN_EPOCH, LEAVE_EPOCH, LEAVE_STATIC_EPOCH, check_epoch
from tailrace.coordinator.groups.epoch.reconciliation import contains
from tailrace.coordinator.groups.epoch.record_fields import PartitionLists
from tailrace.coordinator.groups.epoch.target_computations import Submit
from tailrace.coordinator.groups.group import Group, IsVisible
from tailrace.coordinator.shard import StateChange
from tailrace.coordinator.timers import Timers
from tailrace.metadata.image.image import MetadataImage
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol.messages import ConsumerGroupDescribeResponse, ConsumerGroupHeartbeatResponse

R = TypeVar("R")

_RESPONSE_LISTS: PartitionLists[bytes] = PartitionLists(ConsumerGroupHeartbeatResponse.TopicPartitions, "topic_id")


class ConsumerGroups:
    def __init__(
        self,
        groups: MutableMapping[str, Group],
        timers: Timers,
        settings: Callable[[str], ConsumerSettings],
        image: Callable[[], MetadataImage],
        new_member_id: Callable[[], str],
        on_downgrade: Callable[[str, int], None],
        submit: Submit,
    ) -> None:
        """`settings(group_id)` returns the broker's settings with the group's own; `on_downgrade(group_id, now_ms)` is
        called when a group has been converted into a classic group. `submit` runs work on another thread."""
        self._groups = groups
        self._settings = settings
        self._image = image
        self._new_member_id = new_member_id
        self._on_downgrade = on_downgrade
        self._engine: EpochEngine[ConsumerGroup, ConsumerMember, Assignment] = EpochEngine(
            ConsumerGroup,
            CONSUMER_RECORDS,
            groups,
            timers,
            image,
            lambda group, members: self.fence(group, members, None),
            submit,
        )
        self.timers = self._engine.timers
        self._patterns = PatternSubscriptions(self._engine.find, timers, image, self._engine.hash_of)

    def describe(self, group_id: str) -> ConsumerGroupDescribeResponse.DescribedGroup:
        group = self._engine.group(group_id)
        return describe_consumer_group(group, self._settings(group_id).assignors[0], self._image())

    # ------------------------------------------------------------------------------------------------------- heartbeat

    def heartbeat(self, beat: ConsumerHeartbeat, now_ms: int) -> StateChange[ConsumerGroupHeartbeatResponse]:
        if beat.member_epoch in (LEAVE_EPOCH, LEAVE_STATIC_EPOCH):
            return self._leave(beat)
        records: Records = []
        joins = beat.member_epoch == JOIN_EPOCH
        settings = self._settings(beat.group_id)
        group = (
            self._group_to_join(beat.group_id, settings, records, now_ms)
            if joins
            else self._engine.group(beat.group_id)
        )
        self._engine.check_room(group, beat.member_id, settings)
        member_id = beat.member_id or self._new_member_id()
        before = self._member(group, beat, member_id, records)
        member = with_heartbeat(before, beat)
        moved = self.advance(group, before, member, beat.owned, settings, records, now_ms, beat.is_visible)
        self.restart_session(group.group_id, moved, settings, now_ms)
        response = ConsumerGroupHeartbeatResponse(
            member_id=member_id, member_epoch=moved.member_epoch, heartbeat_interval_ms=settings.heartbeat_interval_ms
        )
        if joins or beat.is_full or moved.assigned != before.assigned:
            partitions = _RESPONSE_LISTS.write(moved.assigned)
            response.assignment = ConsumerGroupHeartbeatResponse.Assignment(topic_partitions=partitions)
        return StateChange(records, response)

    def advance(
        self,
        group: ConsumerGroup,
        before: ConsumerMember,
        member: ConsumerMember,
        owned: Owned | None,
        settings: ConsumerSettings,
        records: Records,
        now_ms: int,
        is_visible: IsVisible,
    ) -> ConsumerMember:
        """Store a changed member, bump epoch and target if needed, and return the member after its next step."""
        self._engine.store_member(group, before, member, records)
        names_changed = member.topic_names != before.topic_names
        pattern = self._patterns.change(group, before, member, settings, records, now_ms, is_visible)
        epoch = self._engine.bump_epoch_if_changed(
            group,
            lambda: group.topics_with(member, self._image().topics),
            names_changed or pattern.changes_topics,
            records,
        )
        if group.has_partition_metadata:
            records.append(partition_metadata_tombstone(group.group_id))
        target_epoch, target = self._next_target(group, epoch, member, settings, records, now_ms)
        subscription_changed = names_changed or pattern.is_changed
        if not subscription_changed and member.is_reconciled_to(target_epoch):
            return member
        moved = reconcile(
            member,
            target_epoch,
            target,
            topic_ids(group.topics_of(member), self._image()),
            owned,
            group.is_held,
            subscription_changed=subscription_changed,
        )
        if self._engine.store_current(group, member, moved, records):
            self.timers.limit_revocation(group.group_id, moved, moved.rebalance_timeout_ms, now_ms)
        return moved

    def _next_target(
        self,
        group: ConsumerGroup,
        epoch: int,
        member: ConsumerMember,
        settings: ConsumerSettings,
        records: Records,
        now_ms: int,
    ) -> tuple[int, Assignment]:
        """Return the target epoch and the target assignment of this member."""
        if group.target_epoch >= epoch or self._engine.is_too_soon(group, settings, now_ms):
            return group.target_epoch, group.target_of(member)
        target = self._engine.assign(
            group, consumer_target(group, epoch, member, self._image(), settings.assignors[0]), records, now_ms
        )
        return (group.target_epoch, group.target_of(member)) if target is None else (epoch, target[member.member_id])

    # ------------------------------------------------------------------------------------------------------- joining

    def _group_to_join(self, group_id: str, settings: ConsumerSettings, records: Records, now_ms: int) -> ConsumerGroup:
        """Return the group, a new one, or a classic group converted into a consumer group."""
        found = self._groups.get(group_id)
        if found is None:
            return ConsumerGroup(group_id)
        if not isinstance(found, ClassicGroup):
            return self._engine.group(group_id)
        if found.is_empty:
            records += found.tombstones()
            return ConsumerGroup(group_id)
        upgraded = upgrade(found, settings, self._image(), self._engine.hash_of, records, now_ms)
        for member in upgraded.members.values():
            self.restart_session(group_id, member, settings, now_ms)
        return upgraded

    def _member(
        self, group: ConsumerGroup, beat: ConsumerHeartbeat, member_id: str, records: Records
    ) -> ConsumerMember:
        """Return the member before this heartbeat. Raise a KafkaError if the heartbeat is not current."""
        if beat.instance_id is None:
            if beat.member_epoch == JOIN_EPOCH:
                return group.members.get(member_id) or ConsumerMember(member_id)
            member = group.member(member_id)
        else:
            found = group.static_member(beat.instance_id)
            if beat.member_epoch == JOIN_EPOCH:
                return self.static_newcomer(group, found, beat.instance_id, member_id, records)
            member = check_instance(found, beat.instance_id, member_id)
        check_epoch(
            group.type,
            member,
            beat.member_epoch,
            lambda: beat.owned is not None and contains(member.assigned, beat.owned),
        )
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
        """Return a joining member with an instance id, which replaces the member `found` with the same instance id."""
        if found is None:
            return group.members.get(member_id) or ConsumerMember(member_id)
        if not may_take_over and found.classic is None and found.member_epoch != LEAVE_STATIC_EPOCH:
            raise KafkaError(
                ErrorCode.UNRELEASED_INSTANCE_ID,
                f"Static member {member_id} with instance id {instance_id} cannot join the group because the instance "
                f"id is owned by {found.member_id} member.",
            )
        group_id = group.group_id
        member = replace(found, member_id=member_id, member_epoch=JOIN_EPOCH, previous_epoch=JOIN_EPOCH)
        records += CONSUMER_RECORDS.member_tombstones(group_id, found.member_id)
        records.append(CONSUMER_RECORDS.member_record(group_id, member))
        records.append(CONSUMER_RECORDS.target_record(group_id, member_id, group.target.get(found.member_id, {})))
        records.append(CONSUMER_RECORDS.current_record(group_id, member))
        return member

    # -------------------------------------------------------------------------------------------------------- leaving

    def _leave(self, beat: ConsumerHeartbeat) -> StateChange[ConsumerGroupHeartbeatResponse]:
        group = self._engine.group(beat.group_id)
        response = ConsumerGroupHeartbeatResponse(member_id=beat.member_id, member_epoch=beat.member_epoch)
        if beat.instance_id is None:
            return self.fence(group, [group.member(beat.member_id)], response)
        member = check_instance(group.static_member(beat.instance_id), beat.instance_id, beat.member_id)
        if beat.member_epoch == LEAVE_EPOCH:
            return self.fence(group, [member], response)
        # The static member will return: its partitions are kept for the next member with its instance id.
        kept = {topic: dict.fromkeys(partitions, 0) for topic, partitions in member.assigned.items()}
        left = replace(member, member_epoch=LEAVE_STATIC_EPOCH, assigned=kept, to_revoke={})
        response.member_epoch = LEAVE_STATIC_EPOCH
        return StateChange([CONSUMER_RECORDS.current_record(group.group_id, left)], response)

    def fence(self, group: ConsumerGroup, members: Sequence[ConsumerMember], response: R) -> StateChange[R]:
        """Remove members that leave or have timed out; the group's next epoch shares out their partitions."""
        if not members:
            return StateChange((), response)
        removed = {member.member_id for member in members}
        records = self._engine.remove(group, removed)
        if group.is_classic_without(members):
            stay = [member for member in group.members.values() if member.member_id not in removed]
            if can_downgrade(stay, self._settings(group.group_id)):
                return self.downgrade(group, stay, response)
        for pattern, users in Counter(member.topic_pattern for member in members if member.topic_pattern).items():
            if users == group.subscriptions.users(pattern):
                records.append(pattern_tombstone(group.group_id, pattern))
        metadata_hash = self._engine.hash_of(group.topics_without(members, self._image().topics))
        records.append(CONSUMER_RECORDS.group_record(group.group_id, group.epoch + 1, metadata_hash))
        return StateChange(records, response)

    def downgrade(self, group: ConsumerGroup, members: Sequence[ConsumerMember], response: R) -> StateChange[R]:
        """Convert the group into a classic group of the given members, which all use the classic protocol."""
        records = downgrade(group, members, self._image())

        def done(error: ErrorCode, now_ms: int) -> None:
            if error is ErrorCode.NONE:
                for member in members:
                    self.timers.cancel(group.group_id, member.member_id, ("session", "rejoin", "sync"))
                self._on_downgrade(group.group_id, now_ms)

        return StateChange(records, response, on_done=done)

    # ---------------------------------------------------------------------------------------------------------- time

    def restart_session(self, group_id: str, member: ConsumerMember, settings: ConsumerSettings, now_ms: int) -> None:
        timeout_ms = settings.session_timeout_ms if member.classic is None else member.classic.session_timeout_ms
        self.timers.restart_session(group_id, member.member_id, timeout_ms, now_ms)

    def loaded(self, group: ConsumerGroup, now_ms: int) -> None:
        """Give every member a whole session after the log has been loaded."""
        settings = self._settings(group.group_id)
        for member in group.members.values():
            self.restart_session(group.group_id, member, settings, now_ms)
            self.timers.limit_revocation(group.group_id, member, member.rebalance_timeout_ms, now_ms)
