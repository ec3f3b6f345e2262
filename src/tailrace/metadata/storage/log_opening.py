"""Opening a metadata log, to write it or to follow it: its files, its latest snapshot, the batches after that.

snapshots = SnapshotStore(files, directory, settings, now_ms)
log = open_metadata_log(files, directory, snapshots, settings, now_ms)
loader, start = load_snapshot(files, directory, snapshots.latest, cluster_id)
for batch in batches_from(log, start):
    loader.feed(batch)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from tailrace.log.disk import file_names
from tailrace.log.disk.checkpoints import read_clean_shutdown
from tailrace.log.disk.files import Files, join
from tailrace.log.partition_log import PartitionLog
from tailrace.log.recovery.recovery import open_log
from tailrace.log.recovery.recovery_scan import check_batch
from tailrace.log.segments.batch_walk import read_batches
from tailrace.metadata.image.delta import MetadataDelta
from tailrace.metadata.image.image import MetadataImage
from tailrace.metadata.image.loader import MetadataLoader
from tailrace.metadata.image.registrations import InconsistentMetadata
from tailrace.metadata.storage.metadata_log_settings import MetadataLogSettings
from tailrace.metadata.storage.metadata_snapshot import SnapshotId, UnreadableSnapshot, read_snapshot
from tailrace.metadata.storage.snapshot_store import SnapshotStore
from tailrace.metadata.storage.storage_format import METADATA_TOPIC_ID
from tailrace.model.ids import Offset
from tailrace.model.topic_config import INT_MAX, LONG_MAX, TopicConfig
from tailrace.records.batch import (
    HEADER_SIZE,
    LENGTH_POSITION,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    CorruptBatch,
    RecordBatch,
)

MAX_BATCH_BYTES: Final = 8 * 1024 * 1024
_READ_CHUNK: Final = 4 * 1024 * 1024


def open_metadata_log(
    files: Files, directory: str, snapshots: SnapshotStore, settings: MetadataLogSettings, now_ms: int
) -> PartitionLog:
    """Open the log in its folder, aligned with the snapshots there."""
    config = TopicConfig(
        max_message_bytes=MAX_BATCH_BYTES,
        segment_bytes=settings.segment_bytes,
        internal_segment_bytes=settings.internal_segment_bytes,
        segment_ms=settings.segment_ms,
        retention_ms=-1,
        retention_bytes=-1,
    )
    latest = snapshots.latest
    log = open_log(
        files,
        directory,
        config,
        now_ms=now_ms,
        # The content of a snapshot was durable before the snapshot was written. Only later batches can be torn.
        recovery_point=latest.end_offset if latest else 0,
        may_have_gaps=False,
        producer_expiration_ms=INT_MAX,
    )
    if log.topic_id is None:
        log.assign_topic_id(METADATA_TOPIC_ID)
    snapshots.align(log, now_ms)
    return log


def check_after_clean_stop(files: Files, directory: str, latest: SnapshotId | None) -> None:
    """Raise CorruptBatch if the last stop was clean and the log is damaged behind its latest snapshot.

    After a crash the end of the log may be torn, and recovery cuts it. After a clean stop everything was durable:
    whatever is damaged by now was committed, and so were the changes behind it. Apache Kafka cuts them off silently.
    """
    marker = join(directory.rpartition("/")[0], file_names.CLEAN_SHUTDOWN)
    if read_clean_shutdown(files, marker) is None:
        return
    named = ((file_names.parse_segment_file(entry.name), entry.name) for entry in files.entries(directory))
    logs = sorted((found[0], name) for found, name in named if found is not None and found[1:] == (file_names.LOG, ""))
    start = latest.end_offset if latest else 0
    ends = [*(base_offset for base_offset, _ in logs), LONG_MAX][1:]
    logs = [one for one, end in zip(logs, ends, strict=True) if end > start]
    for base_offset, name in logs:
        try:
            _check_segment(files, join(directory, name), base_offset)
        except CorruptBatch as error:
            raise CorruptBatch(
                f"{error.reason}. The last stop was clean, so topics, ACLs and users after this batch were committed,"
                f" and would be lost. Restore the file from a copy; or remove {marker} to start without them: the log"
                " is then cut here, and what is cut is kept as a .broken file",
                path=error.path,
                position=error.position,
            ) from error


def _check_segment(files: Files, path: str, offset: Offset) -> None:
    file = files.open(path, read_only=True)
    try:
        for header, view in read_batches(file, 0, files.size(path)):
            try:
                check_batch(header, view)
                if header.base_offset != offset:
                    raise CorruptBatch(f"a batch begins at offset {header.base_offset} where {offset} is expected")
            except CorruptBatch as error:
                raise error.at(path, header.position) from None
            offset = header.last_offset + 1
    finally:
        file.close()


def load_snapshot(
    files: Files, directory: str, latest: SnapshotId | None, cluster_id: str
) -> tuple[MetadataLoader, Offset]:
    """Return a loader with the latest snapshot, and the offset after it. Without a snapshot: an empty image and 0."""
    image = MetadataImage(cluster_id=cluster_id)
    if latest is None:
        return MetadataLoader(image), 0
    path = join(directory, latest.file_name)
    delta = MetadataDelta(image)
    try:
        snapshot = read_snapshot(files, path, delta.replay)
    except (CorruptBatch, InconsistentMetadata) as error:
        raise UnreadableSnapshot(path, error) from error
    start = latest.end_offset
    quorum = replace(snapshot.quorum, voters_offset=start - 1)
    if start > 0:
        image = delta.apply(offset=start - 1, epoch=latest.epoch, timestamp_ms=snapshot.last_contained_timestamp)
    return MetadataLoader(image, quorum), start


def batches_from(log: PartitionLog, start: Offset) -> Iterator[RecordBatch]:
    """Yield the log's batches from an offset on."""
    while start < log.log_end_offset:
        found = log.read(start, _READ_CHUNK, at_least_one=True).slice
        if found is None:
            return
        before = start
        for batch in _whole_batches(found.read()):
            if batch.last_offset >= start:
                yield batch
                start = batch.last_offset + 1
        if start == before:
            raise CorruptBatch(f"no batch contains offset {start}", path=found.file.path, position=found.position)


def _whole_batches(data: bytes) -> Iterator[RecordBatch]:
    """Yield the complete batches in a piece of a log; the last batch may be incomplete."""
    view = memoryview(data)
    position = 0
    while len(view) - position >= LOG_OVERHEAD:
        start = position + LENGTH_POSITION
        size = LOG_OVERHEAD + int.from_bytes(view[start : start + 4], "big")
        if size < HEADER_SIZE:
            raise CorruptBatch(f"a batch in the metadata log has an invalid size of {size} bytes")
        if position + size > len(view):
            return
        if view[position + MAGIC_POSITION] != 2:
            # Batches of another format have their offsets elsewhere, so walking on would lead nowhere.
            raise CorruptBatch(
                f"a batch in the metadata log has format {view[position + MAGIC_POSITION]}; only 2 is allowed"
            )
        yield RecordBatch(view[position : position + size])
        position += size
