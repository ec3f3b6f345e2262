"""Records: bytes of a producer → validation, decompression, conversion, the log, and back.

An input is a byte that chooses a topic's configuration and the records of one partition in a Produce request. What
must hold:

- they are refused in Kafka's words, or appended;
- what was appended can be read again: its checksums are right, its offsets follow each other, and its records decode
  unless they are compressed and damaged inside, where Kafka does not look either;
- recovery after a crash cuts nothing of it;
- a good batch can be appended and read afterwards.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import suppress
from itertools import product

from tailrace.log.partition_log import PartitionLog
from tailrace.log.recovery.recovery import open_log
from tailrace.model.errors import KafkaError
from tailrace.model.topic_config import TopicConfig
from tailrace.records.batch import Codec, CorruptBatch, RecordBatch
from tailrace.records.builder import BatchBuilder
from tailrace.records.checks.produce_request import check_produce_request
from tailrace.records.control_records import ControlType, EndTransactionMarker, build_end_marker
from tailrace.records.conversion import down_convert, split_any
from tailrace.records.legacy import build_messages, iter_messages
from tailrace.records.record import Record, TimestampType, iter_records
from tests.fuzz.limits import InvariantBroken, limited
from tests.fuzz.records_mutator import damage_records
from tests.support.memory_files import MemoryFiles

NOW_MS = 1_700_000_000_000
INPUTS_A_LOG = 30
READ_BYTES = 100_000_000
CONFIGS = [
    TopicConfig(
        compression_type=compression,
        message_timestamp_type=timestamps,
        cleanup_policy=frozenset({cleanup}),
        internal_segment_bytes=5000,
        max_message_bytes=200_000,
    )
    for compression, timestamps, cleanup in product(
        ("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"),
        ("CreateTime", "LogAppendTime"),
        ("delete", "compact"),
    )
]


def good_records() -> list[bytes]:
    """Return batches and messages of every format and codec."""
    rows = [
        Record(offset, NOW_MS + offset, TimestampType.CREATE_TIME, b"key %d" % offset, b"value" * offset)
        for offset in range(3)
    ]
    found = []
    for codec in Codec:
        for producer in ({}, {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}):
            builder = BatchBuilder(codec=codec, **producer)
            for row in rows:
                builder.append(row.timestamp, row.key, row.value, [("h", b"x"), ("i", None)])
            found.append(builder.build())
        if codec != Codec.ZSTD:
            found += [build_messages(rows, magic=magic, codec=codec) for magic in (0, 1)]
        bomb = BatchBuilder(codec=codec)
        bomb.append(NOW_MS, None, bytes(150_000))
        found.append(bomb.build())
    transactional = BatchBuilder(producer_id=8, producer_epoch=0, base_sequence=0, transactional=True)
    transactional.append(NOW_MS, b"k", None)
    marker = EndTransactionMarker(ControlType.ABORT, 3)
    found.append(transactional.build())
    found.append(build_end_marker(marker, timestamp=NOW_MS, producer_id=8, producer_epoch=0))
    return found


class RecordTarget:
    def __init__(self) -> None:
        self._good = good_records()
        self.history: list[bytes] = []
        self.renew()

    def seeds(self) -> list[bytes]:
        numbers = range(0, 256, 11)
        return [bytes([numbers[at % len(numbers)]]) + data for at, data in enumerate(self._good * 3)]

    def mutate(self, data: bytes, dice: random.Random) -> bytes:
        if not data or dice.random() < 0.1:
            return bytes([dice.randrange(256)]) + dice.choice(self._good)
        choice = data[:1] if dice.random() < 0.8 else bytes([dice.randrange(256)])
        return choice + damage_records(data[1:], dice)

    def pieces(self, data: bytes) -> list[bytes]:
        return [data]

    def renew(self) -> None:
        self._logs: dict[int, tuple[MemoryFiles, PartitionLog]] = {}
        self.history.clear()

    def replay(self, inputs: Sequence[bytes]) -> None:
        self.renew()
        for data in inputs:
            self.run(data)
        self._crash_and_recover()

    def run(self, data: bytes) -> None:
        with limited():
            if len(self.history) == INPUTS_A_LOG:
                self._crash_and_recover()
                self.renew()
            self.history.append(data)
            if data:
                self._run(data[0], data[1:])

    def _log(self, number: int) -> PartitionLog:
        if number not in self._logs:
            files = MemoryFiles()
            files.make_directory("/data/fuzzed-0")
            self._logs[number] = files, open_log(files, "/data/fuzzed-0", CONFIGS[number], now_ms=NOW_MS)
        return self._logs[number][1]

    def _run(self, choice: int, records: bytes) -> None:
        log = self._log(choice % len(CONFIGS))
        with suppress(KafkaError):
            check_produce_request(records, 3 + choice % 11)
        for magic in (0, 1):
            with suppress(KafkaError, CorruptBatch, ValueError):
                down_convert(records, magic)
        for read in (iter_messages, split_any):
            with suppress(CorruptBatch):
                list(read(records))  # type: ignore[operator]
        end = log.log_end_offset
        with suppress(KafkaError):
            log.append_as_leader(memoryview(bytearray(records)), leader_epoch=0, now_ms=NOW_MS)
        check_readable(log, end)
        end = log.log_end_offset
        log.append_as_leader(bytearray(self._good[0]), leader_epoch=0, now_ms=NOW_MS)
        if log.log_end_offset != end + 3:
            raise InvariantBroken(f"a good batch took {log.log_end_offset - end} offsets")
        check_readable(log, end)

    def _crash_and_recover(self) -> None:
        for number, (files, log) in self._logs.items():
            for _ in range(2):  # as a crash leaves it, and then as a clean stop does
                again = open_log(files, "/data/fuzzed-0", CONFIGS[number], now_ms=NOW_MS)
                if again.log_end_offset != log.log_end_offset:
                    raise InvariantBroken(f"recovery ends at {again.log_end_offset}, not {log.log_end_offset}")
                check_readable(again, 0)
                again.flush(NOW_MS)
                again.close()


def check_readable(log: PartitionLog, offset: int) -> None:
    """Check that every batch from an offset on is whole, and that no offset is missing between them."""
    log.advance_high_watermark(log.log_end_offset)
    while offset < log.log_end_offset:
        found = log.read(offset, READ_BYTES, at_least_one=True)
        if found.slice is None:
            raise InvariantBroken(f"nothing at {offset}, before the end at {log.log_end_offset}")
        for batch in split_any(found.slice.read()):
            if isinstance(batch, RecordBatch):
                batch.check()
                if batch.base_offset < offset or batch.last_offset < batch.base_offset:
                    raise InvariantBroken(f"offsets {batch.base_offset} to {batch.last_offset} after {offset - 1}")
                decode(batch)
                offset = batch.last_offset + 1
            else:
                offset = batch.offset + 1
        for magic in (0, 1):
            with suppress(KafkaError, CorruptBatch, ValueError):
                down_convert(found.slice.read(), magic)


def decode(batch: RecordBatch) -> None:
    try:
        for _ in iter_records(batch):
            pass
    except CorruptBatch:
        if not batch.is_compressed:
            raise
