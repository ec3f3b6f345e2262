"""EpochEngine: the heartbeat steps that all epoch groups share: consumer (KIP-848), share and streams groups.

A heartbeat goes through these steps, and each may append records:

    member     find the member and check its epoch; store what has changed about it     `store_member`
    epoch      bump the group epoch if members, subscriptions or topics have changed    `bump_epoch_if_changed`
    target     compute the target assignment of all members for that epoch              `is_too_soon`, `assign`
    current    move this member one step towards its target                             `store_current`

The engine changes no group: the state is the result of replaying the records (`epoch_replay.py`). The only exception is
`hashed_topics`, a cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from typing import Any, Generic, TypeVar

from tailrace.coordinator.groups.epoch.epoch_group import EpochGroup
from tailrace.coordinator.groups.epoch.epoch_member import EpochMember
from tailrace.coordinator.groups.epoch.epoch_records import EpochRecords
from tailrace.coordinator.groups.epoch.epoch_settings import EpochSettings
from tailrace.coordinator.groups.epoch.member_timers import MemberTimers
from tailrace.coordinator.groups.epoch.metadata_hash import TopicHashes
from tailrace.coordinator.groups.epoch.target_computations import (
    COST_MAX,
    Submit,
    Target,
    TargetComputations,
    log_target,
)
from tailrace.coordinator.groups.group import Group
from tailrace.coordinator.shard import CoordinatorRecord, StateChange
from tailrace.coordinator.timers import Timers
from tailrace.metadata.image.image import MetadataImage
from tailrace.model.errors import ErrorCode, KafkaError

G = TypeVar("G", bound=EpochGroup[Any, Any])
M = TypeVar("M", bound=EpochMember)
A = TypeVar("A")

Records = list[CoordinatorRecord]


class EpochEngine(Generic[G, M, A]):
    def __init__(
        self,
        kind: type[G],
        records: EpochRecords[M, A],
        groups: MutableMapping[str, Group],
        timers: Timers,
        image: Callable[[], MetadataImage],
        fence: Callable[[G, Sequence[M]], StateChange[None]],
        submit: Submit,
    ) -> None:
        """`fence(group, members)` returns the change that removes members whose time is up. `submit` runs work on
        another thread."""
        self._kind = kind
        self._records = records
        self._groups = groups
        self._image = image
        self._hashes = TopicHashes()
        self.timers: MemberTimers[G] = MemberTimers(timers, self.find, fence)
        self._targets: TargetComputations[G, A] = TargetComputations(timers, self.find, records, submit)

    # Groups

    def find(self, group_id: str) -> G | None:
        group = self._groups.get(group_id)
        return group if isinstance(group, self._kind) else None

    def group(self, group_id: str, title: str = "Group") -> G:
        """Return the group. Raise GROUP_ID_NOT_FOUND if there is none of this kind."""
        group = self._groups.get(group_id)
        if isinstance(group, self._kind):
            return group
        problem = (
            f"{title} {group_id} not found." if group is None else f"Group {group_id} is not a {self._kind.type} group."
        )
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, problem)

    def check_room(self, group: G, member_id: str | None, settings: EpochSettings) -> None:
        """Raise GROUP_MAX_SIZE_REACHED if the group is full and the member is not in it."""
        if len(group.members) >= settings.size_max and member_id not in group.members:
            raise KafkaError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The {group.type} group has reached its maximum capacity of {settings.size_max} members.",
            )

    # Member

    def store_member(self, group: G, before: M, member: M, records: Records) -> bool:
        """Append the member's record if the member has changed. Return True if it was appended."""
        if member is before or member == before:
            return False
        records.append(self._records.member_record(group.group_id, member))
        return True

    # Group epoch

    def hash_of(self, topics: Iterable[str]) -> int:
        return self._hashes.of(topics, self._image())

    def topics_hash(self, group: G, topics: Callable[[], Iterable[str]], *, is_forced: bool = False) -> int:
        """Return the hash of the group's topics. It is computed if the image has changed or `is_forced`."""
        image = self._image()
        if not is_forced and group.hashed_topics is image.topics:
            return group.metadata_hash
        metadata_hash = self._hashes.of(topics(), image)
        if metadata_hash == group.metadata_hash:  # otherwise the next epoch stores it, and a later call finds it equal
            group.note_hashed(image.topics)
        return metadata_hash

    def bump_epoch_if_changed(self, group: G, topics: Callable[[], Iterable[str]], bump: bool, records: Records) -> int:
        """Return the group epoch. If subscriptions (`bump`) or the subscribed topics have changed, bump it and append
        the group's record."""
        metadata_hash = self.topics_hash(group, topics, is_forced=bump)
        if not bump and metadata_hash == group.metadata_hash:
            return group.epoch
        records.append(self._records.group_record(group.group_id, group.epoch + 1, metadata_hash))
        return group.epoch + 1

    # Target

    def is_too_soon(self, group: G, settings: EpochSettings, now_ms: int) -> bool:
        """Return True if the assignment interval since the last target assignment has not passed."""
        last_ms = group.target_timestamp_ms
        return last_ms > 0 and now_ms < last_ms + settings.assignment_interval_ms

    def assign(self, group: G, target: Target[A], records: Records, now_ms: int) -> Mapping[str, A] | None:
        """Compute a target assignment. Append a record for each member whose target changes, and the record of the
        target epoch.

        Return None if that takes long: another thread computes it, and its records follow later.
        """
        if target.cost > COST_MAX:
            self._targets.begin(group.group_id, target)
            return None
        members = target.compute()
        for member_id, assignment in members.items():
            if assignment != group.target.get(member_id):
                records.append(self._records.target_record(group.group_id, member_id, assignment))
        records.append(self._records.target_epoch_record(group.group_id, target.epoch, now_ms))
        log_target(group.group_id, target, len(members))
        return members

    # Current

    def store_current(self, group: G, member: M, moved: M, records: Records) -> bool:
        """Append the record of the member's current assignment if it has changed. Return True if it was appended."""
        if moved is member or moved == member:
            return False
        records.append(self._records.current_record(group.group_id, moved))
        return True

    # Leave

    def remove(self, group: G, member_ids: Iterable[str]) -> Records:
        """Cancel the timers of members, and return the tombstones that remove them from the group."""
        records: Records = []
        for member_id in member_ids:
            self.timers.cancel(group.group_id, member_id)
            records += self._records.member_tombstones(group.group_id, member_id)
        return records
