"""The records of a log that was opened for inspection, as a consumer would get them, in bounded memory.

Control records are left out. With read_committed the reading ends at the last stable offset, and the records of aborted
transactions are left out too. The transaction indexes list them. A producer's transactions do not overlap, so a record
was aborted if it lies inside one of them, wherever the reading starts.

Damage is reported and skipped: reading continues at the next valid batch (resync.py), or with the next segment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tailrace.log.inspect.findings import Finding, Severity
from tailrace.log.inspect.offline import OfflineLog, is_entry_right
from tailrace.log.inspect.resync import next_position
from tailrace.log.reading.timestamp_lookup import find_in_segment
from tailrace.log.segments.batch_walk import BatchHeader
from tailrace.log.segments.indexes.index_file import CorruptIndex
from tailrace.log.segments.segment import Segment
from tailrace.log.watermarks import Isolation
from tailrace.model.ids import Offset, ProducerId
from tailrace.model.topic_config import LONG_MAX
from tailrace.records.batch import CONTROL_BIT, TRANSACTIONAL_BIT, CorruptBatch, RecordBatch
from tailrace.records.legacy import check_message, iter_messages
from tailrace.records.record import Record, iter_records


@dataclass(frozen=True, slots=True)
class Selection:
    """The range of records: [from, to) by offset and by time."""

    from_offset: Offset = 0
    to_offset: Offset = LONG_MAX
    from_timestamp: int | None = None
    to_timestamp: int | None = None
    isolation: Isolation = Isolation.READ_UNCOMMITTED


class FoundRecord(NamedTuple):
    record: Record
    batch: BatchHeader


class RecordReader:
    """Reads the selected records of one log. `report` is called for each damage."""

    def __init__(self, offline: OfflineLog, selection: Selection, report: Callable[[Finding], None]) -> None:
        self._log = offline.log
        self._selection = selection
        self._report = report

    def __iter__(self) -> Iterator[FoundRecord]:
        log, wanted = self._log, self._selection
        start = max(wanted.from_offset, log.log_start_offset)
        is_committed = wanted.isolation is Isolation.READ_COMMITTED
        end = min(wanted.to_offset, log.last_stable_offset if is_committed else log.log_end_offset)
        if wanted.from_timestamp is not None:
            start = self._first_at(wanted.from_timestamp, start)
        aborted = self._aborted(start, end) if is_committed else {}
        for segment in log.segments.between(start, end):
            try:
                for header, view in self._batches(segment, start):
                    if header.base_offset >= end:
                        break
                    if header.last_offset >= start and self._may_hold_some(header, aborted):
                        yield from self._records(segment, header, view, start, end)
            except FileNotFoundError:
                self._report(Finding(segment.log.path, "was removed meanwhile", severity=Severity.NOTE))
            segment.release()

    def _first_at(self, timestamp: int, start: Offset) -> Offset:
        """Return the first offset with that time or later, or the end of the log."""
        log = self._log
        for segment in log.segments.between(start, log.log_end_offset):
            # The time index of the last segment may be behind its batches while it is written to.
            if segment is log.segments.active or segment.retention_timestamp_ms() >= timestamp:
                try:
                    segment.offset_index.check()
                    segment.time_index.check()
                    found = find_in_segment(segment, timestamp, start)
                except CorruptBatch:
                    return max(start, segment.base_offset)  # the reader finds the damage again and reports it
                except CorruptIndex as error:
                    self._report(Finding(error.path, f"{str(error).removeprefix(f'{error.path}: ')}; it is not used"))
                    return max(start, segment.base_offset)
                if found is not None:
                    return found.offset
        return log.log_end_offset

    def _aborted(self, start: Offset, end: Offset) -> dict[ProducerId, list[tuple[Offset, Offset]]]:
        segments = self._log.segments
        base_offset = segments[max(segments.floor_slot(start), 0)].base_offset
        aborted: dict[ProducerId, list[tuple[Offset, Offset]]] = {}
        for transaction in segments.aborted_transactions(base_offset, start, end):
            aborted.setdefault(transaction.producer_id, []).append((transaction.first_offset, transaction.last_offset))
        return aborted

    def _may_hold_some(self, header: BatchHeader, aborted: dict[ProducerId, list[tuple[Offset, Offset]]]) -> bool:
        """Return True if the batch may have records to show, by its header."""
        if header.magic == 2:
            if header.attributes & CONTROL_BIT:
                return False
            if header.attributes & TRANSACTIONAL_BIT and header.producer_id in aborted:
                ranges = aborted[header.producer_id]
                if any(first <= header.base_offset <= last for first, last in ranges):
                    return False
        wanted = self._selection.from_timestamp
        return wanted is None or header.max_timestamp >= wanted

    def _batches(self, segment: Segment, start: Offset) -> Iterator[tuple[BatchHeader, memoryview]]:
        """Yield the segment's batches from the index entry below `start` on. Damage is skipped."""
        entry = segment.offset_index.lookup(start)
        position: int | None = entry.position
        if not is_entry_right(segment, entry):
            message = f"no batch at position {entry.position} ends with offset {entry.offset}; the index is not used"
            self._report(Finding(segment.offset_index.file.path, message))
            position = 0
        next_offset = segment.base_offset
        while position is not None and position < segment.size:
            try:
                for header, view in segment.batches(position):
                    if header.last_offset >= start:
                        _check(header, view)
                    position, next_offset = header.position + header.size, max(header.next_offset, next_offset)
                    yield header, view
                return
            except CorruptBatch as error:
                damaged = position
                position = next_position(segment.log, damaged, segment.size, next_offset, segment.offset_index)
                self._report_damage(segment, error, damaged, position)

    def _report_damage(self, segment: Segment, error: CorruptBatch, position: int, resume_at: int | None) -> None:
        skipped = (segment.size if resume_at is None else resume_at) - position
        where = "the next segment" if resume_at is None else f"position {resume_at}"
        message = f"{error.reason}; {skipped} bytes are skipped, up to {where}"
        self._report(Finding(error.path or segment.log.path, message, position))

    def _records(
        self, segment: Segment, header: BatchHeader, view: memoryview, start: Offset, end: Offset
    ) -> Iterator[FoundRecord]:
        wanted = self._selection
        try:
            for record in _decode(header, view):
                if start <= record.offset < end and _is_in_time(record.timestamp, wanted):
                    yield FoundRecord(record, header)
        except CorruptBatch as error:
            message = (
                f"rest of the batch of offsets {header.base_offset} to {header.last_offset} is skipped: {error.reason}"
            )
            self._report(Finding(segment.log.path, message, header.position))


def _check(header: BatchHeader, view: memoryview) -> None:
    if header.magic == 2:
        RecordBatch(view).check()
    else:
        check_message(view)


def _decode(header: BatchHeader, view: memoryview) -> Iterator[Record]:
    return iter_records(RecordBatch(view)) if header.magic == 2 else iter_messages(view)


def _is_in_time(timestamp: int, wanted: Selection) -> bool:
    if wanted.from_timestamp is not None and timestamp < wanted.from_timestamp:
        return False
    return wanted.to_timestamp is None or timestamp < wanted.to_timestamp
