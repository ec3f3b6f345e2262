"""Our log on a golden directory, and all values that it reads there, in the form of the manifest."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tailrace.log.disk.files import DiskFiles, Files
from tailrace.log.partition_log import PartitionLog
from tailrace.log.reading.timestamp_lookup import find_offset
from tailrace.log.recovery.recovery import RecoveryReport, open_log
from tailrace.log.segments.segment import Segment
from tailrace.log.watermarks import Isolation
from tailrace.model.configs.topic_settings import parse_topic_config
from tailrace.records.batch import Codec, RecordBatch
from tailrace.records.legacy import Message
from tailrace.records.record import Record, iter_records
from tests.support.golden import Golden


def open_golden(
    directory: Golden,
    folder: Path,
    *,
    files: Files | None = None,
    report: RecoveryReport | None = None,
    **changed: Any,
) -> PartitionLog:
    """Open the log in `folder`, an unpacked golden directory, with the values with which Kafka opened it."""
    settings = {**directory.manifest["open"], **changed}
    log = open_log(
        files or DiskFiles(),
        str(folder),
        parse_topic_config(settings["config"]),
        now_ms=settings["now_ms"],
        log_start_offset=settings["log_start_offset"],
        recovery_point=settings["recovery_point"],
        clean=settings["clean_shutdown"],
        report=report,
    )
    log.run_due(settings["now_ms"])
    return log


def shut_down(log: PartitionLog, now_ms: int) -> None:
    log.flush(now_ms)
    log.close()


def state_of(log: PartitionLog) -> dict[str, Any]:
    first_unstable = log.marks.first_unstable
    return {
        "log_start_offset": log.log_start_offset,
        "log_end_offset": log.log_end_offset,
        "high_watermark": _batch_start(log, log.high_watermark),
        "last_stable_offset": _batch_start(log, log.last_stable_offset),
        "first_unstable_offset": None if first_unstable is None else first_unstable.offset,
        "recovery_point": log.recovery_point,
        "size": log.size,
        "segments": list(log.segments.base_offsets),
        "leader_epochs": [list(entry) for entry in log.epochs.entries],
        "producer_snapshot": log.producers.latest_snapshot_offset,
        "producer_state_end": log.producers.end_offset,
    }


def _batch_start(log: PartitionLog, offset: int) -> int:
    """Return the base offset of the batch that holds an offset.

    Kafka rounds an offset inside a batch (or inside a gap that compaction left) in this way after it has looked it up.
    """
    found = next((header for segment in log.segments if (header := segment.find(offset))), None)
    return log.log_end_offset if found is None else found.base_offset


def segments_of(log: PartitionLog) -> list[dict[str, Any]]:
    return [_segment(segment) for segment in log.segments]


def _segment(segment: Segment) -> dict[str, Any]:
    return {
        "base_offset": segment.base_offset,
        "size": segment.size,
        "next_offset": segment.next_offset(),
        "largest_timestamp": segment.largest.timestamp,
        "offset_of_largest_timestamp": segment.largest.offset,
        "first_batch_timestamp": segment.compaction_timestamp_ms(),
        "offset_index_entries": segment.offset_index.count,
        "time_index_entries": segment.time_index.count,
        "aborted_transactions": [entry._asdict() for entry in segment.transaction_index.entries],
    }


def producers_of(log: PartitionLog) -> dict[str, Any]:
    states = log.producers
    return {
        "map_end_offset": states.end_offset,
        "producers": [
            {
                "producer_id": state.producer_id,
                "producer_epoch": state.producer_epoch,
                "coordinator_epoch": state.coordinator_epoch,
                "last_timestamp": state.last_timestamp,
                "current_transaction_first_offset": state.transaction_first_offset,
                "batches": [
                    {
                        "first_sequence": batch.first_sequence,
                        "last_sequence": batch.last_sequence,
                        "first_offset": batch.first_offset,
                        "last_offset": batch.last_offset,
                        "timestamp": batch.timestamp,
                    }
                    for batch in state.batches
                ],
            }
            for _, state in sorted(states.producers.items())
        ],
        "ongoing": [[one.producer_id, first, None] for first, one in sorted(states.open_transactions.items())],
        "unreplicated": [
            [one.producer_id, first, one.last_offset] for first, one in sorted(states.ended_transactions.items())
        ],
    }


def aborted_of(log: PartitionLog) -> list[dict[str, Any]]:
    found = log.segments.aborted_transactions(log.segments.first.base_offset, log.log_start_offset, log.log_end_offset)
    return [entry._asdict() for entry in found]


def read_all(log: PartitionLog, isolation: Isolation = Isolation.LOG_END) -> bytes:
    """Return the bytes of every batch from the log start on, read fetch by fetch."""
    found = bytearray()
    offset = log.log_start_offset
    while True:
        read = log.read(offset, 2**31 - 1, isolation, at_least_one=True)
        data = read.slice.read() if read.slice else b""
        if not data:
            return bytes(found)
        found += data
        offset = max(last for _, last in split(data)) + 1


def split(data: bytes) -> Iterator[tuple[RecordBatch | Message, int]]:
    """Yield batches and messages of all formats, with the last offset of each."""
    view = memoryview(data)
    while view:
        entry = RecordBatch(view) if view[16] == 2 else Message(view)
        size = entry.size
        if isinstance(entry, RecordBatch):
            entry = RecordBatch(view[:size])
            yield entry, entry.last_offset
        else:
            yield entry, entry.offset
        view = view[size:]


def records_in(data: bytes) -> list[Record]:
    found: list[Record] = []
    for entry, _ in split(data):
        found += iter_records(entry) if isinstance(entry, RecordBatch) else entry.records()
    return found


def plain_record(record: Record) -> list[Any]:
    """Return offset, timestamp, key, value and headers, as in manifests."""
    headers = [[_base64(header.key.encode()), _base64(header.value)] for header in record.headers]
    return [record.offset, record.timestamp, _base64(record.key), _base64(record.value), headers]


def _base64(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def batches_of(data: bytes) -> list[dict[str, Any]]:
    """Return each batch as in manifests, without the fields that only Kafka's decoder gives."""
    return [_batch(entry) for entry, _ in split(data)]


