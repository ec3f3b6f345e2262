"""EpochSettings: the configuration that consumer, share and streams groups have in common.

A value is the broker's (`group.KIND.…`) unless the group has its own (`KIND.…`), where KIND is consumer, share or
streams.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EpochSettings:
    session_timeout_ms: int = 45_000  # group.KIND.session.timeout.ms, KIND.session.timeout.ms
    heartbeat_interval_ms: int = 5_000  # group.KIND.heartbeat.interval.ms, KIND.heartbeat.interval.ms
    assignment_interval_ms: int = 1_000  # group.KIND.assignment.interval.ms, KIND.assignment.interval.ms
    size_max: int = 2**31 - 1  # group.KIND.max.size
