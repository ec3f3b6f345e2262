"""Explain: the steps of one read, as data, like EXPLAIN of a database.

A read by offset takes these steps, and `explain_offset` returns each of them:

    1. the bound that the isolation level sets;
    2. the floor segment, found by bisection over the base offsets, which are in memory;
    3. a binary search in its offset index for the last entry at or below the offset;
    4. batch headers from there on, until one reaches the offset; if none does, the next segment;
    5. a slice of that file, up to the bound, the requested size or the end of the segment;
    6. the aborted transactions that overlap it, for read_committed.

A lookup by time (`explain_timestamp`) comes first. It uses the first segment whose largest timestamp reaches the
target, its time index, its offset index, batch headers, and the records of the first candidate batches.

Nothing is simulated. The searches are the log's own, which record their probes. The result is that of
`PartitionLog.read` or `find_offset`, and the cost is what they read from the files. An index with entries out of order
raises CorruptIndex, because a search in it has no meaning.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tailrace.log.disk.files import File
from tailrace.log.partition_log import PartitionLog
from tailrace.log.reading.log_read import LogRead, OffsetOutOfRange
from tailrace.log.reading.timestamp_lookup import FoundOffset, find_offset
from tailrace.log.segments.batch_walk import BatchHeader
from tailrace.log.segments.indexes.offset_index import OffsetIndex
from tailrace.log.segments.indexes.time_index import TimeIndex
from tailrace.log.segments.indexes.transaction_index import AbortedTransaction
from tailrace.log.segments.segment import Segment
from tailrace.log.watermarks import Isolation
from tailrace.model.ids import Offset
from tailrace.records.batch import Buffer

PAGE = 4096


@dataclass(frozen=True, slots=True)
class Bounds:
    log_start_offset: Offset
    last_stable_offset: Offset
    high_watermark: Offset
    log_end_offset: Offset
    isolation: Isolation
    bound: Offset  # the bound of the isolation level; the read ends before it
    bound_segment: Offset
    bound_position: int


@dataclass(frozen=True, slots=True)
class Probe:
    """One comparison with an index entry. The search continues to the right if the entry is at or below the target."""

    slot: int
    key: int
    points_to: int
    is_at_or_below: bool


@dataclass(frozen=True, slots=True)
class IndexSearch:
    """A binary search: offset → position in an offset index, timestamp → offset in a time index."""

    path: str
    entries: int
    entry_size: int
    target: int
    probes: list[Probe]
    slot: int  # -1: every entry is above the target, and the walk starts at the segment's start
    key: int
    points_to: int

    @property
    def pages(self) -> set[int]:
        return {probe.slot * self.entry_size // PAGE for probe in self.probes}


@dataclass(frozen=True, slots=True)
class WalkedBatch:
    position: int
    size: int
    base_offset: Offset
    last_offset: Offset
    max_timestamp: int
    is_match: bool


@dataclass(frozen=True, slots=True)
class SegmentWalk:
    """One segment that was searched."""

    base_offset: Offset
    path: str
    size: int
    slot: int
    segments: int
    search: IndexSearch
    walk_start: int
    walked: list[WalkedBatch]


@dataclass(frozen=True, slots=True)
class Slice:
    path: str
    position: int
    size: int
    ends_with: str  # bound, size or segment
    is_first_batch_incomplete: bool


@dataclass(frozen=True, slots=True)
class Cost:
    index_probes: int
    index_pages: int
    reads: int
    bytes_read: int
    log_pages: int
    slice_pages: int


@dataclass(slots=True)
class ReadExplanation:
    partition: str
    offset: Offset
    max_bytes: int
    bounds: Bounds
    walks: list[SegmentWalk] = field(default_factory=list)
    slice: Slice | None = None
    aborted: list[AbortedTransaction] | None = None
    aborted_indexes: list[str] = field(default_factory=list)  # the transaction indexes with entries
    cost: Cost | None = None
    empty_because: str | None = None
    result: LogRead | None = None


@dataclass(frozen=True, slots=True)
class SegmentTime:
    base_offset: Offset
    largest_timestamp: int
    is_reached: bool


@dataclass(slots=True)
class TimestampExplanation:
    partition: str
    timestamp: int
    segments: list[SegmentTime]
    time_search: IndexSearch | None = None
    walk: SegmentWalk | None = None
    found: FoundOffset | None = None
    cost: Cost | None = None


class RecordingFile:
    """A segment's log file that records its reads."""

    def __init__(self, file: File) -> None:
        self.file = file
        self.path = file.path
        self.reads: list[tuple[int, int]] = []

    def read(self, position: int, size: int) -> bytes:
        data = self.file.read(position, size)
        self.reads.append((position, len(data)))
        return data

    def read_into(self, position: int, buffer: memoryview) -> int:
        count = self.file.read_into(position, buffer)
        self.reads.append((position, count))
        return count

    def size(self) -> int:
        return self.file.size()

    def write(self, position: int, data: Buffer) -> None:
        raise AssertionError("explaining a read writes nothing")

    def map(self) -> Buffer:
        return self.file.map()

    def allocate(self, size: int) -> None:
        raise AssertionError("explaining a read writes nothing")

    def truncate(self, size: int) -> None:
        raise AssertionError("explaining a read writes nothing")

    def sync(self) -> None:
        pass

    def fileno(self) -> int:
        return self.file.fileno()

    def release(self) -> None:
        self.file.release()

    close = release


