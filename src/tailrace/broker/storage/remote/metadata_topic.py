"""MetadataTopic: `__remote_log_metadata`, which this broker writes and reads back.

A record counts when the broker has read it from the topic. So a broker that starts again, or another leader, comes to
the same state. The topic is created when the first tiered topic needs it, with as many replicas as the cluster has
brokers, and with Kafka's settings. A start continues where the snapshot of the last one ends (`metadata_snapshot.py`).

A record that cannot be decoded is skipped, with a line in the log.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from tailrace.broker.config.remote_config import RemoteConfig
from tailrace.broker.coordination.partition_writer import PartitionWriter
from tailrace.broker.storage.remote.metadata_snapshot import (
    LogKey,
    MetadataSnapshot,
    ReadTo,
    SnapshotFile,
    decode_log,
)
from tailrace.metadata.controller.local_controller import LocalController
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import Offset, TopicId, TopicPartition
from tailrace.protocol.errors import ProtocolError
from tailrace.protocol.messages import CreateTopicsRequest
from tailrace.records.batch import LOG_OVERHEAD, PREFIX, RecordBatch
from tailrace.records.builder import BatchBuilder
from tailrace.records.record import iter_records
from tailrace.tiers.metadata.metadata_partition import metadata_partition
from tailrace.tiers.metadata.segment_cache import CacheState, SegmentCache, UnknownSegment
from tailrace.tiers.metadata.segment_records import REMOTE_LOG_METADATA, SegmentUpdate, decode_record
from tailrace.tiers.remote_segment import RemoteSegment
from tailrace.tiers.steps import Publish, Then

_log = logging.getLogger(__name__)

_PIECE_BYTES = 64 * 1024  # takes a few milliseconds
_RECORDS_A_SNAPSHOT = 5_000


class _Wait(NamedTuple):
    end: Offset  # the record is before this offset
    then: Then


class MetadataTopic:
    def __init__(
        self, config: RemoteConfig, controller: LocalController, writer: PartitionWriter, file: SnapshotFile
    ) -> None:
        self._config = config
        self._file = file
        self._snapshot = file.read()  # the parts that are not in use yet
        self._stored = {} if self._snapshot is None else dict(self._snapshot.logs)
        self._crcs: dict[int, int] = {}  # by partition of the topic: the checksum of the last batch
        self._unsaved = 0  # records since the last snapshot
        self._controller = controller
        self._writer = writer
        self._caches: dict[tuple[TopicId, int], SegmentCache] = {}
        self._positions: dict[int, Offset] = {}  # by partition of the topic: the next offset to read
        self._first_ends: dict[int, Offset] = {}  # where the first reading ends
        self._waiting: dict[int, deque[_Wait]] = {}

    # The topic

    @property
    def partition_count(self) -> int:
        topic = self._controller.image.topics.get(REMOTE_LOG_METADATA)
        return 0 if topic is None else len(topic.partitions)

    def ensure(self, now_ms: int) -> None:
        """Create the topic unless it exists. Raise KafkaError if that fails."""
        if self.partition_count:
            return
        replicas = min(self._config.metadata_replicas, len(list(self._controller.image.unfenced_brokers())))
        settings = {
            "cleanup.policy": "delete",
            "retention.ms": str(self._config.metadata_retention_ms),
            "min.insync.replicas": str(max(min(self._config.metadata_min_isr, replicas), 1)),
            "remote.storage.enable": "false",
        }
        new = CreateTopicsRequest.CreatableTopic(
            name=REMOTE_LOG_METADATA,
            num_partitions=self._config.metadata_partitions,
            replication_factor=max(replicas, 1),
            configs=[
                CreateTopicsRequest.CreatableTopicConfig(name=name, value=text) for name, text in settings.items()
            ],
        )
        result = self._controller.create_topics(CreateTopicsRequest(topics=[new]), now_ms).topics[0]
        if result.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            raise KafkaError(ErrorCode(result.error_code), result.error_message or "")

    def partition_of(self, topic_id: TopicId, partition: int) -> int:
        return metadata_partition(topic_id, partition, self.partition_count)

    def cache_of(self, topic_id: TopicId, partition: int) -> SegmentCache:
        """Return the remote segments of a partition, as far as the topic is read."""
        key = topic_id, partition
        cache = self._caches.get(key)
        if cache is None:
            cache = self._caches[key] = SegmentCache()
            stored = self._stored.pop(key, None)
            state = None if stored is None else decode_log(stored)
            if state is not None:
                cache.restore(state)
        return cache

    def partitions_with_segments(self) -> list[LogKey]:
        return [*self._stored, *(key for key, cache in self._caches.items() if len(cache))]

    def forget(self, topic_id: TopicId, partition: int) -> None:
        """Drop the segments of a partition that is deleted."""
        self._caches.pop((topic_id, partition), None)
        self._stored.pop((topic_id, partition), None)

    # The snapshot

    @property
    def is_snapshot_due(self) -> bool:
        return self._unsaved >= _RECORDS_A_SNAPSHOT and self.is_read()

    def take_snapshot(self) -> Callable[[], None]:
        """Return a function that writes a snapshot of the present state. It may run on any thread."""
        topic = self._controller.image.topics[REMOTE_LOG_METADATA]
        positions = {number: ReadTo(self._positions[number], crc) for number, crc in self._crcs.items()}
        states = {key: cache.state() for key, cache in self._caches.items() if len(cache) or cache.has_epochs}
        snapshot = MetadataSnapshot(str(topic.topic_id), self.partition_count, positions, {**self._stored, **states})
        self._unsaved = 0
        return partial(self._file.write, snapshot)

    def save(self) -> None:
        """Write a snapshot at a clean stop, if there is anything new."""
        if self._unsaved and self.is_read():
            try:
                self.take_snapshot()()
            except OSError as error:
                _log.warning("the snapshot of the remote metadata cannot be written: %s", error)

    def _first_position(self, number: int, start: Offset, end: Offset) -> Offset:
        """Return where to begin to read a partition: where the snapshot ends, if the partition continues there."""
        snapshot = self._snapshot
        known = None if snapshot is None else snapshot.positions.get(number)
        topic = self._controller.image.topics[REMOTE_LOG_METADATA]
        if (
            snapshot is not None
            and known is not None
            and (snapshot.topic_id, snapshot.partition_count) == (str(topic.topic_id), self.partition_count)
            and start < known.position <= end
        ):
            data = self._writer.read(TopicPartition(REMOTE_LOG_METADATA, number), known.position - 1, _PIECE_BYTES)
            last = next((one for one in _batches(data) if one.last_offset == known.position - 1), None)
            if last is not None and last.crc == known.crc:
                self._crcs[number] = known.crc
                return known.position
        for key in [key for key in (*self._stored, *self._caches) if self.partition_of(*key) == number]:
            self._stored.pop(key, None)
            if key in self._caches:
                self._caches[key].restore(CacheState((), ()))
        return start

    # Writing

    def publish(self, step: Publish, then: Then, now_ms: int) -> None:
        """Append a record. Call `then(error, now_ms)` when it has been read back, or cannot be written."""
        segment_id = step.segment_id
        number = self.partition_of(segment_id.topic_id, segment_id.partition)
        builder = BatchBuilder()
        builder.append(now_ms, None, step.record)
        try:
            end = self._writer.append(TopicPartition(REMOTE_LOG_METADATA, number), builder.build(), now_ms)
        except KafkaError as error:
            then(error, now_ms)
            return
        self._waiting.setdefault(number, deque()).append(_Wait(end, then))
        self.read(number, now_ms)

    # Reading

    def is_ready(self, topic_id: TopicId, partition: int) -> bool:
        """Return True if everything was read that was there at the start."""
        if not self.partition_count:
            return False
        number = self.partition_of(topic_id, partition)
        return number in self._positions and self._positions[number] >= self._first_ends[number]

    def is_read(self) -> bool:
        """Return True if all partitions are ready."""
        count = self.partition_count
        return bool(count) and all(
            number in self._positions and self._positions[number] >= self._first_ends[number] for number in range(count)
        )

    def read_all(self, now_ms: int, is_turn_over: Callable[[], bool]) -> bool:
        """Read what is new in all partitions, until the turn is over. Return True if there is nothing more."""
        for number in range(self.partition_count):
            while not self.read(number, now_ms):
                if is_turn_over():
                    return False
        return True

    def read(self, number: int, now_ms: int) -> bool:
        """Read the next piece of a partition. Return True if there is nothing more."""
        key = TopicPartition(REMOTE_LOG_METADATA, number)
        try:
            start, end = self._writer.committed_bounds(key)
            if number not in self._positions:
                self._positions[number] = self._first_position(number, start, end)
            position = max(self._positions[number], start)
            self._first_ends.setdefault(number, end)
            data = self._writer.read(key, position, _PIECE_BYTES) if position < end else b""
        except KafkaError:
            return True  # the partition is not online yet
        for batch in _batches(data):
            if batch.last_offset >= end:
                break
            if batch.last_offset >= position:
                self._take(batch, position, number)
                position = batch.last_offset + 1
                self._crcs[number] = batch.crc
        self._positions[number] = position
        waiting = self._waiting.get(number)
        while waiting and waiting[0].end <= position:
            waiting.popleft().then(None, now_ms)
        return position >= end or not data

    def _take(self, batch: RecordBatch, position: Offset, number: int) -> None:
        if batch.is_control:
            return
        for record in iter_records(batch):
            if record.offset < position or record.value is None:
                continue
            self._unsaved += 1
            try:
                self._apply(record.value, is_first=record.offset < self._first_ends[number])
            except (ProtocolError, UnknownSegment) as error:
                _log.error(
                    "%s-%d: the record at offset %d is skipped: %s", REMOTE_LOG_METADATA, number, record.offset, error
                )

    def _apply(self, value: bytes, *, is_first: bool) -> None:
        record = decode_record(value)
        if isinstance(record, RemoteSegment):
            self.cache_of(record.segment_id.topic_id, record.segment_id.partition).add(record)
        elif isinstance(record, SegmentUpdate):
            cache = self.cache_of(record.segment_id.topic_id, record.segment_id.partition)
            cache.update(record, is_initialized=not is_first)


def _batches(data: bytes) -> Iterator[RecordBatch]:
    """Yield the whole batches in a piece of a log."""
    position, view = 0, memoryview(data)
    while position + LOG_OVERHEAD <= len(data):
        size = PREFIX.unpack_from(data, position)[1] + LOG_OVERHEAD
        if position + size > len(data):
            return
        yield RecordBatch(view[position : position + size])
        position += size
