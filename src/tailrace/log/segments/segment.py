"""Segment: one .log file with its three indexes.

Invariants
    1. Every offset in it lies in [base offset, base offset + 2^31).
    2. `size` counts whole batches; bytes after it (a preallocated or torn tail) are never read.
    3. The last entry of either sparse index lies below `size`.
    4. `max_timestamp` is the largest timestamp of its batches, `max_timestamp_offset` the last offset of the first
       batch that has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from tailrace.log.disk import file_names
from tailrace.log.disk.files import File, Files, join
from tailrace.log.recovery.scan_kernels import SegmentScan
from tailrace.log.segments.batch_walk import BatchHeader, read_batches, walk_headers
from tailrace.log.segments.indexes.index_trust import (
    find_batch,
    holds,
    index_problem,
    largest_after_cut,
    largest_timestamp,
    offset_after,
    trusted,
)
from tailrace.log.segments.indexes.offset_index import OffsetIndex, OffsetPosition
from tailrace.log.segments.indexes.time_index import TimeIndex, TimestampOffset
from tailrace.log.segments.indexes.transaction_index import TransactionIndex
from tailrace.log.segments.position import FileSlice, LogPosition
from tailrace.model.ids import NO_TIMESTAMP, Offset
from tailrace.model.topic_config import INT_MAX, LONG_MAX, TopicConfig
from tailrace.records.batch import Buffer, CorruptBatch

SEGMENT_KINDS = (
    file_names.LOG,
    file_names.OFFSET_INDEX,
    file_names.TIME_INDEX,
    file_names.TRANSACTION_INDEX,
)


class SegmentOverflow(Exception):
    """An offset that is too far from the segment's base offset."""

    def __init__(self, segment: Segment, offset: Offset) -> None:
        super().__init__(f"offset {offset} does not fit into {segment.log.path}")
        self.segment = segment


