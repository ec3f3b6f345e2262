"""Writing a cleaned segment: what stays of a group of segments, with its indexes, as one `.cleaned` segment.

Whoever cleans (`cleaner.py` here, a Spark job elsewhere) knows the latest offsets and the transactions that are open
where the group starts; from these, the group's files, the settings and the time follow the bytes. So the same group is
written the same way wherever it is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest

from tailrace.log.compaction.cleaned_transactions import CleanedTransactions
from tailrace.log.compaction.compaction import LastRecord, LatestOffsets, Survivors
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
    """What decides about records besides the records themselves, for a whole round."""

    config: TopicConfig
    now_ms: int
    end_offset: Offset  # where the range ends that is cleaned at all
    last_records: Mapping[ProducerId, LastRecord]
    legacy_horizon_ms: int  # tombstones of formats 0 and 1 in files older than that go


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
        self.survivors = Survivors(
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
        """Write what stays of a group into a directory; nothing is left of it there if that fails."""
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
        # Of the whole segment, not only of its dirty part: the cleaned transaction index is made from these.
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
        """As old as what it replaces: formats 0 and 1 know the age of a tombstone from it, and retention may too."""
        for path in (cleaned.log.path, cleaned.offset_index.file.path, cleaned.time_index.file.path):
            self._files.set_modified_ms(path, modified_ms)


def cleaned_path(directory: str, base_offset: Offset, kind: str) -> str:
    return join(directory, file_names.segment_file(base_offset, kind, file_names.CLEANED))


def remove_cleaned(files: Files, directory: str, base_offset: Offset) -> None:
    for kind in SEGMENT_KINDS:
        files.remove(cleaned_path(directory, base_offset, kind))


def with_following(segments: list[Segment]) -> Iterator[tuple[Segment, Segment | None]]:
    """Each segment with the one after it; None after the last."""
    return zip_longest(segments, segments[1:])


class SegmentWalk:
    """Gives a segment's bytes, some whole batches at a time, to whoever takes them."""

    def __init__(self, io_buffer_bytes: int = IO_BUFFER_BYTES, go_on: Callable[[], None] = lambda: None) -> None:
        self._chunks = _Chunks(io_buffer_bytes)
        self._go_on = go_on  # raises where the walk is to end

    def __call__(self, segment: Segment, start: int, take: Callable[[bytearray, int, int], int]) -> Iterator[int]:
        """From byte `start` on; `take` says how much it took, and so does each step."""
        position = start
        while position < segment.size:
            self._go_on()
            data, size = self._chunks.read(segment.log, position, segment.size)
            try:
                used = take(data, 0, size)
            except CorruptBatch as error:
                raise error.at(segment.log.path, position + (error.position or 0)) from None
            position += used
            yield used
        self._chunks.shrink()


class _Chunks:
    """Reads a file a buffer at a time; the buffer grows for a batch that does not fit."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._buffer = bytearray(size)

    def read(self, file: File, position: int, end: int) -> tuple[bytearray, int]:
        """The buffer and how much of it is filled, from `position` on: one whole batch at least."""
        filled = self._fill(file, position, end)
        if filled < LOG_OVERHEAD:
            raise CorruptBatch(
                f"{filled} bytes are left, fewer than a batch's start", path=file.path, position=position
            )
        size = PREFIX.unpack_from(self._buffer)[1] + LOG_OVERHEAD
        if size > end - position:
            reason = f"batch claims {size} bytes, {end - position} are there"
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
