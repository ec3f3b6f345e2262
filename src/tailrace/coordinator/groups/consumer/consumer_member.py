"""ConsumerMember: a member of a consumer group, as the log has it. Never changed: a change is another one.

STABLE                  it has what it shall have
UNREVOKED_PARTITIONS    it must let go of partitions first, and say so
UNRELEASED_PARTITIONS   it waits for partitions that others have not let go of yet
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple, TypeAlias

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
LEAVE_STATIC_EPOCH = -2  # it will be back with the same instance id

PartitionEpochs: TypeAlias = Mapping[bytes, Mapping[int, int]]  # topic id → partition → epoch it was assigned in


class MemberState(IntEnum):
    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127  # of a version that we do not know


class ClassicMetadata(NamedTuple):
    """What is kept of a member that speaks the classic protocol in a consumer group."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]  # (name, subscription), in the member's order


@dataclass(frozen=True, slots=True)
class ConsumerMember:
    member_id: str
    member_epoch: int = 0
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = None
    topic_names: frozenset[str] = frozenset()
    topic_pattern: str | None = ""
    classic: ClassicMetadata | None = None
    assigned: PartitionEpochs = field(default_factory=dict)
    to_revoke: PartitionEpochs = field(default_factory=dict)

    def is_reconciled_to(self, target_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.member_epoch == target_epoch

    def assigned_since(self, topic_id: bytes, partition: int) -> int | None:
        """The epoch in which it got a partition that it still has, or has to let go of."""
        epoch = self.assigned.get(topic_id, {}).get(partition)
        return self.to_revoke.get(topic_id, {}).get(partition) if epoch is None else epoch
