"""CheckedRecords: produced records between their checks and their place in the log.

They are the outcome of all checks that need neither the log nor its end. They can be made on any thread. The log's
`place` takes them as it takes records that were not checked yet. `check_cost` estimates the work of the checks.
"""

from __future__ import annotations

from copy import copy
from typing import Final, NamedTuple

from tailrace.model.errors import KafkaError
from tailrace.model.ids import NO_TIMESTAMP
from tailrace.model.topic_config import TopicConfig
from tailrace.records import kernels
from tailrace.records.batch import (
    CODEC_MASK,
    CODEC_POSITION,
    HEADER_SIZE,
    MAGIC_POSITION,
    Buffer,
    Codec,
    RecordBatch,
)
from tailrace.records.codecs.compression import topic_codec

LOOP_COST_MAX: Final = 4 << 20  # checks of this cost take less than 20 ms

# What a byte may decompress to. A small block of lz4 or snappy costs as much as a few hundred bytes.
_COST_PER_BYTE: Final = {Codec.NONE: 1, Codec.GZIP: 1_032, Codec.SNAPPY: 255, Codec.LZ4: 255, Codec.ZSTD: 16}
_OLD_FORMAT_COST: Final = 4_096  # per byte: each message becomes an object
_REBUILD_COST: Final = 256  # a batch that is compressed again, with the slowest level that a topic may ask for


class CheckedRecords(NamedTuple):
    """One batch that passed all checks and has no offset yet, or the reason for its refusal."""

    size: int  # as the client sent them
    batch: RecordBatch | None  # None if there is nothing to append
    max_timestamp: int = NO_TIMESTAMP
    log_append_time_ms: int = NO_TIMESTAMP
    records_converted: int = 0
    size_may_have_changed: bool = False
    refusal: KafkaError | None = None

    def accepted(self) -> RecordBatch | None:
        """Return the batch, None if there is nothing to append. Raise the refusal if there is one."""
        if self.refusal is not None:
            # A copy: what is raised refers to all callers, and they to these records.
            raise copy(self.refusal)
        return self.batch


def check_cost(records: Buffer, config: TopicConfig) -> int:
    """Return an upper bound of the work that checking records may be, in bytes of plain records to walk."""
    size = len(records)
    if not HEADER_SIZE <= size <= config.max_message_bytes:
        return size  # not a batch, or refused because of its size
    cost = walk_cost(records)
    codec = records[CODEC_POSITION] & CODEC_MASK
    is_kept = records[MAGIC_POSITION] < 2 or codec > Codec.ZSTD or topic_codec(config, Codec(codec))[0] == codec
    return cost if is_kept else cost * _REBUILD_COST


def plain_cost(records: Buffer) -> int | None:
    """Return an upper bound of `check_cost` for an uncompressed batch, whatever the topic's config is; else None."""
    size = len(records)
    if size < HEADER_SIZE or records[MAGIC_POSITION] != 2 or records[CODEC_POSITION] & CODEC_MASK:
        return None
    return size * _REBUILD_COST


def walk_cost(records: Buffer) -> int:
    """Return an upper bound of the work that a walk over a batch's records may be, in bytes of plain records."""
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
        cost += max(kernels.zstd_size_bound(memoryview(records)[HEADER_SIZE:]), 0)
    return cost
