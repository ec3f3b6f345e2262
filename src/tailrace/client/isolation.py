"""What a consumer may see of the batches it is sent.

Control batches (ends of transactions) are never shown. With read_committed the broker sends nothing from beyond the
last stable offset, but it does send the batches of aborted transactions, and beside them a list of those: producer and
first offset, in the order of the offsets. A transaction on the list is aborted from its first offset to the marker that
ends it, so one walk over the batches, with a set of producers, tells which to drop. No record is decoded for that; of a
control batch, the key of its only record is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import TypeAlias

from tailrace.model.ids import Offset, ProducerId
from tailrace.records.batch import RecordBatch
from tailrace.records.control import ControlType, control_type
from tailrace.records.legacy import Message
from tailrace.records.record import iter_records

Batch: TypeAlias = RecordBatch | Message  # format 2, or a message (or wrapper) of formats 0 and 1


class IsolationLevel(IntEnum):
    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


def visible_batches(
    batches: Iterable[Batch], aborted: Iterable[tuple[ProducerId, Offset]] | None = None
) -> Iterator[Batch]:
    """The batches that hold records for a consumer.

    batches and aborted (producer id, first offset) are those of one Fetch answer; without `aborted`, as for
    read_uncommitted, only control batches are dropped. Batches are passed on whole: a batch may begin before the offset
    that was asked for.
    """
    waiting = sorted(aborted or (), key=lambda transaction: transaction[1], reverse=True)  # the next one last
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
    first = next(iter_records(batch), None)  # compaction may have taken the marker's record
    return first is not None and control_type(first.key) == ControlType.ABORT


def next_offset(batch: Batch) -> Offset:
    """The offset after the batch. A wrapper has the offset of its last message."""
    return batch.next_offset if isinstance(batch, RecordBatch) else batch.offset + 1


def may_start_before(batch: Batch, end: Offset) -> bool:
    """Whether the batch has records before an offset; only what is inside a wrapper knows for sure."""
    if isinstance(batch, RecordBatch):
        return bool(batch.base_offset < end)
    return batch.is_compressed or batch.offset < end
