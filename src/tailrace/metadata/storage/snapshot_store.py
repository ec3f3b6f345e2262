"""SnapshotStore: the snapshots beside the metadata log: when one is due, and which files can be removed then.

A snapshot is due when the log has grown by twice the latest snapshot and by SMALL_BYTES, or by
`metadata.log.max.record.bytes.between.snapshots` if that is less. So the time of a restart depends on the size of the
metadata, not on the number of changes. A snapshot is also due when the log has grown at all and
`metadata.log.max.snapshot.interval.ms` has passed. It is written one batch at a time.

The oldest snapshot is removed, and the log's start moves up to the next one, while log and snapshots together exceed
`metadata.max.retention.bytes` or while it is older than `metadata.max.retention.ms`. The latest one is always kept.
"""

from __future__ import annotations

import logging
from typing import Final

from tailrace.log.disk.files import Files, join
from tailrace.log.partition_log import PartitionLog
from tailrace.metadata.image.image import MetadataImage
from tailrace.metadata.image.loader import QuorumFacts
from tailrace.metadata.image.registrations import InconsistentMetadata
from tailrace.metadata.storage.metadata_log_settings import MetadataLogSettings
from tailrace.metadata.storage.metadata_snapshot import CHECKPOINT, SnapshotId, SnapshotWriter, parse_name, read_header
from tailrace.model.ids import Offset

_log = logging.getLogger(__name__)
SMALL_BYTES: Final = 2 * 1024 * 1024  # replayed in a quarter of a second


class SnapshotStore:
    def __init__(self, files: Files, directory: str, settings: MetadataLogSettings, now_ms: int) -> None:
        self._files = files
        self._directory = directory
        self._settings = settings
        self._writer: SnapshotWriter | None = None
        self._bytes_since = 0
        self._latest_bytes = 0  # size of the latest snapshot
        self._last_ms = now_ms
        self.ids: list[SnapshotId] = []  # oldest first
        unneeded = []
        for entry in files.entries(directory):
            found = parse_name(entry.name)
            if found is not None:
                if found[1] == CHECKPOINT:
                    self.ids.append(found[0])
                else:
                    unneeded.append(entry.name)
        self.ids.sort()
        for name in unneeded:
            files.remove(join(directory, name))
        self._measure_latest()

    @property
    def latest(self) -> SnapshotId | None:
        return self.ids[-1] if self.ids else None

    def _measure_latest(self) -> None:
        if self.ids:
            self._latest_bytes = self._files.size(join(self._directory, self.ids[-1].file_name))

    def align(self, log: PartitionLog, now_ms: int) -> None:
        """Bring log and snapshots into agreement when they are opened."""
        latest = self.latest
        if latest is not None:
            newest = log.epochs.latest
            epoch = newest.epoch if newest else 0
            if latest.epoch > epoch or (latest.epoch == epoch and latest.end_offset > log.log_end_offset):
                # It came from a quorum whose log was longer than this one, so the log continues after the snapshot.
                log.truncate_fully(latest.end_offset, now_ms)
        start = log.log_start_offset
        if start > 0 and (latest is None or latest.end_offset < start):
            raise InconsistentMetadata(
                f"{self._directory} starts at offset {start}, and no snapshot contains the records before it"
            )
        self._forget_before(start)

    def _forget_before(self, start: Offset) -> None:
        while self.ids and self.ids[0].end_offset < start:
            self._files.remove(join(self._directory, self.ids.pop(0).file_name))

    def adopt(self, snapshot: SnapshotId) -> None:
        """Add a snapshot that was not written here; the log starts after it."""
        self.abandon()
        self.ids.append(snapshot)
        self._measure_latest()
        self._bytes_since = 0
        self._forget_before(snapshot.end_offset)

    # Writing

    @property
    def is_writing(self) -> bool:
        return self._writer is not None

    def note_bytes(self, size: int) -> None:
        """Count bytes that were appended to the log."""
        self._bytes_since += size

    def begin(self, image: MetadataImage, quorum: QuorumFacts, now_ms: int) -> None:
        self._bytes_since = 0
        self._last_ms = now_ms
        if self._writer is None and SnapshotId(image.offset + 1, image.epoch) not in self.ids:
            self._writer = SnapshotWriter(self._files, self._directory, image, quorum, now_ms)

    def step(self, log: PartitionLog, image: MetadataImage, quorum: QuorumFacts, now_ms: int) -> bool:
        """Begin a snapshot that is due, or write its next piece. Return True while there is more to do."""
        try:
            if self._writer is None:
                if self.is_due(now_ms) and log.recovery_point > image.offset:
                    self.begin(image, quorum, now_ms)
                return self.is_writing
            if not self._writer.step():
                return True
            self.ids.append(self._writer.id)
            self._measure_latest()
            _log.info("snapshot %s of the metadata log written", self._writer.id)
            self._writer = None
            if log.segments.active.size > 0:
                log.roll(now_ms)  # so that whole segments before the snapshot can be removed
            self.clean(log, now_ms)
        except OSError as error:
            # The log still has everything: only the next start takes longer. The next snapshot may succeed.
            _log.error("writing a snapshot of the metadata log, or removing old files, failed: %s", error)
            self.abandon()
        return False

    def is_due(self, now_ms: int) -> bool:
        """Return True if a snapshot should begin."""
        if self._writer is not None:
            return False
        if self._bytes_since >= self._due_bytes():
            return True
        return self._bytes_since > 0 and self._interval > 0 and now_ms - self._last_ms >= self._interval

    def _due_bytes(self) -> int:
        """Return the growth of the log after which a snapshot is due."""
        return min(self._settings.snapshot_after_bytes, max(SMALL_BYTES, 2 * self._latest_bytes))

    @property
    def _interval(self) -> int:
        return self._settings.snapshot_after_ms

    def next_deadline_ms(self, deferred_ms: int | None) -> int | None:
        if self._writer is not None or self._bytes_since >= self._due_bytes():
            return 0
        if not self._bytes_since or not self._interval:
            return deferred_ms
        snapshot_ms: int = self._last_ms + self._interval
        return snapshot_ms if deferred_ms is None else min(snapshot_ms, deferred_ms)

    def abandon(self) -> None:
        """Stop writing a snapshot, and remove its file."""
        if self._writer is not None:
            self._writer.abandon()
            self._writer = None

    # Cleaning

    def clean(self, log: PartitionLog, now_ms: int) -> None:
        """Remove snapshots and segments that later snapshots replace."""
        while len(self.ids) > 1 and (self._is_too_large(log) or self._is_too_old(self.ids[0], now_ms)):
            following = self.ids[1]
            if following.end_offset <= log.log_start_offset:
                return
            log.delete_records(following.end_offset, now_ms)
            log.delete_old_segments(now_ms)
            self._forget_before(following.end_offset)

    def _is_too_large(self, log: PartitionLog) -> bool:
        limit = self._settings.retention_bytes
        sizes = sum(self._files.size(join(self._directory, one.file_name)) for one in self.ids)
        return 0 <= limit < log.size + sizes

    def _is_too_old(self, snapshot: SnapshotId, now_ms: int) -> bool:
        limit = self._settings.retention_ms
        if limit < 0:
            return False
        header = read_header(self._files, join(self._directory, snapshot.file_name))
        return now_ms - header.last_contained_log_timestamp > limit
