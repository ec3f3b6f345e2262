"""FollowerRole: appends the leader's records, follows its watermarks, truncates where the two logs diverge.

A follower sends the epoch of its last record. If that epoch has an earlier end in the leader's log, or is unknown
there, the leader responds with the end of its largest epoch up to it, instead of records. The follower cuts its log
there. If it does not have that epoch either, it cuts at the end of its own largest epoch below, and fetches again. Step
by step both find the last offset at which their histories agree.
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
        """Use another log, a copy with the same records."""
        self._log = log

    @property
    def fetch_offset(self) -> Offset:
        """The offset to fetch next."""
        return self._log.log_end_offset

    @property
    def last_fetched_epoch(self) -> LeaderEpoch:
        """The epoch of the last record, -1 if there is none."""
        latest = self._log.epochs.latest
        return latest.epoch if latest else -1

    def append(
        self, records: Buffer, *, high_watermark: Offset, leader_log_start_offset: Offset, now_ms: int
    ) -> FollowerAppend:
        """Append the leader's records at our log end, and follow its watermarks."""
        log = self._log
        if len(records):
            self._make_room_for(records, now_ms)
            log.append_as_follower(records, leader_epoch=self.leader_epoch, now_ms=now_ms)
        high_watermark_moved = log.advance_high_watermark(high_watermark)
        # Not past our own high watermark: those offsets are not known to be committed. A later response moves it.
        log_start_moved = leader_log_start_offset <= log.high_watermark and log.delete_records(
            leader_log_start_offset, now_ms
        )
        return FollowerAppend(log.log_end_offset, high_watermark_moved, log_start_moved)

    def _make_room_for(self, records: Buffer, now_ms: int) -> None:
        """Move the start of an empty log to the start of the leader's first batch, if the log would otherwise
        start inside that batch. DeleteRecords can cause this."""
        log = self._log
        if log.log_end_offset != log.log_start_offset or len(records) < PREFIX.size:
            return
        first, _ = PREFIX.unpack_from(records)
        if 0 <= first < log.log_end_offset and any(
            batch.last_offset >= log.log_end_offset
            for batch in split_any(records)
            if isinstance(batch, RecordBatch)  # the start of an older message is known only after decompression
        ):
            log.truncate_fully(first, now_ms)

    def truncate_at(self, diverging: EpochEnd, now_ms: int) -> Offset:
        """Cut the log where it diverges according to the leader; return the new log end."""
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
        """Restart at the leader's log end, or at its start, if our log end is outside its log; return the offset."""
        log = self._log
        if leader_log_end_offset < log.log_end_offset:
            log.truncate_to(leader_log_end_offset, now_ms)
        elif leader_log_start_offset > log.log_end_offset:
            log.truncate_fully(leader_log_start_offset, now_ms)
        return log.log_end_offset
