"""Rebalances: a classic group gathers its members, begins a generation, and waits for the leader's assignment.

    prepare ──► wait for the JoinGroup of every member, at most for the largest rebalance timeout of the members.
    │           The first rebalance waits for group.initial.rebalance.delay.ms, again after each new member.
    complete_join ──► remove members that have not joined, except static ones; answer all JoinGroups
    │
    (SyncGroup of the leader: classic_membership.py) ──► assign ──► answer all SyncGroups

Timers, by name: ("join", group) ends the gathering, ("sync", group) the wait for SyncGroups, and ("heartbeat", group,
member) a session.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeAlias

from tailrace.coordinator.groups.classic.classic_group import COMPLETING, DEAD, EMPTY, PREPARING, STABLE, ClassicGroup
from tailrace.coordinator.groups.classic.classic_member import ClassicMember
from tailrace.coordinator.groups.classic.classic_records import group_record
from tailrace.coordinator.groups.group_settings import GroupSettings
from tailrace.coordinator.shard import StateChange
from tailrace.coordinator.timers import Timers
from tailrace.model.errors import ErrorCode
from tailrace.protocol.messages import JoinGroupResponse, SyncGroupResponse

_log = logging.getLogger(__name__)

Change: TypeAlias = "StateChange[None] | None"  # None: no records
FindGroup: TypeAlias = Callable[[str], ClassicGroup | None]

_STATIC_WAIT_MS_MIN = 100  # a rebalance timeout may be 0, which would make an endless loop


class Rebalances:
    def __init__(self, find: FindGroup, timers: Timers, settings: GroupSettings) -> None:
        """`find(group_id)` returns the classic group if it still exists: timers outlive groups."""
        self._find = find
        self._timers = timers
        self._settings = settings

    # Gathering

    def prepare_or_complete(self, group: ClassicGroup, reason: str, now_ms: int) -> Change:
        """Start a rebalance after a change of members, or complete the one that is under way if all have joined."""
        if group.can_rebalance:
            return self.prepare(group, reason, now_ms)
        return self.complete_if_all_joined(group, now_ms)

    def prepare(self, group: ClassicGroup, reason: str, now_ms: int) -> Change:
        """Start a rebalance. Members learn of it by their next heartbeat."""
        if group.state is COMPLETING:
            self.reset_assignments(group, ErrorCode.REBALANCE_IN_PROGRESS, now_ms)
        group.pending_sync.clear()
        self._timers.cancel(("sync", group.group_id))
        is_first = group.state is EMPTY
        if is_first:
            delay_ms = self._settings.initial_rebalance_delay_ms
            left_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
            self._put_off(group.group_id, delay_ms, left_ms, now_ms)
        group.move_to(PREPARING, now_ms)
        _log.info("group %s rebalances after generation %d: %s", group.group_id, group.generation, reason)
        if is_first:
            return None
        if group.have_all_joined:
            return self.complete_join(group, now_ms)
        self._schedule_join(group, now_ms)
        return None

    def _schedule_join(self, group: ClassicGroup, now_ms: int, wait_ms_min: int = 0) -> None:
        wait_ms = max(group.rebalance_timeout_ms, wait_ms_min)
        self._timers.schedule(("join", group.group_id), now_ms + wait_ms, partial(self._time_is_up, group.group_id))

    def _time_is_up(self, group_id: str, now_ms: int) -> Change:
        group = self._find(group_id)
        return None if group is None else self.complete_join(group, now_ms)

    def _put_off(self, group_id: str, delay_ms: int, left_ms: int, now_ms: int) -> None:
        """Delay the first rebalance, so that more members can join."""
        self._timers.schedule(
            ("join", group_id), now_ms + delay_ms, partial(self._complete_first, group_id, delay_ms, left_ms)
        )

    def _complete_first(self, group_id: str, delay_ms: int, left_ms: int, now_ms: int) -> Change:
        group = self._find(group_id)
        if group is None:
            return None
        if left_ms != 0 and group.take_new_member_flag():
            next_ms = min(self._settings.initial_rebalance_delay_ms, left_ms)
            self._put_off(group_id, next_ms, max(left_ms - delay_ms, 0), now_ms)
            return None
        return self.complete_join(group, now_ms)

    def complete_if_all_joined(self, group: ClassicGroup, now_ms: int) -> Change:
        """Complete the rebalance if all members have joined. The first rebalance always waits for its delay."""
        if group.state is PREPARING and group.previous_state is not EMPTY and group.have_all_joined:
            return self.complete_join(group, now_ms)
        return None

    def complete_join(self, group: ClassicGroup, now_ms: int) -> Change:
        """Begin a new generation with the members that have joined."""
        self._timers.cancel(("join", group.group_id))
        missing = [one for one in group.members.values() if one.awaiting_join is None and not one.is_static]
        for member in missing:
            _log.info("group %s: %s has not joined again in time", group.group_id, member.member_id)
            group.remove(member.member_id)
            self.end_session(group, member.member_id)
        if group.state is DEAD:
            return None
        if not group.elect_joined_leader() and group.members:
            # Only static members are left and none has joined: wait until their sessions expire.
            self._schedule_join(group, now_ms, wait_ms_min=_STATIC_WAIT_MS_MIN)
            return None
        group.begin_generation(now_ms)
        if group.state is EMPTY:
            _log.info("group %s is empty with generation %d", group.group_id, group.generation)
            return StateChange([group_record(group, {})], None, is_replayed=False)
        _log.info("group %s has %d members in generation %d", group.group_id, len(group.members), group.generation)
        for member in tuple(group.members.values()):
            group.answer_join(member, group.join_response(member.member_id), now_ms)
            self.extend_session(group, member, now_ms)
            member.end_first_join()
            group.pending_sync.add(member.member_id)
        self._timers.schedule(
            ("sync", group.group_id),
            now_ms + group.rebalance_timeout_ms,
            partial(self._expire_sync, group.group_id, group.generation),
        )
        return None

    # Assignment

    def assign(self, group: ClassicGroup, assignments: Mapping[str, bytes], now_ms: int) -> None:
        """Send the assignment to all members. It has been stored."""
        for member in group.members.values():
            member.assign(assignments.get(member.member_id, b""))
        self._send_assignments(group, ErrorCode.NONE, now_ms)
        group.move_to(STABLE, now_ms)

    def reset_assignments(self, group: ClassicGroup, error: ErrorCode, now_ms: int) -> None:
        """Discard the assignments, and answer all SyncGroups with the error."""
        for member in group.members.values():
            member.assign(b"")
        self._send_assignments(group, error, now_ms)

    def _send_assignments(self, group: ClassicGroup, error: ErrorCode, now_ms: int) -> None:
        is_stored = error is ErrorCode.NONE
        for member in tuple(group.members.values()):
            response = SyncGroupResponse(
                error_code=error,
                protocol_type=group.protocol_type if is_stored else None,
                protocol_name=group.protocol if is_stored else None,
                assignment=member.assignment,
            )
            if member.answer_sync(response, now_ms):
                # The session could not expire while the member waited.
                self.extend_session(group, member, now_ms)

    def _expire_sync(self, group_id: str, generation: int, now_ms: int) -> Change:
        """Remove the members that have not sent SyncGroup in time."""
        group = self._find(group_id)
        if group is None or group.generation != generation or group.state not in (COMPLETING, STABLE):
            return None
        late = tuple(group.pending_sync)
        if not late:
            return None
        for member_id in late:
            group.remove(member_id)
            self.end_session(group, member_id)
        return self.prepare(group, f"{', '.join(late)} did not send SyncGroup in time", now_ms)

    def synced(self, group: ClassicGroup, member_id: str) -> None:
        """Note that a member has sent SyncGroup."""
        group.pending_sync.discard(member_id)
        if not group.pending_sync:
            self._timers.cancel(("sync", group.group_id))

    # Sessions

    def extend_session(
        self, group: ClassicGroup, member: ClassicMember, now_ms: int, timeout_ms: int | None = None
    ) -> None:
        timeout_ms = member.session_timeout_ms if timeout_ms is None else timeout_ms
        self.begin_session(group.group_id, member.member_id, timeout_ms, now_ms)

    def begin_session(self, group_id: str, member_id: str, timeout_ms: int, now_ms: int) -> None:
        key = ("heartbeat", group_id, member_id)
        self._timers.schedule(key, now_ms + timeout_ms, partial(self._expire_session, group_id, member_id))

    def end_session(self, group: ClassicGroup, member_id: str) -> None:
        self._timers.cancel(("heartbeat", group.group_id, member_id))

    def _expire_session(self, group_id: str, member_id: str, now_ms: int) -> Change:
        group = self._find(group_id)
        if group is None or group.state is DEAD:
            return None
        if member_id in group.pending:
            group.remove(member_id)
            return self._complete_without(group, now_ms)
        member = group.members.get(member_id)
        if member is None or member.is_alive_while_waiting:
            return None
        _log.info("group %s: removed %s: its session has expired", group_id, member_id)
        self.dismiss(group, member, now_ms)
        if group.state in (STABLE, COMPLETING):
            return self.prepare_or_complete(group, f"the session of {member_id} has expired", now_ms)
        return self._complete_without(group, now_ms)

    def _complete_without(self, group: ClassicGroup, now_ms: int) -> Change:
        if group.state is PREPARING and group.have_all_joined:
            return self.complete_join(group, now_ms)
        return None

    def dismiss(self, group: ClassicGroup, member: ClassicMember, now_ms: int) -> None:
        """Remove a member. A JoinGroup that it waits in gets UNKNOWN_MEMBER_ID, so that it can join as a new member."""
        group.answer_join(member, JoinGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID), now_ms)
        group.remove(member.member_id)

    # Leadership

    def loaded(self, group: ClassicGroup, now_ms: int) -> None:
        """Give every member a whole session after the log has been loaded."""
        for member in group.members.values():
            self.extend_session(group, member, now_ms)
        if len(group.members) > self._settings.size_max:
            self.prepare(group, "there are more members than are allowed", now_ms)

    def unloaded(self, group: ClassicGroup, now_ms: int) -> None:
        """Answer all waiting requests with NOT_COORDINATOR: another broker coordinates the group now."""
        was = group.state
        group.move_to(DEAD, now_ms)
        for member in tuple(group.members.values()):
            if was is PREPARING:
                response = JoinGroupResponse(error_code=ErrorCode.NOT_COORDINATOR, member_id=member.member_id)
                group.answer_join(member, response, now_ms)
            elif was in (COMPLETING, STABLE):
                member.answer_sync(SyncGroupResponse(error_code=ErrorCode.NOT_COORDINATOR), now_ms)
