"""ShareSettings: what configuration says about a share group, the broker's and the group's own."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ShareSettings:
    session_timeout_ms: int = 45_000  # group.share.session.timeout.ms, share.session.timeout.ms
    heartbeat_interval_ms: int = 5_000  # group.share.heartbeat.interval.ms, share.heartbeat.interval.ms
    assignment_interval_ms: int = 1_000  # group.share.assignment.interval.ms, share.assignment.interval.ms
    size_max: int = 200  # group.share.max.size
    initialize_retry_ms: int = 30_000  # group.share.initialize.retry.interval.ms
