"""Records of aborted transactions: for a group that reads only committed records, they are archived when acquired."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

from tailrace.log.segments.batch_walk import BatchHeader
from tailrace.log.segments.indexes.transaction_index import AbortedTransaction
from tailrace.shares.acquiring import AcquiredRecords, Span
from tailrace.shares.in_flight import RecordState
from tailrace.shares.share_partition import SharePartition

_TRANSACTIONAL, _CONTROL = 0x10, 0x20


def leave_out_aborted(
    partition: SharePartition,
    acquired: list[AcquiredRecords],
    read: Sequence[BatchHeader],
    aborted: Sequence[AbortedTransaction],
) -> list[AcquiredRecords]:
    for span in aborted_batches(read, aborted):
        slot = max(partition.floor_slot(span.base_offset), 0)
        batches = partition.batches_from(slot, span.last_offset)
        count = partition.archive(span.base_offset, span.last_offset + 1, batches, RecordState.ACQUIRED)
        partition.note_archived(count)
        acquired = [piece for one in acquired for piece in _without(one, span)]
    return acquired


def aborted_batches(read: Sequence[BatchHeader], aborted: Sequence[AbortedTransaction]) -> list[BatchHeader]:
    """Return the batches that belong to aborted transactions."""
    begins = sorted(aborted, key=attrgetter("first_offset"), reverse=True)
    producers: set[int] = set()
    found = []
    for batch in read:
        if batch.producer_id < 0:
            continue
        while begins and begins[-1].first_offset <= batch.last_offset:
            producers.add(begins.pop().producer_id)
        if batch.attributes & _CONTROL:
            # The first marker of a producer after the start of its aborted transaction is the abort marker.
            producers.discard(batch.producer_id)
        elif batch.attributes & _TRANSACTIONAL and batch.producer_id in producers:
            found.append(batch)
    return found


def _without(one: AcquiredRecords, span: Span) -> list[AcquiredRecords]:
    if one.last_offset < span.base_offset or one.first_offset > span.last_offset:
        return [one]
    pieces = []
    if one.first_offset < span.base_offset:
        pieces.append(one._replace(last_offset=span.base_offset - 1))
    if one.last_offset > span.last_offset:
        pieces.append(one._replace(first_offset=span.last_offset + 1))
    return pieces
