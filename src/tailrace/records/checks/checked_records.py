"""CheckedRecords: produced records that have been checked and have no offset yet.

They are the result of all checks that do not need the log. Any thread can make them. The log's `place` accepts checked
and unchecked records. `check_cost` estimates the work of the checks.
"""

from __future__ import annotations

from copy import copy
from typing import Final, NamedTuple

from tailrace.model.errors import KafkaError
from tailrace.model.ids import NO_TIMESTAMP
from tailrace.model.topic_config import TopicConfig
from tailrace.records.batch import (
    CODEC_MASK,
    CODEC_POSITION,
    HEADER_SIZE,
    MAGIC_POSITION,
    Buffer,
    Codec,
    RecordBatch,
)
from tailrace.records.codecs import codec_kernels
from tailrace.records.codecs.compression import topic_codec

LOOP_COST_MAX: Final = 4 << 20  # checks of this cost take less than 20 ms

# The largest size to which a byte can decompress. A small block of lz4 or snappy costs as much as a few hundred bytes.
_COST_PER_BYTE: Final = {Codec.NONE: 1, Codec.GZIP: 1_032, Codec.SNAPPY: 255, Codec.LZ4: 255, Codec.ZSTD: 16}
_OLD_FORMAT_COST: Final = 4_096  # per byte: each message becomes an object
_REBUILD_COST: Final = 256  # a batch that is compressed again, with the slowest level that a topic may have
PLAIN_BYTES_MAX: Final = LOOP_COST_MAX // _REBUILD_COST  # uncompressed batches of this size may be checked on the loop


class CheckedRecords(NamedTuple):
    """One batch that passed all checks and has no offset yet, or the reason for its refusal."""

    size: int  # as sent by the client
    batch: RecordBatch | None  # None if there is nothing to append
    max_timestamp: int = NO_TIMESTAMP
    log_append_time_ms: int = NO_TIMESTAMP
    records_converted: int = 0
    size_may_have_changed: bool = False
    refusal: KafkaError | None = None

    def accepted(self) -> RecordBatch | None:
        """Return the batch, None if there is nothing to append. Raise the refusal if there is one."""
        if self.refusal is not None:
            # A copy, because the traceback of a raised error refers to all callers, and they to these records.
            raise copy(self.refusal)
        return self.batch


def check_cost(records: Buffer, config: TopicConfig) -> int:
    """Return an upper bound of the cost of checking records, in bytes of uncompressed records to walk."""
    size = len(records)
    if not HEADER_SIZE <= size <= config.max_message_bytes:
        return size  # not a batch, or refused because of its size
    cost = walk_cost(records)
    codec = records[CODEC_POSITION] & CODEC_MASK
    is_kept = records[MAGIC_POSITION] < 2 or codec > Codec.ZSTD or topic_codec(config, Codec(codec))[0] == codec
    return cost if is_kept else cost * _REBUILD_COST


def plain_cost(records: Buffer) -> int | None:
    """Return an upper bound of `check_cost` for an uncompressed batch under any topic config, or None for other
    batches."""
    size = len(records)
    if size < HEADER_SIZE or records[MAGIC_POSITION] != 2 or records[CODEC_POSITION] & CODEC_MASK:
        return None
    return size * _REBUILD_COST


def walk_cost(records: Buffer) -> int:
    """Return an upper bound of the cost of walking a batch's records, in bytes of uncompressed records."""
    size = len(records)
    if size < HEADER_SIZE:
        return size
    if records[MAGIC_POSITION] < 2:
        return size * _OLD_FORMAT_COST * (1_032 if records[MAGIC_POSITION + 1] & CODEC_MASK else 1)
    code = records[CODEC_POSITION] & CODEC_MASK
    if code > Codec.ZSTD:
        return size
    codec = Codec(code)
    cost = size * _COST_PER_BYTE[codec]
    if codec == Codec.ZSTD:
        cost += max(codec_kernels.zstd_size_bound(memoryview(records)[HEADER_SIZE:]), 0)
    return cost
