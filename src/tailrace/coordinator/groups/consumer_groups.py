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
from collections.abc import Callable, MutableMapping
from dataclasses import replace

from tailrace.coordinator.groups import consumer_records as records_of
from tailrace.coordinator.groups.assignors import ASSIGNORS, Assignment, MemberSpec
from tailrace.coordinator.groups.consumer_description import describe_consumer_group
from tailrace.coordinator.groups.consumer_group import ConsumerGroup
from tailrace.coordinator.groups.consumer_member import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    LEAVE_STATIC_EPOCH,
    ConsumerMember,
    MemberState,
)
from tailrace.coordinator.groups.consumer_settings import ConsumerSettings
from tailrace.coordinator.groups.group import Group
from tailrace.coordinator.groups.heartbeat import Heartbeat, check_epoch, check_instance, told_of
from tailrace.coordinator.groups.metadata_hash import TopicHashes
from tailrace.coordinator.groups.reconciliation import Owned, reconcile
from tailrace.coordinator.shard import CoordinatorRecord, StateChange
from tailrace.coordinator.timers import Timers
from tailrace.metadata.image import MetadataImage
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol.messages import ConsumerGroupDescribeResponse, ConsumerGroupHeartbeatResponse

_log = logging.getLogger(__name__)

Records = list[CoordinatorRecord]

PATTERN_REFRESH_MS_MIN = 10_000  # patterns are not looked up again before this, however many heartbeats ask for it


