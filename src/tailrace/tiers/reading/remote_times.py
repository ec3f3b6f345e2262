"""A lookup by time in the remote store: the first record at or after a time, from an offset on.

The leader epochs are searched in order, and the segments of each by start offset. The first segment decides whose
largest timestamp reaches the target. If it is on the local disk as well, it is left to the local search.
"""

from __future__ import annotations

from functools import partial
from typing import cast

from tailrace.log.reading.timestamp_lookup import BatchSearch, FoundOffset
from tailrace.log.segments.batch_walk import parse_header
from tailrace.model.ids import Offset
from tailrace.tiers.lineage import epochs_with_records, is_within_epochs
from tailrace.tiers.reading.index_cache import IndexCache, RemoteIndexes
from tailrace.tiers.remote_partition import RemotePartition
from tailrace.tiers.remote_segment import RemoteSegment, RemoteSegmentState
from tailrace.tiers.steps import Beside, RemoteSteps
from tailrace.tiers.stores.remote_store import RemoteStore, fetch_range

_CHUNK_BYTES = 1024 * 1024


def find_remote_time(
    partition: RemotePartition, target: int, start: Offset, indexes: IndexCache, store: RemoteStore, now_ms: int
) -> RemoteSteps[FoundOffset | None]:
    """Return the first record at or after a time, or None if the local log has to be searched."""
    partition.check_ready()
    segment = _first_with(partition, target, start)
    if segment is None or segment.start_offset >= partition.log.segments.first.base_offset:
        return None
    known, now_ms = yield from indexes.get(segment, store, now_ms)
    found, _ = yield Beside(partial(_search, segment, target, start, known, store))
    return cast(FoundOffset | None, found)


def _first_with(partition: RemotePartition, target: int, start: Offset) -> RemoteSegment | None:
    """Return the first readable segment of the log with a record at or after both the time and the offset."""
    lineage = epochs_with_records(partition.epochs)
    first = partition.log.epochs.epoch_of(start)
    for epoch, _ in partition.epochs:
        if first is None or epoch < first:
            continue
        for segment in partition.cache.in_epoch(epoch):
            if (
                segment.max_timestamp_ms >= target
                and segment.end_offset >= start
                and segment.state is RemoteSegmentState.COPY_SEGMENT_FINISHED
                and is_within_epochs(segment, partition.log.log_end_offset, lineage)
            ):
                return segment
    return None


def _search(
    segment: RemoteSegment,
    target: int,
    start: Offset,
    indexes: RemoteIndexes,
    store: RemoteStore,
) -> FoundOffset | None:
    """Search a segment, on any thread."""
    earlier = indexes.times.lookup(target).offset
    position = indexes.offsets.lookup(max(earlier, start)).position
    data = b""
    inside = 0
    while position < segment.size:
        if len(data) - inside < min(_CHUNK_BYTES // 16, segment.size - position):
            data, inside = fetch_range(store, segment, position, position + _CHUNK_BYTES), 0
        header = parse_header(data, inside, position, segment.size - position)
        if header.max_timestamp >= target and header.last_offset >= start:
            batch = data[inside : inside + header.size]
            if len(batch) < header.size:
                batch = fetch_range(store, segment, position, position + header.size)
            found = BatchSearch(memoryview(batch), header, target, start, is_last=False).find()
            if found is not None:
                return found
        position += header.size
        inside += header.size
        if inside > len(data):
            data, inside = b"", 0
    return None
