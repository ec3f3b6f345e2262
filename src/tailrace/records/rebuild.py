"""A batch written again with some of its records: what compaction does to a batch that it does not keep as it is.

Base offset and last offset stay, even if the records there are gone: offsets never move, and the last sequence number
of the producer must not be forgotten. The codec stays too, at its default level.
"""

from __future__ import annotations

from tailrace.records import kernels
from tailrace.records.batch import Buffer, RecordBatch
from tailrace.records.builder import BatchBuilder
from tailrace.records.record import TimestampType, uncompressed_payload


def rebuild_batch(
    batch: RecordBatch, keep: Buffer, *, payload: Buffer | None = None, delete_horizon_ms: int | None = None
) -> bytes:
    """The batch with only those records whose byte in `keep` is not zero; nothing at all if there are none.

    `payload` is the records' bytes where the caller has decompressed them already. The delete horizon is the one the
    new batch shall have; None leaves it without, so give the old one to keep it.
    """
    if payload is None:
        payload = uncompressed_payload(batch)
    append_time = batch.max_timestamp if batch.is_log_append_time else None
    builder = BatchBuilder(
        base_offset=batch.base_offset,
        codec=batch.codec,
        timestamp_type=TimestampType(batch.is_log_append_time),
        log_append_time_ms=batch.max_timestamp,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        transactional=batch.is_transactional,
        control=batch.is_control,
        leader_epoch=batch.leader_epoch,
        delete_horizon_ms=delete_horizon_ms,
    )
    records, base_timestamp, max_timestamp, count = kernels.rewrite_records(
        bytes(payload), batch.record_count, keep, batch.base_timestamp, append_time, delete_horizon_ms
    )
    builder.append_encoded(records, count, base_timestamp, max_timestamp, batch.last_offset)
    return builder.build()
