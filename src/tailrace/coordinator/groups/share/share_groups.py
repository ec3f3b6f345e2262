"""ShareGroups: what ShareGroupHeartbeat does: join, tell, be told, leave.

A heartbeat is worked off in steps, each of which may leave records:

    member     who is it, is its epoch current; what is new about it
    epoch      have subscriptions or topics changed, or is there more to assign: the group moves to its next epoch
    target     everybody's share is computed for that epoch, at most once in a while
    current    this member has its share
    topics     partitions whose state nobody keeps yet are to be initialized; only then are they assigned

The state is what replaying those records makes of it, so nothing here changes a group.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, MutableMapping
from dataclasses import replace
from typing import NamedTuple, TypeVar

from tailrace.coordinator.groups.consumer.assignors import Assignment
from tailrace.coordinator.groups.consumer.consumer_member import JOIN_EPOCH, LEAVE_EPOCH, MemberState
from tailrace.coordinator.groups.group import Group
from tailrace.coordinator.groups.metadata_hash import TopicHashes
from tailrace.coordinator.groups.share import share_records as records_of
from tailrace.coordinator.groups.share.share_group import ShareGroup, subscribed_names
from tailrace.coordinator.groups.share.share_member import ShareMember
from tailrace.coordinator.groups.share.share_settings import ShareSettings
from tailrace.coordinator.groups.share.share_topics import ShareTopics
from tailrace.coordinator.groups.share.simple_assignor import NAME, ShareSpec, assign_simple
from tailrace.coordinator.shard import CoordinatorRecord, StateChange
from tailrace.coordinator.timers import Timers
from tailrace.metadata.image.image import MetadataImage
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol.messages import ShareGroupDescribeResponse, ShareGroupHeartbeatResponse

_log = logging.getLogger(__name__)

Records = list[CoordinatorRecord]
Offsets = dict[bytes, dict[int, int]]  # topic id → partition → where to begin
R = TypeVar("R")

NO_OFFSET = -1  # where share.auto.offset.reset says


class ShareBeat(NamedTuple):
    """A ShareGroupHeartbeat request, free of the memory it was received in; None is what did not change."""

    group_id: str
    member_id: str
    member_epoch: int
    client_id: str
    client_host: str
    rack_id: str | None = None
    topic_names: frozenset[str] | None = None


class Initialization(NamedTuple):
    """What the share coordinator is to be asked for."""

    group_id: str
    state_epoch: int
    offsets: Offsets

    @property
    def partitions(self) -> dict[bytes, frozenset[int]]:
        return {topic: frozenset(offsets) for topic, offsets in self.offsets.items()}


class Beaten(NamedTuple):
    response: ShareGroupHeartbeatResponse
    to_initialize: Initialization | None = None


class ShareGroups:
    def __init__(
        self,
        groups: MutableMapping[str, Group],
        timers: Timers,
        settings: Callable[[str], ShareSettings],
        image: Callable[[], MetadataImage],
    ) -> None:
        """`settings(group_id)` are the broker's, with what is set for the group itself."""
        self._groups = groups
        self._timers = timers
        self._settings = settings
        self._image = image
        self._hashes = TopicHashes()
        self.now_ms = 0  # of what is being done: what is replayed then has been so since

    def group(self, group_id: str) -> ShareGroup:
        group = self._groups.get(group_id)
        if not isinstance(group, ShareGroup):
            what = "not found" if group is None else "is not a share group"
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {what}.")
        return group

    def group_or_new(self, group_id: str) -> ShareGroup:
        return ShareGroup(group_id) if group_id not in self._groups else self.group(group_id)

    def describe(self, group_id: str) -> ShareGroupDescribeResponse.DescribedGroup:
        return self.group(group_id).described(NAME, self._image())

    # Heartbeat

    def heartbeat(self, beat: ShareBeat, now_ms: int) -> StateChange[Beaten]:
        self.now_ms = now_ms
        if beat.member_epoch == LEAVE_EPOCH:
            response = ShareGroupHeartbeatResponse(member_id=beat.member_id, member_epoch=beat.member_epoch)
            group = self.group(beat.group_id)
            return self._fence(group, group.member(beat.member_id), Beaten(response))
        joins = beat.member_epoch == JOIN_EPOCH
        group = self.group_or_new(beat.group_id) if joins else self.group(beat.group_id)
        settings = self._settings(beat.group_id)
        if len(group.members) >= settings.size_max and beat.member_id not in group.members:
            raise KafkaError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The share group has reached its maximum capacity of {settings.size_max} members.",
            )
        if joins:
            before = group.members.get(beat.member_id) or ShareMember(beat.member_id)
        else:
            before = group.member(beat.member_id)
            before.check_epoch(beat.member_epoch)
        records: Records = []
        member = _told_of(before, beat)
        if member != before:
            records.append(records_of.member_record(group.group_id, member))
        bump = member.topic_names != before.topic_names or (
            group.target_epoch >= group.epoch and group.lacks_initialized
        )
        epoch, is_next = self._next_epoch(group, member, bump, records)
        target_epoch, target = self._next_target(group, epoch, member, settings, records, now_ms)
        moved = self._reconcile(group, member, target_epoch, target, is_next, records)
        self._watch_session(group.group_id, moved.member_id, now_ms)
        response = ShareGroupHeartbeatResponse(
            member_id=moved.member_id,
            member_epoch=moved.member_epoch,
            heartbeat_interval_ms=settings.heartbeat_interval_ms,
        )
        if joins or beat.topic_names is not None or moved.assigned != before.assigned:
            response.assignment = ShareGroupHeartbeatResponse.Assignment(
                topic_partitions=[
                    ShareGroupHeartbeatResponse.TopicPartitions(topic_id=topic, partitions=sorted(partitions))
                    for topic, partitions in moved.assigned.items()
                ]
            )
        return StateChange(records, Beaten(response, self._initialize(group, epoch, moved, settings, records, now_ms)))

    def _next_epoch(self, group: ShareGroup, member: ShareMember, bump: bool, records: Records) -> tuple[int, bool]:
        """The group's epoch, and whether it is a new one: subscriptions have changed, or what they stand for."""
        image = self._image()
        if not bump and group.looked_at_topics is image.topics:
            return group.epoch, False
        metadata_hash = self._hashes.of(subscribed_names(group.members_with(member).values()), image)
        if metadata_hash == group.metadata_hash:  # not before the epoch with the new hash is written
            group.looked_at_topics = image.topics
        if not bump and metadata_hash == group.metadata_hash:
            return group.epoch, False
        records.append(records_of.epoch_record(group.group_id, group.epoch + 1, metadata_hash))
        return group.epoch + 1, True

    def _next_target(
        self,
        group: ShareGroup,
        epoch: int,
        member: ShareMember,
        settings: ShareSettings,
        records: Records,
        now_ms: int,
    ) -> tuple[int, Assignment]:
        """The epoch of the target, and what this member shall have by it."""
        too_soon = group.target_timestamp_ms and now_ms < group.target_timestamp_ms + settings.assignment_interval_ms
        if group.target_epoch >= epoch or too_soon:
            return group.target_epoch, group.target.get(member.member_id, {})
        members = group.members_with(member)
        topics = self._image().topics
        target = assign_simple(
            {name: ShareSpec(one.topic_names, group.target.get(name, {})) for name, one in members.items()},
            {name: topics[name].id for name in subscribed_names(members.values()) if name in topics},
            {} if group.topics is None else group.topics.assignable,
        )
        for member_id, assignment in target.items():
            if assignment != group.target.get(member_id):
                records.append(records_of.target_record(group.group_id, member_id, assignment))
        records.append(records_of.target_epoch_record(group.group_id, epoch, now_ms))
        _log.info("group %s: target of epoch %d for %d members, %s", group.group_id, epoch, len(members), NAME)
        return epoch, target[member.member_id]

    def _reconcile(
        self,
        group: ShareGroup,
        member: ShareMember,
        target_epoch: int,
        target: Assignment,
        is_next_epoch: bool,
        records: Records,
    ) -> ShareMember:
        if not is_next_epoch and member.is_reconciled_to(target_epoch):
            return member
        by_id = self._image().topics_by_id
        mine = {
            topic: numbers
            for topic, numbers in target.items()
            if topic in by_id and by_id[topic].name in member.topic_names
        }
        if target_epoch != member.member_epoch:
            moved = replace(
                member,
                member_epoch=target_epoch,
                previous_epoch=member.member_epoch,
                state=MemberState.STABLE,
                assigned=mine,
            )
        else:
            moved = replace(member, assigned=mine) if is_next_epoch else member
        if moved != member:
            records.append(records_of.current_record(group.group_id, moved))
        return moved

    def _initialize(
        self,
        group: ShareGroup,
        epoch: int,
        member: ShareMember,
        settings: ShareSettings,
        records: Records,
        now_ms: int,
    ) -> Initialization | None:
        """What of the subscribed topics nobody keeps the state of yet."""
        names = subscribed_names(group.members_with(member).values())
        image = self._image()
        known = group.topics or ShareTopics()
        missing = known.missing(names, image, now_ms, settings.initialize_retry_ms)
        if not missing:
            return None
        records.append(records_of.topics_record(group.group_id, known.begun(missing), image))
        offsets = {topic: dict.fromkeys(sorted(one.partitions), NO_OFFSET) for topic, one in missing.items()}
        return Initialization(group.group_id, epoch, offsets)

    # Leaving

    def _fence(self, group: ShareGroup, member: ShareMember, response: R) -> StateChange[R]:
        """A member is member no more, by its own will or not."""
        self._timers.cancel(("session", group.group_id, member.member_id))
        stay = [one for one in group.members.values() if one.member_id != member.member_id]
        metadata_hash = self._hashes.of(subscribed_names(stay), self._image())
        records = records_of.member_tombstones(group.group_id, member.member_id)
        records.append(records_of.epoch_record(group.group_id, group.epoch + 1, metadata_hash))
        return StateChange(records, response)

    def _watch_session(self, group_id: str, member_id: str, now_ms: int) -> None:
        """It was heard of: from now on it may be silent for as long as its session lasts."""

        def expired(_: int) -> StateChange[None] | None:
            group = self._groups.get(group_id)
            if not isinstance(group, ShareGroup) or member_id not in group.members:
                return None
            _log.info("group %s: member %s is fenced: its session has expired", group_id, member_id)
            return self._fence(group, group.members[member_id], None)

        timeout_ms = self._settings(group_id).session_timeout_ms
        self._timers.schedule(("session", group_id, member_id), now_ms + timeout_ms, expired)

    def loaded(self, group: ShareGroup, now_ms: int) -> None:
        """The log has been read to its end: everybody has a whole session to show up."""
        if group.topics is not None:
            group.topics = replace(group.topics, since_ms=now_ms)
        for member_id in group.members:
            self._watch_session(group.group_id, member_id, now_ms)


def _told_of(member: ShareMember, beat: ShareBeat) -> ShareMember:
    """The member with what its heartbeat says; what it leaves out stays."""
    return replace(
        member,
        rack_id=member.rack_id if beat.rack_id is None else beat.rack_id,
        topic_names=member.topic_names if beat.topic_names is None else beat.topic_names,
        client_id=beat.client_id,
        client_host=beat.client_host,
    )
