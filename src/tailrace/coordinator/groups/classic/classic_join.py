"""JoinGroup requests of classic groups.

A client without a member id gets one. Since version 4 the first response is MEMBER_ID_REQUIRED with the id, and the
client joins with that id. So a client that gives up and retries leaves no member behind.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from tailrace.coordinator.groups.classic.classic_group import COMPLETING, DEAD, PREPARING, STABLE, ClassicGroup
from tailrace.coordinator.groups.classic.classic_member import ClassicMember, JoinAnswer
from tailrace.coordinator.groups.classic.classic_rebalance import Change, Rebalances
from tailrace.coordinator.groups.classic.join_request import JoinRequest
from tailrace.coordinator.groups.classic.static_rejoin import StaticRejoins
from tailrace.coordinator.groups.group_settings import GroupSettings
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol.messages import JoinGroupResponse
from tailrace.protocol.primitives import STRING_MAX

_log = logging.getLogger(__name__)

MEMBER_ID_REQUIRED_FROM = 4


class ClassicJoins:
    def __init__(self, rebalances: Rebalances, settings: GroupSettings, new_uuid: Callable[[], str]) -> None:
        self._rebalances = rebalances
        self._settings = settings
        self._new_uuid = new_uuid
        self._static_rejoins = StaticRejoins(rebalances)

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
                return self._static_rejoins.replace(group, request, known, member_id, answer, now_ms)
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
