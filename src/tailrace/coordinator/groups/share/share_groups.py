"""ShareGroups: the ShareGroupHeartbeat request: join, report changes, get an assignment, leave.

The steps are those of any epoch group (`epoch/epoch_engine.py`). What share groups add:

    epoch      the group epoch is also bumped when partitions have been initialized but are not assigned
    current    the member has its target at once, because no member has to revoke anything
    topics     partitions without a state are initialized by the share coordinator; only then are they assigned
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from tailrace.coordinator.groups.epoch.epoch_engine import EpochEngine, Records
from tailrace.coordinator.groups.epoch.epoch_group import Assignment
from tailrace.coordinator.groups.epoch.epoch_member import JOIN_EPOCH, LEAVE_EPOCH, MemberState, check_epoch
from tailrace.coordinator.groups.epoch.epoch_replay import EpochReplay
from tailrace.coordinator.groups.epoch.record_fields import PartitionLists
from tailrace.coordinator.groups.epoch.subscriptions import Subscription
from tailrace.coordinator.groups.epoch.target_computations import Submit
from tailrace.coordinator.groups.group import Group
from tailrace.coordinator.groups.share.share_assignor import NAME
from tailrace.coordinator.groups.share.share_group import ShareGroup
from tailrace.coordinator.groups.share.share_heartbeat import Initialization, ShareHeartbeat, ShareHeartbeatResult
from tailrace.coordinator.groups.share.share_member import ShareMember
from tailrace.coordinator.groups.share.share_records import SHARE_RECORDS, read_topics, topics_record
from tailrace.coordinator.groups.share.share_settings import ShareSettings
from tailrace.coordinator.groups.share.share_target import share_target
from tailrace.coordinator.groups.share.share_topics import ShareTopics
from tailrace.coordinator.shard import StateChange
from tailrace.coordinator.timers import Timers
from tailrace.metadata.image.image import MetadataImage
from tailrace.protocol.messages import (
    ShareGroupDescribeResponse,
    ShareGroupHeartbeatResponse,
    ShareGroupStatePartitionMetadataKey,
)

R = TypeVar("R")

NO_OFFSET: Final = -1  # the start offset follows from share.auto.offset.reset

_RESPONSE_LISTS: PartitionLists[bytes] = PartitionLists(ShareGroupHeartbeatResponse.TopicPartitions, "topic_id")


class ShareGroups:
    def __init__(
        self,
        groups: MutableMapping[str, Group],
        timers: Timers,
        settings: Callable[[str], ShareSettings],
        image: Callable[[], MetadataImage],
        submit: Submit,
    ) -> None:
        """`settings(group_id)` returns the broker's settings with the group's own. `submit` runs work on another
        thread."""
        self._groups = groups
        self._settings = settings
        self._image = image
        self._engine: EpochEngine[ShareGroup, ShareMember, Assignment] = EpochEngine(
            ShareGroup,
            SHARE_RECORDS,
            groups,
            timers,
            image,
            lambda group, members: self._fence(group, members, None),
            submit,
        )
        self.find = self._engine.find
        self.group = self._engine.group
        self.replay = EpochReplay(
            ShareGroup, SHARE_RECORDS, (ShareGroupStatePartitionMetadataKey,), self._replay_topics
        )
        self._now_ms = 0

    def begin_operation(self, now_ms: int) -> None:
        """Store the time of an operation. Topics in its records begin to initialize at this time."""
        self._now_ms = now_ms

    def group_or_new(self, group_id: str) -> ShareGroup:
        return ShareGroup(group_id) if group_id not in self._groups else self.group(group_id)

    def describe(self, group_id: str) -> ShareGroupDescribeResponse.DescribedGroup:
        return self.group(group_id).described(NAME, self._image())

    # Heartbeat

    def heartbeat(self, beat: ShareHeartbeat, now_ms: int) -> StateChange[ShareHeartbeatResult]:
        self.begin_operation(now_ms)
        if beat.member_epoch == LEAVE_EPOCH:
            response = ShareGroupHeartbeatResponse(member_id=beat.member_id, member_epoch=beat.member_epoch)
            group = self.group(beat.group_id)
            return self._fence(group, [group.member(beat.member_id)], ShareHeartbeatResult(response))
        joins = beat.member_epoch == JOIN_EPOCH
        group = self.group_or_new(beat.group_id) if joins else self.group(beat.group_id)
        settings = self._settings(beat.group_id)
        self._engine.check_room(group, beat.member_id, settings)
        if joins:
            before = group.members.get(beat.member_id) or ShareMember(beat.member_id)
        else:
            before = group.member(beat.member_id)
            check_epoch(group.type, before, beat.member_epoch)
        records: Records = []
        member = before.with_reported(
            rack_id=beat.rack_id, topic_names=beat.topic_names, client_id=beat.client_id, client_host=beat.client_host
        )
        self._engine.store_member(group, before, member, records)
        bump = member.topic_names != before.topic_names or (
            group.target_epoch >= group.epoch and group.lacks_initialized_partitions
        )
        epoch = self._engine.bump_epoch_if_changed(
            group, lambda: group.topics_with(member, self._image().topics), bump, records
        )
        target_epoch, target = self._next_target(group, epoch, member, settings, records, now_ms)
        moved = self._reconcile(member, target_epoch, target, epoch > group.epoch)
        self._engine.store_current(group, member, moved, records)
        self._engine.timers.restart_session(group.group_id, moved.member_id, settings.session_timeout_ms, now_ms)
        response = ShareGroupHeartbeatResponse(
            member_id=moved.member_id,
            member_epoch=moved.member_epoch,
            heartbeat_interval_ms=settings.heartbeat_interval_ms,
        )
        if joins or beat.topic_names is not None or moved.assigned != before.assigned:
            partitions = _RESPONSE_LISTS.write(moved.assigned)
            response.assignment = ShareGroupHeartbeatResponse.Assignment(topic_partitions=partitions)
        to_initialize = self._initialize(group, epoch, moved, settings, records, now_ms)
        return StateChange(records, ShareHeartbeatResult(response, to_initialize))

    def _next_target(
        self,
        group: ShareGroup,
        epoch: int,
        member: ShareMember,
        settings: ShareSettings,
        records: Records,
        now_ms: int,
    ) -> tuple[int, Assignment]:
        """Return the target epoch and the target assignment of this member."""
        if group.target_epoch >= epoch or self._engine.is_too_soon(group, settings, now_ms):
            return group.target_epoch, group.target.get(member.member_id, {})
        target = self._engine.assign(group, share_target(group, epoch, member, self._image()), records, now_ms)
        if target is None:
            return group.target_epoch, group.target.get(member.member_id, {})
        return epoch, target[member.member_id]

    def _reconcile(self, member: ShareMember, target_epoch: int, target: Assignment, is_bumped: bool) -> ShareMember:
        """Return the member with the part of its target that it still subscribes to."""
        if not is_bumped and member.is_reconciled_to(target_epoch):
            return member
        by_id = self._image().topics_by_id
        assigned = {
            topic: numbers
            for topic, numbers in target.items()
            if topic in by_id and by_id[topic].name in member.topic_names
        }
        if target_epoch != member.member_epoch:
            return member.moved_to(target_epoch, MemberState.STABLE, assigned=assigned)
        return replace(member, assigned=assigned) if is_bumped else member

    def _initialize(
        self,
        group: ShareGroup,
        epoch: int,
        member: ShareMember,
        settings: ShareSettings,
        records: Records,
        now_ms: int,
    ) -> Initialization | None:
        """Return the subscribed partitions that have no state yet, or None."""
        image = self._image()
        names = group.topics_with(member, image.topics)
        known = group.topics or ShareTopics()
        missing = known.missing(names, image, now_ms, settings.initialize_retry_ms)
        if not missing:
            return None
        records.append(topics_record(group.group_id, known.begun(missing), image))
        offsets = {topic: dict.fromkeys(sorted(one.partitions), NO_OFFSET) for topic, one in missing.items()}
        return Initialization(group.group_id, epoch, offsets)

    # Leave, load, replay

    def _fence(self, group: ShareGroup, members: Sequence[ShareMember], response: R) -> StateChange[R]:
        """Remove members that leave or have timed out."""
        removed = [member.member_id for member in members]
        records = self._engine.remove(group, removed)
        left = [Subscription(member.topic_names) for member in members]
        metadata_hash = self._engine.hash_of(group.subscriptions.among(self._image().topics, left))
        records.append(SHARE_RECORDS.group_record(group.group_id, group.epoch + 1, metadata_hash))
        return StateChange(records, response)

    def loaded(self, group: ShareGroup, now_ms: int) -> None:
        """Give every member a whole session after the log has been loaded."""
        if group.topics is not None:
            group.put_topics(replace(group.topics, since_ms=now_ms))
        timeout_ms = self._settings(group.group_id).session_timeout_ms
        for member_id in group.members:
            self._engine.timers.restart_session(group.group_id, member_id, timeout_ms, now_ms)

    def _replay_topics(self, group: ShareGroup, key: Any, value: Any) -> None:
        group.put_topics(None if value is None else read_topics(value, self._now_ms))
