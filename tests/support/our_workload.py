"""Records that our log writes before Kafka boots on it: every kind of partition, each over several segments.

Records are numbered, so that a test can compare read records with the written ones. Timestamps go back and forth.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle

from tailrace.log.compaction.cleaner import clean_log
from tailrace.log.compaction.cleaner_range import find_dirty_range
from tailrace.log.disk.files import DiskFiles
from tailrace.log.partition_log import PartitionLog
from tailrace.records.batch import Codec
from tailrace.records.builder import BatchBuilder
from tailrace.records.checks.validation import Origin
from tailrace.records.control_records import ControlType, EndTransactionMarker, build_end_marker


class Writer:
    """Appends to one log as its only replica, so that appended records are replicated at once."""

    def __init__(self, log: PartitionLog, now_ms: int) -> None:
        self.log = log
        self.start_ms = self.now_ms = now_ms
        self.written = log.log_end_offset
        self._codecs = cycle(Codec)
        latest = log.epochs.latest
        self.leader_epoch = latest.epoch if latest else 0

    def batch(
        self,
        count: int,
        *,
        producer_id: int = -1,
        sequence: int = -1,
        transactional: bool = False,
        keyed: bool = False,
    ) -> bytes:
        builder = BatchBuilder(
            codec=next(self._codecs),
            producer_id=producer_id,
            producer_epoch=0 if producer_id >= 0 else -1,
            base_sequence=sequence,
            transactional=transactional,
        )
        for n in range(self.written, self.written + count):
            builder.append(
                self.start_ms + 100 * n - 730 * (n % 3),
                None if n % 5 == 4 and not keyed else b"key-%d" % (n % 7),
                None if n % 11 == 10 else b"value-%d" % n + b"." * (n % 60),
                [("trace", b"%d" % n), ("none", None)] if n % 4 == 3 else [],
            )
        self.written += count
        return builder.build()

    def append(self, data: bytes, origin: Origin = Origin.CLIENT) -> int:
        self.now_ms += 10
        result = self.log.append_as_leader(
            bytearray(data), leader_epoch=self.leader_epoch, now_ms=self.now_ms, origin=origin
        )
        self.log.advance_high_watermark(self.log.log_end_offset)
        self.log.run_due(self.now_ms)
        return result.first_offset

    def end(self, producer_id: int, *, commit: bool) -> None:
        kind = ControlType.COMMIT if commit else ControlType.ABORT
        marker = build_end_marker(
            EndTransactionMarker(kind, 0), timestamp=self.now_ms, producer_id=producer_id, producer_epoch=0
        )
        self.append(marker, Origin.COORDINATOR)
        self.written += 1


def plain(writer: Writer) -> None:
    """Write batches with every codec in turn."""
    for n in range(40):
        writer.append(writer.batch(1 + n % 6))


def idempotent(writer: Writer) -> None:
    """Write with two idempotent producers; the last batch of each comes twice."""
    sequences = {1001: 0, 1002: 0}
    for n in range(24):
        producer_id = 1001 + n % 2
        data = writer.batch(3, producer_id=producer_id, sequence=sequences[producer_id])
        sequences[producer_id] += 3
        first = writer.append(data)
        if n >= 22:
            assert writer.append(data) == first


def transactions(writer: Writer) -> None:
    """Write committed and aborted transactions, interleaved over segments, and one that stays open."""
    sequences: dict[int, int] = {}

    def write(producer_id: int, count: int) -> None:
        first = sequences.get(producer_id, 0)
        sequences[producer_id] = first + count
        writer.append(writer.batch(count, producer_id=producer_id, sequence=first, transactional=True))

    for turn in range(8):
        write(2001, 4)
        write(2002, 2)
        writer.append(writer.batch(3))
        writer.end(2001, commit=turn % 3 != 0)
        write(2002, 3)
        if turn % 2:
            writer.end(2002, commit=turn % 4 == 1)
    writer.append(writer.batch(2))
    write(2003, 4)
    writer.append(writer.batch(2))


def deleted(writer: Writer) -> None:
    """Delete records up to the middle of a batch, with the segments before it."""
    plain(writer)
    writer.log.delete_records(writer.log.log_end_offset // 2, writer.now_ms)
    writer.log.delete_old_segments(writer.now_ms)
    writer.now_ms += writer.log.config.file_delete_delay_ms
    writer.log.run_due(writer.now_ms)


def truncated(writer: Writer) -> None:
    """Truncate to an earlier segment, then append again."""
    plain(writer)
    log = writer.log
    log.truncate_to(log.segments[len(log.segments) // 2].base_offset + 5, writer.now_ms)
    writer.now_ms += log.config.file_delete_delay_ms
    log.run_due(writer.now_ms)
    writer.written = log.log_end_offset
    plain(writer)


def compacted(writer: Writer) -> None:
    """Write keys again and again, with some tombstones, and clean twice while tombstones are still kept."""
    log = writer.log
    cleaned = None
    for turn in range(2):
        for n in range(30):
            builder = BatchBuilder(codec=list(Codec)[n % 5])
            for key in range(3):
                value = None if (n + key) % 9 == 8 else b"value-%d-%d" % (turn, n)
                builder.append(writer.start_ms + 10 * n, b"key-%d" % ((n + key) % 12), value)
            writer.append(builder.build())
        dirty = find_dirty_range(log, cleaned, writer.now_ms)
        cleaned = clean_log(DiskFiles(), log, dirty, writer.now_ms).end_offset
        assert cleaned > 0
    writer.now_ms += log.config.file_delete_delay_ms
    log.run_due(writer.now_ms)
    writer.written = log.log_end_offset


KINDS: dict[str, Callable[[Writer], None]] = {
    "plain": plain,
    "append-time": plain,
    "recompressed": plain,
    "idempotent": idempotent,
    "transactions": transactions,
    "deleted": deleted,
    "truncated": truncated,
    "compacted": compacted,
}
TOPIC_CONFIGS = {
    "append-time": {"message.timestamp.type": "LogAppendTime"},
    "recompressed": {"compression.type": "zstd"},
    "compacted": {"cleanup.policy": "compact"},
}
