"""StaticRejoins: a static member joins again after a restart, with a new member id.

It replaces the member before. While the group is stable and its protocol does not change, this causes no rebalance.
"""

from __future__ import annotations

from tailrace.coordinator.groups.classic.classic_group import COMPLETING, STABLE, ClassicGroup
from tailrace.coordinator.groups.classic.classic_member import JoinAnswer
from tailrace.coordinator.groups.classic.classic_rebalance import Change, Rebalances
from tailrace.coordinator.groups.classic.classic_records import group_record
from tailrace.coordinator.groups.classic.join_request import JoinRequest
from tailrace.coordinator.shard import StateChange
from tailrace.model.errors import ErrorCode
from tailrace.protocol.messages import JoinGroupResponse

_SKIP_ASSIGNMENT_FROM = 9


class StaticRejoins:
    def __init__(self, rebalances: Rebalances) -> None:
        self._rebalances = rebalances

    def replace(
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
            response: JoinGroupResponse = group.join_response(new_id)
            if request.version >= _SKIP_ASSIGNMENT_FROM:
                response.skip_assignment = new_id == group.leader_id
            else:
                # An old client that is the leader would compute an assignment: the response names the leader's old id.
                response.members = []
                response.leader = leader_before or ""
            group.answer_join(member, response, now_ms)

        assignments = {one.member_id: one.assignment for one in group.members.values()}
        return StateChange([group_record(group, assignments)], None, is_replayed=False, on_done=stored)
