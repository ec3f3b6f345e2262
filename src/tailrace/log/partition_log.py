"""PartitionLog: one partition's log; append, read, roll, flush, truncate, delete.

Invariants
    1. There is always at least one segment, the last one is active, and only it is appended to.
    2. log start ≤ last stable ≤ high watermark ≤ log end (`watermarks.py`).
    3. Everything below `recovery_point` is durable; a crash loses nothing of it.
    4. The producer states are right up to the log end offset.
    5. One thread changes the log. Sealed segments may be read by anyone.

    open_log ──► open ──append──► open ──roll──► open
                  │                 │
                  │ truncate_to, truncate_fully, delete_records, delete_old_segments, replace_segments
                  ▼
                close (a snapshot is taken, indexes are trimmed)   or   delete (the folder is removed)
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

from tailrace.log.append import AppendResult, LogAppend
from tailrace.log.disk import file_names
from tailrace.log.disk.checkpoints import write_topic_id
from tailrace.log.disk.files import join
from tailrace.log.disk.log_folder import LogFolder
from tailrace.log.leader_epochs import EpochEnd, LeaderEpochs
from tailrace.log.log_bounds import LogBounds
from tailrace.log.producers.producer_replay import rebuild_producers
from tailrace.log.producers.producer_states import ProducerStates
from tailrace.log.reading.log_read import LogRead, OffsetOutOfRange, read_log
from tailrace.log.segments.position import LogPosition
from tailrace.log.segments.roll_policy import RollReason
from tailrace.log.segments.segment import Segment
from tailrace.log.segments.segment_list import SegmentList
from tailrace.log.segments.segment_swap import swap_segments
from tailrace.log.upkeep import retention
from tailrace.log.upkeep.deferred import Deferred
from tailrace.log.upkeep.durability import Durability
from tailrace.log.upkeep.log_offsets import LogOffsets
from tailrace.log.upkeep.log_owner import LogOwner
from tailrace.log.upkeep.removal import Removal
from tailrace.log.watermarks import Isolation, Watermarks
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import LeaderEpoch, Offset, TopicId
from tailrace.model.topic_config import INT_MAX, TopicConfig
from tailrace.records.batch import Buffer
from tailrace.records.checks.checked_records import CheckedRecords
from tailrace.records.checks.validation import Origin

_log = logging.getLogger(__name__)


class LogState(NamedTuple):
    """The parts of a log that are loaded or created when it is opened."""

    segments: SegmentList
    marks: Watermarks
    epochs: LeaderEpochs
    producers: ProducerStates


class PartitionLog(LogOffsets):
    def __init__(
        self,
        folder: LogFolder,
        config: TopicConfig,
        state: LogState,
        *,
        recovery_point: Offset,
        new_jitter_ms: Callable[[], int],
        now_ms: int,
    ) -> None:
        self._files, self.directory, partition, self.topic_id = folder
        segments, marks, self.epochs, self.producers = state
        epochs, producers = self.epochs, self.producers
        durability = Durability(segments, marks, epochs, recovery_point, now_ms, self._sync_folder)
        super().__init__(partition, config, segments, marks, durability)
        self.deferred = Deferred()
        self._new_jitter_ms = new_jitter_ms
        self._append = LogAppend(partition, segments, marks, epochs, producers, self.durability, self.roll)
        self._bounds = LogBounds(segments, marks, producers)
        # The functions that requests call directly.
        self.place, self.write_placed = self._append.place, self._append.write
        self.placed_marks, self.snapshot_marks = self._bounds.placed_marks, self._bounds.snapshot_marks
        self.read_bounds, self.advance_high_watermark = self._bounds.read_bounds, self._bounds.advance_high_watermark
        self._owner: LogOwner[PartitionLog] = LogOwner()
        self.cuts = 0  # how often the end of the log was truncated
        self._removal = Removal(folder.files, self.deferred, producers, durability, lambda: self._owner)

    # Append

    def append_as_leader(
        self,
        data: Buffer | CheckedRecords,
        *,
        leader_epoch: LeaderEpoch,
        now_ms: int,
        origin: Origin = Origin.CLIENT,
        transaction_version: int = 0,
    ) -> AppendResult:
        """Check a batch, assign its offsets (in place if the buffer is writable), and write it."""
        result = self.place(data, leader_epoch, now_ms, origin, transaction_version)
        self.write_placed(now_ms)
        return result

    def append_as_follower(self, data: Buffer, *, leader_epoch: LeaderEpoch, now_ms: int) -> AppendResult:
        """Write a leader's batches unchanged, at their own offsets."""
        result = self._append.place_replicated(data, leader_epoch, now_ms)
        self.write_placed(now_ms)
        return result

    def _set_log_end(self, offset: Offset) -> None:
        active = self.segments.active
        self.marks.set_log_end(LogPosition(offset, active.base_offset, active.size))
        self.durability.note_cut(offset)

    # Roll and flush

    def roll(self, now_ms: int, *, first_offset: Offset = 0, reason: RollReason | None = None) -> Segment:
        """Seal the active segment and start a new one at the log end, or at `first_offset` if that is higher."""
        base_offset = max(first_offset, self.log_end_offset)
        active = self.segments.active
        assert base_offset >= active.base_offset, f"{self.partition}: cannot roll to {base_offset} before {active}"
        if base_offset == active.base_offset:
            # The active segment is empty and starts at the same offset (its index may be full): create it again.
            assert active.size == 0, f"{self.partition}: {active} is not empty but the log ends at its start"
            replace = partial(self._named_segment, base_offset, now_ms)
            segment = self._removal.replace(self.segments, active, replace, self._delete_due_ms(now_ms))
        else:
            self._seal_active(now_ms)
            # Recovery notices a missing segment, unless offsets may jump. There its name is durable before it is used.
            make = self._named_segment if self.config.is_compacted else self._new_segment
            self.segments.add(segment := make(base_offset, now_ms))
        self._set_log_end(self.log_end_offset)
        if self.high_watermark == self.log_end_offset:
            self.marks.set_high_watermark(self.marks.log_end)
        self.producers.advance_to(base_offset)
        self.deferred.add(now_ms, lambda: self._owner.flush_sealed(self, segment, now_ms))
        self.producers.snapshot_soon(self.deferred, now_ms)
        _log.debug("%s: rolled to %d: %s", self.partition, base_offset, reason.value if reason else "on request")
        return segment

    def _seal_active(self, now_ms: int) -> None:
        is_flushed = self.recovery_point >= self.log_end_offset
        self.segments.active.seal(sync=is_flushed)
        if is_flushed:
            # Recovery will start at the next segment, so all files of this one have to be durable.
            self._sync_folder()
        elif self.config.is_compacted:
            # Offsets may jump here. Recovery could not distinguish a lost tail from a gap, so the tail must be durable.
            self.flush_to(self.log_end_offset, now_ms)

    def _new_segment(self, base_offset: Offset, now_ms: int) -> Segment:
        new = Segment.create(
            self._files, self.directory, base_offset, self.config, now_ms=now_ms, jitter_ms=self._new_jitter_ms()
        )
        self.durability.note_name()
        self._owner.watch([new])
        return new

    def _named_segment(self, base_offset: Offset, now_ms: int) -> Segment:
        new = self._new_segment(base_offset, now_ms)
        self.durability.sync_names()
        return new

    def _sync_folder(self) -> None:
        self._files.sync_directory(self.directory)

    def flush(self, now_ms: int) -> None:
        """Make everything durable."""
        self.durability.flush(now_ms)

    def flush_to(self, offset: Offset, now_ms: int) -> None:
        """Make everything below `offset` durable."""
        self.durability.flush_to(offset, now_ms)

    def flush_if_due(self, now_ms: int) -> bool:
        """Flush if there is unflushed data and `flush.ms` has passed since the last flush."""
        due = self.durability.begin_if_due(now_ms, self.config.flush_ms)
        if due:
            self.flush_soon(self.log_end_offset, now_ms)
        return due

    def flush_soon(self, offset: Offset, now_ms: int) -> None:
        """Make everything below `offset` durable, without waiting."""
        self._owner.flush_soon(self, offset, now_ms)

    # Read

    def read(
        self, start: Offset, max_bytes: int, isolation: Isolation = Isolation.LOG_END, *, at_least_one: bool = False
    ) -> LogRead:
        """Find the bytes from `start` on, up to the isolation's bound."""
        marks = self.snapshot_marks()
        return read_log(self.partition, self.segments, marks, start, max_bytes, isolation, at_least_one)

    # Leader epochs

    def end_of_epoch(self, epoch: LeaderEpoch) -> EpochEnd:
        return self.epochs.end_of(epoch, self.log_end_offset)

    # Moving the start

    def delete_records(self, offset: Offset, now_ms: int) -> bool:
        """Move the log start up to `offset`. Return True if it moved. The next retention deletes the segments below."""
        if offset > self.high_watermark:
            raise OffsetOutOfRange(self.partition, offset, self.log_start_offset, self.high_watermark)
        if offset <= self.log_start_offset:
            return False
        if offset > self.recovery_point:
            # Segments that are partly or wholly below it stay for a while, and recovery starts at the first of them.
            self.flush_soon(offset, now_ms)
        self._move_start(offset, now_ms)
        return True

    def _move_start(self, offset: Offset, now_ms: int) -> None:
        self.marks.set_log_start(offset)
        if self.epochs.truncate_start(offset):
            self._write_epochs_soon(now_ms)
        self.producers.log_start_moved(offset)
        self._bounds.update_first_unstable()

    def delete_old_segments(self, now_ms: int, at_most: int = INT_MAX) -> dict[retention.DeletionReason, int]:
        """Apply retention. Return the number of deleted segments by reason, at most `at_most` in all.

        While `is_removing` is True, nothing more is deleted.
        """
        deleted: dict[retention.DeletionReason, int] = {}
        for reason in retention.reasons(self.config):
            left = 0 if self.is_removing else at_most - sum(deleted.values())
            going = retention.segments_to_delete(
                reason, self.segments, self.marks, self.retention_limits(), now_ms, left
            )
            if going and self.is_copied and going[-1] is self.segments.active:
                # Only a sealed segment can be copied. It is deleted when it is in the remote store.
                self.roll(now_ms)
                going.pop()
            deleted[reason] = self._delete_segments(going, now_ms)
        return deleted

    def _delete_segments(self, going: list[Segment], now_ms: int) -> int:
        if not going:
            return 0
        if len(going) == len(self.segments):
            self.roll(now_ms)
        if not self.durability.has_durable_names:
            # The next segment's name has to be durable before this one's is removed.
            self._removal.sync_soon(self.directory)
            if self.is_removing:
                return 0
        start = self.segments.after(going[-1].base_offset)[0].base_offset
        if start > self.log_start_offset and not self.is_copied:
            self._move_start(start, now_ms)
        # Until the removal is durable, a crash may bring back segments that are not flushed.
        self._remove_segments(going, now_ms, partial(self.durability.note_start, start))
        return len(going)

    @property
    def is_removing(self) -> bool:
        """Return True until the removal of a segment is durable."""
        return self._removal.is_syncing

    def _remove_segments(self, going: Iterable[Segment], now_ms: int, removed: Callable[[], object] | None) -> None:
        """Remove segments. With `removed`, the last sync happens later, and then this function is called."""
        leaving = list(going)
        for segment in leaving:
            self.segments.remove(segment.base_offset)
        due_ms = self._delete_due_ms(now_ms)
        self._removal.mark_deleted(leaving, due_ms, removed)
        self._removal.mark_snapshots_deleted(leaving, due_ms)

    def _delete_due_ms(self, now_ms: int) -> int:
        return now_ms + self.config.file_delete_delay_ms

    def _write_epochs_soon(self, now_ms: int) -> None:
        if self.epochs.write_soon is not None:
            self.epochs.write_soon()
        else:
            self.deferred.add(now_ms, self.epochs.write_if_there)

    # Truncate

    def truncate_to(self, offset: Offset, now_ms: int) -> bool:
        """Truncate the log to end at `offset`. Return True if anything was cut."""
        assert offset >= 0, f"{self.partition}: cannot truncate to {offset}"
        if offset >= self.log_end_offset:
            if self.epochs.truncate_end(self.log_end_offset):
                self._write_epochs_soon(now_ms)
            return False
        if self.segments.first.base_offset > offset:
            self.truncate_fully(offset, now_ms)
            return True
        self._files.entries(self.directory)  # needs a descriptor, and so fails before anything has changed
        before = (self.recovery_point, self.log_start_offset)
        self._remove_segments(reversed(self.segments.after(offset)), now_ms, None)
        self.segments.active.config = self.config
        self.segments.active.truncate_to(offset, now_ms)
        self._set_log_end(offset)
        if self.epochs.truncate_end(offset):
            self._write_epochs_soon(now_ms)
        self.marks.set_log_start(min(offset, self.marks.log_start_offset))
        self._reload_producers(offset, now_ms)
        self._bounds.set_high_watermark(min(self.high_watermark, self.log_end_offset))
        self._write_lowered(before)
        return True

    def truncate_fully(self, offset: Offset, now_ms: int, log_start_offset: Offset | None = None) -> None:
        """Delete all records. The next record gets `offset`. Like `truncate_to`, this fails early."""
        self._files.entries(self.directory)
        before = (self.recovery_point, self.log_start_offset)
        for segment in (going := list(reversed(list(self.segments)))):
            self.segments.remove(segment.base_offset)
        self._removal.mark_deleted(going, self._delete_due_ms(now_ms))
        self.segments.add(self._named_segment(offset, now_ms))
        self._set_log_end(offset)
        self.epochs.clear()
        self.producers.truncate_fully(offset)
        self.marks.set_log_start(offset if log_start_offset is None else log_start_offset)
        self._reload_producers(offset, now_ms)
        self._bounds.set_high_watermark(offset)
        self._write_lowered(before)

    def _write_lowered(self, before: tuple[Offset, Offset]) -> None:
        """Write lowered checkpoints at once. After a crash, a log that has grown would use the old ones."""
        self.cuts += 1
        if self.recovery_point < before[0] or self.log_start_offset < before[1]:
            self.write_checkpoints()

    def _reload_producers(self, end: Offset, now_ms: int) -> None:
        rebuild_producers(self.producers, self.segments, self.log_start_offset, end, now_ms, clean=False)

    def replace_segments(self, new: Sequence[Segment], old: Sequence[Segment], now_ms: int) -> None:
        """Replace segments with cleaned ones, which were written beside the log as `.cleaned` files."""
        swap_segments(self._files, self.directory, self.segments, new, old)
        self._owner.watch(new)
        due_ms = self._delete_due_ms(now_ms)
        self._removal.remove_later(old, due_ms)
        replaced = {segment.base_offset for segment in new}
        self._removal.mark_snapshots_deleted([one for one in old if one.base_offset not in replaced], due_ms)

    # Lifecycle

    def attach(self, owner: LogOwner[PartitionLog]) -> None:
        """Leave flushes, checkpoints and deferred work to an owner."""
        self._owner = owner
        self.deferred.notify(partial(owner.note_deferred, self.partition))
        owner.watch(self.segments)

    def write_checkpoints(self) -> None:
        self._owner.write_checkpoints()

    def assign_topic_id(self, topic_id: TopicId) -> None:
        """Store the topic id in `partition.metadata`."""
        if self.topic_id is not None and self.topic_id != topic_id:
            reason = f"{self.partition} has topic id {self.topic_id} on disk and {topic_id} in the metadata"
            raise KafkaError(ErrorCode.INCONSISTENT_TOPIC_ID, reason)
        if self.topic_id is None:
            self.topic_id = topic_id
            write_topic_id(self._files, join(self.directory, file_names.PARTITION_METADATA), topic_id)

    def update_config(self, config: TopicConfig) -> None:
        """Use other settings. Sealed segments keep the old ones, which have no effect on them."""
        self.config = self.segments.active.config = config

    def run_due(self, now_ms: int, at_most: int = INT_MAX) -> int:
        """Run deferred work: flush sealed segments, remove deleted files, write epochs. Return the number."""
        return self.deferred.run_due(now_ms, at_most)

    def close(self) -> None:
        """Close the log cleanly: take a producer snapshot, complete and trim the indexes. Flush before."""
        self.producers.sync_snapshots()
        if self.producers.take_snapshot() is not None:
            self._sync_folder()
        for segment in self.segments:
            segment.close()

    def abandon(self) -> None:
        """Release all files without writing anything, as a crash would."""
        for segment in self.segments:
            segment.release()

    def rename_folder(self, name: str) -> None:
        """Rename the partition's folder. The caller syncs the directory above."""
        target = join(self.directory.rpartition("/")[0], name)
        self._files.replace(self.directory, target)
        self.directory = target
        self.producers.moved_to(target)
        self.epochs.moved_to(join(target, file_names.LEADER_EPOCH_CHECKPOINT))
        for segment in self.segments:
            segment.moved_to(target)

    def delete(self) -> None:
        """Remove the partition's folder with everything in it."""
        self.deferred.clear()
        for segment in self.segments:
            segment.release()
        self._files.remove_directory(self.directory)
