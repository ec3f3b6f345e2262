"""A process that appends to a log until it is killed, and says after each step what it has done.

    appended 17     records up to this offset are written
    flushed 12      and up to this one synced
    started 5       the log starts here now

Run as `python -m tests.crash.appending_process DIRECTORY SEED`. Every record's value is its offset.
"""

from __future__ import annotations

import sys
from random import Random

from tailrace.log.directories.log_directory import LogDirectory
from tailrace.log.disk.files import DiskFiles
from tailrace.model.ids import TopicPartition
from tailrace.model.topic_config import TopicConfig
from tailrace.records.batch import Codec
from tests.support.batches import batch

PARTITION = TopicPartition("killed", 0)
CONFIG = TopicConfig(
    internal_segment_bytes=4_000, index_interval_bytes=300, retention_bytes=20_000, file_delete_delay_ms=500
)
NOW = 1_700_000_000_000
PRODUCER = 7


def value(offset: int) -> bytes:
    return b"%d" % offset


def main(path: str, seed: int) -> None:
    rng = Random(seed)
    directory = LogDirectory(DiskFiles(), path, new_id=lambda: "id")
    report = directory.load(lambda topic: CONFIG, NOW)
    assert not report.failed, report.failed
    log = directory.logs.get(PARTITION) or directory.create(PARTITION, CONFIG, NOW)
    for step in range(1_000_000):
        now = NOW + step
        first = log.log_end_offset
        values = [value(first + number) for number in range(rng.randrange(1, 8))]
        known = log.producers.producers.get(PRODUCER)
        sequence = known.last_sequence + 1 if known else 0
        codec = rng.choice([Codec.NONE, Codec.NONE, Codec.ZSTD, Codec.LZ4])
        data = batch(*values, timestamp=now, codec=codec, producer_id=PRODUCER, sequence=sequence)
        print("appended", log.append_as_leader(data, leader_epoch=seed, now_ms=now).last_offset, flush=True)
        choice = rng.randrange(30)
        if choice < 4:
            log.flush(now)
            print("flushed", log.log_end_offset - 1, flush=True)
        elif choice == 4:
            log.roll(now)
        elif choice == 5:
            directory.checkpoint()
        elif choice == 6:
            log.advance_high_watermark(log.log_end_offset)
            log.delete_old_segments(now)
            print("started", log.log_start_offset, flush=True)
        directory.run_due(now)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
