"""FollowerProgress: a follower's position, as its leader knows it from the fetches.

A follower is caught up at time t if its fetch reached the leader's log end at t. Under steady load it never reaches the
present log end. So a fetch that reaches the log end at the time of the previous fetch counts for that time.
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
        self.log_end: LogPosition = _UNKNOWN  # the offset of its latest fetch
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
        """Start under a new leader, which knows nothing yet; an in-sync follower gets the full time to catch up."""
        self.log_start_offset = -1
        self.log_end = _UNKNOWN
        self.last_fetch_leader_end = -1
        self.last_fetch_ms = 0
        self.last_caught_up_ms = now_ms if in_sync else 0
        self.broker_epoch = None

    def continue_under(self, leader_end: Offset, now_ms: int, *, in_sync: bool) -> None:
        """Continue in a new epoch of the same leader; a follower that is not in sync must fetch first."""
        self.last_fetch_leader_end = leader_end
        self.last_fetch_ms = self.last_caught_up_ms = now_ms if in_sync else 0

    def __repr__(self) -> str:
        return (
            f"FollowerProgress({self.broker_id}, log {self.log_start_offset} to {self.log_end.offset}, "
            f"caught up at {self.last_caught_up_ms}, broker epoch {self.broker_epoch})"
        )
