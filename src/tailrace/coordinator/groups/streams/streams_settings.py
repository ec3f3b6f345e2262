"""StreamsSettings: the configuration of a streams group, from the broker and from the group itself."""

from __future__ import annotations

from dataclasses import dataclass

from tailrace.coordinator.groups.epoch.epoch_settings import EpochSettings


@dataclass(frozen=True, slots=True)
class StreamsSettings(EpochSettings):
    initial_rebalance_delay_ms: int = 3_000  # group.streams.initial.rebalance.delay.ms, streams.initial.…
    standby_replicas: int = 0  # group.streams.num.standby.replicas, streams.num.standby.replicas

    @property
    def assignment_configs(self) -> dict[str, str]:
        """The configs that the assignor depends on. They are stored with the group, so that a change is noticed."""
        return {"num.standby.replicas": str(self.standby_replicas)}
