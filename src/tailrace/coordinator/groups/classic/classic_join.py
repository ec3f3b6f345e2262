"""JoinGroup requests of classic groups.

A client without a member id gets one. Since version 4 the first response is MEMBER_ID_REQUIRED with the id, and the
client joins with that id. So a client that gives up and retries leaves no member behind.

A static member is identified by its instance id. It gets a new member id after each restart and replaces the member
before. While the group is stable and its protocol does not change, this causes no rebalance.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import NamedTuple

from tailrace.coordinator.groups.classic.classic_group import COMPLETING, DEAD, PREPARING, STABLE, ClassicGroup
from tailrace.coordinator.groups.classic.classic_member import ClassicMember, JoinAnswer, Protocols
from tailrace.coordinator.groups.classic.classic_rebalance import Change, Rebalances
from tailrace.coordinator.groups.classic.classic_records import group_record
from tailrace.coordinator.groups.consumer.consumer_heartbeat import IsVisible, all_visible
from tailrace.coordinator.groups.group_settings import GroupSettings
from tailrace.coordinator.shard import StateChange
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol.messages import JoinGroupResponse
from tailrace.protocol.primitives import STRING_MAX

_log = logging.getLogger(__name__)

MEMBER_ID_REQUIRED_FROM = 4
_SKIP_ASSIGNMENT_FROM = 9


class JoinRequest(NamedTuple):
    """A JoinGroup request, decoded."""

    group_id: str
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    reason: str
    version: int
    is_visible: IsVisible = all_visible


class ClassicJoins:
    def __init__(self, rebalances: Rebalances, settings: GroupSettings, new_uuid: Callable[[], str]) -> None:
        self._rebalances = rebalances
        self._settings = settings
        self._new_uuid = new_uuid

    def join(self, group: ClassicGroup, request: JoinRequest, answer: JoinAnswer, now_ms: int) -> Change:
        """Handle a JoinGroup. `answer` is called once, now or when all members have joined."""

        def refuse(code: ErrorCode, member_id: str = "") -> None:
            answer(JoinGroupResponse(error_code=code, member_id=member_id), now_ms)

        if not self._has_room_for(group, request.member_id):
            group.remove(request.member_id)
            refuse(ErrorCode.GROUP_MAX_SIZE_REACHED)
            return None
        if group.state is DEAD:
            refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE, request.member_id)
            return None
        if not group.supports(request.protocol_type, request.protocols):
            refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, request.member_id)
            return None
        if not request.member_id:
            return self._join_new(group, request, answer, now_ms)
        if request.member_id in group.pending:
            if request.instance_id is not None:
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "a pending member id cannot have an instance id")
            return self._add(group, request, request.member_id, answer, now_ms)
        try:
            group.check_member(request.member_id, request.instance_id)
        except KafkaError as error:
            answer(
                JoinGroupResponse(
                    error_code=error.code, member_id=request.member_id, protocol_type=None, protocol_name=None
                ),
                now_ms,
            )
            return None
        return self._join_again(group, request, answer, now_ms)

    def _has_room_for(self, group: ClassicGroup, member_id: str) -> bool:
        limit = self._settings.size_max
        member = group.members.get(member_id)
        if group.state is PREPARING:
            # Members that have joined are counted, not all members. If the limit was lowered, the last are refused.
            return (member is not None and member.awaiting_join is not None) or group.waiting_to_join < limit
        if group.state in (COMPLETING, STABLE):
            return member is not None or len(group.members) < limit
        return True

    # Members without an id

    def _join_new(self, group: ClassicGroup, request: JoinRequest, answer: JoinAnswer, now_ms: int) -> Change:
        if request.instance_id is not None:
            member_id = self._new_member_id(request.instance_id)
            known = group.static_members.get(request.instance_id)
            if known is not None:
                return self._replace_static(group, request, known, member_id, answer, now_ms)
            return self._add(group, request, member_id, answer, now_ms)
        member_id = self._new_member_id(request.client_id)
        if request.version < MEMBER_ID_REQUIRED_FROM:
            return self._add(group, request, member_id, answer, now_ms)
        group.pending.add(member_id)
        self._rebalances.begin_session(group.group_id, member_id, request.session_timeout_ms, now_ms)
        answer(JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id), now_ms)
        return None

    def _new_member_id(self, named_after: str) -> str:
        """Return an id that begins with the client id or the instance id.

        Raise UNKNOWN_SERVER_ERROR, as Kafka does, if the id is too long for responses and records.
        """
        member_id = f"{named_after}-{self._new_uuid()}"
        size = len(member_id.encode("utf-8", "surrogatepass"))
        if size > STRING_MAX:
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"a member id of {size} bytes is longer than {STRING_MAX}: use a shorter id",
            )
        return member_id

    def _add(
        self, group: ClassicGroup, request: JoinRequest, member_id: str, answer: JoinAnswer, now_ms: int
    ) -> Change:
        member = ClassicMember(
            member_id,
            instance_id=request.instance_id,
            client_id=request.client_id,
            client_host=request.client_host,
            rebalance_timeout_ms=request.rebalance_timeout_ms,
            session_timeout_ms=request.session_timeout_ms,
            protocols=request.protocols,
        )
        member.begin_first_join()
        group.add(member, request.protocol_type, answer)
        # The member cannot send heartbeats before its JoinGroup is answered. If its client gives up and joins again
        # as another member, this timeout removes the first one.
        self._rebalances.extend_session(group, member, now_ms, self._settings.new_member_join_timeout_ms)
        return self._rebalances.prepare_or_complete(group, f"{member_id} joins: {request.reason}", now_ms)

    def _replace_static(
        self,
        group: ClassicGroup,
        request: JoinRequest,
        old_id: str,
        new_id: str,
        answer: JoinAnswer,
        now_ms: int,
    ) -> Change:
        assert request.instance_id is not None
        leader_before = group.leader_id
        member = group.replace_static(request.instance_id, old_id, new_id, now_ms)
        self._rebalances.extend_session(group, member, now_ms)
        before = (member.protocols, member.rebalance_timeout_ms, member.session_timeout_ms)
        group.update(member, request.protocols, request.rebalance_timeout_ms, request.session_timeout_ms, answer)
        if group.state is COMPLETING:
            # The leader may be computing an assignment for the old id.
            return self._rebalances.prepare(group, f"static member {request.instance_id} is back", now_ms)
        if group.state is not STABLE:
            return self._rebalances.complete_if_all_joined(group, now_ms)
        if group.chosen_protocol() != group.protocol:
            return self._rebalances.prepare_or_complete(
                group, f"static member {request.instance_id} is back with another protocol", now_ms
            )

        def stored(error: ErrorCode, now_ms: int) -> None:
            if error is not ErrorCode.NONE:
                group.update(member, *before, None)
                old = group.replace_static(request.instance_id or "", new_id, old_id, now_ms)
                self._rebalances.extend_session(group, old, now_ms)
                answer(
                    JoinGroupResponse(
                        error_code=error,
                        generation_id=group.generation,
                        protocol_type=group.protocol_type,
                        protocol_name=group.protocol,
                        leader=leader_before or "",
                    ),
                    now_ms,
                )
                return
            response = group.join_response(new_id)
            if request.version >= _SKIP_ASSIGNMENT_FROM:
                response.skip_assignment = new_id == group.leader_id
            else:
                # An old client that is the leader would compute an assignment: the response names the leader's old id.
                response.members = []
                response.leader = leader_before or ""
            group.answer_join(member, response, now_ms)

        assignments = {one.member_id: one.assignment for one in group.members.values()}
        return StateChange([group_record(group, assignments)], None, is_replayed=False, on_done=stored)

    # Members with an id

    def _join_again(self, group: ClassicGroup, request: JoinRequest, answer: JoinAnswer, now_ms: int) -> Change:
        member = group.members[request.member_id]
        is_changed = member.protocols != tuple(request.protocols)
        is_leader = request.member_id == group.leader_id
        # A leader that joins again has a reason, for example new partitions.
        if group.state is PREPARING or is_changed or (group.state is STABLE and is_leader):
            group.update(member, request.protocols, request.rebalance_timeout_ms, request.session_timeout_ms, answer)
            return self._rebalances.prepare_or_complete(
                group, f"{request.member_id} joins again: {request.reason}", now_ms
            )
        # Nothing has changed; the client may have lost the response.
        answer(group.join_response(request.member_id), now_ms)
        return None
