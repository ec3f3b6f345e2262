"""EpochRecords: the five records that each kind of epoch group keeps in `__consumer_offsets`.

    group          the group epoch and the hash of its topics
    member         identity and subscription of a member
    target epoch   the epoch of the target assignment
    target         the target assignment of a member
    current        epoch, state and current assignment of a member

Each kind has its own message classes and fields, and describes them as data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, Generic, NamedTuple, TypeVar

from tailrace.coordinator.groups.epoch.epoch_member import EpochMember, MemberState
from tailrace.coordinator.groups.epoch.record_fields import RecordField, read_fields, write_fields
from tailrace.coordinator.shard import CoordinatorRecord

M = TypeVar("M", bound=EpochMember)
A = TypeVar("A")

# Codes of the states in the current records of consumer and share groups.
PARTITION_STATE_CODES: Final = {
    MemberState.STABLE: 0,
    MemberState.UNREVOKED: 1,
    MemberState.UNRELEASED: 2,
    MemberState.UNKNOWN: 127,
}


class MessagePair(NamedTuple):
    key: type[Any]
    value: type[Any]


class EpochMessages(NamedTuple):
    group: MessagePair
    member: MessagePair
    target_epoch: MessagePair
    target: MessagePair
    current: MessagePair


@dataclass(frozen=True)
class EpochRecords(Generic[M, A]):
    messages: EpochMessages
    new_member: Callable[[str], M]  # (member id)
    member_fields: Sequence[RecordField]
    state_codes: Mapping[MemberState, int]
    write_current: Callable[[M], Mapping[str, Any]]  # the partition lists of a current assignment
    read_current: Callable[[Any], Mapping[str, Any]]  # those lists as fields of a member
    write_target: Callable[[A], Mapping[str, Any]]
    read_target: Callable[[Any], A]

    # Write

    def group_record(self, group_id: str, epoch: int, metadata_hash: int, **more: Any) -> CoordinatorRecord:
        key, value = self.messages.group
        return CoordinatorRecord(key(group_id=group_id), value(epoch=epoch, metadata_hash=metadata_hash, **more))

    def member_record(self, group_id: str, member: M) -> CoordinatorRecord:
        key, value = self.messages.member
        return CoordinatorRecord(
            key(group_id=group_id, member_id=member.member_id), value(**write_fields(self.member_fields, member))
        )

    def target_record(self, group_id: str, member_id: str, assignment: A) -> CoordinatorRecord:
        key, value = self.messages.target
        return CoordinatorRecord(key(group_id=group_id, member_id=member_id), value(**self.write_target(assignment)))

    def target_epoch_record(self, group_id: str, epoch: int, timestamp_ms: int) -> CoordinatorRecord:
        key, value = self.messages.target_epoch
        return CoordinatorRecord(
            key(group_id=group_id), value(assignment_epoch=epoch, assignment_timestamp=timestamp_ms)
        )

    def current_record(self, group_id: str, member: M) -> CoordinatorRecord:
        key, value = self.messages.current
        return CoordinatorRecord(
            key(group_id=group_id, member_id=member.member_id),
            value(
                member_epoch=member.member_epoch,
                previous_member_epoch=member.previous_epoch,
                state=self.state_codes[member.state],
                **self.write_current(member),
            ),
        )

    # Tombstones

    def member_tombstones(self, group_id: str, member_id: str) -> list[CoordinatorRecord]:
        """Return the tombstones of one member, in the order in which they can be replayed."""
        messages = self.messages
        pairs = (messages.current, messages.target, messages.member)
        return [CoordinatorRecord(pair.key(group_id=group_id, member_id=member_id), None) for pair in pairs]

    def members_tombstones(self, group_id: str, member_ids: Iterable[str]) -> list[CoordinatorRecord]:
        """Return the tombstones of all members of a group, and of its target epoch, in Kafka's order."""
        triples = [self.member_tombstones(group_id, member_id) for member_id in member_ids]
        return [
            *(current for current, _, _ in triples),
            *(target for _, target, _ in triples),
            CoordinatorRecord(self.messages.target_epoch.key(group_id=group_id), None),
            *(member for _, _, member in triples),
        ]

    def group_tombstone(self, group_id: str) -> CoordinatorRecord:
        return CoordinatorRecord(self.messages.group.key(group_id=group_id), None)

    # Read

    @cached_property
    def _states(self) -> dict[int, MemberState]:
        return {code: state for state, code in self.state_codes.items()}

    def with_metadata(self, member: M, value: Any) -> M:
        """Return the member with the fields of a member record."""
        return replace(member, **read_fields(self.member_fields, value))

    def with_current(self, member: M, value: Any) -> M:
        """Return the member with the epoch, state and assignment of a current record."""
        return replace(
            member,
            member_epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=self._states.get(value.state, MemberState.UNKNOWN),
            **self.read_current(value),
        )
