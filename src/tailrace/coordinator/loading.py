"""Loading: replays a partition's log into a shard, one piece at a time.

Loading a large topic takes seconds, and the broker has other clients. So `step` reads a bounded piece and can be called
again.

A record that cannot be decoded or replayed is skipped: a later version wrote it, or a version with a bug. Kafka skips
only unknown types; any other error makes it give up the whole partition. Here the other groups of the partition are
served. A batch with a wrong checksum ends the load, as in Kafka (`CorruptBatch`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

from tailrace.coordinator.coordinator_log import CoordinatorLog
from tailrace.coordinator.failures import Failures
from tailrace.coordinator.shard import CoordinatorRecord, CoordinatorShard, RecordReplay
from tailrace.model.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, Offset, TopicPartition
from tailrace.protocol.errors import UnknownRecordType
from tailrace.protocol.internal_records.coordinator_records import decode_key, decode_value
from tailrace.records.batch import LOG_OVERHEAD, RecordBatch
from tailrace.records.control_records import end_marker
from tailrace.records.legacy import iter_messages
from tailrace.records.record import Record, iter_records, uncompressed_payload

_MAGIC_POSITION = 16


class Loading:
    def __init__(
        self,
        log: CoordinatorLog,
        key: TopicPartition,
        shard: CoordinatorShard,
        failures: Failures,
        replay_of: Callable[[int], RecordReplay] | None = None,
    ) -> None:
        """`replay_of(producer_id)` returns the replay of the frequent records of a batch."""
        self._replay_of = replay_of
        self._failures = failures
        self._log = log
        self._key = key
        self._shard = shard
        self._next_offset: Offset = log.bounds(key)[0]
        self.records = 0
        self.skipped = 0
        self.bytes = 0

    @property
    def is_done(self) -> bool:
        return self._next_offset >= self._log.bounds(self._key)[1]

    def step(self, max_bytes: int, now_ms: int) -> int:
        """Replay the next piece; return its size. Raise KafkaError if the partition is no longer led here."""
        start, end = self._log.bounds(self._key)
        data = self._log.read(self._key, max(self._next_offset, start), max_bytes)
        size = 0
        for batch in _whole_batches(data):
            size += len(batch)
            self._replay(batch, now_ms)
        if not size:
            self._next_offset = end
        self.bytes += size
        return size

    def _replay(self, batch: memoryview, now_ms: int) -> None:
        if batch[_MAGIC_POSITION] < 2:
            frequent = None if self._replay_of is None else self._replay_of(NO_PRODUCER_ID)
            for message in iter_messages(bytes(batch)):
                if message.offset >= self._next_offset:
                    self._replay_record(message, frequent, NO_PRODUCER_ID, NO_PRODUCER_EPOCH, now_ms)
                    self._next_offset = message.offset + 1
            return
        opened = RecordBatch(batch)
        if opened.last_offset < self._next_offset:
            return
        if opened.is_control:
            marker = end_marker(opened) if opened.record_count else None
            if marker is not None:
                try:
                    self._shard.replay_end_transaction(opened.producer_id, opened.producer_epoch, marker.is_commit)
                except Exception as error:
                    self._skip(opened.base_offset, error, now_ms)
        else:
            producer_id = opened.producer_id if opened.is_transactional else NO_PRODUCER_ID
            self._replay_records(opened, producer_id, now_ms)
        self._next_offset = opened.last_offset + 1

    def _replay_records(self, batch: RecordBatch, producer_id: int, now_ms: int) -> None:
        """Replay the records of a batch: the frequent ones from their bytes, the others decoded."""
        count, taken = batch.record_count, 0
        frequent = None if self._replay_of is None else self._replay_of(producer_id)
        if frequent is not None:
            taken = frequent.take_payload(bytes(uncompressed_payload(batch)), count, batch.base_offset)
            self.records += taken
        if taken == count:
            return
        for record in islice(iter_records(batch), taken, None):
            self._replay_record(record, frequent, producer_id, batch.producer_epoch, now_ms)

    def _replay_record(
        self, record: Record, frequent: RecordReplay | None, producer_id: int, producer_epoch: int, now_ms: int
    ) -> None:
        self.records += 1
        try:
            if frequent is None or record.key is None or not frequent.take(record.key, record.value, record.offset):
                opened = decode_record(self._shard.family, record)
                self._shard.replay(opened, producer_id, producer_epoch)
        except Exception as error:
            self._skip(record.offset, error, now_ms)

    def _skip(self, offset: Offset, error: Exception, now_ms: int) -> None:
        self.skipped += 1
        self._failures.note_skipped(self._key, offset, error, now_ms)


def decode_record(family: str, record: Record) -> CoordinatorRecord:
    """Decode a record. Raise UnknownRecordType for a key of an unknown type or version."""
    if record.key is None:
        raise UnknownRecordType(f"{family} record key", "the record has no key", 0)
    key = decode_key(family, record.key)
    if record.value is None:
        return CoordinatorRecord(key.message, None, offset=record.offset)
    value = decode_value(family, key, record.value)
    return CoordinatorRecord(key.message, value.message, value.version, record.offset)


def _whole_batches(data: bytes) -> Iterator[memoryview]:
    view = memoryview(data)
    position = 0
    while len(view) - position >= LOG_OVERHEAD:
        size = int.from_bytes(view[position + 8 : position + LOG_OVERHEAD], "big") + LOG_OVERHEAD
        if size > len(view) - position:
            return
        yield view[position : position + size]
        position += size
