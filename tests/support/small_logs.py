"""Small logs for unit tests: in memory, with a clock that is an argument."""

from __future__ import annotations

from tailrace.log.append import AppendResult
from tailrace.log.disk.files import Files
from tailrace.log.partition_log import PartitionLog
from tailrace.log.recovery.recovery import RecoveryReport, open_log
from tailrace.log.segments.segment import Segment
from tailrace.model.configs.topic_settings import parse_topic_config
from tailrace.records.batch import Codec, RecordBatch
from tailrace.records.checks.validation import Origin
from tests.support.batches import batch, end_marker
from tests.support.memory_files import MemoryFiles

NOW_MS = 1_700_000_000_000
FOLDER = "/data/topic-0"


def new_files(folder: str = FOLDER) -> MemoryFiles:
    files = MemoryFiles()
    files.now_ms = NOW_MS
    files.make_directory(folder)
    return files


def open_small(
    files: Files | None = None,
    settings: dict[str, str] | None = None,
    *,
    folder: str = FOLDER,
    now_ms: int = NOW_MS,
    clean: bool = True,
    log_start_offset: int = 0,
    recovery_point: int = 0,
    report: RecoveryReport | None = None,
) -> PartitionLog:
    return open_log(
        files or new_files(folder),
        folder,
        parse_topic_config(settings or {}),
        now_ms=now_ms,
        clean=clean,
        log_start_offset=log_start_offset,
        recovery_point=recovery_point,
        report=report,
    )


def append(
    log: PartitionLog,
    *values: bytes | None,
    timestamp: int | list[int] = NOW_MS,
    now_ms: int = NOW_MS,
    leader_epoch: int = 0,
    codec: Codec = Codec.NONE,
    producer_id: int = -1,
    producer_epoch: int = -1,
    sequence: int = -1,
    transactional: bool = False,
) -> AppendResult:
    """Append one batch of these values as leader."""
    data = batch(
        *values,
        timestamp=timestamp,
        codec=codec,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        sequence=sequence,
        transactional=transactional,
    )
    return log.append_as_leader(data, leader_epoch=leader_epoch, now_ms=now_ms)


def end_transaction(
    log: PartitionLog,
    producer_id: int,
    *,
    commit: bool,
    producer_epoch: int = 0,
    coordinator_epoch: int = 0,
    transaction_version: int = 0,
) -> AppendResult:
    marker = end_marker(
        producer_id,
        commit=commit,
        producer_epoch=producer_epoch,
        timestamp=NOW_MS,
        coordinator_epoch=coordinator_epoch,
    )
    return log.append_as_leader(
        marker, leader_epoch=0, now_ms=NOW_MS, origin=Origin.COORDINATOR, transaction_version=transaction_version
    )


def replicate(log: PartitionLog, offset: int | None = None) -> None:
    """Move the high watermark to an offset, by default the log's end."""
    log.advance_high_watermark(log.log_end_offset if offset is None else offset)


def new_segment(
    files: Files, base_offset: int = 0, settings: dict[str, str] | None = None, *, folder: str = FOLDER
) -> Segment:
    return Segment.create(files, folder, base_offset, parse_topic_config(settings or {}), now_ms=NOW_MS)


def placed(offset: int, *values: bytes | None, timestamp: int | list[int] = NOW_MS, **fields: int) -> RecordBatch:
    """Return a batch that already has an offset."""
    return RecordBatch(memoryview(batch(*values, timestamp=timestamp, base_offset=offset, leader_epoch=0, **fields)))


def put(segment: Segment, *batches: RecordBatch) -> None:
    """Append batches to a segment in one write."""
    data = b"".join(one.view for one in batches)
    segment.append(data, [(one.size, one.last_offset, one.max_timestamp) for one in batches])
