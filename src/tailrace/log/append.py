"""LogAppend: the append of a log, in two steps, for leaders, followers and coordinators.

    place    check batches, assign their offsets, plan their changes of the producer states
    write    write all placed batches with one write, index them, move the bounds, apply the changes of producer states

    place* ──► write (the log has moved, nothing is placed)   or   OSError (nothing is placed)

Batches that arrive together for one partition are placed one after another and cost one write. A placed batch has its
offset, but cannot be read before `write`. `place` itself calls `write` first if a batch cannot join the placed ones:
because the segment has to be rolled, the leader epoch changes, or the producer's placed batches have to be written for
the check. If that write fails, `place` raises its OSError and nothing is placed.

A refused batch is not changed, and nothing of it is placed. As in Kafka, the segment may have been rolled and the
leader epoch recorded before the refusal.

Between `place` and `write` nothing else may change the log.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple, Protocol

from tailrace.log.leader_epochs import LeaderEpochs
from tailrace.log.producers.producer_changes import ProducerChanges
from tailrace.log.producers.producer_state import AppendedBatch
from tailrace.log.producers.producer_states import ProducerStates
from tailrace.log.replicated.replicated_batches import BatchRun, split_replicated
from tailrace.log.segments.indexes.transaction_index import AbortedTransaction
from tailrace.log.segments.position import LogPosition
from tailrace.log.segments.roll_policy import NO_ROOM, RollReason, check_segment_size, room_in
from tailrace.log.segments.segment import Segment
from tailrace.log.segments.segment_list import SegmentList
from tailrace.log.upkeep.durability import Durability
from tailrace.log.watermarks import Watermarks
from tailrace.model.ids import NO_LEADER_EPOCH, NO_TIMESTAMP, LeaderEpoch, Offset, TopicPartition
from tailrace.records.batch import LAST_OFFSET_DELTA_POSITION, LOG_OVERHEAD, PLACE, Buffer, RecordBatch
from tailrace.records.checks.checked_records import CheckedRecords
from tailrace.records.checks.validation import Origin, check_given, check_produced, is_kept_as_sent

JOINED_BYTES_MAX: Final = 65_536  # Up to this size, copying batches into one buffer is cheaper than one write for each.
_FACTS: Final = Struct(">iqqq").unpack_from  # Last offset delta, base and largest timestamp, producer id
_new_tuple: Final = tuple.__new__  # Makes a NamedTuple in half the time
# Enum members as constants: access through the class costs a lookup, which is too slow for every append.
_CLIENT: Final = Origin.CLIENT
_COORDINATOR: Final = Origin.COORDINATOR


class AppendResult(NamedTuple):
    first_offset: Offset
    last_offset: Offset
    log_append_time_ms: int
    log_start_offset: Offset
    is_duplicate: bool = False


class Roll(Protocol):
    def __call__(self, now_ms: int, *, first_offset: Offset, reason: RollReason) -> Segment:
        """Seal the active segment and start a new one."""


class LogAppend:
    __slots__ = (
        "_changes", "_durability", "_end_offset", "_entries", "_epoch", "_epochs", "_marks", "_partition", "_producers",
        "_roll", "_room", "_segments", "_size", "_taken", "_views",
    )  # fmt: skip

    def __init__(
        self,
        partition: TopicPartition,
        segments: SegmentList,
        marks: Watermarks,
        epochs: LeaderEpochs,
        producers: ProducerStates,
        durability: Durability,
        roll: Roll,
    ) -> None:
        self._partition = partition
        self._segments = segments
        self._marks = marks
        self._epochs = epochs
        self._producers = producers
        self._durability = durability
        self._roll = roll
        # The placed batches.
        self._views: list[Buffer] = []
        self._entries: list[tuple[int, Offset, int]] = []  # size, last offset, largest timestamp of each batch
        self._changes = ProducerChanges(producers)
        self._size = 0
        self._end_offset: Offset = 0  # the offset after the last one
        self._epoch: LeaderEpoch = NO_LEADER_EPOCH
        self._room = NO_ROOM  # in the active segment, when it was last checked
        self._taken = 0  # batches placed since then

    # Place

    def place(
        self,
        records: Buffer | CheckedRecords,
        leader_epoch: LeaderEpoch,
        now_ms: int,
        origin: Origin = _CLIENT,
        transaction_version: int = 0,
    ) -> AppendResult:
        """Place a batch after those already placed, in the given buffer if that is writable.

        Raises KafkaError, or RecordsRefused, if the batch is refused. A duplicate of a written batch is not placed: the
        result is that of the written batch.
        """
        segment = self._segments.active
        checked = None
        if isinstance(records, CheckedRecords):
            checked = records
        elif origin is _CLIENT or origin is _COORDINATOR:
            view = records if isinstance(records, memoryview) else memoryview(records)
            if view.readonly:
                view = memoryview(bytearray(view))
            config = segment.config
            if not is_kept_as_sent(view, config, now_ms):
                checked = check_produced(view, config=config, now_ms=now_ms, origin=origin, partition=self._partition)
        else:
            return self._place_given(records, leader_epoch, now_ms, origin)
        if checked is None:
            delta, _, timestamp, producer_id = _FACTS(view, LAST_OFFSET_DELTA_POSITION)
            batch = RecordBatch(view) if producer_id >= 0 else None
            count, append_time = delta + 1, NO_TIMESTAMP
        else:
            batch = checked.accepted()
            if batch is None:
                return self._empty_result()
            view, delta, count, producer_id = batch.view, batch.last_offset_delta, batch.record_count, batch.producer_id
            timestamp, append_time = checked.max_timestamp, checked.log_append_time_ms
        if leader_epoch != self._epoch:
            self.write(now_ms)
        size, placed = len(view), self._size
        first_offset = (self._end_offset if placed else self._marks.log_end.offset) + count - 1 - delta
        if not placed:
            self._epochs.assign(leader_epoch, first_offset)
            self._epoch = leader_epoch
        last_offset = first_offset + delta
        if not self._has_room(segment, size, timestamp, last_offset):
            segment = self._segment_for(segment, size, timestamp, first_offset, last_offset, now_ms)
        if batch is not None and producer_id >= 0:
            batch.place_at(first_offset)
            if not self._changes.add_next(batch):
                known = self._plan_producer(batch, segment, now_ms, origin, transaction_version)
                if known is not None:
                    bounds = known.first_offset, known.last_offset
                    return AppendResult(*bounds, known.timestamp, self._marks.log_start_offset, True)
        PLACE.pack_into(view, 0, first_offset, size - LOG_OVERHEAD, leader_epoch)
        self._views.append(view)
        self._entries.append((size, last_offset, timestamp))
        self._taken += 1
        self._size += size
        self._end_offset = last_offset + 1
        return _new_tuple(AppendResult, (first_offset, last_offset, append_time, self._marks.log_start_offset, False))

    def place_replicated(self, data: Buffer, leader_epoch: LeaderEpoch, now_ms: int) -> AppendResult:
        """Place a leader's batches at their own offsets. Raises CorruptBatch or KafkaError with none placed."""
        if self._views:
            self.write(now_ms)
        run = split_replicated(memoryview(data), self._marks.log_end.offset, leader_epoch, self._partition)
        return self._empty_result() if run is None else self._place_run(run, Origin.REPLICATION, now_ms)

    def _place_given(self, records: Buffer, leader_epoch: LeaderEpoch, now_ms: int, origin: Origin) -> AppendResult:
        """Place batches whose offsets and epochs the caller has set."""
        self.write(now_ms)
        batches = check_given(
            records,
            config=self._segments.active.config,
            base_offset=self._marks.log_end.offset,
            leader_epoch=leader_epoch,
            origin=origin,
            partition=self._partition,
        )
        if not batches:
            return self._empty_result()
        produced, size = [], 0
        for batch in batches:
            if batch.producer_id >= 0:
                produced.append((size, batch.view))
            size += batch.size
        run = BatchRun(
            memoryview(records)[:size],
            [(batch.size, batch.last_offset, batch.max_timestamp) for batch in batches],
            [(batch.leader_epoch, batch.base_offset) for batch in batches],
            produced,
            batches[0].base_offset,
            max(batch.max_timestamp for batch in batches),
        )
        return self._place_run(run, origin, now_ms)

    def _place_run(self, run: BatchRun, origin: Origin, now_ms: int) -> AppendResult:
        """Place batches that have their offsets. Nothing is placed before them."""
        data, entries, epochs, produced, first_offset, max_timestamp = run
        for epoch, start_offset in epochs:
            if epoch >= 0:
                self._epochs.assign(epoch, start_offset)
            elif self._epochs.entries:
                # The leader uses an old message format again. Its records have no epochs, so the known epochs are
                # cleared.
                self._epochs.clear()
        self._epoch = epochs[-1][0]
        last_offset = entries[-1][1]
        segment = self._segments.active
        segment = self._segment_for(segment, len(data), max_timestamp, first_offset, last_offset, now_ms)
        if produced:
            self._plan_run(produced, segment, origin)
        self._views, self._entries = [data], entries
        self._taken += len(entries)
        self._size, self._end_offset = len(data), last_offset + 1
        return _new_tuple(AppendResult, (first_offset, last_offset, NO_TIMESTAMP, self._marks.log_start_offset, False))

    def _empty_result(self) -> AppendResult:
        return AppendResult(-1, -1, -1, self._marks.log_start_offset)

    def _has_room(self, segment: Segment, size: int, max_timestamp: int, last_offset: Offset) -> bool:
        """Return True if the segment takes one more batch behind the placed ones, and one write takes all of them.

        The room was computed before an earlier batch. It is valid until the segment or the config changes, or its
        batches are used up. The age of an empty segment is counted from its next batch.
        """
        room, placed, written = self._room, self._size, segment.size
        return (
            room.segment is segment
            and room.config is segment.config
            and self._taken < room.batches
            and written > 0
            and (not placed or placed + size <= JOINED_BYTES_MAX)
            and room.roll_reason(written + placed + size, max_timestamp, last_offset) is None
        )

    def _segment_for(
        self, segment: Segment, size: int, max_timestamp: int, first_offset: Offset, last_offset: Offset, now_ms: int
    ) -> Segment:
        """Return the segment that takes the next batches: the active one, or a new one if a roll is due."""
        if self._views:
            self.write(now_ms)
        self._measure_room(segment, now_ms)
        reason = self._room.roll_reason(segment.size + size, max_timestamp, last_offset)
        if reason is None:
            return segment
        check_segment_size(size, self._partition, segment.config)
        segment = self._roll(now_ms, first_offset=first_offset, reason=reason)
        self._measure_room(segment, now_ms)
        return segment

    def _measure_room(self, segment: Segment, now_ms: int) -> None:
        self._room = room_in(segment, now_ms)
        self._taken = 0

    def _plan_producer(
        self, batch: RecordBatch, segment: Segment, now_ms: int, origin: Origin, transaction_version: int
    ) -> AppendedBatch | None:
        """Check a batch that may be out of sequence, a duplicate, or of a new epoch. Return the written batch that it
        duplicates."""
        if batch.producer_id in self._changes.placed:
            self.write(now_ms)
            if self._changes.add_next(batch):
                return None
        position = LogPosition(batch.base_offset, segment.base_offset, segment.size + self._size)
        return self._changes.plan([(position, batch)], origin, transaction_version)

    def _plan_run(self, produced: list[tuple[int, memoryview]], segment: Segment, origin: Origin) -> None:
        """Check batches with producer ids, each with its position in the run."""
        changes, batches = self._changes, [RecordBatch(view) for _, view in produced]
        for batch in batches:
            if not changes.add_next(batch):
                break
        else:
            return
        changes.discard()
        base, size = segment.base_offset, segment.size
        positions = [
            LogPosition(one.base_offset, base, size + at) for (at, _), one in zip(produced, batches, strict=True)
        ]
        changes.plan(zip(positions, batches, strict=True), origin, 0)

    # Write

    def write(self, now_ms: int) -> None:
        """Write the placed batches. Nothing is placed afterwards.

        If the write fails, none of them is in the log, and bounds and producer states are as before. An OSError after
        the write is from the flush for `flush.messages`, or from the transaction index. The index keeps entries that
        could not be written and writes them with the next ones.
        """
        views, entries, changes = self._views, self._entries, self._changes
        if not views:
            return
        self._views, self._entries, self._size = [], [], 0
        segment, end = self._segments.active, self._end_offset
        try:
            segment.append(views[0] if len(views) == 1 else b"".join(views), entries)
        except BaseException:
            changes.discard()
            raise
        self._marks.set_log_end(_new_tuple(LogPosition, (end, segment.base_offset, segment.size)))
        self._producers.advance_to(end)
        if changes.placed:
            aborted = changes.apply()
            if aborted is not None:
                self._note_transactions(aborted, segment)
        if end - self._durability.recovery_point >= segment.config.flush_messages:
            self._durability.flush(now_ms)

    def _note_transactions(self, aborted: list[AbortedTransaction], segment: Segment) -> None:
        self._marks.set_first_unstable(self._producers.first_unstable)
        # Last, because it may fail. The index keeps entries that could not be written and writes them with the next
        # ones.
        for transaction in aborted:
            segment.transaction_index.append(transaction)
