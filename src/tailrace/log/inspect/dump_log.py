"""The batches of a .log or .checkpoint file, and their records, as rows (see dump.py).

A batch with a wrong checksum is shown as invalid, and the walk continues after it. If the bytes are not a batch, the
rest of the file is shown by its size, as a torn or preallocated tail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from struct import Struct
from typing import Any

from tailrace.log.disk.file_names import LOG, OFFSET_INDEX
from tailrace.log.disk.files import File, Files
from tailrace.log.inspect.dump import Row, dump_small_file
from tailrace.log.inspect.dump_decoders import Decoder, control_fields
from tailrace.log.segments.batch_walk import BatchHeader, read_batches, walk_headers
from tailrace.log.segments.indexes.index_file import CorruptIndex
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
    from_byte: int = 0  # the dump starts with the batch that contains this byte


def dump_log_file(files: Files, path: str, options: DumpOptions) -> Iterator[Row]:
    """Yield the rows of a log file: a batch, its records, the next batch."""
    file = files.open(path, read_only=True)
    try:
        size = file.size()
        position, end = 0, size
        try:
            if options.from_byte:
                position = _batch_at(files, file, path, options.from_byte)
            if options.max_bytes is not None:
                end = min(size, position + options.max_bytes)
            for header, view in read_batches(file, position, end):
                yield from _dump_batch(header, view, options)
                position = header.position + header.size
        except CorruptBatch as error:
            if options.max_bytes is None or end == size:
                yield Row("invalidBytes", {"size": size - position, "position": position, "reason": error.reason})
    finally:
        file.close()


def _batch_at(files: Files, file: File, path: str, byte: int) -> int:
    """Return the position of the batch that contains a byte, or of the last batch if there are fewer bytes."""
    found = _indexed_position(files, path, byte)
    for header in walk_headers(file, found, file.size()):
        if header.position > byte:
            break
        found = header.position
    return found


def _indexed_position(files: Files, path: str, byte: int) -> int:
    """Return the last position at or before a byte that the segment's index has."""
    try:
        entries = dump_small_file(files, path.removesuffix(LOG) + OFFSET_INDEX)
        positions = (int(row.fields["position"]) for row in entries)
        return max((position for position in positions if position <= byte), default=0)
    except (FileNotFoundError, CorruptIndex):
        return 0


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
