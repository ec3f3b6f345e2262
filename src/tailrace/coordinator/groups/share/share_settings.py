"""ShareSettings: the configuration of a share group, from the broker and from the group itself."""

from __future__ import annotations

from dataclasses import dataclass

from tailrace.coordinator.groups.epoch.epoch_settings import EpochSettings


@dataclass(frozen=True, slots=True)
class ShareSettings(EpochSettings):
    size_max: int = 200  # group.share.max.size
    initialize_retry_ms: int = 30_000  # group.share.initialize.retry.interval.ms
