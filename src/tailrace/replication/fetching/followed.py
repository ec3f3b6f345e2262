"""Followed: a partition with the follower role for which it is fetched."""

from __future__ import annotations

from tailrace.model.ids import LeaderEpoch, Offset
from tailrace.replication.fetching.leader_session import FetchPosition, PartitionId
from tailrace.replication.follower import FollowerRole
from tailrace.replication.partition import Partition


class Followed:
    __slots__ = ("_ahead", "due_ms", "id", "is_in_sync", "is_out_of_range", "lag", "partition", "role")

    def __init__(self, partition: Partition, role: FollowerRole) -> None:
        self.id: PartitionId = (partition.topic_id, partition.key.partition)
        self.partition = partition
        self.role = role
        self.due_ms = 0  # it is not fetched before then
        self.is_out_of_range = False  # this log end is outside the leader's log
        self.lag = 0  # offsets behind the leader's high watermark, in the latest response
        self.is_in_sync = False  # the latest response had no lag
        self._ahead: FetchPosition | None = None

    def ask_ahead(self, next_offset: Offset, last_epoch: LeaderEpoch) -> None:
        """Let `fetch_position` continue after records that have arrived, before they are appended."""
        self._ahead = FetchPosition(
            self.role.leader_epoch, next_offset, last_epoch, self.partition.log.log_start_offset
        )

    def ask_after_log_end(self) -> None:
        self._ahead = None

    def note_lag(self, lag: int) -> None:
        self.lag, self.is_in_sync = lag, not lag

    def note_out_of_range(self) -> None:
        """Note that our log end is outside the leader's log."""
        self.is_out_of_range = True

    def note_restart(self) -> None:
        """Note that the log was cut or emptied, so that its end is in the leader's log."""
        self.is_out_of_range = False

    def back_off_until(self, due_ms: int) -> None:
        self.due_ms = due_ms

    def fetch_position(self) -> FetchPosition:
        if self._ahead is not None:
            return self._ahead
        log, role = self.partition.log, self.role
        return FetchPosition(role.leader_epoch, role.fetch_offset, role.last_fetched_epoch, log.log_start_offset)
