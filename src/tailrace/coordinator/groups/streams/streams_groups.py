"""StreamsGroups: the StreamsGroupHeartbeat request: join with a topology, get tasks, leave.

The steps are those of any epoch group (`epoch/epoch_engine.py`). What streams groups add:

    topology   the topology of the first member is the group's; it is compared with the existing topics
    epoch      the group epoch is also bumped when the topology becomes ready or the configs of the assignor change
    target     the first target assignment of a group is delayed, so that other members can join
    response   statuses, endpoints, and internal topics that have to be created

Beside the records, a heartbeat changes the facts of a group that are not in the log (`streams_group.py`).
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence
from typing import TypeVar

from tailrace.coordinator.groups.classic.classic_group import ClassicGroup
from tailrace.coordinator.groups.epoch.epoch_engine import EpochEngine, Records
from tailrace.coordinator.groups.epoch.epoch_member import JOIN_EPOCH, LEAVE_EPOCH, LEAVE_STATIC_EPOCH, check_epoch
from tailrace.coordinator.groups.epoch.target_computations import Submit
from tailrace.coordinator.groups.group import Group
from tailrace.coordinator.groups.streams.configured_topology import ConfiguredTopology, configure
from tailrace.coordinator.groups.streams.streams_description import describe_streams_group
from tailrace.coordinator.groups.streams.streams_group import StreamsGroup
from tailrace.coordinator.groups.streams.streams_heartbeat import (
    StreamsHeartbeat,
    StreamsHeartbeatResult,
    check_tasks,
    owns_assigned,
    with_heartbeat,
)
from tailrace.coordinator.groups.streams.streams_member import StreamsMember, Tasks
from tailrace.coordinator.groups.streams.streams_reconciliation import reconcile_tasks
from tailrace.coordinator.groups.streams.streams_records import STREAMS_RECORDS, streams_group_record, topology_record
from tailrace.coordinator.groups.streams.streams_response import (
    Statuses,
    add_endpoints,
    add_tasks,
    assignment_delayed,
    shutdown_application,
    stale_topology,
    status,
)
from tailrace.coordinator.groups.streams.streams_settings import StreamsSettings
from tailrace.coordinator.groups.streams.streams_target import streams_target
from tailrace.coordinator.groups.streams.streams_topology import StreamsTopology
from tailrace.coordinator.shard import StateChange
from tailrace.coordinator.timers import Timers
from tailrace.metadata.image.image import MetadataImage
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol.messages import StreamsGroupDescribeResponse, StreamsGroupHeartbeatResponse

R = TypeVar("R")


class StreamsGroups:
    def __init__(
        self,
        groups: MutableMapping[str, Group],
        timers: Timers,
        settings: Callable[[str], StreamsSettings],
        image: Callable[[], MetadataImage],
        submit: Submit,
    ) -> None:
        """`settings(group_id)` returns the broker's settings with the group's own. `submit` runs work on another
        thread."""
        self._groups = groups
        self._timers = timers
        self._settings = settings
        self._image = image
        self._engine: EpochEngine[StreamsGroup, StreamsMember, Tasks] = EpochEngine(
            StreamsGroup,
            STREAMS_RECORDS,
            groups,
            timers,
            image,
            lambda group, members: self._fence(group, members, None),
            submit,
        )

    def describe(self, group_id: str) -> StreamsGroupDescribeResponse.DescribedGroup:
        return describe_streams_group(self._engine.group(group_id))

    # ------------------------------------------------------------------------------------------------------- heartbeat

    def heartbeat(self, beat: StreamsHeartbeat, now_ms: int) -> StateChange[StreamsHeartbeatResult]:
        if beat.member_epoch in (LEAVE_EPOCH, LEAVE_STATIC_EPOCH):
            return self._leave(beat)
        records: Records = []
        statuses: Statuses = []
        settings = self._settings(beat.group_id)
        group, before = self._find_member(beat, settings, records)
        member = with_heartbeat(before, beat)
        is_changed = self._engine.store_member(group, before, member, records)
        topology = self._topology(group, beat, records)
        if group.topology is not None and member.topology_epoch < group.topology.epoch:
            statuses.append(stale_topology(member.topology_epoch, group.topology.epoch))
        configured, metadata_hash = self._configure(group, topology)
        if configured.is_ready:
            check_tasks(beat.owned, configured.subtopologies or {})
        epoch = self._bump_epoch_if_changed(group, configured, metadata_hash, settings, is_changed, records)
        if group.is_empty and settings.initial_rebalance_delay_ms > 0:
            self._delay_target(group.group_id, now_ms + settings.initial_rebalance_delay_ms)
        target_epoch, target = self._next_target(group, epoch, member, configured, settings, records, statuses, now_ms)
        moved = member
        if not member.is_reconciled_to(target_epoch):
            moved = reconcile_tasks(member, target_epoch, target, beat.owned, group.holders)
            if self._engine.store_current(group, member, moved, records):
                self._limit_revocation(group, moved, now_ms)
        self._restart_session(group, moved, settings, now_ms)
        if beat.asks_shutdown:
            group.request_shutdown(beat.member_id)
        response = StreamsGroupHeartbeatResponse(
            member_id=beat.member_id,
            member_epoch=moved.member_epoch,
            heartbeat_interval_ms=settings.heartbeat_interval_ms,
        )
        if beat.member_epoch == JOIN_EPOCH or moved.assigned != before.assigned:
            add_tasks(response, moved)
            if moved.user_endpoint is not None:
                group.bump_endpoint_epoch()
        add_endpoints(response, group, moved, beat.endpoint_epoch, self._image())
        if group.group_id in self._groups:
            response.endpoint_information_epoch = group.endpoint_epoch
        if configured.problem is not None:
            statuses.append(status(configured.problem.status, configured.problem.message))
        if group.shutdown_asked_by is not None:
            statuses.append(shutdown_application(group.shutdown_asked_by))
        response.status = statuses
        return StateChange(records, StreamsHeartbeatResult(response, configured.topics_to_create))

    def _find_member(
        self, beat: StreamsHeartbeat, settings: StreamsSettings, records: Records
    ) -> tuple[StreamsGroup, StreamsMember]:
        """Return the group, and the member before this heartbeat. Raise a KafkaError if it is not current."""
        if beat.member_epoch == JOIN_EPOCH:
            group = self._group_to_join(beat.group_id, settings, records)
            return group, group.members.get(beat.member_id) or StreamsMember(beat.member_id)
        group = self._engine.group(beat.group_id, "Streams group")
        member = group.member(beat.member_id)
        check_epoch(group.type, member, beat.member_epoch, lambda: owns_assigned(beat.owned, member))
        return group, member

    def _group_to_join(self, group_id: str, settings: StreamsSettings, records: Records) -> StreamsGroup:
        found = self._groups.get(group_id)
        if found is None:
            return StreamsGroup(group_id)
        if isinstance(found, ClassicGroup) and found.is_empty:
            records += found.tombstones()
            return StreamsGroup(group_id)
        group = self._engine.group(group_id)
        self._engine.check_room(group, None, settings)
        return group

    # ------------------------------------------------------------------------------------------------------- topology

    @staticmethod
    def _topology(group: StreamsGroup, beat: StreamsHeartbeat, records: Records) -> StreamsTopology:
        """Return the group's topology. The first member brings it."""
        if beat.topology is None:
            if group.topology is None:
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
            return group.topology
        reported = StreamsTopology(beat.topology)
        if group.topology is None:
            records.append(topology_record(group.group_id, beat.topology))
            return reported
        if reported.epoch >= group.topology.epoch and reported != group.topology:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Topology updates are not supported yet.")
        return group.topology

    def _configure(self, group: StreamsGroup, topology: StreamsTopology) -> tuple[ConfiguredTopology, int]:
        """Return the topology configured with the existing topics, and the hash of these topics."""
        known = group.configured if group.topology is not None else None
        metadata_hash = self._engine.topics_hash(group, lambda: topology.required_topics, is_forced=known is None)
        if known is None or metadata_hash != group.metadata_hash:
            known = group.put_configured(configure(topology, self._image()))
        return known, metadata_hash

    # --------------------------------------------------------------------------------------------- epoch and target

    def _bump_epoch_if_changed(
        self,
        group: StreamsGroup,
        configured: ConfiguredTopology,
        metadata_hash: int,
        settings: StreamsSettings,
        bump: bool,
        records: Records,
    ) -> int:
        """Return the group epoch. If the member, the topics, the topology or the configs have changed, bump it and
        append the group's record."""
        validated_epoch = configured.epoch if configured.is_ready else -1
        configs = settings.assignment_configs
        is_same = (
            metadata_hash == group.metadata_hash
            and validated_epoch == group.validated_topology_epoch
            and configs == group.assignment_configs
        )
        if is_same and not bump:
            return group.epoch
        epoch = group.epoch + 1
        records.append(streams_group_record(group.group_id, epoch, metadata_hash, validated_epoch, configs))
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
        """Return the target epoch and the target tasks of this member."""
        if ("initial", group.group_id) in self._timers:
            statuses.append(assignment_delayed("initial rebalance delay"))
            return group.target_epoch, Tasks()
        last = group.target_epoch, group.target.get(member.member_id, Tasks())
        if group.target_epoch >= epoch:
            return last
        if self._engine.is_too_soon(group, settings, now_ms):
            statuses.append(assignment_delayed("assignment interval"))
            return last
        target = self._engine.assign(
            group, streams_target(group, epoch, member, configured, settings.standby_replicas), records, now_ms
        )
        return last if target is None else (epoch, target[member.member_id])

    def _delay_target(self, group_id: str, until_ms: int) -> None:
        """Delay the target assignment of an empty group, so that its first members are assigned together."""
        key = ("initial", group_id)
        if key not in self._timers:
            self._timers.schedule(key, until_ms, lambda now_ms: self._assign_delayed(group_id, now_ms))

    def _assign_delayed(self, group_id: str, now_ms: int) -> StateChange[None] | None:
        """Compute the delayed target assignment, or leave it to the next heartbeat."""
        group = self._engine.find(group_id)
        if group is None or group.is_empty or group.configured is None:
            return None
        if group.epoch <= group.target_epoch or self._engine.is_too_soon(group, self._settings(group_id), now_ms):
            return None
        records: Records = []
        replicas = int(group.assignment_configs.get("num.standby.replicas", 0))
        target = streams_target(group, group.epoch, None, group.configured, replicas)
        self._engine.assign(group, target, records, now_ms)
        return StateChange(records, None)

    # ----------------------------------------------------------------------------------------------- leaving and time

    def _leave(self, beat: StreamsHeartbeat) -> StateChange[StreamsHeartbeatResult]:
        group = self._engine.group(beat.group_id)
        if beat.asks_shutdown:
            group.request_shutdown(beat.member_id)
        response = StreamsGroupHeartbeatResponse(member_id=beat.member_id, member_epoch=beat.member_epoch, status=[])
        return self._fence(group, [group.member(beat.member_id)], StreamsHeartbeatResult(response, {}))

    def _fence(self, group: StreamsGroup, members: Sequence[StreamsMember], response: R) -> StateChange[R]:
        """Remove members that leave or have timed out; the group's next epoch shares out their tasks."""
        records = self._engine.remove(group, [member.member_id for member in members])
        records.append(
            streams_group_record(
                group.group_id,
                group.epoch + 1,
                group.metadata_hash,
                group.validated_topology_epoch,
                group.assignment_configs,
            )
        )
        return StateChange(records, response)

    def _restart_session(
        self, group: StreamsGroup, member: StreamsMember, settings: StreamsSettings, now_ms: int
    ) -> None:
        self._engine.timers.restart_session(group.group_id, member.member_id, settings.session_timeout_ms, now_ms)

    def _limit_revocation(self, group: StreamsGroup, member: StreamsMember, now_ms: int) -> None:
        self._engine.timers.limit_revocation(group.group_id, member, member.rebalance_timeout_ms, now_ms)

    def loaded(self, group: StreamsGroup, now_ms: int) -> None:
        """Give every member a whole session after the log has been loaded."""
        settings = self._settings(group.group_id)
        for member in group.members.values():
            self._restart_session(group, member, settings, now_ms)
            self._limit_revocation(group, member, now_ms)
