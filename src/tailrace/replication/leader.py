"""LeaderRole: the progress of followers, and what depends on it: high watermark, low watermark, ISR.

- High watermark: the smallest log end of the replicas in sync. A replica that is caught up and may join counts too.
  Otherwise the leader could run ahead alone, and the follower would never reach the high watermark and join.
  It does not move while fewer than min.insync.replicas (or all replicas, if that is less) are in sync.
- `isr/isr_changes.py` decides when a follower joins the ISR and when it is dropped.
- Low watermark: the smallest log start of the leader and the live replicas; DeleteRecords waits for it.
"""

from __future__ import annotations

from collections.abc import Iterable

from tailrace.log.partition_log import PartitionLog
from tailrace.log.segments.position import LogPosition
from tailrace.metadata.image.partition_registration import PartitionRegistration
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import BrokerId, Offset
from tailrace.replication.follower_progress import FollowerProgress
from tailrace.replication.isr.isr_changes import IsrChanges
from tailrace.replication.isr.isr_state import UNKNOWN_BROKER_EPOCH, IsrProposal
from tailrace.replication.replica_settings import ReplicaSettings


class LeaderRole:
    __slots__ = ("_log", "_settings", "epoch_start_offset", "followers", "isr", "isr_changes", "leader_epoch")

    def __init__(self, log: PartitionLog, settings: ReplicaSettings, state: PartitionRegistration) -> None:
        self._log = log
        self._settings = settings
        self.leader_epoch = state.leader_epoch
        self.epoch_start_offset = log.log_end_offset
        self.followers: dict[BrokerId, FollowerProgress] = {}
        self.isr_changes = IsrChanges(log, settings, state, self.epoch_start_offset, self.followers)
        self.isr = self.isr_changes.isr

    # Start of an epoch

    def assign(self, replicas: Iterable[BrokerId], known: dict[BrokerId, FollowerProgress]) -> None:
        """Set the followers; keep what is known of them."""
        others = [broker_id for broker_id in replicas if broker_id != self._settings.broker_id]
        assigned = {broker_id: known.get(broker_id) or FollowerProgress(broker_id) for broker_id in others}
        self.followers.clear()
        self.followers.update(assigned)

    def start_followers(self, now_ms: int, *, is_new_leader: bool) -> None:
        """Start all followers in a new leader epoch."""
        for follower in self.followers.values():
            in_sync = follower.broker_id in self.isr.committed
            if is_new_leader:
                follower.start_under(now_ms, in_sync=in_sync)
            else:
                follower.continue_under(self.epoch_start_offset, now_ms, in_sync=in_sync)

    def replace_log(self, log: PartitionLog) -> None:
        """Use another log, a copy with the same records."""
        self._log = log
        self.isr_changes.replace_log(log)

    # High and low watermark

    @property
    def min_isr(self) -> int:
        """min.insync.replicas, or the number of replicas if that is smaller."""
        needed, replicas = self._log.config.min_insync_replicas, len(self.followers) + 1
        return needed if needed < replicas else replicas

    @property
    def is_under_min_isr(self) -> bool:
        if not self.followers:  # a single replica is enough for any min.insync.replicas
            return not self.isr.committed
        return len(self.isr.committed) < self.min_isr

    def advance_high_watermark(self, now_ms: int) -> bool:
        """Move the high watermark as far as possible. Return True if it moved."""
        if not self.followers:
            log = self._log
            return bool(self.isr.committed) and log.advance_high_watermark(log.marks.log_end.offset)
        if self.is_under_min_isr:
            return False
        leader_end = offset = self._log.log_end_offset
        max_lag_ms = self._settings.replica_lag_time_max_ms
        for broker_id, follower in self.followers.items():
            if follower.log_end.offset < offset and (
                broker_id in self.isr.maximal
                or (follower.is_caught_up(leader_end, now_ms, max_lag_ms) and self.isr_changes.may_join(follower))
            ):
                offset = follower.log_end.offset
        return self._log.advance_high_watermark(offset)

    def low_watermark(self) -> Offset:
        low = self._log.log_start_offset
        for follower in self.followers.values():
            if follower.log_start_offset < low and self._settings.alive_epoch(follower.broker_id) is not None:
                low = follower.log_start_offset
        return low

    # Followers

    def note_fetch(
        self,
        follower: FollowerProgress,
        log_end: LogPosition,
        log_start_offset: Offset,
        leader_end: Offset,
        broker_epoch: int,
        now_ms: int,
    ) -> bool:
        """Note a follower's fetch. Return True if the high or the low watermark may have moved."""
        alive_epoch = self._settings.alive_epoch(follower.broker_id)
        if broker_epoch != UNKNOWN_BROKER_EPOCH and alive_epoch is not None and alive_epoch > broker_epoch:
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"broker {follower.broker_id} fetched with broker epoch {broker_epoch}, but was restarted since then",
            )
        before, start_before = follower.log_end.offset, follower.log_start_offset
        follower.note_fetch(log_end, log_start_offset, leader_end, broker_epoch, now_ms)
        if follower.broker_id not in self.isr.committed:
            self.isr_changes.propose_to_join(follower)
        moved = log_end.offset != before and self.advance_high_watermark(now_ms)
        return moved or log_start_offset != start_before

    # ISR

    def isr_accepted(
        self, proposal: IsrProposal, isr: Iterable[BrokerId], leader_epoch: int, partition_epoch: int, now_ms: int
    ) -> bool:
        """Apply an accepted proposal. Return True if the high watermark moved."""
        is_applied = self.isr_changes.accept(proposal, isr, leader_epoch, partition_epoch)
        return is_applied and self.advance_high_watermark(now_ms)
