"""Batches and directories for measurements."""

from __future__ import annotations

import random
from pathlib import Path

from tailrace.log.disk.files import DiskFiles
from tailrace.log.partition_log import PartitionLog
from tailrace.log.recovery.recovery import open_log
from tailrace.model.topic_config import TopicConfig
from tailrace.records.batch import Codec
from tailrace.records.builder import BatchBuilder

NOW_MS = 1_700_000_000_000


def batch_of(size: int, record_size: int, codec: Codec = Codec.NONE, seed: int = 0) -> bytes:
    """Return one uncompressed batch of about `size` bytes, of records with an 8-byte key."""
    chance = random.Random(seed)
    builder = BatchBuilder(codec=codec)
    overhead = 20
    for number in range(max(size // record_size, 1)):
        value = chance.randbytes(max(record_size - overhead, 1))
        builder.append(NOW_MS + number % 3, b"key%05d" % chance.randrange(100_000), value)
    return builder.build()


def keyed_batches(records: int, keys: int, per_batch: int, value_size: int = 90) -> list[bytes]:
    """Return batches of keyed records for compaction. A few payloads are repeated, which makes this fast."""
    chance = random.Random(1)
    values = [chance.randbytes(value_size) for _ in range(64)]
    batches = []
    for start in range(0, records, per_batch):
        builder = BatchBuilder()
        for number in range(min(per_batch, records - start)):
            builder.append(NOW_MS + (start + number) // 1000, b"key-%08d" % chance.randrange(keys), values[number % 64])
        batches.append(builder.build())
    return batches


def open_at(folder: Path, config: TopicConfig | None = None, *, clean: bool = True) -> PartitionLog:
    return open_log(DiskFiles(), str(folder), config or TopicConfig(), now_ms=NOW_MS, clean=clean)


def fill(log: PartitionLog, batch: bytes, total: int) -> None:
    """Append the batch until the log has about `total` bytes."""
    for _ in range(max(total // len(batch), 1)):
        log.append_as_leader(bytearray(batch), leader_epoch=0, now_ms=NOW_MS)
    log.advance_high_watermark(log.log_end_offset)
