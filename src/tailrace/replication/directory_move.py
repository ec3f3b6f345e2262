"""DirectoryMove: moves a partition to another log directory of this broker.

The copy is in a `-future` folder. It follows the log as a follower follows its leader, batch by batch, until it has
everything. Then it replaces the log. With tiered storage the copy begins at the first local record.

    next_step(now_ms)  ──►  CopyStep: run on any thread (reads sealed bytes, writes to the copy), then `copied` here
    is_caught_up       ──►  catch_up(now_ms)  ──►  promote(now_ms), with no append in between

While a step runs, only the step touches the copy. Its `log_end_offset` and `size` are then those after the last step
that ended. After a crash at any point the log is there, and a copy that continues after its last whole batch.
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
LAST_BYTES: Final = 256 * 1024  # bytes that the loop may copy itself, while requests wait
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
        """`target` is the directory that has the future log."""
        super().__init__(partition.log, target.futures[partition.key], target)
        self._files = files
        self.partition = partition
        self.source = source
        self.is_cancelled = False
        self.due_ms = due_ms  # the next step may begin then
        self.reported_ms = -(2**31)  # when the controller was last informed of the new directory
        self.bytes_copied = 0
        self._unsynced_bytes = 0
        self._was_synced = False

    def cancel(self) -> None:
        """Cancel the move."""
        self.is_cancelled = True

    def resume_at(self, due_ms: int) -> None:
        """Set the time of the next step."""
        self.due_ms = due_ms

    def note_reported(self, now_ms: int) -> None:
        """Note that the controller is informed of the new directory."""
        self.reported_ms = now_ms

    @property
    def is_valid(self) -> bool:
        """True if neither of the two logs was replaced."""
        key = self.partition.key
        return (
            not self.is_cancelled
            and self.source.logs.get(key) is self.partition.log
            and self.target.futures.get(key) is self.copy
        )

    # One step

    def next_step(self, now_ms: int) -> CopyStep | SyncStep | None:
        """Return the next step for another thread. None if little or nothing is left to copy."""
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
        """Read the next bytes to copy, at most as many as fit in a segment."""
        try:
            return self.partition.log.read(
                self.copy.log_end_offset, min(size, self.copy.config.roll_bytes), at_least_one=True
            )
        except OSError as error:
            raise SourceFailed(error) from error

    def _align(self, now_ms: int) -> None:
        """Truncate the copy, or move its start, if that was done to the log."""
        log, follower = self.partition.log, self._follower()
        epoch = follower.last_fetched_epoch
        if epoch >= 0:
            end = log.end_of_epoch(epoch)
            if end.epoch < epoch or end.end_offset < self.copy.log_end_offset:
                follower.truncate_at(end, now_ms)
        follower.restart_at(log.log_start_offset, log.log_end_offset, now_ms)
        if self.copy.log_end_offset < log.segments.first.base_offset:
            self._begin_after_remote_log(now_ms)

    def _begin_after_remote_log(self, now_ms: int) -> None:
        """Begin the copy at the first local record, because the records before it are only in the remote store. The
        copy gets the leader epochs of those records, and the producers that wrote them."""
        log, copy = self.partition.log, self.copy
        start = log.segments.first.base_offset
        copy.truncate_fully(start, now_ms, log_start_offset=log.log_start_offset)
        for entry in log.epochs.entries:
            if entry.start_offset < start:
                copy.epochs.assign(entry.epoch, entry.start_offset)
        if start in log.producers.snapshots:
            try:
                snapshot = self._files.read(log.producers.snapshot_path(start))
            except OSError as error:
                raise SourceFailed(error) from error
            copy.producers.begin_with(snapshot, start)

    def _follower(self) -> FollowerRole:
        return FollowerRole(self.copy, -1, self.partition.leader_epoch)

    def append(self, records: bytes, now_ms: int) -> None:
        """Append to the copy; called by its present owner."""
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
        """Copy the small rest on the loop. Return True if the copy has everything."""
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
        """Move the end of the copy to the end of the log, if everything between was compacted away."""
        copy = self.copy
        if copy.log_end_offset == copy.log_start_offset:
            copy.truncate_fully(end, now_ms, log_start_offset=copy.log_start_offset)
        else:
            copy.roll(now_ms, first_offset=end)
            copy.marks.set_log_end(LogPosition(end, end, 0))

    def promote(self, now_ms: int) -> PartitionLog:
        """Replace the log by the copy. Return the old log, whose folder is being deleted."""
        partition, log = self.partition, self.partition.log
        self._follower().append(
            b"", high_watermark=log.high_watermark, leader_log_start_offset=log.log_start_offset, now_ms=now_ms
        )
        if partition.leader is not None:
            self.copy.epochs.assign(partition.leader_epoch, self.copy.log_end_offset)
        self.copy.raise_highest_remote_offset(log.highest_remote_offset)
        # In this order: after a crash in between both exist, and the metadata decides which one is valid.
        self.target.promote(partition.key)
        partition.replace_log(self.copy)
        self.source.delete(partition.key, now_ms)
        return log


class CopyStep:
    """Copies some bytes of a segment."""

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
        """Copy, on any thread. The step opens the file itself, because the log may close its own file at any time."""
        move = self._move
        try:
            records = self._read()
        except OSError as error:
            raise SourceFailed(error) from error
        if records:
            move.append(records, self._now_ms)
            move.copy.run_due(self._now_ms)

    def _read(self) -> bytes:
        # A file that is missing or renamed was replaced: the next step reads the log's new state.
        with suppress(FileNotFoundError):
            file = self._files.open(self._path, read_only=True)
            try:
                return file.read(self._position, self._size)
            finally:
                file.close()
        return b""

    def undo_if_replaced(self, now_ms: int) -> None:
        """Undo the step if the log was cut meanwhile, because the bytes may be from before or after that."""
        log = self._move.partition.log
        if log.segments.get(self._segment.base_offset) is not self._segment:
            self._move.copy.truncate_to(self._start, now_ms)


class SyncStep:
    """Syncs the copied bytes to the disk."""

    def __init__(self, move: DirectoryMove, now_ms: int) -> None:
        self._move = move
        self._now_ms = now_ms

    def run(self) -> None:
        self._move.sync(self._now_ms)

    def undo_if_replaced(self, now_ms: int) -> None:
        """Do nothing: a sync has read nothing."""
