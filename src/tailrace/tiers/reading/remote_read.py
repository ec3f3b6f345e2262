"""A read of the records from an offset on that is only in the remote store.

    1. The leader epoch of the offset and the cache of segments give the segment.
    2. Its offset index, from the index cache or the store, gives a position before the offset.
    3. The store returns the bytes from there. The first batch that reaches the offset begins the result.
    4. For read_committed, the transaction indexes of this segment, of later remote ones and of local ones are searched.

The result ends where the limit ends, also within a batch, as for a local read. If no batch of the segment reaches the
offset, the next segment is read.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from tailrace.log.reading.log_read import OffsetOutOfRange
from tailrace.log.segments.batch_walk import BatchHeader, parse_header
from tailrace.log.segments.indexes.transaction_index import AbortedTransaction
from tailrace.model.ids import Offset
from tailrace.records.batch import HEADER_SIZE, LOG_OVERHEAD, PREFIX, CorruptBatch
from tailrace.tiers.reading.index_cache import IndexCache, RemoteIndexes
from tailrace.tiers.remote_partition import RemotePartition
from tailrace.tiers.remote_segment import RemoteSegment
from tailrace.tiers.steps import Beside, RemoteSteps
from tailrace.tiers.stores.remote_store import RemoteStore, fetch_range

_WALK_BYTES = 64 * 1024  # what is read beyond the limit, because the index is sparse
_SEGMENTS_AT_MOST = 1_000  # without the offset; a segment of a topic that was compacted before may have no later record


class RemoteAsk(NamedTuple):
    """One partition of a fetch: where to read, and how much."""

    offset: Offset
    max_bytes: int
    at_least_one: bool  # return one batch even if it is larger than `max_bytes`
    wants_aborted: bool


class RemoteRecords(NamedTuple):
    records: bytes
    aborted: list[AbortedTransaction] | None
    size: int  # of the segment's bytes that were read


class _Found(NamedTuple):
    indexes: RemoteIndexes
    first: BatchHeader | None
    data: bytes  # from the first batch on


def read_remote(
    partition: RemotePartition, ask: RemoteAsk, indexes: IndexCache, store: RemoteStore, now_ms: int
) -> RemoteSteps[RemoteRecords]:
    """Return the records from an offset on. Raise OffsetOutOfRange if the remote store does not have them."""
    partition.check_ready()
    segment = _segment_at(partition, ask.offset)
    if segment is None:
        log = partition.log
        raise OffsetOutOfRange(partition.key, ask.offset, log.log_start_offset, log.log_end_offset)
    for _ in range(_SEGMENTS_AT_MOST):
        known, now_ms = yield from indexes.get(segment, store, now_ms)
        found, now_ms = yield Beside(partial(_read_segment, segment, ask, known, store))
        if found.first is not None:
            break
        following = _segment_at(partition, segment.end_offset + 1)
        if following is None:
            break
        segment = following
    if found.first is None or not found.data:
        return RemoteRecords(b"", [] if ask.wants_aborted else None, 0)
    aborted = None
    if ask.wants_aborted:
        bound = found.indexes.offsets.upper_bound(found.first.position + len(found.data))
        end = segment.end_offset + 1 if bound is None else bound.offset
        aborted = yield from _aborted(partition, segment, (found.first.base_offset, end), indexes, store, now_ms)
    return RemoteRecords(found.data, aborted, len(found.data))


def _segment_at(partition: RemotePartition, offset: Offset) -> RemoteSegment | None:
    epoch = partition.log.epochs.epoch_of(offset)
    return None if epoch is None else partition.cache.find(epoch, offset)


def _read_segment(segment: RemoteSegment, ask: RemoteAsk, indexes: RemoteIndexes, store: RemoteStore) -> _Found:
    """Read the bytes from the batch on that reaches the offset, on any thread."""
    start = indexes.offsets.lookup(ask.offset).position
    limit = max(ask.max_bytes, 0)
    data = fetch_range(store, segment, start, start + min(limit, segment.size) + _WALK_BYTES)
    position = 0
    while True:
        if len(data) - position < HEADER_SIZE and start + len(data) < segment.size:
            # The walk was longer than expected: continue after it.
            start, position, data = start + position, 0, fetch_range(
                store, segment, start + position, start + position + min(limit, segment.size) + _WALK_BYTES
            )  # fmt: skip
        if position >= len(data):
            return _Found(indexes, None, b"")
        try:
            header = parse_header(data, position, start + position, segment.size - start - position)
        except CorruptBatch as error:
            raise CorruptBatch(
                error.reason, path=f"remote segment {segment.segment_id.text}", position=start + position
            ) from None
        if header.last_offset >= ask.offset:
            break
        if position + header.size > len(data):
            start, position, data = start + position + header.size, 0, b""
        else:
            position += header.size
    wanted = max(limit, header.size) if ask.at_least_one else limit
    if header.size > wanted:
        return _Found(indexes, header, b"")
    found = data[position : position + wanted]
    missing = min(wanted, segment.size - header.position) - len(found)
    if missing > 0:
        after = header.position + len(found)
        found += fetch_range(store, segment, after, after + missing)
    return _Found(indexes, header, found)


def whole_batches_size(records: bytes) -> int:
    """Return the size of the whole batches in records, whose last batch may be incomplete."""
    position = 0
    while position + LOG_OVERHEAD <= len(records):
        following = position + LOG_OVERHEAD + PREFIX.unpack_from(records, position)[1]
        if not position < following <= len(records):
            break
        position = following
    return position


def _aborted(
    partition: RemotePartition,
    segment: RemoteSegment,
    window: tuple[Offset, Offset],
    indexes: IndexCache,
    store: RemoteStore,
    now_ms: int,
) -> RemoteSteps[list[AbortedTransaction]]:
    """Return the aborted transactions that overlap a range of offsets, from both tiers, each once."""
    found: dict[AbortedTransaction, None] = {}
    following: RemoteSegment | None = segment
    while following is not None:
        if not following.txn_index_empty:
            known, now_ms = yield from indexes.get(following, store, now_ms)
            some, is_complete = known.transactions.collect(*window)
            found.update(dict.fromkeys(some))
            if is_complete:
                return list(found)
        following = _next_with_transactions(partition, following.end_offset + 1)
    segments = partition.log.segments
    found.update(dict.fromkeys(segments.aborted_transactions(segments.first.base_offset, *window)))
    return list(found)


def _next_with_transactions(partition: RemotePartition, offset: Offset) -> RemoteSegment | None:
    """Return the first segment at or after an offset that may have a transaction index."""
    first = partition.log.epochs.epoch_of(offset)
    if first is None:
        return None
    for epoch, start in partition.epochs:
        if epoch >= first:
            found = partition.cache.next_with_transactions(epoch, max(start, offset))
            if found is not None:
                return found
    return None
