"""DirectoryMove: a partition on its way to another log directory of this broker.

The copy lies in a `-future` folder and follows the log like a follower its leader, batch by batch, until it has
everything; then it takes the log's place.

    next_step(now_ms)  ──►  CopyStep: run anywhere (reads sealed bytes, writes to the copy), then `copied` here
    is_caught_up       ──►  catch_up(now_ms)  ──►  promote(now_ms), nothing being appended in between

While a step runs, nobody but the step touches the copy: what others want to know of it (`log_end_offset`, `size`) is as
of the last step that ended. A crash at any point leaves the log, and a copy that goes on where its last whole batch is.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from tailrace.log.directories.log_directory import LogDirectory
from tailrace.log.disk.files import Files
from tailrace.log.partition_log import PartitionLog
from tailrace.log.reading.log_read import LogRead
from tailrace.log.segments.position import LogPosition
from tailrace.log.segments.segment import Segment
from tailrace.model.ids import Offset
from tailrace.replication.follower import FollowerRole
from tailrace.replication.moving_copy import MovingCopy
from tailrace.replication.partition import Partition

STEP_BYTES: Final = 1024 * 1024
LAST_BYTES: Final = 256 * 1024  # what may be copied while everything waits
_UNSYNCED_BYTES_MAX: Final = 16 * 1024 * 1024


class SourceFailed(Exception):
    """The log that is copied could not be read."""

    def __init__(self, error: OSError) -> None:
        super().__init__(str(error))
        self.error = error


class DirectoryMove(MovingCopy):
    def __init__(
        self, files: Files, partition: Partition, source: LogDirectory, target: LogDirectory, due_ms: int = 0
    ) -> None:
        """To where `target` has a future log of the partition."""
        super().__init__(partition.log, target.futures[partition.key], target)
        self._files = files
        self.partition = partition
        self.source = source
        self.is_cancelled = False
        self.due_ms = due_ms  # when the next step may begin
        self.reported_ms = -(2**31)  # when the controller was informed that the replica is where the copy is
        self.bytes_copied = 0
        self._unsynced_bytes = 0
        self._was_synced = False

    def cancel(self) -> None:
        """Note that the copy is not wanted any more."""
        self.is_cancelled = True

    def resume_at(self, due_ms: int) -> None:
        """Set the time of the next step."""
        self.due_ms = due_ms

    def note_reported(self, now_ms: int) -> None:
        """Note that the controller is informed of the new directory."""
        self.reported_ms = now_ms

    @property
    def is_valid(self) -> bool:
        """Neither of the two logs was taken away."""
        key = self.partition.key
        return (
            not self.is_cancelled
            and self.source.logs.get(key) is self.partition.log
            and self.target.futures.get(key) is self.copy
        )

    # One step

    def next_step(self, now_ms: int) -> CopyStep | SyncStep | None:
        """What there is to do elsewhere; None if all that is left to do is little, or nothing."""
        log, copy = self.partition.log, self.copy
        if copy.config is not log.config:
            copy.update_config(log.config)
        self._align(now_ms)
        found = self._read(STEP_BYTES)
        if found.slice is not None:
            base_offset = found.position.segment_base_offset
            if found.size + sum(segment.size for segment in log.segments.after(base_offset)) > LAST_BYTES:
                segment = log.segments.get(base_offset)
                assert segment is not None
                return CopyStep(self, self._files, segment, found.slice.position, found.size, now_ms)
        if not self._was_synced or self._unsynced_bytes > _UNSYNCED_BYTES_MAX:
            return SyncStep(self, now_ms)
        return None

    def _read(self, size: int) -> LogRead:
        """What comes next; no more at once than a segment holds."""
        try:
            return self.partition.log.read(
                self.copy.log_end_offset, min(size, self.copy.config.roll_bytes), at_least_one=True
            )
        except OSError as error:
            raise SourceFailed(error) from error

    def _align(self, now_ms: int) -> None:
        """The log may have been cut, or its start moved, while the copy did not look."""
        log, follower = self.partition.log, self._follower()
        epoch = follower.last_fetched_epoch
        if epoch >= 0:
            end = log.end_of_epoch(epoch)
            if end.epoch < epoch or end.end_offset < self.copy.log_end_offset:
                follower.truncate_at(end, now_ms)
        follower.restart_at(log.log_start_offset, log.log_end_offset, now_ms)

    def _follower(self) -> FollowerRole:
        return FollowerRole(self.copy, -1, self.partition.leader_epoch)

    def append(self, records: bytes, now_ms: int) -> None:
        """To the copy; by whoever has it."""
        log = self.partition.log
        before = self.copy.log_end_offset
        marks = log.high_watermark, log.log_start_offset
        self._follower().append(records, high_watermark=marks[0], leader_log_start_offset=marks[1], now_ms=now_ms)
        if self.copy.log_end_offset > before:
            self.bytes_copied += len(records)
            self._unsynced_bytes += len(records)

    def sync(self, now_ms: int) -> None:
        self.copy.run_due(now_ms)
        self.copy.producers.sync_snapshots()
        self.copy.flush(now_ms)
        self._unsynced_bytes = 0
        self._was_synced = True

    # The end

    def catch_up(self, now_ms: int) -> bool:
        """Copy the little that is left, here; says whether the copy has everything."""
        log, copy = self.partition.log, self.copy
        while copy.log_end_offset < log.log_end_offset:
            found = self._read(LAST_BYTES)
            if found.slice is None:
                self._skip_to(log.log_end_offset, now_ms)
                break
            try:
                records = found.slice.read()
            except OSError as error:
                raise SourceFailed(error) from error
            self.append(records, now_ms)
        self.note_ended()
        return copy.log_end_offset == log.log_end_offset

    def _skip_to(self, end: Offset, now_ms: int) -> None:
        """All that is left was compacted away: the copy ends where the log does."""
        copy = self.copy
        if copy.log_end_offset == copy.log_start_offset:
            copy.truncate_fully(end, now_ms, log_start_offset=copy.log_start_offset)
        else:
            copy.roll(now_ms, first_offset=end)
            copy.marks.set_log_end(LogPosition(end, end, 0))

    def promote(self, now_ms: int) -> PartitionLog:
        """The copy takes the log's place; the log, which is going away."""
        partition, log = self.partition, self.partition.log
        self._follower().append(
            b"", high_watermark=log.high_watermark, leader_log_start_offset=log.log_start_offset, now_ms=now_ms
        )
        if partition.leader is not None:
            self.copy.epochs.assign(partition.leader_epoch, self.copy.log_end_offset)
        # In this order: a crash in between leaves both, and the metadata says which one counts.
        self.target.promote(partition.key)
        partition.replace_log(self.copy)
        self.source.delete(partition.key, now_ms)
        return log


