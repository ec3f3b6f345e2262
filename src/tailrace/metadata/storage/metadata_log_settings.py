"""MetadataLogSettings: segment size, snapshot interval and retention of the metadata log."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataLogSettings:
    """Kafka's metadata.log.* and metadata.max.* keys."""

    segment_bytes: int = 1024 * 1024 * 1024
    segment_ms: int = 7 * 86_400_000
    snapshot_after_bytes: int = 20 * 1024 * 1024
    snapshot_after_ms: int = 3_600_000
    retention_bytes: int = 100 * 1024 * 1024
    retention_ms: int = 7 * 86_400_000
    internal_segment_bytes: int | None = None  # small segments for tests
