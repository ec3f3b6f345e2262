"""Reading a range of offsets out of a partition's folder, while files may come and go.

The folder is listed when reading begins, and again when a file that was listed is gone. What matters is offsets: a
range whose first offset lies below the first segment has lost records to retention; one that a cleaner has thinned out
has only gaps. Every batch that gives records is checked against its checksum.

This is what a task imports: it stays apart from all that planning needs.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, zip_longest

from tailrace.log.disk import file_names
from tailrace.log.disk.files import File, Files, ReadsAhead
from tailrace.log.segments.indexes.index_file import CorruptIndex
from tailrace.log.segments.segment import Segment
from tailrace.model.ids import Offset
from tailrace.model.topic_config import TopicConfig
from tailrace.records.batch import CorruptBatch
from tailrace.records.columnar.columns import AbortedRanges
from tailrace.records.raw_batches import BatchTaker
from tailrace.spark.source.errors import DamagedLog, OffsetRangeLost, Unreadable
from tailrace.spark.source.planning.offset_ranges import OffsetRange

CHUNK_BYTES = 4 * 1024 * 1024
_LOOKS = 4  # at a folder that stays as it is, and lacks a file that it lists
_LOOKS_MAX = 100  # at one that is another each time: compaction swaps many segments one by one
_SEGMENTS_AHEAD = 8


@dataclass(frozen=True, slots=True)
class SegmentSlice:
    """A range of offsets in a partition's folder, and the aborted transactions in it that are to be left out."""

    range: OffsetRange
    folder: str
    aborted: AbortedRanges
    files: Files

    def feed(self, columns: BatchTaker, *, fail_on_data_loss: bool) -> Iterator[None]:
        columns.aborted = self.aborted
        return feed_range(self.files, self.folder, self.range, columns, fail_on_data_loss=fail_on_data_loss)


def feed_range(
    files: Files, folder: str, wanted: OffsetRange, columns: BatchTaker, *, fail_on_data_loss: bool
) -> Iterator[None]:
    partition, position, end = wanted
    buffer = bytearray(CHUNK_BYTES)
    looks = same = 0
    seen: dict[Offset, str] | None = None
    while True:
        suffixes = _segments(files, folder)
        looks, same, seen = looks + 1, same + 1 if suffixes == seen else 1, suffixes
        bases = list(suffixes)
        slot = bisect_right(bases, position) - 1
        if slot < 0:
            first = min(bases[0], end) if bases else end
            if fail_on_data_loss:
                why = f"the first segment in {folder} starts at {bases[0]}" if bases else f"{folder} has no segments"
                raise OffsetRangeLost(partition, position, first, why)
            position, slot = first, 0
            columns.skip_to(position)
        coming = _ComingSegments(files, folder, suffixes, end)
        try:
            for base, following in zip_longest(bases[slot:], bases[slot + 1 :]):
                if base >= end or position >= end or columns.is_done:
                    break
                segment = coming.take(base)
                ends_inside = following is None or end < following
                for _ in _feed_segment(segment, position, end, columns, buffer, coming, ends_inside=ends_inside):
                    yield
                position = max(position, columns.next_offset)
        except FileNotFoundError as error:
            if same == _LOOKS or looks == _LOOKS_MAX:
                raise Unreadable(
                    f"{partition} cannot be read from offset {position} on: {error.filename or folder} is gone"
                ) from None
            position = max(position, columns.next_offset)
            continue
        except CorruptBatch as error:
            where = f"{error.path or folder} at position {error.position}"
            raise DamagedLog(partition, max(position, columns.next_offset), where, error.reason) from None
        except CorruptIndex as error:
            raise DamagedLog(partition, position, error.path, str(error)) from None
        except OSError as error:
            raise Unreadable(
                f"{partition} cannot be read from offset {position} on: {error.filename or folder}: {error.strerror}"
            ) from None
        finally:
            coming.release()
        break
    # The cleaner may have taken the last records of all sealed segments: the active one tells where the log ends.
    reached = max([position, *bases[-1:]])
    if reached < end and not columns.is_done and fail_on_data_loss:
        raise OffsetRangeLost(partition, position, end, f"the log in {folder} ends at {reached}")


