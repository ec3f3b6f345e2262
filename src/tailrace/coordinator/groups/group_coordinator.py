"""GroupCoordinator: the shard behind one partition of `__consumer_offsets`: its groups and their committed offsets.

Requests arrive as plain values, without references to the request buffer, and yield StateChanges. An error is a
KafkaError; the request handlers (`broker/requests/`) encode it.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from tailrace.coordinator.groups.classic.classic_group import ClassicGroup
from tailrace.coordinator.groups.classic.classic_join import ClassicJoins
from tailrace.coordinator.groups.classic.classic_member import JoinAnswer, SyncAnswer
from tailrace.coordinator.groups.classic.classic_membership import ClassicMembership, LeavingMember, SyncRequest
from tailrace.coordinator.groups.classic.classic_rebalance import Rebalances
from tailrace.coordinator.groups.classic.classic_records import new_group_record, restored_group
from tailrace.coordinator.groups.classic.join_request import JoinRequest
from tailrace.coordinator.groups.consumer.classic_protocol_members import ClassicProtocolMembers
from tailrace.coordinator.groups.consumer.consumer_group import CONSUMER_REPLAY, ConsumerGroup
from tailrace.coordinator.groups.consumer.consumer_groups import ConsumerGroups
from tailrace.coordinator.groups.consumer.consumer_heartbeat import ConsumerHeartbeat
from tailrace.coordinator.groups.consumer.consumer_settings import ConsumerSettings
from tailrace.coordinator.groups.epoch.target_computations import Submit
from tailrace.coordinator.groups.group import Group
from tailrace.coordinator.groups.group_settings import GroupSettings
from tailrace.coordinator.groups.share.share_group import ShareGroup
from tailrace.coordinator.groups.share.share_groups import ShareGroups
from tailrace.coordinator.groups.share.share_offsets import ShareOffsets
from tailrace.coordinator.groups.share.share_settings import ShareSettings
from tailrace.coordinator.groups.streams.streams_group import STREAMS_REPLAY, StreamsGroup
from tailrace.coordinator.groups.streams.streams_groups import StreamsGroups
from tailrace.coordinator.groups.streams.streams_settings import StreamsSettings
from tailrace.coordinator.offsets.committed_offsets import CommittedOffsets
from tailrace.coordinator.offsets.forgotten_topics import ForgottenTopics
from tailrace.coordinator.offsets.offset_commits import OffsetCommits
from tailrace.coordinator.shard import CoordinatorRecord, Part, StateChange
from tailrace.coordinator.timers import Timers
from tailrace.metadata.image.image import EMPTY_IMAGE, MetadataImage
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol.messages import (
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatResponse,
    DescribeGroupsResponse,
    GroupMetadataKey,
    GroupMetadataValue,
    JoinGroupResponse,
    LeaveGroupResponse,
    ListGroupsResponse,
    OffsetCommitKey,
    SyncGroupResponse,
)
from tailrace.waiting.chore import run_now

_log = logging.getLogger(__name__)

GROUPS_AT_ONCE = 200  # groups whose offsets are checked for expiry without a pause

_run_here: Submit = partial(run_now, now_ms=0)


class GroupTypeSettings(NamedTuple):
    """The settings of each kind of epoch group, per group id."""

    consumer: Callable[[str], ConsumerSettings] = lambda _: ConsumerSettings()
    share: Callable[[str], ShareSettings] = lambda _: ShareSettings()
    streams: Callable[[str], StreamsSettings] = lambda _: StreamsSettings()


_NO_CHANGE: StateChange[None] = StateChange((), None)


class GroupCoordinator:
    family = "group"

    def __init__(
        self,
        timers: Timers,
        settings: GroupSettings,
        new_uuid: Callable[[], str],
        image: Callable[[], MetadataImage] = lambda: EMPTY_IMAGE,
        kinds: GroupTypeSettings | None = None,
        new_member_id: Callable[[], str] | None = None,
        submit: Submit = _run_here,
    ) -> None:
        """`new_uuid` returns the unique part of a classic member's id. `new_member_id` returns the id of a member of a
        consumer group that sends none; by default it is `new_uuid`. `submit` runs work on another thread."""
        self.groups: dict[str, Group] = {}
        self._unchecked: deque[str] = deque()  # groups whose offsets have to be checked for expiry
        self.offsets = CommittedOffsets(
            self._ensure,
            retention_ms=settings.offsets_retention_ms,
        )
        self.deleted_topics = ForgottenTopics(timers, self.offsets)
        self._timers = timers
        self._settings = settings
        self._rebalances = Rebalances(self._classic, timers, settings)
        self.commits = OffsetCommits(
            self.groups,
            self.offsets,
            self._ensure,
            self._rebalances,
            metadata_size_max=settings.offset_metadata_size_max,
        )
        self._joining = ClassicJoins(self._rebalances, settings, new_uuid)
        self._membership = ClassicMembership(self._rebalances)
        new_id = new_member_id or new_uuid
        kinds = kinds or GroupTypeSettings()
        self._consumers = ConsumerGroups(
            self.groups, timers, kinds.consumer, image, new_id, self._rebalance_converted, submit
        )
        self._classic_members = ClassicProtocolMembers(self._consumers, timers, kinds.consumer, image, new_id)
        self.shares = ShareGroups(self.groups, timers, kinds.share, image, submit)
        self.share_offsets = ShareOffsets(self.groups, self.shares, image)
        self.streams = StreamsGroups(self.groups, timers, kinds.streams, image, submit)
        self._loaded: Mapping[type[Any], Callable[[Any, int], None]] = {
            ClassicGroup: self._rebalances.loaded,
            ConsumerGroup: self._consumers.loaded,
            ShareGroup: self.shares.loaded,
            StreamsGroup: self.streams.loaded,
        }
        self._epoch_replays = {
            key: replay for replay in (CONSUMER_REPLAY, self.shares.replay, STREAMS_REPLAY) for key in replay.keys
        }
        self._now_ms = 0  # time of the current operation, for a group that a replayed offset creates

    # Groups

    def _classic(self, group_id: str) -> ClassicGroup | None:
        group = self.groups.get(group_id)
        return group if isinstance(group, ClassicGroup) else None

    def _group(self, group_id: str) -> Group:
        group = self.groups.get(group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        return group

    def _ensure(self, group_id: str, now_ms: int | None = None) -> Group:
        """Return the group. A first offset commit creates a group without members."""
        if now_ms is not None:
            self._now_ms = now_ms
        group = self.groups.get(group_id)
        if group is None:
            group = self.groups[group_id] = ClassicGroup(group_id, self._now_ms)
        return group

    # Membership

    def join(self, request: JoinRequest, answer: JoinAnswer, now_ms: int) -> StateChange[None]:
        self._now_ms = now_ms
        before = self.groups.get(request.group_id)
        if isinstance(before, ConsumerGroup) and not before.is_empty:
            return self._classic_members.join(before, request, answer, now_ms)
        if isinstance(before, ShareGroup) or (isinstance(before, StreamsGroup) and not before.is_empty):
            raise KafkaError(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"Group {request.group_id} is a {before.type} group."
            )
        is_new_group = not isinstance(before, ClassicGroup)
        if is_new_group and request.member_id:
            answer(JoinGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID, member_id=request.member_id), now_ms)
            return _NO_CHANGE
        if before is not None and is_new_group:
            del self.groups[request.group_id]  # an empty group of another kind
        group = self._ensure(request.group_id)
        assert isinstance(group, ClassicGroup)
        if not is_new_group:
            return self._joining.join(group, request, answer, now_ms) or _NO_CHANGE

        def undo() -> None:
            self.groups.pop(request.group_id, None)
            if before is not None:
                self.groups[request.group_id] = before

        try:
            change = self._joining.join(group, request, answer, now_ms)
        except Exception:
            undo()  # the new group is not in the log
            raise
        if change is not None:
            return change

        def stored(error: ErrorCode, now_ms: int) -> None:
            if error is not ErrorCode.NONE:
                undo()
                answer(JoinGroupResponse(error_code=error), now_ms)

        records = [] if before is None else before.tombstones()
        return StateChange([*records, new_group_record(group)], None, is_replayed=False, on_done=stored)

    def sync(self, request: SyncRequest, answer: SyncAnswer, now_ms: int) -> StateChange[None]:
        group = self.groups.get(request.group_id)
        if isinstance(group, ConsumerGroup) and not group.is_empty:
            return self._classic_members.sync(group, request, answer, now_ms)
        if not isinstance(group, ClassicGroup) or group.is_empty:
            answer(SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID), now_ms)
            return _NO_CHANGE
        return self._membership.sync(group, request, answer, now_ms) or _NO_CHANGE

    def heartbeat(
        self, group_id: str, member_id: str, instance_id: str | None, generation: int, now_ms: int
    ) -> ErrorCode:
        group = self.groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return self._classic_members.heartbeat(group, member_id, instance_id, generation, now_ms)
        if not isinstance(group, ClassicGroup):
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Group {group_id} not found.")
        return self._membership.heartbeat(group, member_id, instance_id, generation, now_ms)

    def leave(self, group_id: str, leaving: Sequence[LeavingMember], now_ms: int) -> StateChange[LeaveGroupResponse]:
        group = self.groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return self._classic_members.leave(group, leaving)
        if not isinstance(group, ClassicGroup):
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Group {group_id} not found.")
        return self._membership.leave(group, leaving, now_ms)

    def _rebalance_converted(self, group_id: str, now_ms: int) -> None:
        """Start a rebalance of a group that was converted from a consumer group: its members join again."""
        group = self.groups[group_id]
        assert isinstance(group, ClassicGroup), group
        for member in group.members.values():
            self._rebalances.extend_session(group, member, now_ms)
        change = self._rebalances.prepare(group, "it was a consumer group until now", now_ms)
        assert change is None, "no member has joined again yet"

    def consumer_heartbeat(self, beat: ConsumerHeartbeat, now_ms: int) -> StateChange[ConsumerGroupHeartbeatResponse]:
        self._now_ms = now_ms
        return self._consumers.heartbeat(beat, now_ms)

    # List, describe, delete

    def list_groups(self, states: Collection[str], types: Collection[str]) -> list[ListGroupsResponse.ListedGroup]:
        """Return the groups with one of these states and one of these types (in lower case). No states or no types:
        all."""
        wanted = {state.replace("_", "") for state in states}  # Kafka names NotReady not_ready
        return [
            group.listed()
            for group in self.groups.values()
            if (not wanted or group.state_name.lower() in wanted) and (not types or group.type in types)
        ]

    def describe(self, group_id: str) -> DescribeGroupsResponse.DescribedGroup:
        group = self._classic(group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        return group.described()

    def describe_consumers(self, group_id: str) -> ConsumerGroupDescribeResponse.DescribedGroup:
        return self._consumers.describe(group_id)

    def delete_groups(self, group_ids: Sequence[str]) -> StateChange[list[ErrorCode]]:
        """Delete groups without members, and their committed offsets."""
        records: list[CoordinatorRecord] = []
        errors = []
        for group_id in group_ids:
            try:
                group = self._group(group_id)
                group.check_delete()
            except KafkaError as error:
                errors.append(error.code)
                continue
            records += self.offsets.plan_delete_all(group_id)
            records += group.tombstones()
            errors.append(ErrorCode.NONE)
        return StateChange(records, errors)

    # Offsets

    def _expire(self, now_ms: int) -> StateChange[None]:
        """Delete expired offsets, and groups that have neither members nor offsets: of some groups at a time."""
        if not self._unchecked:
            self._unchecked.extend(self.groups)
        records: list[CoordinatorRecord] = []
        for _ in range(min(GROUPS_AT_ONCE, len(self._unchecked))):
            group = self.groups.get(self._unchecked.popleft())
            if group is None:
                continue
            expired, is_without = self.offsets.plan_expire(group, now_ms)
            records += expired
            if is_without and group.is_empty and not isinstance(group, ShareGroup):
                records += group.tombstones()
        self._schedule_expiry(now_ms)
        return StateChange(records, None, is_atomic=False)

    def _schedule_expiry(self, now_ms: int) -> None:
        wait_ms = 0 if self._unchecked else self._settings.retention_check_interval_ms
        self._timers.schedule("expire", now_ms + wait_ms, self._expire)

    # Replay

    def replay(self, record: CoordinatorRecord, producer_id: int, producer_epoch: int) -> None:
        key, value = record.key, record.value
        if isinstance(key, OffsetCommitKey):
            assert value is None, "commits are replayed from their bytes: offsets/offset_kernels.py"
            self.offsets.remove(key.group, key.topic, key.partition)
        elif isinstance(key, GroupMetadataKey):
            assert value is None or isinstance(value, GroupMetadataValue), value
            if value is None:
                self.groups.pop(key.group, None)
            else:
                self.groups[key.group] = restored_group(key.group, value)
        elif (replay := self._epoch_replays.get(type(key))) is not None:
            replay(self.groups, key, value)
        else:
            _log.debug("a record of an unknown kind of group is ignored: %s", key)

    def replay_end_transaction(self, producer_id: int, producer_epoch: int, is_committed: bool) -> None:
        self.offsets.end_transaction(producer_id, is_committed)

    def loaded(self, now_ms: int) -> Iterator[Part]:
        self._schedule_expiry(now_ms)
        for group in tuple(self.groups.values()):
            yield partial(self._loaded[type(group)], group)

    def unloaded(self, now_ms: int) -> Iterator[Part]:
        for group in tuple(self.groups.values()):
            if isinstance(group, ClassicGroup):
                yield partial(self._rebalances.unloaded, group)
