"""StreamsGroups: what StreamsGroupHeartbeat does: join with a topology, be given tasks, leave.

A heartbeat is worked off in steps, each of which may leave records:

    member     who is it, is its epoch current; what is new about it
    topology   the first member's is the group's; it is held against the topics that there are
    epoch      have the member, the topics or what shares depend on changed: the group moves to its next epoch
    target     everybody's tasks are computed for that epoch: at first after a while, so that others can join
    current    this member takes its next step towards its tasks

The state is what replaying those records makes of it; only what the log does not have is changed here, on the group.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, MutableMapping
from typing import NamedTuple, TypeVar

from tailrace.coordinator.groups.classic.classic_group import ClassicGroup
from tailrace.coordinator.groups.group import Group
from tailrace.coordinator.groups.metadata_hash import TopicHashes
from tailrace.coordinator.groups.streams import streams_records as records_of
from tailrace.coordinator.groups.streams.configured_topology import ConfiguredTopology, InternalTopic, Status, configure
from tailrace.coordinator.groups.streams.streams_description import describe_streams_group
from tailrace.coordinator.groups.streams.streams_endpoints import partitions_by_endpoint
from tailrace.coordinator.groups.streams.streams_group import StreamsGroup
from tailrace.coordinator.groups.streams.streams_heartbeat import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    LEAVE_STATIC_EPOCH,
    StreamsHeartbeat,
    check_epoch,
    check_tasks,
    told_of,
)
from tailrace.coordinator.groups.streams.streams_member import StreamsMember, StreamsState, Tasks
from tailrace.coordinator.groups.streams.streams_reconciliation import reconcile_tasks
from tailrace.coordinator.groups.streams.streams_settings import StreamsSettings
from tailrace.coordinator.groups.streams.streams_target import assign_group
from tailrace.coordinator.groups.streams.streams_topology import StreamsTopology
from tailrace.coordinator.shard import CoordinatorRecord, StateChange
from tailrace.coordinator.timers import Timers
from tailrace.metadata.image.image import MetadataImage
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol.messages import StreamsGroupDescribeResponse, StreamsGroupHeartbeatResponse

_log = logging.getLogger(__name__)

Records = list[CoordinatorRecord]
Statuses = list[StreamsGroupHeartbeatResponse.Status]
R = TypeVar("R")


class HeartbeatResult(NamedTuple):
    response: StreamsGroupHeartbeatResponse
    topics_to_create: Mapping[str, InternalTopic]  # which the application needs, and the broker is to make


class StreamsGroups:
    def __init__(
        self,
        groups: MutableMapping[str, Group],
        timers: Timers,
        settings: Callable[[str], StreamsSettings],
        image: Callable[[], MetadataImage],
    ) -> None:
        """`settings(group_id)` are the broker's, with what is set for the group itself."""
        self._groups = groups
        self._timers = timers
        self._settings = settings
        self._image = image
        self._hashes = TopicHashes()

    def _group(self, group_id: str, what: str = "Group") -> StreamsGroup:
        group = self._groups.get(group_id)
        if not isinstance(group, StreamsGroup):
            problem = f"{what} {group_id} not found." if group is None else f"Group {group_id} is not a streams group."
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, problem)
        return group

    def describe(self, group_id: str) -> StreamsGroupDescribeResponse.DescribedGroup:
        return describe_streams_group(self._group(group_id))

    # ------------------------------------------------------------------------------------------------------- heartbeat

    def heartbeat(self, beat: StreamsHeartbeat, now_ms: int) -> StateChange[HeartbeatResult]:
        if beat.member_epoch in (LEAVE_EPOCH, LEAVE_STATIC_EPOCH):
            return self._leave(beat)
        records: Records = []
        statuses: Statuses = []
        settings = self._settings(beat.group_id)
        joins = beat.member_epoch == JOIN_EPOCH
        if joins:
            group = self._group_to_join(beat.group_id, settings, records)
            before = group.members.get(beat.member_id) or StreamsMember(beat.member_id)
        else:
            group = self._group(beat.group_id, "Streams group")
            before = group.member(beat.member_id)
        check_epoch(before, beat.member_epoch, beat.owned)
        member = told_of(before, beat)
        if member != before:
            records.append(records_of.member_record(group.group_id, member))
        topology = self._topology(group, beat, records)
        if group.topology is not None and member.topology_epoch < group.topology.epoch:
            statuses.append(
                _status(
                    Status.STALE_TOPOLOGY,
                    f"The member's topology epoch {member.topology_epoch} is behind the group's topology epoch "
                    f"{group.topology.epoch}.",
                )
            )
        configured, metadata_hash = self._configure(group, topology)
        epoch = self._next_epoch(group, configured, metadata_hash, beat.owned, settings, member != before, records)
        if group.is_empty and settings.initial_rebalance_delay_ms > 0:
            self._delay_target(group.group_id, now_ms + settings.initial_rebalance_delay_ms)
        target_epoch, target = self._next_target(group, epoch, member, configured, settings, records, statuses, now_ms)
        moved = self._reconcile(group, member, target_epoch, target, beat.owned, records, now_ms)
        self._watch_session(group.group_id, beat.member_id, now_ms)
        if beat.asks_shutdown and group.shutdown_asked_by is None:
            group.shutdown_asked_by = beat.member_id
        response = StreamsGroupHeartbeatResponse(
            member_id=beat.member_id,
            member_epoch=moved.member_epoch,
            heartbeat_interval_ms=settings.heartbeat_interval_ms,
        )
        if joins or moved.assigned != before.assigned:
            self._tell_tasks(group, moved, response)
        if group.endpoint_epoch != beat.endpoint_epoch:
            response.partitions_by_user_endpoint = partitions_by_endpoint(group, moved, self._image())
        if group.group_id in self._groups:
            response.endpoint_information_epoch = group.endpoint_epoch
        if configured.problem is not None:
            statuses.append(_status(configured.problem.status, configured.problem.message))
        if group.shutdown_asked_by is not None:
            statuses.append(
                _status(
                    Status.SHUTDOWN_APPLICATION,
                    f"Streams group member {group.shutdown_asked_by} encountered a fatal error and requested a "
                    "shutdown for the entire application.",
                )
            )
        response.status = statuses
        return StateChange(records, HeartbeatResult(response, configured.topics_to_create))

    def _group_to_join(self, group_id: str, settings: StreamsSettings, records: Records) -> StreamsGroup:
        found = self._groups.get(group_id)
        if isinstance(found, ClassicGroup) and found.is_empty:
            records += found.tombstones()
            return StreamsGroup(group_id)
        if found is None:
            return StreamsGroup(group_id)
        group = self._group(group_id)
        if len(group.members) >= settings.size_max:
            raise KafkaError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The streams group has reached its maximum capacity of {settings.size_max} members.",
            )
        return group

    @staticmethod
    def _tell_tasks(group: StreamsGroup, member: StreamsMember, response: StreamsGroupHeartbeatResponse) -> None:
        tasks = StreamsGroupHeartbeatResponse.TaskIds
        has = member.assigned
        response.active_tasks = [
            tasks(subtopology_id=name, partitions=sorted(has.active[name])) for name in sorted(has.active)
        ]
        response.standby_tasks = [
            tasks(subtopology_id=name, partitions=sorted(has.standby[name])) for name in sorted(has.standby)
        ]
        response.warmup_tasks = [
            tasks(subtopology_id=name, partitions=sorted(has.warmup[name])) for name in sorted(has.warmup)
        ]
        if member.user_endpoint is not None:
            group.endpoint_epoch += 1

    # ------------------------------------------------------------------------------------------------------- topology

    @staticmethod
    def _topology(group: StreamsGroup, beat: StreamsHeartbeat, records: Records) -> StreamsTopology:
        if beat.topology is None:
            if group.topology is None:
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # nobody has told it
            return group.topology
        told = StreamsTopology(beat.topology)
        if group.topology is None:
            records.append(records_of.topology_record(group.group_id, beat.topology))
            return told
        if told.epoch >= group.topology.epoch and told != group.topology:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Topology updates are not supported yet.")
        return group.topology

    def _configure(self, group: StreamsGroup, topology: StreamsTopology) -> tuple[ConfiguredTopology, int]:
        """The topology with the topics as they are, and what these hash to."""
        image = self._image()
        known = group.configured if group.topology is not None else None
        if known is not None and group.looked_at_topics is image.topics:
            return known, group.metadata_hash
        metadata_hash = self._hashes.of(topology.required_topics, image)
        if known is None or metadata_hash != group.metadata_hash:
            known = group.configured = configure(topology, image)
        if metadata_hash == group.metadata_hash:
            group.looked_at_topics = image.topics
        return known, metadata_hash

    # ----------------------------------------------------------------------------------------------------- the epochs

    def _next_epoch(
        self,
        group: StreamsGroup,
        configured: ConfiguredTopology,
        metadata_hash: int,
        owned: Tasks | None,
        settings: StreamsSettings,
        bump: bool,
        records: Records,
    ) -> int:
        validated_epoch = -1
        if configured.is_ready:
            validated_epoch = configured.epoch
            check_tasks(owned, configured.subtopologies or {})
        configs = settings.assignment_configs
        is_same = (
            metadata_hash == group.metadata_hash
            and validated_epoch == group.validated_topology_epoch
            and configs == group.assignment_configs
        )
        if is_same and not bump:
            return group.epoch
        epoch = group.epoch + 1
        records.append(records_of.epoch_record(group.group_id, epoch, metadata_hash, validated_epoch, configs))
        return epoch

    def _next_target(
        self,
        group: StreamsGroup,
        epoch: int,
        member: StreamsMember,
        configured: ConfiguredTopology,
        settings: StreamsSettings,
        records: Records,
        statuses: Statuses,
        now_ms: int,
    ) -> tuple[int, Tasks]:
        """The epoch of the target, and what this member shall have by it."""
        if ("initial", group.group_id) in self._timers:
            statuses.append(
                _status(Status.ASSIGNMENT_DELAYED, "Assignment delayed due to the configured initial rebalance delay.")
            )
            return group.target_epoch, Tasks()
        last = group.target_epoch, group.target.get(member.member_id, Tasks())
        if group.target_epoch >= epoch:
            return last
        if _is_too_soon(group, settings, now_ms):
            statuses.append(
                _status(Status.ASSIGNMENT_DELAYED, "Assignment delayed due to the configured assignment interval.")
            )
            return last
        target = assign_group(group, epoch, member, configured, settings.standby_replicas, records, now_ms)
        return epoch, target[member.member_id]

    def _delay_target(self, group_id: str, until_ms: int) -> None:
        """The first members of an empty group wait for each other."""
        key = ("initial", group_id)
        if key not in self._timers:
            self._timers.schedule(key, until_ms, lambda now_ms: self._assign_delayed(group_id, now_ms))

    def _assign_delayed(self, group_id: str, now_ms: int) -> StateChange[None] | None:
        group = self._groups.get(group_id)
        if not isinstance(group, StreamsGroup) or group.is_empty or group.configured is None:
            return None  # the next heartbeat will see to it
        settings = self._settings(group_id)
        if group.epoch <= group.target_epoch or _is_too_soon(group, settings, now_ms):
            return None
        records: Records = []
        replicas = int(group.assignment_configs.get("num.standby.replicas", 0))
        assign_group(group, group.epoch, None, group.configured, replicas, records, now_ms)
        return StateChange(records, None)

    def _reconcile(
        self,
        group: StreamsGroup,
        member: StreamsMember,
        target_epoch: int,
        target: Tasks,
        owned: Tasks | None,
        records: Records,
        now_ms: int,
    ) -> StreamsMember:
        if member.is_reconciled_to(target_epoch):
            return member
        moved = reconcile_tasks(member, target_epoch, target, owned, group.holders)
        if moved != member:
            records.append(records_of.current_record(group.group_id, moved))
            self._watch_revocation(group.group_id, moved, now_ms)
        return moved

    # -------------------------------------------------------------------------------------------------------- leaving

    def _leave(self, beat: StreamsHeartbeat) -> StateChange[HeartbeatResult]:
        group = self._group(beat.group_id)
        if beat.asks_shutdown and group.shutdown_asked_by is None:
            group.shutdown_asked_by = beat.member_id
        response = StreamsGroupHeartbeatResponse(member_id=beat.member_id, member_epoch=beat.member_epoch, status=[])
        return self._fence(group, group.member(beat.member_id), HeartbeatResult(response, {}))

    def _fence(self, group: StreamsGroup, member: StreamsMember, response: R) -> StateChange[R]:
        """A member is a member no more, by its own will or not; the others share what it had."""
        for timer in ("session", "rebalance"):
            self._timers.cancel((timer, group.group_id, member.member_id))
        records = records_of.member_tombstones(group.group_id, member.member_id)
        records.append(
            records_of.epoch_record(
                group.group_id,
                group.epoch + 1,
                group.metadata_hash,
                group.validated_topology_epoch,
                group.assignment_configs,
            )
        )
        return StateChange(records, response)

    # ---------------------------------------------------------------------------------------------------------- time

    def _watch_session(self, group_id: str, member_id: str, now_ms: int) -> None:
        """It was heard of: from now on it may be silent for as long as its session lasts."""
        self._timers.schedule(
            ("session", group_id, member_id),
            now_ms + self._settings(group_id).session_timeout_ms,
            lambda _: self._fence_silent(group_id, member_id, "its session has expired"),
        )

    def _watch_revocation(self, group_id: str, member: StreamsMember, now_ms: int) -> None:
        """A member that has to let go of tasks gets as long for it as it asked for."""
        key = ("rebalance", group_id, member.member_id)
        if member.state is not StreamsState.UNREVOKED_TASKS:
            self._timers.cancel(key)
            return

        def expired(_: int) -> StateChange[None] | None:
            group = self._groups.get(group_id)
            found = group.members.get(member.member_id) if isinstance(group, StreamsGroup) else None
            if found is None or found.member_epoch != member.member_epoch:
                return None
            return self._fence_silent(
                group_id, member.member_id, f"it did not leave epoch {found.member_epoch} in time"
            )

        self._timers.schedule(key, now_ms + member.rebalance_timeout_ms, expired)

    def _fence_silent(self, group_id: str, member_id: str, reason: str) -> StateChange[None] | None:
        group = self._groups.get(group_id)
        if not isinstance(group, StreamsGroup) or member_id not in group.members:
            return None
        _log.info("group %s: member %s is fenced: %s", group_id, member_id, reason)
        return self._fence(group, group.members[member_id], None)

    def loaded(self, group: StreamsGroup, now_ms: int) -> None:
        """The log has been read to its end: everybody has a whole session to show up."""
        for member in group.members.values():
            self._watch_session(group.group_id, member.member_id, now_ms)
            self._watch_revocation(group.group_id, member, now_ms)


def _status(code: Status, detail: str) -> StreamsGroupHeartbeatResponse.Status:
    return StreamsGroupHeartbeatResponse.Status(status_code=code, status_detail=detail)


def _is_too_soon(group: StreamsGroup, settings: StreamsSettings, now_ms: int) -> bool:
    since_ms = group.target_timestamp_ms
    return since_ms > 0 and now_ms < since_ms + settings.assignment_interval_ms
