"""DeliverySettings: the delivery configs of a share group."""

from __future__ import annotations

from dataclasses import dataclass

from tailrace.log.watermarks import Isolation


@dataclass(frozen=True, slots=True)
class DeliverySettings:
    """The group's share.… configs, or the broker's group.share.… configs."""

    record_lock_duration_ms: int = 30_000
    delivery_count_limit: int = 5
    partition_max_record_locks: int = 2_000
    auto_offset_reset: str = "latest"
    isolation: Isolation = Isolation.READ_UNCOMMITTED
    renew_acknowledge_enable: bool = True
