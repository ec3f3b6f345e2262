"""ShareMember: a member of a share group, as the log has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tailrace.coordinator.groups.consumer.consumer_member import MemberState
from tailrace.model.errors import ErrorCode, KafkaError


@dataclass(frozen=True, slots=True)
class ShareMember:
    """Never changed: a change is another one."""

    member_id: str
    member_epoch: int = 0
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topic_names: frozenset[str] = frozenset()
    assigned: Mapping[bytes, frozenset[int]] = field(default_factory=dict)

    def is_reconciled_to(self, target_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.member_epoch == target_epoch

    def check_epoch(self, epoch: int) -> None:
        """A member may be one epoch behind, if the answer that told it of the new one was lost."""
        if epoch > self.member_epoch:
            raise KafkaError(
                ErrorCode.FENCED_MEMBER_EPOCH,
                f"The share group member has a greater member epoch ({epoch}) than the one known by the group "
                f"coordinator ({self.member_epoch}). The member must abandon all its partitions and rejoin.",
            )
        if epoch < self.member_epoch and epoch != self.previous_epoch:
            raise KafkaError(
                ErrorCode.FENCED_MEMBER_EPOCH,
                f"The share group member has a smaller member epoch ({epoch}) than the one known by the group "
                f"coordinator ({self.member_epoch}), and it does not match the previous member epoch "
                f"({self.previous_epoch}). The member must abandon all its partitions and rejoin.",
            )
