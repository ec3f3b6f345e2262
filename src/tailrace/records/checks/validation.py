"""The rules for produced records, and the changes that the broker makes in them before they are appended.

Every batch has a known format, at most max.message.bytes, and a matching checksum. A client sends a single v2 batch. It
starts at offset 0, has as many records as offsets, is not a control batch, and has a sequence number if it has a
producer id. Every record is valid, has a key if the topic is compacted, and has a timestamp inside the topic's
bounds unless the broker sets it.

Then the batch is placed at the log's end. If it already has the topic's codec, it is changed in place. The checksum
does not cover base offset and leader epoch. If timestamp type or max timestamp change, the checksum is computed again.
A batch with another codec, or messages of old formats, are built as a new batch.

Errors are Kafka's: INVALID_RECORD for a malformed record, CORRUPT_MESSAGE for a wrong checksum. In some cases Kafka
fails with an unexpected exception and the client gets UNKNOWN_SERVER_ERROR, and this broker responds the same: for
bytes that cannot be decompressed, an unknown codec, and a compressed batch with gaps in its offset deltas. Kafka has no
limit for the decompressed size. Here a batch above the limits of `decompression.py` is MESSAGE_TOO_LARGE, and producers
then split it.

`check_produced` does not need the log, reads compressed records piece by piece, and may run on any thread.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NoReturn

from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import NO_LEADER_EPOCH, NO_TIMESTAMP, TopicPartition
from tailrace.model.topic_config import TopicConfig
from tailrace.records import kernels
from tailrace.records.batch import (
    ATTRIBUTES_POSITION,
    CODEC_MASK,
    CODEC_POSITION,
    HEADER_SIZE,
    Buffer,
    Codec,
    CorruptBatch,
    RecordBatch,
)
from tailrace.records.builder import BatchBuilder
from tailrace.records.checks import check_kernels
from tailrace.records.checks.checked_records import CheckedRecords
from tailrace.records.checks.produce_request import split_produced
from tailrace.records.checks.record_rules import RECORD_ERRORS_MAX, RecordFacts, RecordRules, RecordsRefused
from tailrace.records.checks.record_walk import walk_batch
from tailrace.records.codecs.compression import topic_codec
from tailrace.records.codecs.crc32c import crc32c
from tailrace.records.codecs.decompression import DecompressedTooLarge, DecompressionFailed, produced_size, rebuilt_size
from tailrace.records.conversion import up_convert
from tailrace.records.legacy import Message
from tailrace.records.record import Record, TimestampType, iter_records, record_portions

MESSAGES_MAX: Final = 100_000  # of an old format, for one partition in one request, because each becomes an object

_HEADER_FAULTS: Final = {
    check_kernels.NEGATIVE_OFFSET_DELTA: "batch with offsets {0.base_offset}..{0.last_offset}",
    check_kernels.NO_RECORDS: "batch with a record count of {0.record_count}",
    check_kernels.WRONG_RECORD_COUNT: (
        "batch with {0.record_count} records for offsets {0.base_offset}..{0.last_offset}"
    ),
    check_kernels.IS_CONTROL_BATCH: "control batch from a client",
    check_kernels.NO_SEQUENCE_NUMBER: "batch of producer {0.producer_id} with sequence number {0.base_sequence}",
}


class Origin(Enum):
    """The source of an append. It decides which checks are made."""

    CLIENT = "client"
    COORDINATOR = "coordinator"  # group and transaction coordinators: offsets and markers
    RAFT_LEADER = "raft leader"  # the metadata log: offsets are already set
    REPLICATION = "replication"  # a leader's bytes, stored unchanged


def is_kept_as_sent(view: memoryview, config: TopicConfig, now_ms: int) -> bool:
    """Return True for a valid, uncompressed batch of a client that the topic stores unchanged. This is the frequent
    case.

    For any other batch `check_produced` finds the error, or the change that is needed.
    """
    return (
        config.keeps_plain_batches
        and HEADER_SIZE <= len(view) <= config.max_message_bytes
        and not view[CODEC_POSITION] & CODEC_MASK
        and check_kernels.is_sound(
            view,
            crc32c(view[ATTRIBUTES_POSITION:]),
            now_ms,
            config.message_timestamp_before_max_ms,
            config.message_timestamp_after_max_ms,
            config.is_compacted,
        )
    )


def check_given(
    data: Buffer,
    *,
    config: TopicConfig,
    base_offset: int,
    leader_epoch: int,
    origin: Origin = Origin.RAFT_LEADER,
    partition: TopicPartition | None = None,
) -> list[RecordBatch]:
    """Return batches whose offsets were set elsewhere. The offsets must increase, from `base_offset` on."""
    batches, _ = _checked_bytes(memoryview(data), origin, leader_epoch, config, partition)
    whole = [batch for batch in batches if isinstance(batch, RecordBatch)]
    if len(whole) < len(batches):
        raise KafkaError(ErrorCode.INVALID_RECORD, f"the batches for {partition} contain messages of an old format")
    expected = base_offset
    for batch in whole:
        if batch.base_offset < expected:
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"batch at offset {batch.base_offset} for {partition} is below the next offset {expected}",
            )
        expected = batch.next_offset
    return whole


def check_produced(
    data: Buffer,
    *,
    config: TopicConfig,
    now_ms: int,
    origin: Origin = Origin.CLIENT,
    partition: TopicPartition | None = None,
) -> CheckedRecords:
    """Check records of a client or a coordinator. Raise KafkaError, or RecordsRefused, if they are refused.

    The records are changed in the given buffer if that is writable.
    """
    view = memoryview(data)
    if view.readonly:
        view = memoryview(bytearray(view))
    batches, source = _checked_bytes(view, origin, NO_LEADER_EPOCH, config, partition)
    if not batches:
        return CheckedRecords(len(view), None)
    job = _Validation(config, now_ms, origin, partition, source)
    first = batches[0]
    if len(batches) > 1 and (first.magic == 2 or source != Codec.NONE):
        job.refuse("more than one batch")
    result = job.validate_batch(first) if isinstance(first, RecordBatch) else job.convert_messages(batches)
    if result.size_may_have_changed and result.batch is not None:
        _check_size(result.batch.size, config, partition)
    return result


def _checked_bytes(
    view: memoryview, origin: Origin, leader_epoch: int, config: TopicConfig, partition: TopicPartition | None
) -> tuple[list[RecordBatch | Message], Codec]:
    """Return the batches after checking their bytes, and the codec of the compressed ones."""
    batches = list(split_produced(view, partition))
    source = Codec.NONE
    for batch in batches:
        code = _check_bytes(batch, origin, leader_epoch, config, partition)
        if code != Codec.NONE:
            source = code
    return batches, source


def _check_size(size: int, config: TopicConfig, partition: TopicPartition | None) -> None:
    if size > config.max_message_bytes:
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"batch of {size} bytes for {partition} exceeds max.message.bytes={config.max_message_bytes}",
        )


def _check_bytes(
    batch: RecordBatch | Message,
    origin: Origin,
    leader_epoch: int,
    config: TopicConfig,
    partition: TopicPartition | None,
) -> Codec:
    """Check offset, size and checksum of one batch, and return its codec."""
    if isinstance(batch, RecordBatch):
        if origin is Origin.RAFT_LEADER and batch.leader_epoch != leader_epoch:
            raise KafkaError(
                ErrorCode.INVALID_RECORD, f"batch of epoch {batch.leader_epoch} appended in epoch {leader_epoch}"
            )
        if origin is Origin.CLIENT and batch.base_offset != 0:
            raise KafkaError(
                ErrorCode.INVALID_RECORD,
                f"the base offset of a batch from a client must be 0, not {batch.base_offset}, in {partition}",
            )
    if origin is not Origin.REPLICATION:
        _check_size(batch.size, config, partition)
    try:
        batch.check()
    except CorruptBatch as error:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{error} in {partition}") from error
    code = batch.attributes & CODEC_MASK
    if code > Codec.ZSTD:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"unknown compression codec {code} in {partition}")
    return Codec(code)


class _Validation:
    """The checks and changes of one append."""

    def __init__(
        self,
        config: TopicConfig,
        now_ms: int,
        origin: Origin,
        partition: TopicPartition | None,
        source: Codec,
    ) -> None:
        self.config = config
        self.now_ms = now_ms
        self.origin = origin
        self.partition = partition
        self.source = source
        self.target, self.level = topic_codec(config, source)
        self.log_append_time = config.message_timestamp_type == "LogAppendTime"
        self.timestamp_type = TimestampType.LOG_APPEND_TIME if self.log_append_time else TimestampType.CREATE_TIME
        self.rules = RecordRules(config, now_ms, partition)
        self.log_append_time_ms = now_ms if self.log_append_time else NO_TIMESTAMP

    def refuse(self, reason: str, code: ErrorCode = ErrorCode.INVALID_RECORD) -> NoReturn:
        raise KafkaError(code, f"{reason} in {self.partition}")

    def _refuse_corrupt(self, error: CorruptBatch) -> NoReturn:
        if isinstance(error, DecompressedTooLarge):
            self.refuse(str(error), ErrorCode.MESSAGE_TOO_LARGE)
        if isinstance(error, DecompressionFailed):
            self.refuse(str(error), ErrorCode.UNKNOWN_SERVER_ERROR)
        self.refuse(str(error))

    def validate_batch(self, batch: RecordBatch) -> CheckedRecords:
        if self.origin is Origin.CLIENT:
            self._check_client_batch(batch)
        # Control batches are stored unchanged, whatever the topic's codec.
        in_place = self.source == self.target or (self.source == Codec.NONE and batch.is_control)
        count = batch.record_count
        if count < 0:
            self.refuse(f"record count {count}")
        append_time = batch.max_timestamp if batch.is_log_append_time else None
        sequential, largest = True, NO_TIMESTAMP
        if count > 0:
            # Kafka checks compressed records only superficially if it does not have to rebuild the batch.
            skims = in_place and self.source != Codec.NONE
            size = len(batch.payload)
            limit = max(produced_size(size) if in_place else rebuilt_size(size), size)
            try:
                walk = walk_batch(batch, self.source, self.rules, check_sizes=not skims, max_size=limit)
            except CorruptBatch as error:
                self._refuse_corrupt(error)
            sequential, largest = walk.sequential, walk.largest
            if append_time is not None:
                largest = max(append_time, NO_TIMESTAMP)
        if not in_place:
            return self._rebuild(batch, sequential)
        if self.source != Codec.NONE and not (sequential and batch.base_offset == 0):
            self.refuse("compressed records whose offset deltas are not 0, 1, 2, …", ErrorCode.UNKNOWN_SERVER_ERROR)
        max_timestamp = self.now_ms if self.log_append_time else largest
        batch.set_max_timestamp(max_timestamp, log_append_time=self.log_append_time)
        return CheckedRecords(batch.size, batch, max_timestamp, self.log_append_time_ms)

    def _check_client_batch(self, batch: RecordBatch) -> None:
        fault = check_kernels.header_fault(batch.view)
        if fault:
            self.refuse(_HEADER_FAULTS[fault].format(batch))

    def _rebuild(self, batch: RecordBatch, sequential: bool) -> CheckedRecords:
        """Build a batch of the same records in the topic's codec."""
        try:
            builder = BatchBuilder(
                codec=self.target,
                level=self.level,
                timestamp_type=self.timestamp_type,
                log_append_time_ms=self.now_ms,
                producer_id=batch.producer_id,
                producer_epoch=batch.producer_epoch,
                base_sequence=batch.base_sequence,
                transactional=batch.is_transactional,
            )
            if sequential:
                append_time = batch.max_timestamp if batch.is_log_append_time else None
                base: int | None = None
                for portion, count in record_portions(batch):
                    new, base, largest, _ = kernels.rewrite_records(
                        portion, count, b"\1" * count, batch.base_timestamp, append_time, base
                    )
                    builder.append_encoded(new, count, base, largest, builder.record_count + count - 1)
            else:
                for record in iter_records(batch):
                    builder.append(record.timestamp, record.key, record.value, record.headers)
            data = builder.build()
        except CorruptBatch as error:
            self._refuse_corrupt(error)
        except ValueError as error:
            self.refuse(str(error), ErrorCode.UNKNOWN_SERVER_ERROR)
        return self._built(batch.size, data, builder.max_timestamp, builder.record_count)

    def _built(self, size: int, data: bytes, max_timestamp: int, count: int) -> CheckedRecords:
        if not data:
            return CheckedRecords(size, None)
        return CheckedRecords(
            size,
            RecordBatch(memoryview(bytearray(data))),
            self.now_ms if self.log_append_time else max_timestamp,
            self.log_append_time_ms,
            count,
            True,
        )

    def convert_messages(self, batches: list[RecordBatch | Message]) -> CheckedRecords:
        """Build one batch from messages of an old format."""
        magic = batches[0].magic
        records: list[Record] = []
        for message in batches:
            if message.magic != magic or not isinstance(message, Message):
                self.refuse(f"batches of formats {magic} and {message.magic} together")
            try:
                records += self._message_records(message, MESSAGES_MAX - len(records))
            except CorruptBatch as error:
                self._refuse_corrupt(error)
        try:
            built = up_convert(
                records,
                base_offset=0,
                codec=self.target,
                level=self.level,
                timestamp_type=self.timestamp_type,
                log_append_time_ms=self.now_ms,
            )
        except ValueError as error:
            self.refuse(str(error), ErrorCode.UNKNOWN_SERVER_ERROR)
        max_timestamp = max(record.timestamp for record in records)
        size = sum(batch.size for batch in batches)
        return self._built(size, built.data, max(max_timestamp, NO_TIMESTAMP), built.records_converted)

    def _message_records(self, message: Message, max_count: int) -> list[Record]:
        """Return the records of a message. Raise DecompressedTooLarge if there are more than `max_count`."""
        if max_count <= 0:
            raise DecompressedTooLarge(f"more than {MESSAGES_MAX} messages in one partition")
        if message.is_compressed:
            wrong: list[tuple[int, str]] = []
            inside = message.inner(rebuilt_size(message.size), max_count)
            for index, (inner, *_) in enumerate(inside):
                if inner.magic != message.magic:
                    wrong.append((index, f"a message of format {inner.magic} inside one of format {message.magic}"))
                    if len(wrong) == RECORD_ERRORS_MAX:
                        break
                    continue
                try:
                    inner.check()
                except CorruptBatch as error:
                    self.refuse(str(error), ErrorCode.CORRUPT_MESSAGE)
            if wrong:
                raise RecordsRefused(ErrorCode.INVALID_RECORD, f"{len(wrong)} messages refused: {wrong[0][1]}", wrong)
            records = [inner.record(offset, time, kind) for inner, offset, time, kind in inside]
        else:
            records = message.records()
        self.rules.check(
            (
                RecordFacts(index, record.offset, record.timestamp, record.key is not None)
                for index, record in enumerate(records)
            ),
            message.timestamp_type == TimestampType.LOG_APPEND_TIME,
        )
        return records
