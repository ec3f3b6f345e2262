"""StreamsSettings: what configuration says about a streams group, the broker's and the group's own."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StreamsSettings:
    session_timeout_ms: int = 45_000  # group.streams.session.timeout.ms, streams.session.timeout.ms
    heartbeat_interval_ms: int = 5_000  # group.streams.heartbeat.interval.ms, streams.heartbeat.interval.ms
    assignment_interval_ms: int = 1_000  # group.streams.assignment.interval.ms, streams.assignment.interval.ms
    initial_rebalance_delay_ms: int = 3_000  # group.streams.initial.rebalance.delay.ms, streams.initial.…
    standby_replicas: int = 0  # group.streams.num.standby.replicas, streams.num.standby.replicas
    size_max: int = 2**31 - 1  # group.streams.max.size

    @property
    def assignment_configs(self) -> dict[str, str]:
        """What shares depend on; kept with the group, so that a change is noticed."""
        return {"num.standby.replicas": str(self.standby_replicas)}
