"""Reads a range of offsets from a partition's folder, while a broker may change its files.

The folder is listed at the start, and again if a listed file was deleted. If the first offset of the range is before
the first segment, retention has deleted records. Gaps inside the log come from the cleaner and are not an error. The
checksum of every batch with records is verified.

Tasks import this module, so it does not import the planning code.
"""

from __future__ import annotations

import errno
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
from tailrace.records.raw_batches import BatchCollector
from tailrace.spark.source.errors import DamagedLog, OffsetRangeLost, Unreadable
from tailrace.spark.source.planning.offset_ranges import OffsetRange

CHUNK_BYTES = 4 * 1024 * 1024
_ATTEMPTS = 4  # attempts with an unchanged listing that contains a missing file
_ATTEMPTS_MAX = 100  # attempts with changing listings: compaction swaps many segments one by one
_SEGMENTS_AHEAD = 8


@dataclass(frozen=True, slots=True)
class SegmentSlice:
    """A range of offsets in a partition's folder, and the aborted transactions to skip."""

    range: OffsetRange
    folder: str
    aborted: AbortedRanges
    files: Files

    def feed(self, columns: BatchCollector, *, fail_on_data_loss: bool) -> Iterator[None]:
        columns.leave_out(self.aborted)
        return feed_range(self.files, self.folder, self.range, columns, fail_on_data_loss=fail_on_data_loss)


def feed_range(
    files: Files, folder: str, wanted: OffsetRange, columns: BatchCollector, *, fail_on_data_loss: bool
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
                ends_inside = following is None or end < following
                for _ in _feed_segment(coming, base, position, end, columns, buffer, ends_inside=ends_inside):
                    yield
                position = max(position, columns.next_offset)
        except FileNotFoundError as error:
            if same == _ATTEMPTS or looks == _ATTEMPTS_MAX:
                why = f"{error.filename or folder} was deleted or replaced"
                raise Unreadable(f"{partition} cannot be read from offset {position} on: {why}") from None
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
    # The cleaner may have removed the last records of the sealed segments. The base offset of the active segment then
    # shows how far the log reaches.
    reached = max([position, *bases[-1:]])
    if reached < end and not columns.is_done and fail_on_data_loss:
        raise OffsetRangeLost(partition, position, end, f"the log in {folder} ends at {reached}")


def _segments(files: Files, folder: str) -> dict[Offset, str]:
    """Return the base offsets of the segments, in order, with the suffix of their files.

    Compaction first renames new segments to `.swap`, then old ones to `.deleted`, and finally removes the suffix. In
    between, a `.swap` is the only file with the records. But while a `.cleaned` file exists, not all are renamed, and
    the old segments are still the complete log.
    """
    try:
        parsed = [file_names.parse_segment_file(entry.name) for entry in files.entries(folder)]
    except FileNotFoundError:
        return {}  # the topic is deleted
    logs = [(base, suffix) for base, kind, suffix in filter(None, parsed) if kind == file_names.LOG]
    unfinished = min((base for base, suffix in logs if suffix == file_names.CLEANED), default=None)
    found: dict[Offset, str] = {base: suffix for base, suffix in logs if not suffix}
    for base, suffix in logs:
        if suffix == file_names.SWAP and (unfinished is None or base < unfinished):
            found[base] = suffix
    return dict(sorted(found.items()))


class _Replaced(FileNotFoundError):
    """Compaction has replaced a segment while it was opened: its size, its indexes and its log do not fit together."""


class _ComingSegments:
    """The segments of a folder. In an object store, segments that will be read completely are fetched in advance."""

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

    def is_replaced(self, segment: Segment) -> bool:
        """Return True if the log file is no longer the one that was opened."""
        path = segment.log.path
        return (self._files.size(path), self._files.modified_ms(path)) != (segment.size, segment.created_ms)

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
    coming: _ComingSegments,
    base: Offset,
    start: Offset,
    end: Offset,
    columns: BatchCollector,
    buffer: bytearray,
    *,
    ends_inside: bool,
) -> Iterator[None]:
    segment = coming.take(base)
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
    except (CorruptBatch, CorruptIndex):
        if coming.is_replaced(segment):
            raise _Replaced(errno.ENOENT, "replaced", segment.log.path) from None
        raise
    finally:
        segment.release()


def _feed_file(
    file: File, position: int, expected: int, size: int, end: Offset, columns: BatchCollector, buffer: bytearray
) -> Iterator[None]:
    """Put the batches from a position on into the columns, in chunks, until the end offset or the end of the file.

    `expected` is the position where the end offset should be reached, according to the index. It is only a hint: if
    the end offset is not reached there, the file is read further.
    """
    held = 0  # bytes of an incomplete batch of the last chunk, at the start of the buffer
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
        raise CorruptBatch(f"the batch is incomplete: it ends after {held} bytes", path=file.path, position=position)


def _larger(buffer: bytearray, path: str, position: int, size: int) -> bytearray:
    """Return a buffer for a batch that is larger than the current one."""
    needed = int.from_bytes(buffer[8:12], "big") + 12
    if needed > size - position:
        raise CorruptBatch(
            f"the batch has a length of {needed} bytes, but the file has only {size - position} more",
            path=path,
            position=position,
        )
    return buffer + bytearray(needed - len(buffer))
