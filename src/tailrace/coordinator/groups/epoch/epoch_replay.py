"""EpochReplay: records of one kind of epoch group replayed into the state, when they are written or loaded."""

from __future__ import annotations

from collections.abc import Callable, Collection, MutableMapping
from typing import Any, Generic, TypeVar

from tailrace.coordinator.groups.epoch.epoch_group import NO_TARGET_EPOCH, EpochGroup
from tailrace.coordinator.groups.epoch.epoch_records import EpochRecords
from tailrace.coordinator.groups.group import Group

G = TypeVar("G", bound=EpochGroup[Any, Any])


class EpochReplay(Generic[G]):
    def __init__(
        self,
        kind: type[G],
        records: EpochRecords[Any, Any],
        own_keys: Collection[type[Any]],
        replay_own: Callable[[G, Any, Any], None],
    ) -> None:
        """`replay_own(group, key, value)` replays the records that only this kind has, whose keys are `own_keys`."""
        self._kind = kind
        self._records = records
        messages = records.messages
        self._replays: dict[type[Any], Callable[[G, Any, Any], None]] = {
            messages.member.key: self._replay_member,
            messages.target_epoch.key: self._replay_target_epoch,
            messages.target.key: self._replay_target,
            messages.current.key: self._replay_current,
            **dict.fromkeys(own_keys, replay_own),
        }
        self.keys = frozenset({messages.group.key, *self._replays})

    def __call__(self, groups: MutableMapping[str, Group], key: Any, value: Any) -> None:
        group = groups.get(key.group_id)
        if not isinstance(group, self._kind):
            if value is None:
                return  # the group is deleted, or has been converted
            group = groups[key.group_id] = self._kind(key.group_id)
        replay = self._replays.get(type(key))
        if replay is not None:
            replay(group, key, value)
        elif value is None:
            del groups[key.group_id]
        else:
            group.put_epoch(value)

    def _replay_member(self, group: G, key: Any, value: Any) -> None:
        if value is None:
            group.remove_member(key.member_id)
        else:
            member = group.members.get(key.member_id) or self._records.new_member(key.member_id)
            group.put_member(self._records.with_metadata(member, value))

    def _replay_current(self, group: G, key: Any, value: Any) -> None:
        if value is None:
            group.take_back_assignment(key.member_id)
        else:
            member = group.members.get(key.member_id) or self._records.new_member(key.member_id)
            group.put_member(self._records.with_current(member, value))

    def _replay_target(self, group: G, key: Any, value: Any) -> None:
        if value is None:
            group.target.pop(key.member_id, None)
        else:
            group.target[key.member_id] = self._records.read_target(value)

    def _replay_target_epoch(self, group: G, key: Any, value: Any) -> None:
        if value is None:
            group.put_target_epoch(NO_TARGET_EPOCH, 0)
        else:
            group.put_target_epoch(value.assignment_epoch, value.assignment_timestamp)