def _batch(entry: RecordBatch | Message) -> dict[str, Any]:
    if isinstance(entry, Message):
        return {
            "magic": entry.magic,
            "size": entry.size,
            "last_offset": entry.offset,
            "codec": entry.codec.name.lower(),
            "max_timestamp": entry.timestamp,
            "records": [plain_record(record) for record in entry.records()],
        }
    return {
        "magic": 2,
        "size": entry.size,
        "base_offset": entry.base_offset,
        "last_offset": entry.last_offset,
        "next_offset": entry.next_offset,
        "codec": Codec(entry.codec).name.lower(),
        "timestamp_type": "LogAppendTime" if entry.is_log_append_time else "CreateTime",
        "max_timestamp": entry.max_timestamp,
        "leader_epoch": entry.leader_epoch,
        "producer_id": entry.producer_id,
        "producer_epoch": entry.producer_epoch,
        "base_sequence": entry.base_sequence,
        "last_sequence": entry.last_sequence,
        "transactional": entry.is_transactional,
        "control": entry.is_control,
        "delete_horizon_ms": entry.delete_horizon_ms,
        "count": entry.record_count,
        "crc": entry.crc,
        "records": [plain_record(record) for record in iter_records(entry)],
    }


def lookup(log: PartitionLog, timestamp: int) -> list[Any] | None:
    """Return timestamp, offset and leader epoch as ListOffsets does for a time, or None."""
    found = find_offset(log, timestamp)
    return None if found is None else [found.timestamp, found.offset, found.leader_epoch]


def consume(log: PartitionLog, isolation: Isolation = Isolation.READ_UNCOMMITTED) -> list[Record]:
    """Return the records that a consumer keeps: no control batches and, with read_committed, no aborted records."""
    found: list[Record] = []
    offset = log.log_start_offset
    while True:
        read = log.read(offset, 2**31 - 1, isolation, at_least_one=True)
        data = read.slice.read() if read.slice else b""
        if not data:
            return found
        aborted = {(one.producer_id, one.first_offset): one.last_offset for one in read.aborted or ()}
        for entry, last in split(data):
            offset = last + 1
            if isinstance(entry, RecordBatch) and (entry.is_control or _is_aborted(entry, aborted)):
                continue
            records = iter_records(entry) if isinstance(entry, RecordBatch) else entry.records()
            found += [record for record in records if record.offset >= log.log_start_offset]


def _is_aborted(batch: RecordBatch, aborted: dict[tuple[int, int], int]) -> bool:
    return batch.is_transactional and any(
        producer_id == batch.producer_id and first <= batch.base_offset <= last
        for (producer_id, first), last in aborted.items()
    )