class Recording:
    """A context in which each segment's file is replaced with a RecordingFile."""

    def __init__(self, log: PartitionLog) -> None:
        self._segments = list(log.segments)
        self.files: list[RecordingFile] = []

    def __enter__(self) -> Recording:
        self.files = [RecordingFile(segment.log) for segment in self._segments]
        for segment, file in zip(self._segments, self.files, strict=True):
            segment.read_through(file)
        return self

    def __exit__(self, *_: object) -> None:
        for segment, file in zip(self._segments, self.files, strict=True):
            segment.read_through(file.file)

    def cost(self, searches: Iterable[IndexSearch], slice_: Slice | None = None) -> Cost:
        searches = list(searches)
        pages = {
            (n, page)
            for n, file in enumerate(self.files)
            for position, size in file.reads
            if size
            for page in range(position // PAGE, (position + size - 1) // PAGE + 1)
        }
        return Cost(
            sum(len(search.probes) for search in searches),
            sum(len(search.pages) for search in searches),
            sum(len(file.reads) for file in self.files),
            sum(size for file in self.files for _, size in file.reads),
            len(pages),
            (slice_.position + slice_.size - 1) // PAGE - slice_.position // PAGE + 1 if slice_ and slice_.size else 0,
        )


def explain_offset(log: PartitionLog, offset: Offset, max_bytes: int, isolation: Isolation) -> ReadExplanation:
    """Return the steps of a read from `offset`. An offset outside the log gives an empty read."""
    explanation = ReadExplanation(str(log.partition), offset, max_bytes, _bounds(log, isolation))
    if (floor := log.segments.floor_slot(offset)) >= 0:
        log.segments[floor].offset_index.check()
    with Recording(log) as recording:
        try:
            result = log.read(offset, max_bytes, isolation, at_least_one=True)
        except OffsetOutOfRange as error:
            explanation.empty_because = str(error)
            return explanation
    explanation.result = result
    explanation.aborted = result.aborted
    if result.slice is not None:
        explanation.slice = _slice(log, explanation, result)
    if offset >= explanation.bounds.bound:
        explanation.empty_because = (
            f"offset {offset} is not below the bound {explanation.bounds.bound}: no record can be read yet"
        )
    else:
        slot = log.segments.floor_slot(offset)
        for number, segment in enumerate(log.segments.tail(slot), slot):
            explanation.walks.append(_walk_to_offset(segment, number, len(log.segments), offset))
            if explanation.walks[-1].walked and explanation.walks[-1].walked[-1].is_match:
                break
        if explanation.slice is None:
            explanation.empty_because = "no batch at or after the offset is below the bound"
    if explanation.aborted:
        explanation.aborted_indexes = [
            segment.transaction_index.path
            for segment in log.segments
            if any(transaction in segment.transaction_index.entries for transaction in explanation.aborted)
        ]
    explanation.cost = recording.cost((walk.search for walk in explanation.walks), explanation.slice)
    return explanation


def _bounds(log: PartitionLog, isolation: Isolation) -> Bounds:
    marks = log.snapshot_marks()
    bound = marks.bound(isolation)
    return Bounds(
        marks.log_start_offset,
        marks.last_stable_offset,
        marks.high_watermark_offset,
        marks.log_end_offset,
        isolation,
        bound.offset,
        bound.segment_base_offset,
        bound.position,
    )


def _slice(log: PartitionLog, explanation: ReadExplanation, result: LogRead) -> Slice:
    found = result.slice
    assert found is not None
    segment = log.segments.get(result.position.segment_base_offset)
    assert segment is not None
    end = found.position + found.size
    ends_with = "size"
    if end == segment.size:
        ends_with = "segment"
    if explanation.bounds.bound_segment == segment.base_offset and end == explanation.bounds.bound_position:
        ends_with = "bound"
    return Slice(found.file.path, found.position, found.size, ends_with, result.first_entry_incomplete)


def _walk_to_offset(segment: Segment, slot: int, segments: int, offset: Offset) -> SegmentWalk:
    probes: list[int] = []
    found = segment.find(offset, probes)
    search = _offset_search(segment.offset_index, offset, probes)
    walked = []
    for header in segment.headers(search.points_to):
        walked.append(_walked(header, is_match=header == found))
        if header == found:
            break
    return SegmentWalk(
        segment.base_offset, segment.log.path, segment.size, slot, segments, search, search.points_to, walked
    )


def _walked(header: BatchHeader, *, is_match: bool) -> WalkedBatch:
    return WalkedBatch(
        header.position, header.size, header.base_offset, header.last_offset, header.max_timestamp, is_match
    )


def _offset_search(index: OffsetIndex, target: Offset, probes: list[int]) -> IndexSearch:
    looked = [Probe(slot, *index.entry(slot), index.entry(slot).offset <= target) for slot in probes]
    found = index.lookup(target)
    slot = max((probe.slot for probe in looked if probe.is_at_or_below), default=-1)
    return IndexSearch(index.file.path, index.count, 8, target, looked, slot, found.offset, found.position)


def _time_search(index: TimeIndex, target: int, probes: list[int]) -> IndexSearch:
    looked = [Probe(slot, *index.entry(slot), index.entry(slot).timestamp <= target) for slot in probes]
    found = index.lookup(target)
    slot = max((probe.slot for probe in looked if probe.is_at_or_below), default=-1)
    return IndexSearch(index.file.path, index.count, 12, target, looked, slot, found.timestamp, found.offset)


def explain_timestamp(log: PartitionLog, timestamp: int) -> TimestampExplanation:
    """Return the steps of the lookup of the first record at or after a time. The special targets below zero are not
    allowed."""
    assert timestamp >= 0, f"{timestamp} is not a time"
    explanation = TimestampExplanation(str(log.partition), timestamp, [])
    reached = None
    for slot, segment in enumerate(log.segments):
        largest = segment.retention_timestamp_ms()
        explanation.segments.append(SegmentTime(segment.base_offset, largest, largest >= timestamp))
        if largest >= timestamp:
            reached = slot
            segment.time_index.check()
            segment.offset_index.check()
            break
    with Recording(log) as recording:
        explanation.found = find_offset(log, timestamp)
    searches = []
    if reached is not None:
        segment = log.segments[reached]
        time_probes: list[int] = []
        start = segment.timestamp_start(timestamp, log.log_start_offset, time_probes)
        explanation.time_search = _time_search(segment.time_index, timestamp, time_probes)
        target = max(explanation.time_search.points_to, log.log_start_offset)
        probes: list[int] = []
        segment.offset_index.lookup(target, probes)
        search = _offset_search(segment.offset_index, target, probes)
        assert search.points_to == start.position, "the lookup and its explanation differ"
        walked = _walk_to_time(segment, start.position, explanation.found)
        explanation.walk = SegmentWalk(
            segment.base_offset,
            segment.log.path,
            segment.size,
            reached,
            len(log.segments),
            search,
            start.position,
            walked,
        )
        searches = [explanation.time_search, search]
    explanation.cost = recording.cost(searches)
    return explanation


def _walk_to_time(segment: Segment, start: int, found: FoundOffset | None) -> list[WalkedBatch]:
    walked = []
    for header in segment.headers(start):
        is_match = found is not None and header.last_offset >= found.offset
        walked.append(_walked(header, is_match=is_match))
        if is_match:
            break
    return walked
