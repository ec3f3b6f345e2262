"""MemberTimers: the timers of the members of one kind of epoch group. A member whose time is up is fenced.

Timers, by name: ("session", group, member) until the next heartbeat, ("rebalance", group, member) until a member has
revoked what it must, and for members with the classic protocol ("rejoin", …) and ("sync", …).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, TypeVar

from tailrace.coordinator.groups.epoch.epoch_group import EpochGroup
from tailrace.coordinator.groups.epoch.epoch_member import EpochMember, MemberState
from tailrace.coordinator.shard import StateChange
from tailrace.coordinator.timers import Timers

_log = logging.getLogger(__name__)

_NAMES: Final = ("session", "rebalance", "rejoin", "sync")

G = TypeVar("G", bound=EpochGroup[Any, Any])


class MemberTimers(Generic[G]):
    def __init__(
        self,
        timers: Timers,
        find: Callable[[str], G | None],
        fence: Callable[[G, Sequence[Any]], StateChange[None]],
    ) -> None:
        """`find(group_id)` returns the group if it still exists; `fence(group, members)` removes members."""
        self._timers = timers
        self._find = find
        self._fence = fence

    def restart_session(self, group_id: str, member_id: str, timeout_ms: int, now_ms: int) -> None:
        self.fence_after("session", group_id, member_id, timeout_ms, "its session has expired", now_ms)

    def fence_after(self, timer: str, group_id: str, member_id: str, wait_ms: int, reason: str, now_ms: int) -> None:
        """Fence the member after `wait_ms`, unless the timer is cancelled or restarted."""
        self._timers.schedule(
            (timer, group_id, member_id), now_ms + wait_ms, lambda _: self._expired(group_id, member_id, reason)
        )

    def limit_revocation(self, group_id: str, member: EpochMember, timeout_ms: int, now_ms: int) -> None:
        """Fence the member unless it has moved to another epoch in time. Cancel that if it has nothing to revoke."""
        key = ("rebalance", group_id, member.member_id)
        if member.state is not MemberState.UNREVOKED:
            self._timers.cancel(key)
            return
        epoch = member.member_epoch

        def expired(_: int) -> StateChange[None] | None:
            group = self._find(group_id)
            found = None if group is None else group.members.get(member.member_id)
            if found is None or found.member_epoch != epoch:
                return None
            return self._expired(group_id, member.member_id, f"it did not leave epoch {epoch} in time")

        self._timers.schedule(key, now_ms + timeout_ms, expired)

    def _expired(self, group_id: str, member_id: str, reason: str) -> StateChange[None] | None:
        group = self._find(group_id)
        if group is None or member_id not in group.members:
            return None
        _log.info("group %s: member %s is fenced: %s", group_id, member_id, reason)
        return self._fence(group, [group.members[member_id]])

    def cancel(self, group_id: str, member_id: str, names: Sequence[str] = _NAMES) -> None:
        for name in names:
            self._timers.cancel((name, group_id, member_id))
