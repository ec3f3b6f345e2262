"""Convert a batch of one log to a batch that a producer sends to another: the same records, without the first log's
offsets, epochs and producer.

Usually nothing is decoded: offsets, epochs and producer are in the header, and the compressed records are copied.
Records are decoded and encoded again, with the same codec, if the batch

    extends beyond the requested offsets            has gaps (compaction), which a produced batch must not have
    has log-append time                             has a delete horizon instead of its first timestamp
    is of format 0 or 1                             gets an additional header
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from tailrace.model.ids import NO_LEADER_EPOCH, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE
from tailrace.records.batch import CODEC_MASK, CRC_POSITION, HEADER, HEADER_SIZE, LOG_OVERHEAD, RecordBatch
from tailrace.records.builder import BatchBuilder
from tailrace.records.legacy import Message
from tailrace.records.record import Record, iter_records

AddHeader = Callable[[Record], tuple[str, bytes]]


class ResentBatches(NamedTuple):
    data: bytes
    records: int
    next_offset: int  # in the source log: the next offset to send
    was_decoded: bool


def as_produced(
    batch: RecordBatch | Message, start: int, end: int, add_header: AddHeader | None = None
) -> ResentBatches | None:
    """Return the part of a batch in [start, end) as a batch to produce, None if that is empty."""
    if isinstance(batch, RecordBatch) and add_header is None and _can_be_copied(batch, start, end):
        return ResentBatches(_copied(batch), batch.record_count, batch.next_offset, False)
    kept = [record for record in _records(batch) if start <= record.offset < end]
    if not kept:
        return None
    builder = BatchBuilder(codec=batch.codec)
    for record in kept:
        headers = [*record.headers, add_header(record)] if add_header is not None else record.headers
        builder.append(record.timestamp, record.key, record.value, headers)
    return ResentBatches(builder.build(), len(kept), kept[-1].offset + 1, True)


def halves(batch: ResentBatches) -> tuple[ResentBatches, ResentBatches] | None:
    """Split a batch that is too large for its receiver into two. Return None if it is a single record."""
    if batch.records < 2:
        return None
    whole = RecordBatch(memoryview(batch.data))
    records = list(iter_records(whole))
    parts = []
    for part in (records[: len(records) // 2], records[len(records) // 2 :]):
        builder = BatchBuilder(codec=whole.codec)
        for record in part:
            builder.append(record.timestamp, record.key, record.value, record.headers)
        parts.append(ResentBatches(builder.build(), len(part), batch.next_offset, True))
    return parts[0], parts[1]


def _records(batch: RecordBatch | Message) -> Iterator[Record]:
    return iter_records(batch) if isinstance(batch, RecordBatch) else iter(batch.records())


def _can_be_copied(batch: RecordBatch, start: int, end: int) -> bool:
    is_whole = start <= batch.base_offset and batch.last_offset < end
    has_holes = batch.record_count != batch.last_offset_delta + 1
    return is_whole and not has_holes and not batch.is_log_append_time and batch.delete_horizon_ms is None


def _copied(batch: RecordBatch) -> bytes:
    copy = bytearray(batch.view)
    HEADER.pack_into(
        copy,
        0,
        0,  # a produced batch starts at offset zero
        len(copy) - LOG_OVERHEAD,
        NO_LEADER_EPOCH,
        2,
        0,
        batch.attributes & CODEC_MASK,
        batch.last_offset_delta,
        batch.base_timestamp,
        batch.max_timestamp,
        NO_PRODUCER_ID,
        NO_PRODUCER_EPOCH,
        NO_SEQUENCE,
        batch.record_count,
    )
    assert len(copy) >= HEADER_SIZE
    crc = RecordBatch(memoryview(copy)).computed_crc()
    copy[CRC_POSITION : CRC_POSITION + 4] = crc.to_bytes(4, "big")
    return bytes(copy)
