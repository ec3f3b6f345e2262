"""GroupWriter: writes the remaining records of a group of segments, with their indexes, as one `.cleaned` segment.

A cleaner (`cleaner.py` here, or a Spark job) provides the latest offsets, and the transactions that are open at the
start of the group. These, the group's files, the settings and the time determine the bytes. Every cleaner therefore
writes the same bytes for a group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest

from tailrace.log.compaction.cleaned_transactions import CleanedTransactions
from tailrace.log.compaction.compaction import LastRecord, LatestOffsets, SurvivingRecords
from tailrace.log.disk import file_names
from tailrace.log.disk.files import File, Files, join
from tailrace.log.segments.indexes.transaction_index import AbortedTransaction
from tailrace.log.segments.segment import SEGMENT_KINDS, Segment
from tailrace.model.ids import Offset, ProducerId
from tailrace.model.topic_config import TopicConfig
from tailrace.records.batch import LOG_OVERHEAD, PREFIX, CorruptBatch

IO_BUFFER_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class CleaningRules:
    """The rules of a round that do not depend on the records."""

    config: TopicConfig
    now_ms: int
    end_offset: Offset  # the end of the range that is cleaned
    last_records: Mapping[ProducerId, LastRecord]
    legacy_horizon_ms: int  # tombstones of formats 0 and 1 in older files are removed


class GroupWriter:
    def __init__(
        self,
        files: Files,
        rules: CleaningRules,
        latest: LatestOffsets,
        transactions: CleanedTransactions,
        aborted: Callable[[Offset, Offset], list[AbortedTransaction]],
        walk: SegmentWalk,
    ) -> None:
        self._files = files
        self._rules = rules
        self._transactions = transactions
        self._aborted = aborted
        self._walk = walk
        self.survivors = SurvivingRecords(
            latest,
            transactions=transactions,
            last_records=rules.last_records,
            end_offset=rules.end_offset,
            now_ms=rules.now_ms,
            delete_retention_ms=rules.config.delete_retention_ms,
        )
        self.bytes_read = 0
        self.bytes_written = 0

    def write(self, group: list[Segment], directory: str) -> Segment:
        """Write the remaining records of a group into a directory. If that fails, no file is left there."""
        base_offset = group[0].base_offset
        remove_cleaned(self._files, directory, base_offset)
        cleaned: Segment | None = None
        try:
            cleaned = Segment.create(
                self._files,
                directory,
                base_offset,
                self._rules.config,
                now_ms=self._rules.now_ms,
                suffix=file_names.CLEANED,
            )
            for segment, following in with_following(group):
                self._clean_into(cleaned, segment, following.base_offset if following else segment.next_offset())
            cleaned.seal()
            cleaned.flush()
            self._set_date(cleaned, self._files.modified_ms(group[-1].log.path))
        except BaseException as error:
            if cleaned is not None:
                cleaned.release()
            remove_cleaned(self._files, directory, base_offset)
            if isinstance(error, OSError) and error.filename is None:
                error.filename = cleaned_path(directory, base_offset, file_names.LOG)
            raise
        return cleaned

    def _clean_into(self, cleaned: Segment, segment: Segment, end: Offset) -> None:
        # Of the whole segment, not only of its dirty part, because the cleaned transaction index is made from them.
        self._transactions.add_aborted(self._aborted(segment.base_offset, end))
        retain_legacy_deletes = self._files.modified_ms(segment.log.path) > self._rules.legacy_horizon_ms
        take = partial(self.survivors.add, retain_legacy_deletes=retain_legacy_deletes)
        for used in self._walk(segment, 0, take):
            self.bytes_read += used
            data, batches = self.survivors.take()
            if batches:
                cleaned.append(data, batches)
                self.bytes_written += len(data)
            for transaction in self._transactions.take_retained():
                cleaned.transaction_index.append(transaction)

    def _set_date(self, cleaned: Segment, modified_ms: int) -> None:
        """Give the segment the age of those that it replaces. Formats 0 and 1 take the age of a tombstone from it, and
        retention may use it too."""
        for path in (cleaned.log.path, cleaned.offset_index.file.path, cleaned.time_index.file.path):
            self._files.set_modified_ms(path, modified_ms)


def cleaned_path(directory: str, base_offset: Offset, kind: str) -> str:
    return join(directory, file_names.segment_file(base_offset, kind, file_names.CLEANED))


def remove_cleaned(files: Files, directory: str, base_offset: Offset) -> None:
    for kind in SEGMENT_KINDS:
        files.remove(cleaned_path(directory, base_offset, kind))


def with_following(segments: list[Segment]) -> Iterator[tuple[Segment, Segment | None]]:
    """Yield each segment with the next one, or with None after the last."""
    return zip_longest(segments, segments[1:])


class SegmentWalk:
    """Passes a segment's bytes to a function, some whole batches at a time, and closes its files afterwards."""

    def __init__(self, io_buffer_bytes: int = IO_BUFFER_BYTES, check_stop: Callable[[], None] = lambda: None) -> None:
        self._chunks = _Chunks(io_buffer_bytes)
        self._check_stop = check_stop  # raises to stop the walk

    def __call__(self, segment: Segment, start: int, take: Callable[[bytearray, int, int], int]) -> Iterator[int]:
        """Walk from byte `start` on. `take` returns how many bytes it used, and each step yields that number."""
        position = start
        try:
            while position < segment.size:
                self._check_stop()
                data, size = self._chunks.read(segment.log, position, segment.size)
                try:
                    used = take(data, 0, size)
                except CorruptBatch as error:
                    raise error.at(segment.log.path, position + (error.position or 0)) from None
                position += used
                yield used
        finally:
            segment.release()
        self._chunks.shrink()


class _Chunks:
    """Reads a file one buffer at a time. The buffer grows for a batch that does not fit."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._buffer = bytearray(size)

    def read(self, file: File, position: int, end: int) -> tuple[bytearray, int]:
        """Return the buffer, and how many bytes of it are filled from `position` on: at least one whole batch."""
        filled = self._fill(file, position, end)
        if filled < LOG_OVERHEAD:
            raise CorruptBatch(
                f"{filled} bytes follow the last batch, fewer than a batch header", path=file.path, position=position
            )
        size = PREFIX.unpack_from(self._buffer)[1] + LOG_OVERHEAD
        if size > end - position:
            reason = f"batch length gives {size} bytes, but only {end - position} follow"
            raise CorruptBatch(reason, path=file.path, position=position)
        if size > filled:
            self._buffer = bytearray(size)
            filled = self._fill(file, position, end)
        return self._buffer, filled

    def _fill(self, file: File, position: int, end: int) -> int:
        wanted = min(len(self._buffer), end - position)
        got = file.read_into(position, memoryview(self._buffer)[:wanted])
        if got < wanted:
            raise CorruptBatch(f"the file ends after {got} of {wanted} bytes", path=file.path, position=position)
        return got

    def shrink(self) -> None:
        if len(self._buffer) > self._size:
            self._buffer = bytearray(self._size)
