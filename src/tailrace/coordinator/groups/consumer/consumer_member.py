"""ConsumerMember: a member of a consumer group, with the new or the classic protocol, as the log describes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

from tailrace.coordinator.groups.epoch.epoch_member import LEAVE_EPOCH, EpochMember

PartitionEpochs: TypeAlias = Mapping[bytes, Mapping[int, int]]  # topic id → partition → epoch of its assignment


class ClassicMetadata(NamedTuple):
    """The additional facts of a member that uses the classic protocol in a consumer group."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]  # (name, subscription), in the member's order


@dataclass(frozen=True, slots=True)
class ConsumerMember(EpochMember):
    instance_id: str | None = None
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = None
    topic_names: frozenset[str] = frozenset()
    topic_pattern: str | None = ""
    classic: ClassicMetadata | None = None
    assigned: PartitionEpochs = field(default_factory=dict)
    to_revoke: PartitionEpochs = field(default_factory=dict)

    def without_assignment(self) -> ConsumerMember:
        return replace(self, member_epoch=LEAVE_EPOCH, previous_epoch=LEAVE_EPOCH, assigned={}, to_revoke={})

    def assigned_since(self, topic_id: bytes, partition: int) -> int | None:
        """Return the epoch in which the member got a partition that it still has or must revoke; None if neither."""
        epoch = self.assigned.get(topic_id, {}).get(partition)
        return self.to_revoke.get(topic_id, {}).get(partition) if epoch is None else epoch
