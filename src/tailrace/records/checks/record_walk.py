"""The records of a produced batch, walked once, in bounded memory: decompressed piece by piece, nothing kept."""

from __future__ import annotations

from tailrace.records import kernels
from tailrace.records.batch import Buffer, Codec, RecordBatch
from tailrace.records.checks.record_rules import RECORD_ERRORS_MAX, RecordFacts, RecordRules
from tailrace.records.codecs.decompression import decompressed_pieces
from tailrace.records.record import batch_codec


def walk_batch(
    batch: RecordBatch, codec: Codec, rules: RecordRules, *, check_sizes: bool, max_size: int
) -> kernels.RecordWalk:
    """Return what is known of all records together. Raise RecordsRefused if a rule refuses one of them.

    Raises CorruptBatch unless the records are what the header claims, and DecompressionFailed unless they can be
    decompressed to at most `max_size` bytes.
    """
    append_time = batch.max_timestamp if batch.is_log_append_time else None
    walk = kernels.RecordWalk(
        batch.record_count,
        batch.base_timestamp,
        check_sizes,
        rules.needs_keys,
        *rules.timestamp_bounds(append_time),
        RECORD_ERRORS_MAX,
    )
    _feed(walk, batch, codec, max_size)
    rules.check(
        (
            RecordFacts(index, batch.base_offset + delta, timestamp if append_time is None else append_time, has_key)
            for index, delta, timestamp, has_key in walk.found
        ),
        batch.is_log_append_time,
    )
    return walk


def walk_payload(batch: RecordBatch) -> kernels.RecordWalk:
    """Return what is known of all records together; raise CorruptBatch unless they are what the header claims."""
    walk = kernels.RecordWalk(batch.record_count, batch.base_timestamp, True)
    _feed(walk, batch, batch_codec(batch), None)
    return walk


def _feed(walk: kernels.RecordWalk, batch: RecordBatch, codec: Codec, max_size: int | None) -> None:
    rest: Buffer = b""
    for piece in decompressed_pieces(codec, batch.payload, max_size=max_size):
        data = bytes(rest) + piece if rest else piece
        used = walk.feed(data, False)
        rest = bytes(data[used:])
    walk.feed(rest, True)
