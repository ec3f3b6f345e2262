"""SyncGroup, Heartbeat and LeaveGroup requests of members of classic groups."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tailrace.coordinator.groups.classic.classic_group import COMPLETING, DEAD, EMPTY, PREPARING, STABLE, ClassicGroup
from tailrace.coordinator.groups.classic.classic_member import SyncAnswer
from tailrace.coordinator.groups.classic.classic_rebalance import Change, Rebalances
from tailrace.coordinator.groups.classic.classic_records import group_record
from tailrace.coordinator.shard import StateChange
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol.messages import LeaveGroupResponse, SyncGroupResponse

_log = logging.getLogger(__name__)


class SyncRequest(NamedTuple):
    """A SyncGroup request, decoded."""

    group_id: str
    member_id: str
    instance_id: str | None
    generation: int
    protocol_type: str | None
    protocol: str | None
    assignments: Mapping[str, bytes]


class LeavingMember(NamedTuple):
    member_id: str
    instance_id: str | None
    reason: str


class ClassicMembership:
    def __init__(self, rebalances: Rebalances) -> None:
        self._rebalances = rebalances

    # SyncGroup

    def sync(self, group: ClassicGroup, request: SyncRequest, answer: SyncAnswer, now_ms: int) -> Change:
        """Handle a SyncGroup. `answer` is called once, now or when the leader has sent the assignment."""
        try:
            _check_sync(group, request)
        except KafkaError as error:
            answer(SyncGroupResponse(error_code=error.code), now_ms)
            return None
        if group.state is PREPARING:
            answer(SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS), now_ms)
            return None
        member = group.members[request.member_id]
        self._rebalances.synced(group, request.member_id)
        if group.state is STABLE:
            answer(
                SyncGroupResponse(
                    protocol_type=group.protocol_type, protocol_name=group.protocol, assignment=member.assignment
                ),
                now_ms,
            )
            return None
        assert group.state is COMPLETING, group.state
        member.wait_to_sync(answer)
        if request.member_id != group.leader_id:
            return None
        assignments = {member_id: request.assignments.get(member_id, b"") for member_id in group.members}

        def stored(error: ErrorCode, now_ms: int) -> None:
            if group.state is not COMPLETING or group.generation != request.generation:
                return  # a member has joined or left meanwhile
            if error is ErrorCode.NONE:
                self._rebalances.assign(group, assignments, now_ms)
            else:
                self._rebalances.reset_assignments(group, error, now_ms)
                self._rebalances.prepare_or_complete(group, f"the assignment could not be stored: {error.name}", now_ms)

        return StateChange([group_record(group, assignments)], None, is_replayed=False, on_done=stored)

    # Heartbeat

    def heartbeat(
        self, group: ClassicGroup, member_id: str, instance_id: str | None, generation: int, now_ms: int
    ) -> ErrorCode:
        """Restart the session. Return REBALANCE_IN_PROGRESS if the member must join again."""
        if group.state is DEAD:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        group.check_member(member_id, instance_id)
        if generation != group.generation:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        if group.state is EMPTY:
            return ErrorCode.UNKNOWN_MEMBER_ID
        self._rebalances.extend_session(group, group.members[member_id], now_ms)
        return ErrorCode.REBALANCE_IN_PROGRESS if group.state is PREPARING else ErrorCode.NONE

    # LeaveGroup

    def leave(
        self, group: ClassicGroup, leaving: Sequence[LeavingMember], now_ms: int
    ) -> StateChange[LeaveGroupResponse]:
        """Remove members that leave, and static members that an administrator removes by their instance id."""
        if group.state is DEAD:
            return StateChange((), LeaveGroupResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE))
        response = LeaveGroupResponse()
        left = []
        for one in leaving:
            error = self._leave(group, one, now_ms)
            if error is ErrorCode.NONE:
                left.append(one.member_id)
            response.members.append(
                LeaveGroupResponse.MemberResponse(
                    member_id=one.member_id, group_instance_id=one.instance_id, error_code=error
                )
            )
        change: Change = None
        if left and group.state in (STABLE, COMPLETING):
            change = self._rebalances.prepare_or_complete(group, f"{', '.join(left)} left", now_ms)
        elif left and group.state is PREPARING:
            change = self._rebalances.complete_if_all_joined(group, now_ms)
        if change is None:
            return StateChange((), response)
        return StateChange(change.records, response, is_replayed=change.is_replayed, on_done=change.on_done)

    def _leave(self, group: ClassicGroup, one: LeavingMember, now_ms: int) -> ErrorCode:
        member_id = one.member_id
        if not member_id:
            known = None if one.instance_id is None else group.static_members.get(one.instance_id)
            if known is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            member_id = known
        elif member_id in group.pending:
            group.remove(member_id)
            self._rebalances.end_session(group, member_id)
            return ErrorCode.NONE
        else:
            try:
                group.check_member(member_id, one.instance_id)
            except KafkaError as error:
                return error.code
        _log.info("group %s: %s leaves: %s", group.group_id, member_id, one.reason)
        self._rebalances.end_session(group, member_id)
        self._rebalances.dismiss(group, group.members[member_id], now_ms)
        return ErrorCode.NONE


def _check_sync(group: ClassicGroup, request: SyncRequest) -> None:
    if group.state is DEAD:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    group.check_member(request.member_id, request.instance_id)
    if request.generation != group.generation:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    if _differs(request.protocol_type, group.protocol_type) or _differs(request.protocol, group.protocol):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


def _differs(requested: str | None, known: str | None) -> bool:
    """Return True if the request has another value. Old clients send none."""
    return requested is not None and known is not None and requested != known