class Segment:
    def __init__(
        self,
        files: Files,
        directory: str,
        base_offset: Offset,
        config: TopicConfig,
        *,
        log: File,
        size: int,
        created_ms: int,
        jitter_ms: int = 0,
        suffix: str = "",
    ) -> None:
        self._files = files
        self.directory = directory
        self.base_offset = base_offset
        self.suffix = suffix
        self.config = config
        self.log = log
        self.size = size
        self.created_ms = created_ms
        self.jitter_ms = jitter_ms
        index_bytes = config.segment_index_bytes
        self.offset_index = OffsetIndex(files, self._path(file_names.OFFSET_INDEX), base_offset, index_bytes)
        self.time_index = TimeIndex(files, self._path(file_names.TIME_INDEX), base_offset, index_bytes)
        self.transaction_index = TransactionIndex(files, self._path(file_names.TRANSACTION_INDEX), base_offset)
        self._largest: TimestampOffset | None = None
        self._first_batch_timestamp: int | None = None
        self._bytes_since_index_entry = 0
        self.index_room = 0  # a lower bound of the free entries in both indexes; computed again when it is 0

    def _path(self, kind: str) -> str:
        return join(self.directory, file_names.segment_file(self.base_offset, kind, self.suffix))

    # Opening and creating

    @classmethod
    def create(
        cls,
        files: Files,
        directory: str,
        base_offset: Offset,
        config: TopicConfig,
        *,
        now_ms: int,
        jitter_ms: int = 0,
        suffix: str = "",
    ) -> Segment:
        """Create an empty segment with its files."""
        log = files.open(join(directory, file_names.segment_file(base_offset, file_names.LOG, suffix)), create=True)
        if config.preallocate:
            log.allocate(config.roll_bytes)
        segment = cls(
            files,
            directory,
            base_offset,
            config,
            log=log,
            size=0,
            created_ms=now_ms,
            jitter_ms=jitter_ms,
            suffix=suffix,
        )
        segment.offset_index.reset()
        segment.time_index.reset()
        segment._complete_indexes()
        return segment

    @classmethod
    def open(
        cls,
        files: Files,
        directory: str,
        base_offset: Offset,
        config: TopicConfig,
        *,
        jitter_ms: int = 0,
        suffix: str = "",
        read_only: bool = False,
    ) -> Segment:
        """Open an existing segment. Only the size of its log file is read."""
        path = join(directory, file_names.segment_file(base_offset, file_names.LOG, suffix))
        return cls(
            files,
            directory,
            base_offset,
            config,
            log=files.open(path, read_only=read_only),
            size=files.size(path),
            created_ms=files.modified_ms(path),
            jitter_ms=jitter_ms,
            suffix=suffix,
        )

    def report_opening(self, opened: Callable[[Segment], object]) -> None:
        """Call a function whenever this segment opens its log file."""
        if hasattr(self.log, "report_opening"):  # files in memory have no descriptors
            self.log.report_opening(partial(opened, self))

    def read_through(self, log: File) -> None:
        """Use another object for the log file, so that `log explain` sees the reads."""
        self.log = log

    @property
    def largest(self) -> TimestampOffset:
        """Return the largest timestamp and the last offset of the first batch with it. After a reopen they are from the
        time index."""
        if self._largest is None:
            self._largest = largest_timestamp(self.log, self.offset_index, self.time_index, self.size)
        return self._largest

    @property
    def max_timestamp(self) -> int:
        return self.largest.timestamp

    @property
    def has_full_index(self) -> bool:
        if self.index_room <= 0:
            offsets, times = self.offset_index.file, self.time_index.file
            # The time index keeps a slot for the entry that is added when the segment is sealed.
            self.index_room = min(offsets.max_entries - offsets.count, times.max_entries - 1 - times.count)
        return self.index_room <= 0

    def retention_timestamp_ms(self) -> int:
        """Return the largest timestamp, or the file's date if no record has one, for retention and lookups by time."""
        return self.max_timestamp if self.max_timestamp >= 0 else self.modified_ms()

    def modified_ms(self) -> int:
        return self._files.modified_ms(self.log.path)

    def first_batch_timestamp(self) -> int:
        """Return the first batch's largest timestamp, from which the segment's age is counted, or -1 without
        a batch."""
        if self._first_batch_timestamp is None and self.size:
            self._first_batch_timestamp = next(self.headers()).max_timestamp
        return NO_TIMESTAMP if self._first_batch_timestamp is None else self._first_batch_timestamp

    def compaction_timestamp_ms(self) -> int:
        """Return the first batch's timestamp for the compaction lag, or the largest possible one if it is unknown."""
        first = self.first_batch_timestamp()
        return first if first >= 0 else LONG_MAX

    def headers(self, start: int = 0) -> Iterator[BatchHeader]:
        return walk_headers(self.log, start, self.size)

    def batches(self, start: int = 0, end: int | None = None) -> Iterator[tuple[BatchHeader, memoryview]]:
        return read_batches(self.log, start, self.size if end is None else end)

    def next_offset(self) -> Offset:
        """Return the offset after the last one, found from the last index entry on."""
        return offset_after(self.log, self.offset_index, self.size)

    def index_problem(self) -> str | None:
        """Return why nothing may be appended to the indexes, or None if the log agrees with them."""
        return index_problem(self.log, self.offset_index, self.time_index, self.size)

    # Append

    def append(self, data: Buffer, batches: Sequence[tuple[int, Offset, int]]) -> None:
        """Write batches at the end, with their index entries.

        `batches` has the size, last offset and largest timestamp of each. If the write fails, nothing has changed.
        """
        last_offset = batches[-1][1]
        if last_offset - self.base_offset > INT_MAX:
            raise SegmentOverflow(self, last_offset)
        position = self.size
        try:
            self.log.write(position, data)
        except OSError:
            # Probably the disk is full. No part of an incomplete batch may stay after the existing ones.
            self.log.truncate(position)
            raise
        largest, since_entry = self._largest or self.largest, self._bytes_since_index_entry
        interval = self.config.index_interval_bytes
        for size, last_offset, max_timestamp in batches:
            if max_timestamp > largest.timestamp:
                self._largest = largest = TimestampOffset(max_timestamp, last_offset)
            if since_entry > interval:
                self.offset_index.append(last_offset, position)
                self.time_index.append(*largest)
                since_entry = 0
                self.index_room -= 1
            position += size
            since_entry += size
        self._bytes_since_index_entry = since_entry
        self.size = position

    # Read

    def find(self, offset: Offset, probes: list[int] | None = None) -> BatchHeader | None:
        """Return the first batch that reaches `offset`: from the index entry below it, header by header."""
        return find_batch(self.log, self.offset_index, self.size, offset, probes)

    def read(
        self, start: Offset, max_bytes: int, end_position: int | None, *, at_least_one: bool, end: Offset = LONG_MAX
    ) -> tuple[LogPosition, FileSlice | None, bool] | None:
        """Find the bytes from `start` on: (position of its batch, slice, True if the first batch is incomplete).

        `end_position` is the end of the readable part, None if nothing of this segment is readable. `end` is after its
        last offset. Returns None if this segment has nothing at or after `start`.
        """
        header = self.find(start)
        if header is None:
            return None
        if not (self.base_offset <= header.base_offset and header.last_offset < end):
            # No checksum covers an offset. A reader that follows a wrong offset out of its segment would miss the next
            # segment's.
            wrong = f"offsets {header.base_offset} to {header.last_offset} between {self.base_offset} and {end}"
            raise CorruptBatch(wrong, path=self.log.path, position=header.position)
        place = LogPosition(header.base_offset, self.base_offset, header.position)
        limit = max(max_bytes, header.size) if at_least_one else max_bytes
        if limit == 0 or end_position is None:
            return place, None, False
        size = min(end_position - header.position, limit)
        return place, FileSlice(self.log, header.position, size), limit < header.size

    def upper_bound_offset(self, position: int) -> Offset | None:
        """Return an offset that no batch before this byte position reaches, or None if only the segment's end is such
        an offset."""
        entry = self.offset_index.upper_bound(position)
        return entry.offset if entry and holds(self.log, self.size, entry) else None

    def timestamp_start(self, timestamp: int, start: Offset, probes: list[int] | None = None) -> OffsetPosition:
        """Return the start of a walk for the first record at or after a timestamp."""
        return self.offset_start(max(self.time_index.lookup(timestamp, probes).offset, start))

    def offset_start(self, offset: Offset) -> OffsetPosition:
        """Return the start of a walk for an offset."""
        return trusted(self.log, self.offset_index, self.size, self.offset_index.lookup(offset))

    # Truncate and rebuild

    def truncate_to(self, offset: Offset, now_ms: int) -> int:
        """Cut the segment before the batch that reaches `offset`. Return how many bytes were cut."""
        header = self.find(offset)
        self.index_room = 0
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        self.transaction_index.truncate_to(offset)
        cut = 0
        if header is not None:
            cut = self.size - header.position
            self.log.truncate(header.position)
            # New records must not follow bytes that are to be cut here.
            self.log.sync()
            self.size = header.position
        if self.size == 0:
            self.created_ms = now_ms
            self._first_batch_timestamp = None
        self._bytes_since_index_entry = 0
        if self.max_timestamp >= 0:
            self._largest = largest_after_cut(self.log, self.offset_index, self.time_index, self.size)
        return cut

    def start_rebuild(self) -> None:
        """Empty the indexes and drop their cached values. Call `finish_rebuild` afterwards."""
        self.index_room = 0
        self.offset_index.reset()
        self.time_index.reset()
        self.transaction_index.reset()
        self._bytes_since_index_entry = 0

    def finish_rebuild(self, scan: SegmentScan, valid_bytes: int) -> int:
        """Apply the result of a scan and cut the bytes after the last valid batch. Return how many bytes were cut."""
        cut = self.size - valid_bytes
        if cut:
            self.log.truncate(valid_bytes)
            self.log.sync()
            self.size = valid_bytes
        self._largest = TimestampOffset(scan.largest_timestamp, scan.largest_offset)
        scan.note_time()
        self.offset_index.file.append(bytes(scan.offset_entries))
        self.time_index.file.append(bytes(scan.time_entries))
        # Each file is replaced as a whole, so that an existing index is right, even after a crash in between.
        self.transaction_index.rewrite()
        self.time_index.file.rewrite()
        self.offset_index.file.rewrite()
        return cut

    # Files on disk

    def seal(self, *, sync: bool = False) -> None:
        """End the appends: add the last time index entry, write out the indexes, cut off a preallocated tail."""
        self._complete_indexes(sync=sync)
        self.log.truncate(self.size)
        if sync:
            self.log.sync()
        self.release()

    def flush(self) -> None:
        """Make all files durable."""
        self.log.sync()
        self.offset_index.file.sync()
        self.time_index.file.sync()
        self.transaction_index.sync()

    def close(self) -> None:
        """Close the segment cleanly. Nothing is checked when it is opened again, so the indexes are synced here."""
        self._complete_indexes(sync=True)
        if self.config.preallocate:
            self.log.truncate(self.size)
            self.log.sync()
        self.release()

    def _complete_indexes(self, *, sync: bool = False) -> None:
        # In a segment sealed long ago, an index that the log contradicts stays unchanged.
        if self._largest is not None and self._largest.offset >= self.time_index.last().offset:
            self.time_index.append(*self._largest)
        self.transaction_index.write_out()
        self.offset_index.file.write_out(sync=sync)
        self.time_index.file.write_out(sync=sync)

    def release(self) -> None:
        """Release descriptors and index bytes. The next use opens them again."""
        self.log.release()
        self.offset_index.file.release()
        self.time_index.file.release()

    def rename(self, suffix: str) -> None:
        """Rename all files to another suffix."""
        for kind in SEGMENT_KINDS:
            target = join(self.directory, file_names.segment_file(self.base_offset, kind, suffix))
            if self._files.exists(self._path(kind)):
                self._files.replace(self._path(kind), target)
        self._set_place(self.directory, suffix)

    def moved_to(self, directory: str) -> None:
        """Record that the folder was renamed. The open file stays the same."""
        self._set_place(directory, self.suffix)

    def _set_place(self, directory: str, suffix: str) -> None:
        self.directory, self.suffix = directory, suffix
        self.log.path = self._path(file_names.LOG)
        self.offset_index.file.moved_to(self._path(file_names.OFFSET_INDEX))
        self.time_index.file.moved_to(self._path(file_names.TIME_INDEX))
        self.transaction_index.moved_to(self._path(file_names.TRANSACTION_INDEX))

    def paths(self) -> list[str]:
        return [self._path(kind) for kind in SEGMENT_KINDS]

    def remove_files(self) -> None:
        for path in self.paths():
            self._files.remove(path)

    def __repr__(self) -> str:
        return f"Segment({self.log.path}, {self.size} B)"
