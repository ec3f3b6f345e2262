"""Produced records between their checks and their place in the log.

`CheckedRecords` are the outcome of all checks that need neither the log nor its end. They can be made anywhere, beside
the broker's one thread as well. `place` gives them their offsets there, and the `ValidatedRecords` are ready to be
written. `check_cost` says beforehand how much work the checks may be.
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


class ValidatedRecords(NamedTuple):
    """Batches with their offsets set, ready to be written; `data` spans them all."""

    data: Buffer
    batches: list[RecordBatch]
    first_offset: int
    last_offset: int
    max_timestamp: int
    log_append_time_ms: int = NO_TIMESTAMP  # -1 where records keep the time that their producer gave them
    records_converted: int = 0
    size_may_have_changed: bool = False


NOTHING = ValidatedRecords(b"", [], -1, -1, NO_TIMESTAMP)


class CheckedRecords(NamedTuple):
    """One batch that passed all checks and has no offset yet, or the reason for its refusal."""

    size: int  # as the client sent them
    batch: RecordBatch | None  # None if there is nothing to append
    max_timestamp: int = NO_TIMESTAMP
    log_append_time_ms: int = NO_TIMESTAMP
    records_converted: int = 0
    size_may_have_changed: bool = False
    refusal: KafkaError | None = None

    def place(self, base_offset: int, leader_epoch: int) -> ValidatedRecords:
        """Give the records their offsets, in place. Raise the refusal if there is one."""
        if self.refusal is not None:
            # A copy: what is raised refers to all callers, and they to these records.
            raise copy(self.refusal)
        batch = self.batch
        if batch is None:
            return NOTHING
        batch.set_offset_and_epoch(base_offset + batch.record_count - 1 - batch.last_offset_delta, leader_epoch)
        return ValidatedRecords(
            batch.view,
            [batch],
            batch.base_offset,
            batch.last_offset,
            self.max_timestamp,
            self.log_append_time_ms,
            self.records_converted,
            self.size_may_have_changed,
        )


def check_cost(records: Buffer, config: TopicConfig) -> int:
    """Return an upper bound of the work that checking records may be, in bytes of plain records to walk."""
    size = len(records)
    if not HEADER_SIZE <= size <= config.max_message_bytes:
        return size  # not a batch, or refused because of its size
    cost = walk_cost(records)
    codec = records[CODEC_POSITION] & CODEC_MASK
    is_kept = records[MAGIC_POSITION] < 2 or codec > Codec.ZSTD or topic_codec(config, Codec(codec))[0] == codec
    return cost if is_kept else cost * _REBUILD_COST


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
