"""The batches of a .log or .checkpoint file, and their records, as rows (see dump.py).

A batch with a wrong checksum is shown as invalid, and the walk continues after it. If the bytes are not a batch, the
rest of the file is shown by its size, as a torn or preallocated tail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from struct import Struct
from typing import Any

from tailrace.log.disk.files import Files
from tailrace.log.inspect.dump import Row
from tailrace.log.inspect.dump_decoders import Decoder, control_fields
from tailrace.log.segments.batch_walk import BatchHeader, read_batches
from tailrace.records.batch import CODEC_MASK, TIMESTAMP_TYPE_BIT, Codec, CorruptBatch, RecordBatch
from tailrace.records.legacy import Message
from tailrace.records.record import Record, TimestampType, iter_records

_LEGACY_CRC = Struct(">I")
_LEGACY_CRC_POSITION = 12
_TIME_NAMES = {
    TimestampType.NO_TIMESTAMP: "NoTimestampType",
    TimestampType.CREATE_TIME: "CreateTime",
    TimestampType.LOG_APPEND_TIME: "LogAppendTime",
}


@dataclass(frozen=True, slots=True)
class DumpOptions:
    with_records: bool = False
    decode: Decoder | None = None  # also shows keys and values
    max_bytes: int | None = None


def dump_log_file(files: Files, path: str, options: DumpOptions) -> Iterator[Row]:
    """Yield the rows of a log file: a batch, its records, the next batch."""
    file = files.open(path, read_only=True)
    try:
        size = file.size()
        end = size if options.max_bytes is None else min(size, options.max_bytes)
        position = 0
        try:
            for header, view in read_batches(file, 0, end):
                yield from _dump_batch(header, view, options)
                position = header.position + header.size
        except CorruptBatch as error:
            if options.max_bytes is None or end == size:
                yield Row("invalidBytes", {"size": size - position, "position": position, "reason": error.reason})
    finally:
        file.close()


def _dump_batch(header: BatchHeader, view: memoryview, options: DumpOptions) -> Iterator[Row]:
    if header.magic == 2:
        yield _batch_row(header, RecordBatch(view))
    else:
        yield _message_row(header, Message(view))
    if options.with_records or options.decode:
        try:
            yield from _record_rows(header, view, options.decode)
        except CorruptBatch as error:
            yield Row("undecodable", {"position": header.position, "reason": error.reason})


def _batch_row(header: BatchHeader, batch: RecordBatch) -> Row:
    return Row(
        "batch",
        {
            "baseOffset": batch.base_offset,
            "lastOffset": batch.last_offset,
            "count": batch.record_count,
            "baseSequence": batch.base_sequence,
            "lastSequence": batch.last_sequence,
            "producerId": batch.producer_id,
            "producerEpoch": batch.producer_epoch,
            "partitionLeaderEpoch": batch.leader_epoch,
            "isTransactional": batch.is_transactional,
            "isControl": batch.is_control,
            "deleteHorizonMs": batch.delete_horizon_ms,
            "position": header.position,
            _time_name(header): header.max_timestamp,
            "size": header.size,
            "magic": 2,
            "compresscodec": _codec_name(header.attributes),
            "crc": batch.crc,
            "isvalid": _holds(batch.check),
        },
    )


def _message_row(header: BatchHeader, message: Message) -> Row:
    return Row(
        "message",
        {
            "offset": header.last_offset,
            "position": header.position,
            _time_name(header): header.max_timestamp,
            "size": header.size,
            "magic": header.magic,
            "compresscodec": _codec_name(header.attributes),
            "crc": _legacy_crc(message),
            "isvalid": _holds(message.check),
        },
    )


def _time_name(header: BatchHeader) -> str:
    if header.magic == 0:
        return _TIME_NAMES[TimestampType.NO_TIMESTAMP]
    return _TIME_NAMES[TimestampType(bool(header.attributes & TIMESTAMP_TYPE_BIT))]


def _codec_name(attributes: int) -> str:
    code = attributes & CODEC_MASK
    return Codec(code).name.lower() if code <= Codec.ZSTD else f"unknown({code})"


def _legacy_crc(message: Message) -> int:
    crc: int = _LEGACY_CRC.unpack_from(message.view, _LEGACY_CRC_POSITION)[0]
    return crc


def _holds(check: Callable[[], None]) -> bool:
    try:
        check()
    except CorruptBatch:
        return False
    return True


def _record_rows(header: BatchHeader, view: memoryview, decode: Decoder | None) -> Iterator[Row]:
    if header.magic == 2:
        batch = RecordBatch(view)
        for record in iter_records(batch):
            fields = _record_fields(header, record)
            fields["sequence"] = record.sequence
            fields["headerKeys"] = [name for name, _ in record.headers]
            if batch.is_control:
                fields |= control_fields(record)
            elif decode:
                fields |= decode(record)
            yield Row("record", fields)
        return
    outer = Message(view)
    messages = (
        [(m, o, t) for m, o, t, _ in outer.inner()]
        if outer.is_compressed
        else [(outer, header.last_offset, outer.timestamp)]
    )
    for message, offset, timestamp in messages:
        record = Record(offset, timestamp, outer.timestamp_type, message.key, message.value)
        fields = _record_fields(header, record)
        fields["isValid"] = _holds(message.check)
        fields["crc"] = _legacy_crc(message)
        yield Row("record", fields | (decode(record) if decode else {}))


def _record_fields(header: BatchHeader, record: Record) -> dict[str, Any]:
    return {
        "offset": record.offset,
        _time_name(header): record.timestamp,
        "keySize": -1 if record.key is None else len(record.key),
        "valueSize": -1 if record.value is None else len(record.value),
    }
