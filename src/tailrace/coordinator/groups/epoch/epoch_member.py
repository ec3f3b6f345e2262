"""EpochMember: the fields and rules that members of consumer, share and streams groups have in common.

A member is immutable: each change makes another object. Its epoch follows the epoch of the target assignment:

    STABLE       the member has its target assignment
    UNREVOKED    the member must first revoke partitions or tasks, and confirm that in a heartbeat
    UNRELEASED   the member waits for partitions or tasks that other members have not released yet
    UNKNOWN      a state that only a later version of Kafka writes
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Any, Final, Self

from tailrace.model.errors import ErrorCode, KafkaError

JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
LEAVE_STATIC_EPOCH: Final = -2  # the member will return with the same instance id


class MemberState(Enum):
    STABLE = auto()
    UNREVOKED = auto()
    UNRELEASED = auto()
    UNKNOWN = auto()


@dataclass(frozen=True, slots=True)
class EpochMember:
    member_id: str
    member_epoch: int = 0
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""

    def is_reconciled_to(self, target_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.member_epoch == target_epoch

    def with_reported(self, **reported: Any) -> Self:
        """Return the member with the fields that its heartbeat reports; None means unchanged."""
        changed = {
            name: value for name, value in reported.items() if value is not None and value != getattr(self, name)
        }
        return replace(self, **changed) if changed else self

    def moved_to(self, epoch: int, state: MemberState, **held: Any) -> Self:
        """Return the member after one step of its reconciliation, with its new assignment."""
        return replace(self, member_epoch=epoch, previous_epoch=self.member_epoch, state=state, **held)

    def without_assignment(self) -> Self:
        """Return the member as it is just before it leaves the group."""
        raise NotImplementedError


def check_epoch(kind: str, member: EpochMember, epoch: int, owns_assigned: Callable[[], bool] | None = None) -> None:
    """Raise FENCED_MEMBER_EPOCH unless the epoch of a heartbeat is current.

    A member may be one epoch behind if the response with the new epoch was lost. Where heartbeats list what the member
    owns, `owns_assigned()` must then be True: the member owns nothing that it was not assigned.
    """
    if epoch == member.member_epoch:
        return
    is_behind = epoch < member.member_epoch
    if is_behind and epoch == member.previous_epoch and (owns_assigned is None or owns_assigned()):
        return
    detail = ""
    if is_behind and owns_assigned is None:
        detail = f", and it does not match the previous member epoch ({member.previous_epoch})"
    raise KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The {kind} group member has a {'smaller' if is_behind else 'greater'} member epoch ({epoch}) than the one "
        f"known by the group coordinator ({member.member_epoch}){detail}. The member must abandon all its partitions "
        "and rejoin.",
    )