class CopyStep:
    """Some bytes of a segment, to the copy."""

    def __init__(
        self, move: DirectoryMove, files: Files, segment: Segment, position: int, size: int, now_ms: int
    ) -> None:
        self._move = move
        self._files = files
        self._segment = segment
        self._path = segment.log.path
        self._position = position
        self._size = size
        self._now_ms = now_ms
        self._start = move.copy.log_end_offset

    def run(self) -> None:
        """On any thread. The file is opened anew: its owner may let go of its descriptor at any time."""
        move = self._move
        try:
            records = self._read()
        except OSError as error:
            raise SourceFailed(error) from error
        if records:
            move.append(records, self._now_ms)
            move.copy.run_due(self._now_ms)

    def _read(self) -> bytes:
        # One that is gone, or under another name, was replaced: the next step looks again.
        with suppress(FileNotFoundError):
            file = self._files.open(self._path, read_only=True)
            try:
                return file.read(self._position, self._size)
            finally:
                file.close()
        return b""

    def undo_if_replaced(self, now_ms: int) -> None:
        """If the log was cut meanwhile, what was read may be of the one or the other."""
        log = self._move.partition.log
        if log.segments.get(self._segment.base_offset) is not self._segment:
            self._move.copy.truncate_to(self._start, now_ms)


class SyncStep:
    """All that was copied so far, to the disk."""

    def __init__(self, move: DirectoryMove, now_ms: int) -> None:
        self._move = move
        self._now_ms = now_ms

    def run(self) -> None:
        self._move.sync(self._now_ms)

    def undo_if_replaced(self, now_ms: int) -> None:
        """A sync has read nothing."""
