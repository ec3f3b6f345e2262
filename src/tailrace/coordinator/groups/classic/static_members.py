"""StaticMembers: the member ids of a group's static members, and the fencing of earlier ones.

A static member is identified by its instance id. It gets a new member id after each restart. From then on requests with
the earlier id are answered with FENCED_INSTANCE_ID, also those that wait already.
"""

from __future__ import annotations

from tailrace.coordinator.groups.classic.classic_member import ClassicMember
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol.messages import JoinGroupResponse, SyncGroupResponse


class StaticMembers:
    def __init__(self) -> None:
        self._ids: dict[str, str] = {}  # instance id → member id

    def get(self, instance_id: str) -> str | None:
        """Return the member id of an instance, or None if it is unknown."""
        return self._ids.get(instance_id)

    def add(self, instance_id: str, member_id: str) -> None:
        assert instance_id not in self._ids, f"{instance_id} is a member already"
        self._ids[instance_id] = member_id

    def replace(self, instance_id: str, member_id: str) -> None:
        """Store the new member id of an instance that has restarted; the earlier id is fenced."""
        self._ids[instance_id] = member_id

    def remove(self, instance_id: str) -> None:
        del self._ids[instance_id]

    def check(self, instance_id: str, member_id: str) -> None:
        """Raise UNKNOWN_MEMBER_ID for an unknown instance, FENCED_INSTANCE_ID for an earlier member id."""
        known = self._ids.get(instance_id)
        if known is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        if known != member_id:
            raise KafkaError(ErrorCode.FENCED_INSTANCE_ID)


def fence(member: ClassicMember, now_ms: int) -> None:
    """Answer the requests in which a replaced member waits."""
    code = ErrorCode.FENCED_INSTANCE_ID
    member.answer_join(
        JoinGroupResponse(member_id=member.member_id, error_code=code, protocol_type=None, protocol_name=None), now_ms
    )
    member.answer_sync(SyncGroupResponse(error_code=code, protocol_type=None, protocol_name=None), now_ms)