class ConsumerGroups:
    def __init__(
        self,
        groups: MutableMapping[str, Group],
        timers: Timers,
        settings: Callable[[str], ConsumerSettings],
        image: Callable[[], MetadataImage],
        new_member_id: Callable[[], str],
    ) -> None:
        """`settings(group_id)` are the broker's, with what is set for the group itself."""
        self._groups = groups
        self._timers = timers
        self._settings = settings
        self._image = image
        self._new_member_id = new_member_id
        self._hashes = TopicHashes()

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
        group = self._group_to_join(beat.group_id, records) if joins else self._group(beat.group_id)
        settings = self._settings(beat.group_id)
        if len(group.members) >= settings.size_max and beat.member_id not in group.members:
            raise KafkaError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The consumer group has reached its maximum capacity of {settings.size_max} members.",
            )
        member_id = beat.member_id or self._new_member_id()
        before = self._member(group, beat, member_id, records)
        member = told_of(before, beat)
        if member != before:
            records.append(records_of.member_record(group.group_id, member))
        names_changed = member.topic_names != before.topic_names
        pattern_changed, pattern_counts = self._change_pattern(group, before, member, settings, records, now_ms)
        epoch = self._next_epoch(group, member, names_changed or pattern_counts, records)
        target_epoch, target = self._next_target(group, epoch, member, settings, records, now_ms)
        moved = self._reconcile(
            group, member, target_epoch, target, beat.owned, names_changed or pattern_changed, records, now_ms
        )
        self._extend_session(group.group_id, member_id, settings.session_timeout_ms, now_ms)
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

    def _group_to_join(self, group_id: str, records: Records) -> ConsumerGroup:
        group = self._groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return group
        if group is None:
            return ConsumerGroup(group_id)
        if group.type == "classic" and group.is_empty:
            records += group.tombstones()
            return ConsumerGroup(group_id)
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")

    def _member(self, group: ConsumerGroup, beat: Heartbeat, member_id: str, records: Records) -> ConsumerMember:
        """The member that the heartbeat is of, as it was so far; a KafkaError if it is not current."""
        if beat.instance_id is None:
            if beat.member_epoch == JOIN_EPOCH:
                return group.members.get(member_id) or ConsumerMember(member_id)
            member = group.member(member_id)
        else:
            found = group.static_member(beat.instance_id)
            if beat.member_epoch == JOIN_EPOCH:
                return self._joining_static_member(group, found, beat.instance_id, member_id, records)
            member = check_instance(found, beat.instance_id, member_id)
        check_epoch(member, beat.member_epoch, beat.owned)
        return member

    def _joining_static_member(
        self, group: ConsumerGroup, found: ConsumerMember | None, instance_id: str, member_id: str, records: Records
    ) -> ConsumerMember:
        if found is None:
            return group.members.get(member_id) or ConsumerMember(member_id)
        if found.classic is None and found.member_epoch != LEAVE_STATIC_EPOCH:
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

    # ---------------------------------------------------------------------------------------------- regular expressions

    def _change_pattern(
        self,
        group: ConsumerGroup,
        before: ConsumerMember,
        member: ConsumerMember,
        settings: ConsumerSettings,
        records: Records,
        now_ms: int,
    ) -> tuple[bool, bool]:
        """Whether the member's pattern has changed, and whether that changes what the group subscribes to now. A new
        one does not: it is looked up later, and is then a change of its own."""
        old, new = before.topic_pattern, member.topic_pattern
        changed = old != new
        counts = False
        is_new = False
        if changed:
            if old and group.pattern_count(old) == 1:
                records.append(records_of.pattern_tombstone(group.group_id, old))
            if new:
                is_new = group.pattern_count(new) == 0
                if is_new:  # imported when needed: most groups have no pattern, and RE2 takes its time to load
                    from tailrace.coordinator.groups.topic_patterns import check_pattern

                    check_pattern(new)
                counts = not is_new and new in group.patterns
            else:
                counts = bool(old)
        patterns = {one.topic_pattern for one in group.members_with(member).values() if one.topic_pattern}
        if patterns and (is_new or self._are_stale(group, patterns, settings, now_ms)):
            key = ("patterns", group.group_id)
            if key not in self._timers:
                self._timers.schedule(key, now_ms, lambda now_ms: self._look_up_patterns(group.group_id, now_ms))
        return changed, counts

    def _are_stale(self, group: ConsumerGroup, patterns: set[str], settings: ConsumerSettings, now_ms: int) -> bool:
        last = min(group.patterns.values(), key=lambda resolved: resolved.timestamp_ms, default=None)
        if last is None:
            return True
        if now_ms <= last.timestamp_ms + PATTERN_REFRESH_MS_MIN:
            return False
        if patterns != group.patterns.keys() or now_ms > last.timestamp_ms + settings.pattern_refresh_ms:
            return True
        return group.looked_at_topics is not self._image().topics

    def _look_up_patterns(self, group_id: str, now_ms: int) -> StateChange[None] | None:
        group = self._groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            return None
        from tailrace.coordinator.groups.topic_patterns import matching_topics

        image = self._image()
        patterns = {member.topic_pattern for member in group.members.values() if member.topic_pattern}
        found = matching_topics(patterns, image.topics.keys())
        records: Records = []
        topics = set().union(*(member.topic_names for member in group.members.values()), *found.values())
        bump = False
        for pattern, matching in found.items():
            known = group.patterns.get(pattern)
            bump |= (known.topics if known is not None else frozenset()) != matching
            records.append(records_of.pattern_record(group_id, pattern, matching, image.offset, now_ms))
        metadata_hash = self._hashes.of(topics, image)
        if bump or metadata_hash != group.metadata_hash:
            records.append(records_of.epoch_record(group_id, group.epoch + 1, metadata_hash))
        group.looked_at_topics = image.topics
        return StateChange(records, None)

    # -------------------------------------------------------------------------------------------------------- leaving

    def _leave(self, beat: Heartbeat) -> StateChange[ConsumerGroupHeartbeatResponse]:
        group = self._group(beat.group_id)
        response = ConsumerGroupHeartbeatResponse(member_id=beat.member_id, member_epoch=beat.member_epoch)
        if beat.instance_id is None:
            return StateChange(self.fence(group, [group.member(beat.member_id)]), response)
        found = group.static_member(beat.instance_id)
        member = check_instance(found, beat.instance_id, beat.member_id)
        if beat.member_epoch == LEAVE_EPOCH:
            return StateChange(self.fence(group, [member]), response)
        # It will be back: what it has is kept for whoever comes with its instance id.
        kept = {topic: dict.fromkeys(partitions, 0) for topic, partitions in member.assigned.items()}
        away = replace(member, member_epoch=LEAVE_STATIC_EPOCH, assigned=kept, to_revoke={})
        response.member_epoch = LEAVE_STATIC_EPOCH
        return StateChange([records_of.current_record(group.group_id, away)], response)

    def fence(self, group: ConsumerGroup, members: list[ConsumerMember]) -> Records:
        """Members are members no more, by their own will or not; the others share what they had."""
        records: Records = []
        gone = {member.member_id for member in members}
        for member_id in gone:
            records += records_of.member_tombstones(group.group_id, member_id)
        stay = [member for member in group.members.values() if member.member_id not in gone]
        patterns = {member.topic_pattern for member in stay}
        for pattern in {member.topic_pattern for member in members if member.topic_pattern} - patterns:
            records.append(records_of.pattern_tombstone(group.group_id, pattern))
        image = self._image()
        metadata_hash = self._hashes.of(group.subscribed_topics(stay), image)
        records.append(records_of.epoch_record(group.group_id, group.epoch + 1, metadata_hash))
        for member_id in gone:
            self._timers.cancel(("session", group.group_id, member_id))
            self._timers.cancel(("rebalance", group.group_id, member_id))
        return records

    # ---------------------------------------------------------------------------------------------------------- time

    def _extend_session(self, group_id: str, member_id: str, timeout_ms: int, now_ms: int) -> None:
        self._timers.schedule(
            ("session", group_id, member_id),
            now_ms + timeout_ms,
            lambda now_ms: self._fence_silent(group_id, member_id, "its session has expired"),
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
        return self._fence_silent(group_id, member_id, f"it did not leave epoch {epoch} in time")

    def _fence_silent(self, group_id: str, member_id: str, reason: str) -> StateChange[None] | None:
        group = self._groups.get(group_id)
        if not isinstance(group, ConsumerGroup) or member_id not in group.members:
            return None
        _log.info("group %s: member %s is fenced: %s", group_id, member_id, reason)
        return StateChange(self.fence(group, [group.members[member_id]]), None)

    def loaded(self, group: ConsumerGroup, now_ms: int) -> None:
        """The log has been read to its end: everybody has a whole session to show up."""
        settings = self._settings(group.group_id)
        for member in group.members.values():
            self._extend_session(group.group_id, member.member_id, settings.session_timeout_ms, now_ms)
            self._watch_revocation(group.group_id, member, now_ms)


def _topic_ids(group: ConsumerGroup, member: ConsumerMember, image: MetadataImage) -> frozenset[bytes]:
    return frozenset(image.topics[name].id for name in group.topics_of(member) if name in image.topics)
