"""FollowerProgress: how far a follower has come, as its leader knows from its fetches.

A follower is caught up at time t if its fetch reached what was the leader's log end at t. Under a steady stream it
never reaches the log end of this very moment, so a fetch that reaches what was the end at the fetch before counts for
the time of that one.
"""

from __future__ import annotations

from tailrace.log.segments.position import LogPosition
from tailrace.model.ids import BrokerId, Offset

_UNKNOWN = LogPosition(-1)


class FollowerProgress:
    __slots__ = (
        "broker_epoch",
        "broker_id",
        "last_caught_up_ms",
        "last_fetch_leader_end",
        "last_fetch_ms",
        "log_end",
        "log_start_offset",
    )

    def __init__(self, broker_id: BrokerId) -> None:
        self.broker_id = broker_id
        self.log_start_offset: Offset = -1
        self.log_end: LogPosition = _UNKNOWN  # where its next fetch starts is where its log ends
        self.last_fetch_leader_end: Offset = 0
        self.last_fetch_ms = 0
        self.last_caught_up_ms = 0
        self.broker_epoch: int | None = None  # None until it has fetched

    @property
    def log_end_offset(self) -> Offset:
        return self.log_end.offset

    def note_fetch(
        self, log_end: LogPosition, log_start_offset: Offset, leader_end: Offset, broker_epoch: int, now_ms: int
    ) -> None:
        if log_end.offset >= leader_end:
            self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)
        elif log_end.offset >= self.last_fetch_leader_end:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        self.log_start_offset = log_start_offset
        self.log_end = log_end
        self.last_fetch_leader_end = max(leader_end, self.last_fetch_leader_end)
        self.last_fetch_ms = now_ms
        self.broker_epoch = broker_epoch

    def is_caught_up(self, leader_end: Offset, now_ms: int, max_lag_ms: int) -> bool:
        return leader_end == self.log_end.offset or now_ms - self.last_caught_up_ms <= max_lag_ms

    def start_under(self, now_ms: int, *, in_sync: bool) -> None:
        """A new leader knows nothing yet; an in-sync follower gets its full time to show up."""
        self.log_start_offset = -1
        self.log_end = _UNKNOWN
        self.last_fetch_leader_end = -1
        self.last_fetch_ms = 0
        self.last_caught_up_ms = now_ms if in_sync else 0
        self.broker_epoch = None

    def go_on_under(self, leader_end: Offset, now_ms: int, *, in_sync: bool) -> None:
        """The same leader in a new epoch: what it knows still holds, but one that is not in sync must fetch first."""
        self.last_fetch_leader_end = leader_end
        self.last_fetch_ms = self.last_caught_up_ms = now_ms if in_sync else 0

    def __repr__(self) -> str:
        return (
            f"FollowerProgress({self.broker_id}, log {self.log_start_offset} to {self.log_end.offset}, "
            f"caught up at {self.last_caught_up_ms}, broker epoch {self.broker_epoch})"
        )
