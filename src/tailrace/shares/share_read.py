"""The batches in a read, and the part of its bytes that contains the acquired records."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from operator import attrgetter

from tailrace.log.segments.batch_walk import BatchHeader, walk_headers
from tailrace.log.segments.position import FileSlice
from tailrace.shares.acquiring import AcquiredRecords

_BASE = attrgetter("base_offset")


def batches_of(found: FileSlice, fetch_offset: int, new_from: int, max_records: int) -> list[BatchHeader]:
    """Return the batches in a slice, but at most `max_records` from the first new record on.

    A message of an old format is known by its last offset. Offsets between it and the message before count to it.
    """
    enough = max(new_from, fetch_offset) + max_records
    end = found.position + found.size
    batches: list[BatchHeader] = []
    for header in walk_headers(found.file, found.position, found.file.size()):
        if header.position + header.size > end:
            break  # the last batch is incomplete
        if batches and header.base_offset > enough:
            break
        if header.magic < 2:
            first = batches[-1].last_offset + 1 if batches else min(fetch_offset, header.last_offset)
            header = header._replace(base_offset=first)
        if not batches:
            enough = max(enough, header.base_offset + max_records)
        batches.append(header)
        if header.position + header.size == end:
            break
    return batches


def slice_of(found: FileSlice, batches: Sequence[BatchHeader], acquired: Sequence[AcquiredRecords]) -> FileSlice:
    """Return the bytes from the batch with the first acquired record to the batch with the last."""
    first = max(bisect_right(batches, acquired[0].first_offset, key=_BASE) - 1, 0)
    last = max(bisect_right(batches, acquired[-1].last_offset, key=_BASE) - 1, first)
    begin, end = batches[first].position, batches[last].position + batches[last].size
    return FileSlice(found.file, begin, end - begin)
