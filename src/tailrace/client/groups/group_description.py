"""DescribedGroup: state and members of a group of any protocol."""

from __future__ import annotations

from typing import NamedTuple

from tailrace.model.ids import TopicPartition


class GroupMember(NamedTuple):
    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    partitions: tuple[TopicPartition, ...]


class DescribedGroup(NamedTuple):
    group_id: str
    type: str
    state: str
    protocol_type: str
    protocol: str  # usually the name of the assignor
    members: tuple[GroupMember, ...]

    @property
    def has_members(self) -> bool:
        return bool(self.members) or self.state not in ("Empty", "Dead")
