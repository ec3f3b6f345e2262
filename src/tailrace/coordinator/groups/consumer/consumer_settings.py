"""ConsumerSettings: the configuration of a consumer group, from the broker and from the group itself."""

from __future__ import annotations

from dataclasses import dataclass

from tailrace.coordinator.groups.epoch.epoch_settings import EpochSettings


@dataclass(frozen=True, slots=True)
class ConsumerSettings(EpochSettings):
    pattern_refresh_ms: int = 600_000  # group.consumer.regex.refresh.interval.ms
    assignors: tuple[str, ...] = ("uniform", "range")  # group.consumer.assignors; the first is the default
    migration_policy: str = "bidirectional"  # group.consumer.migration.policy
    classic_size_max: int = 2**31 - 1  # group.max.size, for a group that is converted to a classic group

    @property
    def may_upgrade(self) -> bool:
        return self.migration_policy in ("upgrade", "bidirectional")

    @property
    def may_downgrade(self) -> bool:
        return self.migration_policy in ("downgrade", "bidirectional")
