"""ConsumerSettings: what configuration says about a consumer group, the broker's and the group's own."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ConsumerSettings:
    session_timeout_ms: int = 45_000  # group.consumer.session.timeout.ms, consumer.session.timeout.ms
    heartbeat_interval_ms: int = 5_000  # group.consumer.heartbeat.interval.ms, consumer.heartbeat.interval.ms
    assignment_interval_ms: int = 1_000  # group.consumer.assignment.interval.ms, consumer.assignment.interval.ms
    size_max: int = 2**31 - 1  # group.consumer.max.size
    pattern_refresh_ms: int = 600_000  # group.consumer.regex.refresh.interval.ms
    assignors: tuple[str, ...] = ("uniform", "range")  # group.consumer.assignors; the first is the default
    migration_policy: str = "bidirectional"  # group.consumer.migration.policy
    classic_size_max: int = 2**31 - 1  # group.max.size, for a group that goes back to the classic protocol

    @property
    def may_upgrade(self) -> bool:
        return self.migration_policy in ("upgrade", "bidirectional")

    @property
    def may_downgrade(self) -> bool:
        return self.migration_policy in ("downgrade", "bidirectional")
