"""ShareMember: a member of a share group, as the log describes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tailrace.coordinator.groups.epoch.epoch_member import LEAVE_EPOCH, EpochMember


@dataclass(frozen=True, slots=True)
class ShareMember(EpochMember):
    topic_names: frozenset[str] = frozenset()
    assigned: Mapping[bytes, frozenset[int]] = field(default_factory=dict)

    def without_assignment(self) -> ShareMember:
        return replace(self, member_epoch=LEAVE_EPOCH, previous_epoch=LEAVE_EPOCH, assigned={})
