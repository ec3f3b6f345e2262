"""Checks one segment, batch by batch, and its indexes at the same time.

For each batch it checks the checksum, that offsets grow and stay within the segment, and that there are at most as many
records as offsets. With `deep` it also checks the records: that they can be decoded, that the header's count is right,
that their offsets grow within the batch, and that the header has their largest timestamp.

Damage does not end the walk. It continues at the next valid batch (resync.py). If there is none before the end of the
last segment, the tail is torn, as after a crash.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from tailrace.log.disk import file_names
from tailrace.log.disk.files import File, Files, join
from tailrace.log.inspect.findings import Finding
from tailrace.log.inspect.resync import next_position
from tailrace.log.inspect.verify_indexes import OffsetIndexCheck, Report, TimeIndexCheck, loaded
from tailrace.log.segments.batch_walk import BatchHeader, read_batches
from tailrace.log.segments.indexes.index_file import CorruptIndex
from tailrace.log.segments.indexes.offset_index import OffsetIndex
from tailrace.log.segments.indexes.time_index import TimeIndex
from tailrace.log.segments.indexes.transaction_index import AbortedTransaction, TransactionIndex
from tailrace.model.ids import Offset
from tailrace.model.topic_config import INT_MAX
from tailrace.records.batch import DELETE_HORIZON_BIT, TIMESTAMP_TYPE_BIT, CorruptBatch, RecordBatch
from tailrace.records.checks.record_walk import walk_payload
from tailrace.records.legacy import check_message, iter_messages
from tailrace.records.record import iter_records

Advance = Callable[[int], None]  # called with the number of bytes checked
_GROWTHS_MAX = 3  # how often a file may grow during the check


class BatchListener(Protocol):
    """A receiver of the valid batches."""

    def batch(self, header: BatchHeader, view: memoryview, path: str) -> None: ...
    def gap(self) -> None:
        """Offsets are missing or bytes are damaged before the next batch."""


@dataclass(slots=True)
class SegmentResult:
    base_offset: Offset
    end_offset: Offset
    size: int = 0
    batches: int = 0
    records: int = 0
    index_entries: int = 0
    damaged_bytes: int = 0
    torn_at: int | None = None  # the start of the last segment's torn tail
    damaged_at: int | None = None  # the first damage before the tail
    does_overflow: bool = False  # its offsets span more than an index can represent
    are_indexes_wrong: bool = False
    aborted: list[AbortedTransaction] | None = None

    @property
    def is_damaged(self) -> bool:
        return self.damaged_at is not None

    def note_wrong_indexes(self) -> None:
        self.are_indexes_wrong = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentToCheck:
    """A segment, the known facts about it, and the receivers of the results."""

    files: Files
    directory: str
    base_offset: Offset
    expected_offset: Offset  # the end of the previous segment
    is_last: bool
    is_clean: bool  # the log was closed cleanly
    deep: bool
    report: Report
    advance: Advance
    listeners: list[BatchListener]

    def path(self, kind: str) -> str:
        return join(self.directory, file_names.segment_file(self.base_offset, kind))


class SegmentCheck:
    def __init__(self, segment: SegmentToCheck) -> None:
        self._files = segment.files
        self._path = segment.path
        self._is_last = segment.is_last
        self._is_clean = segment.is_clean
        self._deep = segment.deep
        self._report = segment.report
        self._advance = segment.advance
        self._listeners = segment.listeners
        self._expected = segment.expected_offset
        self.result = SegmentResult(segment.base_offset, segment.expected_offset)

    def run(self) -> SegmentResult:
        """Check everything. Raise OSError only if the log file cannot be read."""
        # Indexes first: those of a running broker may grow meanwhile, and the log then already has their batches.
        offsets, times = self._load_indexes()
        self.result.aborted = self._load_transactions()
        file = self._files.open(self._path(file_names.LOG), read_only=True)
        try:
            self._walk(file, offsets, times)
        finally:
            file.close()
        self.result.end_offset = self._expected
        return self.result

    def _index_report(self, finding: Finding) -> None:
        self.result.are_indexes_wrong = True
        self._report(finding)

    def _load_indexes(self) -> tuple[OffsetIndexCheck | None, TimeIndexCheck | None]:
        offsets = times = None
        base, report = self.result.base_offset, self._index_report
        index = OffsetIndex(self._files, self._path(file_names.OFFSET_INDEX), base, INT_MAX)
        if self._is_there(index.file.path) and loaded(lambda: index.file.data, report):
            offsets = OffsetIndexCheck(index, report)
            self.result.index_entries += offsets.entries
        time_index = TimeIndex(self._files, self._path(file_names.TIME_INDEX), base, INT_MAX)
        if self._is_there(time_index.file.path) and loaded(lambda: time_index.file.data, report):
            times = TimeIndexCheck(time_index, report)
            self.result.index_entries += times.entries
        return offsets, times

    def _is_there(self, path: str) -> bool:
        if self._files.exists(path):
            return True
        if self._files.size(self._path(file_names.LOG)):  # the log file of a new segment is created before its indexes
            self._index_report(Finding(path, "is missing"))
        return False

    def _load_transactions(self) -> list[AbortedTransaction] | None:
        index = TransactionIndex(self._files, self._path(file_names.TRANSACTION_INDEX), self.result.base_offset)
        try:
            return index.entries
        except CorruptIndex as error:
            self._index_report(Finding(error.path, str(error).removeprefix(f"{error.path}: ")))
            return None

    def _walk(self, file: File, offsets: OffsetIndexCheck | None, times: TimeIndexCheck | None) -> None:
        size = self.result.size = file.size()
        position: int | None = 0
        growths = 0
        while position is not None and position < size:
            try:
                for header, view in read_batches(file, position, size):
                    self._check_batch(header, view)
                    position = header.position + header.size
                    self._take_batch(file.path, header, view, offsets, times)
                break
            except CorruptBatch as error:
                damaged = position
                if self._is_last and file.size() > size and growths < _GROWTHS_MAX:
                    # A batch was being written during the read, and more of it is there now.
                    growths += 1
                    size = self.result.size = file.size()
                    continue
                position = next_position(file, damaged, size, self._expected, offsets.usable if offsets else None)
                resume_at = size if position is None else position
                self._note_damage(file.path, error, damaged, resume_at, size)
                if offsets:
                    offsets.damage(damaged, resume_at)
                if times:
                    times.damage()
        if offsets:
            offsets.finish(size)
        if times:
            times.finish(is_sealed=not self._is_last or self._is_clean, end_offset=self._expected)

    def _note_damage(self, path: str, error: CorruptBatch, position: int, resume_at: int, size: int) -> None:
        result = self.result
        result.damaged_bytes += resume_at - position
        self._advance(resume_at - position)
        for listener in self._listeners:
            listener.gap()
        reason = error.reason
        if resume_at == size and self._is_last:
            result.torn_at = position
            self._report(
                Finding(path, f"torn tail: the last {size - position} bytes are not a batch: {reason}", position)
            )
            return
        if result.damaged_at is None:
            result.damaged_at = position
        end = "to the end of the file" if resume_at == size else f"up to byte {resume_at}"
        what = f"{resume_at - position} bytes are damaged, {end}"
        self._report(Finding(path, f"{what}: {reason}", position))

    def _take_batch(
        self,
        path: str,
        header: BatchHeader,
        view: memoryview,
        offsets: OffsetIndexCheck | None,
        times: TimeIndexCheck | None,
    ) -> None:
        result = self.result
        self._advance(header.size)
        if header.last_offset - result.base_offset > INT_MAX and not result.does_overflow:
            result.does_overflow = True
            message = f"offset {header.last_offset} is too far from the segment's base offset for its indexes"
            self._report(Finding(path, message, header.position))
        if offsets:
            offsets.batch(header)
        if times:
            times.batch(header)
        for listener in self._listeners:
            if header.magic == 2 and header.base_offset > self._expected:
                listener.gap()
            listener.batch(header, view, path)
        result.batches += 1
        result.records += header.record_count if header.magic == 2 else 1
        self._expected = header.next_offset

    def _check_batch(self, header: BatchHeader, view: memoryview) -> None:
        """Raise CorruptBatch if the batch is not valid at its position."""
        if header.magic == 2:
            RecordBatch(view).check()
        else:
            check_message(view)
        # The checksum covers neither the base offset nor the length.
        if header.last_offset < header.base_offset:
            raise CorruptBatch(f"last offset {header.last_offset} is below the base offset {header.base_offset}")
        if header.base_offset < self._expected:
            raise CorruptBatch(
                f"offsets go back: {header.base_offset} to {header.last_offset}, but the next offset must be at least "
                f"{self._expected}"
            )
        if header.magic == 2:
            span = header.last_offset - header.base_offset + 1
            if not 0 <= header.record_count <= span:
                raise CorruptBatch(f"{header.record_count} records in a batch of {span} offsets")
        if self._deep:
            _check_records(header, view)


def _passes_fast_check(header: BatchHeader, view: memoryview) -> bool:
    """Return True if the compiled walk over a v2 batch's records finds no error. Otherwise, as for all older formats,
    `_check_records` checks every record."""
    if header.magic != 2 or header.record_count <= 0 or header.attributes & DELETE_HORIZON_BIT:
        return False
    try:
        walk = walk_payload(RecordBatch(view))
    except CorruptBatch:
        return False
    largest = walk.largest
    are_offsets_valid = walk.sequential and header.record_count <= header.last_offset - header.base_offset + 1
    return are_offsets_valid and (bool(header.attributes & TIMESTAMP_TYPE_BIT) or 0 <= largest == header.max_timestamp)


def _check_records(header: BatchHeader, view: memoryview) -> None:
    if _passes_fast_check(header, view):
        return
    last = header.base_offset - 1 if header.magic == 2 else -1
    largest: int | None = None
    for record in iter_records(RecordBatch(view)) if header.magic == 2 else iter_messages(view):
        if not last < record.offset <= header.last_offset:
            raise CorruptBatch(f"record offset {record.offset} does not lie between {last} and {header.last_offset}")
        last = record.offset
        largest = record.timestamp if largest is None else max(largest, record.timestamp)
    if largest is None:
        return  # an empty batch, which compaction keeps for its producer's state
    is_create_time = not header.attributes & TIMESTAMP_TYPE_BIT
    if header.magic > 0 and is_create_time and largest != header.max_timestamp:
        raise CorruptBatch(
            f"the header's largest timestamp is {header.max_timestamp}, but that of its records is {largest}"
        )


def check_segment(segment: SegmentToCheck) -> SegmentResult:
    """Check one segment. Raise OSError only if its log file cannot be read."""
    return SegmentCheck(segment).run()
