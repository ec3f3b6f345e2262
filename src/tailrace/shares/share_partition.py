"""SharePartition: the position of a share group in a partition, and its records in flight.

                    start_offset                        end_offset
    … finished ……………………… │ in flight: batches, in order ……… │ not yet read …

- Everything below `start_offset` is finished. It moves up when the first records in flight are acknowledged or
  archived, or when the log start moves. It never moves back.
- A batch in flight is first what one fetch acquired. `end_offset` is the last record of the last batch. While nothing
  is in flight, the next fetch begins there.
- Records that were given back lie between others. `_looks_for_available` means that a fetch has to search for them
  before it reads at the end.
- The initial state may have gaps: records that a former leader had delivered, and nobody acknowledged. They are
  acquired again. `_gap` is the range that may have gaps.

An acknowledgement or release is a `Change`. It is made at once, but is not visible to others. The caller persists it
and then calls `complete`, which undoes it if that has failed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from enum import Enum
from operator import attrgetter
from typing import NamedTuple

from tailrace.log.segments.position import LogPosition
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.shares.delivery_settings import DeliverySettings
from tailrace.shares.in_flight import InFlightBatch, RecordRun, RecordState
from tailrace.shares.state.persisted_state import PersistedState, ShareWrite, StateBatch

_FIRST = attrgetter("first_offset")
NO_OFFSET = -1


class Activity(Enum):
    EMPTY = "its state was not read yet"
    INITIALIZING = "its state is being read"
    ACTIVE = "records are delivered"
    FAILED = "its state could not be read"
    FENCED = "another one has replaced it"


class _Part(NamedTuple):
    batch: InFlightBatch
    state: StateBatch


class Change:
    """A change to persist, and the runs to complete after that."""

    __slots__ = ("parts",)

    def __init__(self) -> None:
        self.parts: list[_Part] = []

    def add(self, batch: InFlightBatch, run: RecordRun) -> None:
        state = StateBatch(run.first_offset, run.last_offset, run.state, run.delivery_count)
        self.parts.append(_Part(batch, state))

    def state_batches(self) -> tuple[StateBatch, ...]:
        return tuple([part.state for part in self.parts])


class SharePartition:
    def __init__(self, leader_epoch: int) -> None:
        self.leader_epoch = leader_epoch
        self.activity = Activity.EMPTY
        self.state_epoch = 0
        self.start_offset = 0
        self.end_offset = 0
        self.delivery_complete_count = 0  # how many records in flight are finished
        self.batches: list[InFlightBatch] = []
        self.position: LogPosition | None = None  # where the next fetch begins in the log
        self.position_offset = NO_OFFSET
        self.deadline_ms: int | None = None  # no lock expires before
        self._looks_for_available = False
        self._gap: _Gap | None = None

    # Initial state

    def begin(self, state: PersistedState, start_offset: int) -> None:
        """Start from the persisted state. If it contradicts itself, the state becomes FAILED and KafkaError is
        raised."""
        self.state_epoch = state.state_epoch
        self.start_offset = start_offset
        previous_last, gap_start = start_offset - 1, NO_OFFSET
        for one in sorted(state.batches):
            if one.first_offset < start_offset or one.last_offset < one.first_offset:
                self.activity = Activity.FAILED
                raise KafkaError(
                    ErrorCode.UNKNOWN_SERVER_ERROR,
                    f"the persisted state {one} contradicts the start offset {start_offset}",
                )
            if gap_start == NO_OFFSET and one.first_offset > previous_last + 1:
                gap_start = previous_last + 1
            previous_last = one.last_offset
            run = RecordRun(one.first_offset, one.last_offset, RecordState(one.delivery_state), one.delivery_count)
            self.batches.append(InFlightBatch(run))
            if run.is_terminal:
                self.delivery_complete_count += len(run)
        self.end_offset = start_offset
        if self.batches:
            self._looks_for_available = True
            self.end_offset = self.batches[-1].last_offset
            if gap_start != NO_OFFSET:
                self._gap = _Gap(gap_start, self.end_offset)
            self.advance_start()
        self.activity = Activity.ACTIVE

    def write_of(self, change: Change) -> ShareWrite:
        """Return the write that persists a change, with the epochs, the start offset and the count as they are now."""
        return ShareWrite(
            self.state_epoch,
            self.leader_epoch,
            self.start_offset,
            self.delivery_complete_count,
            change.state_batches(),
        )

    def begin_initializing(self) -> None:
        """Note that the persisted state is being read."""
        self.activity = Activity.INITIALIZING

    def fence(self) -> None:
        self.activity = Activity.FENCED

    # Where to fetch

    def note_position(self, offset: int, position: LogPosition) -> None:
        """Note where in the log the next fetch offset is."""
        self.position, self.position_offset = position, offset

    def next_fetch_offset(self) -> int:
        if not self.batches or self.start_offset > self.batches[-1].last_offset:
            self._looks_for_available = False
            return self.end_offset
        if self._looks_for_available:
            found = self._first_acquirable()
            if found != NO_OFFSET:
                return found
            self._looks_for_available = False
        return self.end_offset + 1

    def _first_acquirable(self) -> int:
        gap = self.gap_start
        for batch in self.batches:
            if gap != NO_OFFSET:
                if batch.first_offset > gap:
                    return gap
                gap = max(batch.last_offset + 1, gap)
            for run in batch.runs:
                if run.is_acquirable:
                    return run.first_offset
        return NO_OFFSET

    def look_for_available(self) -> None:
        self._looks_for_available = True

    @property
    def in_flight_count(self) -> int:
        return self.end_offset - self.start_offset + 1 if self.batches else 0

    def can_acquire(self, settings: DeliverySettings) -> bool:
        if self.activity is not Activity.ACTIVE:
            return False
        if self.next_fetch_offset() != self.end_offset + 1:
            return True
        return self.in_flight_count < settings.partition_max_record_locks

    # Batches in flight

    def floor_slot(self, offset: int) -> int:
        """Return the index of the last batch that begins at or before an offset; -1 if there is none."""
        return bisect_right(self.batches, offset, key=_FIRST) - 1

    def batches_from(self, slot: int, last_offset: int) -> list[InFlightBatch]:
        """Return the batches from an index on that begin at or before an offset."""
        return self.batches[slot : self.floor_slot(last_offset) + 1]

    def put(self, batch: InFlightBatch) -> None:
        self.batches.insert(self.floor_slot(batch.first_offset) + 1, batch)

    def begins_inside(self, first_offset: int, last_offset: int) -> bool:
        """Return True if the start offset lies inside a range, after its first offset."""
        return first_offset < self.start_offset <= last_offset

    def count_done(self, first_offset: int, last_offset: int) -> int:
        """Return how many offsets of a range are not below the start offset."""
        return max(last_offset - max(self.start_offset, first_offset) + 1, 0)

    def note_done(self, run: RecordRun) -> None:
        """Count the records of a run that is finished from now on."""
        self.delivery_complete_count += self.count_done(run.first_offset, run.last_offset)

    def note_archived(self, count: int) -> None:
        """Count records in flight that were archived."""
        self.delivery_complete_count += count

    def note_acquired(self, first_offset: int, last_offset: int) -> None:
        """Extend the range in flight by new records, which were put as batches."""
        if self.batches[0].first_offset == first_offset:
            self.start_offset = first_offset
        self.end_offset = max(self.end_offset, last_offset)

    def cut_at_start(self, batch: InFlightBatch, run: RecordRun) -> list[RecordRun]:
        """Return a run as one piece, or as two if the start offset lies inside it."""
        first_offset, last_offset = run.first_offset, run.last_offset
        if not self.begins_inside(first_offset, last_offset):
            return [run]
        batch.differ()
        return batch.between(first_offset, self.start_offset - 1) + batch.between(self.start_offset, last_offset)

    def state_of_given_up(self, run: RecordRun) -> RecordState:
        """Return the state of a run that its member no longer has: archived if it is before the start offset."""
        return RecordState.ARCHIVED if run.last_offset < self.start_offset else RecordState.AVAILABLE

    def take_deadline(self, now_ms: int) -> bool:
        """Return True if a lock may have expired. The deadline of each later lock has to be set again."""
        if self.deadline_ms is None or self.deadline_ms > now_ms:
            return False
        self.deadline_ms = None
        return True

    def lock_until(self, deadline_ms: int) -> int:
        if self.deadline_ms is None or deadline_ms < self.deadline_ms:
            self.deadline_ms = deadline_ms
        return deadline_ms

    # Gaps in the initial state

    @property
    def gap_start(self) -> int:
        """The first offset that may be in a gap; -1 if there are no gaps, or if new records were acquired after
        them."""
        return self._gap.start if self._gap is not None and self._gap.end == self.end_offset else NO_OFFSET

    def move_gap(self, offset: int) -> None:
        if self._gap is not None:
            inside = self._gap.end == self.end_offset and offset <= self._gap.end
            self._gap = _Gap(offset, self._gap.end) if inside else None

    # Changes

    def complete(self, change: Change, *, is_committed: bool, now_ms: int) -> bool:
        """Complete or undo a change after the attempt to persist it. Return True if the start offset has moved."""
        for batch, state in change.parts:
            for run in batch.between(state.first_offset, state.last_offset):
                run.complete(is_committed=is_committed, now_ms=now_ms)
                if run.state is RecordState.AVAILABLE:
                    self._looks_for_available = True
                if not is_committed and state.delivery_state and not run.is_terminal:
                    self.delivery_complete_count -= self.count_done(run.first_offset, run.last_offset)
                if run.deadline_ms is not None:
                    self.lock_until(run.deadline_ms)
            # The log start may have moved past records that are available again: nobody could read them.
            if state.first_offset < self.start_offset:
                self.archive(state.first_offset, self.start_offset, [batch], RecordState.AVAILABLE)
        return is_committed and self.advance_start()

    def advance_start(self) -> bool:
        """Remove finished records at the start. Return True if the start offset has moved."""
        if not self._is_start_done():
            return False
        last_done, done_count = self._last_done()
        if last_done == NO_OFFSET:
            return False
        if last_done == self.batches[-1].last_offset:
            # The log start may be higher by now. Kafka would go back here, and its next read would correct it.
            self.start_offset = self.end_offset = max(self.start_offset, last_done + 1)
            self.batches.clear()
            self.delivery_complete_count = 0
            return True
        slot = self.floor_slot(last_done)
        if last_done == self.batches[slot].last_offset:
            slot += 1
            self.start_offset = max(self.start_offset, self.batches[slot].first_offset)
            if self.gap_start != NO_OFFSET:
                self.start_offset = min(self.gap_start, self.start_offset)
        else:
            self.start_offset = max(self.start_offset, last_done + 1)
        self.delivery_complete_count -= done_count
        del self.batches[:slot]
        return True

    def _is_start_done(self) -> bool:
        slot = self.floor_slot(self.start_offset)
        if slot < 0:  # there is a gap at the start
            return False
        run = self.batches[slot].run_at(self.start_offset) or self.batches[slot].runs[-1]
        return run.is_terminal and run.rollback is None

    def _last_done(self) -> tuple[int, int]:
        """Return the last offset up to which all records are finished, and the number of those records."""
        last, count = NO_OFFSET, 0
        gap = self.gap_start
        for batch in self.batches:
            if gap != NO_OFFSET and batch.last_offset >= gap:
                break
            for run in batch.runs:
                if run.rollback is not None or not run.is_terminal:
                    return last, count
                last = run.last_offset
                count += self.count_done(run.first_offset, run.last_offset)
        return last, count

    # A moved log start

    def move_start(self, log_start_offset: int) -> None:
        """Finish everything before the log start, which has moved. Acquired records before it are archived when their
        member acknowledges them."""
        if log_start_offset <= self.start_offset:
            return
        if not self.batches:
            self.start_offset = self.end_offset = log_start_offset
            self.delivery_complete_count = 0
            return
        done = self._count_terminal_below(log_start_offset)
        if self.archive(self.start_offset, log_start_offset, self.batches, RecordState.AVAILABLE):
            self._looks_for_available = True
        self.start_offset = log_start_offset
        self.delivery_complete_count -= done
        self.end_offset = max(self.end_offset, self.start_offset)

    def _count_terminal_below(self, offset: int) -> int:
        return sum(
            self.count_done(run.first_offset, min(run.last_offset, offset - 1))
            for batch in self.batches[: self.floor_slot(offset - 1) + 1]
            for run in batch.runs
            if run.is_terminal
        )

    def archive(
        self, first_offset: int, end_offset: int, batches: Sequence[InFlightBatch], from_state: RecordState
    ) -> int:
        """Archive records with a given state between two offsets; return their number."""
        archived = 0
        for batch in batches:
            if batch.first_offset >= end_offset:
                break
            if not batch.by_offset and batch.whole.state is not from_state:
                continue
            if not batch.is_within(first_offset, end_offset - 1):
                batch.differ()
            for run in batch.between(first_offset, end_offset - 1):
                if run.state is from_state:
                    run.archive()
                    archived += len(run)
        return archived


class _Gap(NamedTuple):
    start: int
    end: int
