"""FollowerRole: append what the leader sends, follow its watermarks, truncate where the two logs diverge.

A follower tells the leader the epoch of its last record. If the leader knows that epoch with an earlier end, or not at
all, it answers with the end of the largest epoch up to it instead of records. The follower cuts its log there, or, if
it does not know that epoch either, at the end of its own largest epoch below, and asks again: step by step both come to
the last offset at which their histories agree.
"""

from __future__ import annotations

from typing import NamedTuple

from tailrace.log.leader_epochs import UNKNOWN_END, EpochEnd
from tailrace.log.partition_log import PartitionLog
from tailrace.model.ids import BrokerId, LeaderEpoch, Offset
from tailrace.records.batch import PREFIX, Buffer, RecordBatch
from tailrace.records.conversion import split_any


class FollowerAppend(NamedTuple):
    log_end_offset: Offset
    high_watermark_moved: bool
    log_start_moved: bool


class FollowerRole:
    __slots__ = ("_log", "leader_epoch", "leader_id")

    def __init__(self, log: PartitionLog, leader_id: BrokerId, leader_epoch: LeaderEpoch) -> None:
        self._log = log
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch

    def replace_log(self, log: PartitionLog) -> None:
        """Go on with a copy, which has all that the log has."""
        self._log = log

    @property
    def fetch_offset(self) -> Offset:
        """What to ask the leader for next."""
        return self._log.log_end_offset

    @property
    def last_fetched_epoch(self) -> LeaderEpoch:
        """The epoch of the last record, -1 if there is none."""
        latest = self._log.epochs.latest
        return latest.epoch if latest else -1

    def append(
        self, records: Buffer, *, high_watermark: Offset, leader_log_start_offset: Offset, now_ms: int
    ) -> FollowerAppend:
        """Take a fetch answer: the leader's records from our log end on, and how far its watermarks are."""
        log = self._log
        if len(records):
            self._make_room_for(records, now_ms)
            log.append_as_follower(records, leader_epoch=self.leader_epoch, now_ms=now_ms)
        high_watermark_moved = log.advance_high_watermark(high_watermark)
        # Not past our own high watermark: those offsets are not known to be committed here. A later answer tells again.
        log_start_moved = leader_log_start_offset <= log.high_watermark and log.delete_records(
            leader_log_start_offset, now_ms
        )
        return FollowerAppend(log.log_end_offset, high_watermark_moved, log_start_moved)

    def _make_room_for(self, records: Buffer, now_ms: int) -> None:
        """An empty log may start within the leader's first batch, after DeleteRecords: begin where that batch does."""
        log = self._log
        if log.log_end_offset != log.log_start_offset or len(records) < PREFIX.size:
            return
        first, _ = PREFIX.unpack_from(records)
        if 0 <= first < log.log_end_offset and any(
            batch.last_offset >= log.log_end_offset
            for batch in split_any(records)
            if isinstance(batch, RecordBatch)  # of an older message only unpacking would tell where it starts
        ):
            log.truncate_fully(first, now_ms)

    def truncate_at(self, diverging: EpochEnd, now_ms: int) -> Offset:
        """Cut the log where the leader says that it diverges; the new log end."""
        self._log.truncate_to(self.truncation_offset(diverging), now_ms)
        return self._log.log_end_offset

    def truncation_offset(self, leader_end: EpochEnd) -> Offset:
        log = self._log
        end = log.log_end_offset
        if leader_end.end_offset < 0:
            return log.high_watermark
        own = UNKNOWN_END if leader_end.epoch < 0 else log.end_of_epoch(leader_end.epoch)
        if own == UNKNOWN_END:
            return min(leader_end.end_offset, end)
        if own.epoch != leader_end.epoch:
            return min(own.end_offset, end)
        return min(own.end_offset, leader_end.end_offset, end)

    def restart_at(self, leader_log_start_offset: Offset, leader_log_end_offset: Offset, now_ms: int) -> Offset:
        """The leader has nothing at our log end: go back to its end, or on to its start; the new fetch offset."""
        log = self._log
        if leader_log_end_offset < log.log_end_offset:
            log.truncate_to(leader_log_end_offset, now_ms)
        elif leader_log_start_offset > log.log_end_offset:
            log.truncate_fully(leader_log_start_offset, now_ms)
        return log.log_end_offset
