"""Record batches for tests, as a producer or coordinator sends them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tailrace.log.partition_log import PartitionLog
from tailrace.records.batch import Codec
from tailrace.records.builder import BatchBuilder
from tailrace.records.control_records import ControlType, EndTransactionMarker, build_end_marker

Value = bytes | None | tuple[bytes | None, bytes | None]  # a value, or a key and a value


def batch(
    *values: Value,
    timestamp: int | Iterable[int] = 1_000,
    codec: Codec = Codec.NONE,
    producer_id: int = -1,
    producer_epoch: int = -1,
    sequence: int = -1,
    transactional: bool = False,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> bytearray:
    """Return one v2 batch of these values, with one timestamp for all or one for each."""
    builder = BatchBuilder(
        base_offset=base_offset,
        codec=codec,
        producer_id=producer_id,
        producer_epoch=0 if producer_id >= 0 and producer_epoch < 0 else producer_epoch,
        base_sequence=sequence,
        transactional=transactional,
        leader_epoch=leader_epoch,
    )
    timestamps = [timestamp] * len(values) if isinstance(timestamp, int) else list(timestamp)
    for value, moment in zip(values, timestamps, strict=True):
        key, content = value if isinstance(value, tuple) else (None, value)
        builder.append(moment, key, content)
    return bytearray(builder.build())


def end_marker(
    producer_id: int, *, commit: bool, producer_epoch: int = 0, timestamp: int = 1_000, coordinator_epoch: int = 0
) -> bytearray:
    """Return the control batch that ends a producer's transaction."""
    kind = ControlType.COMMIT if commit else ControlType.ABORT
    return bytearray(
        build_end_marker(
            EndTransactionMarker(kind, coordinator_epoch),
            timestamp=timestamp,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
        )
    )


class StoredBatch(NamedTuple):
    """A batch as stored in a log."""

    base_offset: int
    next_offset: int
    data: bytes


def stored_batches(log: PartitionLog) -> Iterator[StoredBatch]:
    """Yield every batch in the log's segments, also those before the log start."""
    for segment in log.segments:
        for header, view in segment.batches():
            yield StoredBatch(header.base_offset, header.next_offset, bytes(view))
