"""Splits a batch that exceeds max.message.bytes of a topic into two, as Kafka's producer does.

This is rare, because the next batches are made smaller. So the records are decoded one by one.
"""

from __future__ import annotations

from tailrace.records.batch import Buffer, RecordBatch, increment_sequence
from tailrace.records.builder import BatchBuilder
from tailrace.records.record import iter_records


def split_batch(data: Buffer, level: int | None) -> tuple[bytes, bytes]:
    """Return two batches with half the records each, with consecutive sequences."""
    batch = RecordBatch(memoryview(data))
    records = list(iter_records(batch))
    middle = len(records) // 2
    halves = []
    for start, some in ((0, records[:middle]), (middle, records[middle:])):
        builder = BatchBuilder(
            codec=batch.codec,
            level=level,
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            base_sequence=increment_sequence(batch.base_sequence, start),
            transactional=batch.is_transactional,
        )
        for record in some:
            builder.append(record.timestamp, record.key, record.value, record.headers)
        halves.append(builder.build())
    return halves[0], halves[1]