def _segments(files: Files, folder: str) -> dict[Offset, str]:
    """The base offsets of the segments, in order, with the suffix of their files.

    Compaction first renames new segments to `.swap`, then old ones to `.deleted`, and last takes the suffix off: in
    between a `.swap` is the only file that has the records. Until all are renamed, though, a `.cleaned` is there and
    the old segments are still the whole log.
    """
    try:
        parsed = [file_names.parse_segment_file(entry.name) for entry in files.entries(folder)]
    except FileNotFoundError:
        return {}  # the topic was deleted
    logs = [(base, suffix) for base, kind, suffix in filter(None, parsed) if kind == file_names.LOG]
    unfinished = min((base for base, suffix in logs if suffix == file_names.CLEANED), default=None)
    found: dict[Offset, str] = {base: suffix for base, suffix in logs if not suffix}
    for base, suffix in logs:
        if suffix == file_names.SWAP and (unfinished is None or base < unfinished):
            found[base] = suffix
    return dict(sorted(found.items()))


class _ComingSegments:
    """The segments of a folder. Where bytes are far away, those that will be read whole are asked for in advance."""

    def __init__(self, files: Files, folder: str, suffixes: dict[Offset, str], end: Offset) -> None:
        self._files = files
        self._folder = folder
        self._suffixes = suffixes
        self._end = end
        self._announced: dict[Offset, Segment] = {}

    def take(self, base: Offset) -> Segment:
        return self._announced.pop(base, None) or self._open(base)

    def _open(self, base: Offset) -> Segment:
        suffix = self._suffixes[base]
        return Segment.open(self._files, self._folder, base, TopicConfig(), suffix=suffix, read_only=True)

    def announce_after(self, base: Offset) -> None:
        bases = list(self._suffixes)
        slot = bisect_right(bases, base)
        for later, following in pairwise(bases[slot : slot + _SEGMENTS_AHEAD + 1]):
            if following > self._end:
                break
            if later not in self._announced:
                segment = self._announced[later] = self._open(later)
                if isinstance(segment.log, ReadsAhead):
                    segment.log.will_read(0, segment.size)

    def release(self) -> None:
        for segment in self._announced.values():
            segment.release()
        self._announced.clear()


def _feed_segment(
    segment: Segment,
    start: Offset,
    end: Offset,
    columns: BatchTaker,
    buffer: bytearray,
    coming: _ComingSegments,
    *,
    ends_inside: bool,
) -> Iterator[None]:
    try:
        position = 0
        if start > segment.base_offset:
            header = segment.find(start)
            if header is None:
                return
            position = header.position
        expected = (segment.offset_index.end_position(end) if ends_inside else None) or segment.size
        if isinstance(segment.log, ReadsAhead):
            segment.log.will_read(position, expected)
            coming.announce_after(segment.base_offset)
        yield from _feed_file(segment.log, position, expected, segment.size, end, columns, buffer)
    finally:
        segment.release()


def _feed_file(
    file: File, position: int, expected: int, size: int, end: Offset, columns: BatchTaker, buffer: bytearray
) -> Iterator[None]:
    """Put the batches from a byte position on into the columns, chunk by chunk, until an offset or the file's size.

    It is expected that the offset comes before some byte. That is a hint, as all that an index says: no more is read
    than up to there, unless the offset has then not come.
    """
    held = 0  # bytes of a batch that the last chunk cut short, at the start of the buffer
    while position + held < size and not columns.is_done and columns.next_offset < end:
        until = expected if position + held < expected else size
        wanted = min(len(buffer) - held, until - position - held)
        got = file.read_into(position + held, memoryview(buffer)[held : held + wanted])
        held += got
        taken = 0
        try:
            while True:
                taken = columns.put_batches(buffer, taken, held)
                if not columns.is_full:
                    break
                yield
        except CorruptBatch as error:
            raise error.at(file.path, position + (error.position or 0)) from None
        if columns.is_done or columns.next_offset >= end:
            return
        if got == 0:
            break
        if taken == 0 and held == len(buffer):
            buffer = _larger(buffer, file.path, position, size)
            continue
        buffer[: held - taken] = buffer[taken:held]
        position += taken
        held -= taken
    if held and not columns.is_done and columns.next_offset < end:
        raise CorruptBatch(f"a batch is cut short after {held} bytes", path=file.path, position=position)


def _larger(buffer: bytearray, path: str, position: int, size: int) -> bytearray:
    """A buffer for a batch that is larger than this one."""
    needed = int.from_bytes(buffer[8:12], "big") + 12
    if needed > size - position:
        raise CorruptBatch(f"batch claims {needed} bytes, {size - position} are there", path=path, position=position)
    return buffer + bytearray(needed - len(buffer))
