"""A single walk over the records of a produced batch in bounded memory: records are decompressed piece by piece."""

from __future__ import annotations

from tailrace.records.batch import Buffer, Codec, RecordBatch
from tailrace.records.checks import check_kernels
from tailrace.records.checks.record_rules import RECORD_ERRORS_MAX, RecordFacts, RecordRules
from tailrace.records.codecs.decompression import decompressed_pieces
from tailrace.records.record import batch_codec


def walk_batch(
    batch: RecordBatch, codec: Codec, rules: RecordRules, *, check_sizes: bool, max_size: int
) -> check_kernels.RecordWalk:
    """Return the summary of all records. Raise RecordsRefused if a rule refuses one of them.

    Raises CorruptBatch if the records do not match the header, and DecompressionFailed if they cannot be decompressed
    to at most `max_size` bytes.
    """
    append_time = batch.max_timestamp if batch.is_log_append_time else None
    walk = check_kernels.RecordWalk(
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


def walk_payload(batch: RecordBatch) -> check_kernels.RecordWalk:
    """Return the summary of all records. Raise CorruptBatch if they do not match the header."""
    walk = check_kernels.RecordWalk(batch.record_count, batch.base_timestamp, True)
    _feed(walk, batch, batch_codec(batch), None)
    return walk


def _feed(walk: check_kernels.RecordWalk, batch: RecordBatch, codec: Codec, max_size: int | None) -> None:
    rest: Buffer = b""
    for piece in decompressed_pieces(codec, batch.payload, max_size=max_size):
        data = bytes(rest) + piece if rest else piece
        used = walk.feed(data, False)
        rest = bytes(data[used:])
    walk.feed(rest, True)
