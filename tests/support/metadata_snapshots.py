"""Snapshots of a metadata log at a chosen moment."""

from __future__ import annotations

from tailrace.metadata.storage.metadata_log import MetadataLog


def write_snapshot(log: MetadataLog, now_ms: int) -> None:
    """Write a complete snapshot of the current image."""
    log.flush(now_ms)
    log.snapshots.begin(log.image, log.quorum, now_ms)
    while log.snapshots.is_writing:
        log.snapshots.step(log.log, log.image, log.quorum, now_ms)
