"""Isolation levels: the fetched batches that a consumer may see.

Control batches (transaction markers) are always hidden. With read_committed the broker sends no batches after the last
stable offset. It does send the batches of aborted transactions, with a list of those transactions: producer id and
first offset, ordered by offset. A transaction on the list is aborted from its first offset to its abort marker. So one
pass over the batches, with a set of producer ids, finds the batches to drop. No record is decoded for that, except the
key of a marker.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import TypeAlias

from tailrace.model.ids import Offset, ProducerId
from tailrace.records.batch import RecordBatch
from tailrace.records.control_records import ControlType, control_type
from tailrace.records.legacy import Message
from tailrace.records.record import iter_records

Batch: TypeAlias = RecordBatch | Message  # format 2, or a message (or wrapper) of formats 0 and 1


class IsolationLevel(IntEnum):
    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


def visible_batches(
    batches: Iterable[Batch], aborted: Iterable[tuple[ProducerId, Offset]] | None = None
) -> Iterator[Batch]:
    """Yield the batches with records for a consumer.

    `batches` and `aborted` (producer id, first offset) come from one Fetch response. Without `aborted`, as for
    read_uncommitted, only control batches are dropped. Batches are passed on whole: a batch may start before the
    requested offset.
    """
    waiting = sorted(
        aborted or (), key=lambda transaction: transaction[1], reverse=True
    )  # in reverse, so that pop() returns the next one
    aborting: set[ProducerId] = set()
    for batch in batches:
        if not isinstance(batch, RecordBatch):
            yield batch
            continue
        while waiting and waiting[-1][1] <= batch.last_offset:
            aborting.add(waiting.pop()[0])
        if batch.is_control:
            if batch.producer_id in aborting and _is_abort_marker(batch):
                aborting.remove(batch.producer_id)
        elif not (batch.is_transactional and batch.producer_id in aborting):
            yield batch


def _is_abort_marker(batch: RecordBatch) -> bool:
    first = next(iter_records(batch), None)  # compaction may have removed the marker's record
    return first is not None and control_type(first.key) == ControlType.ABORT


def next_offset(batch: Batch) -> Offset:
    """Return the offset after the batch. A wrapper message has the offset of its last message."""
    return batch.next_offset if isinstance(batch, RecordBatch) else batch.offset + 1


def may_start_before(batch: Batch, end: Offset) -> bool:
    """Return True if the batch may have records before `end`. A compressed wrapper must be decoded to be sure."""
    if isinstance(batch, RecordBatch):
        return bool(batch.base_offset < end)
    return batch.is_compressed or batch.offset < end
