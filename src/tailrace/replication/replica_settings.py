"""ReplicaSettings: settings and functions that all replicas of a broker share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tailrace.metadata.image.image import EMPTY_IMAGE, MetadataImage
from tailrace.model.ids import BrokerId, TopicPartition
from tailrace.replication.isr.isr_state import UNKNOWN_BROKER_EPOCH, IsrProposal


@dataclass(slots=True)
class IsrCounts:
    """Counters of ISR changes that this broker proposed."""

    shrinks: int = 0
    expands: int = 0
    failed: int = 0


@dataclass(slots=True, kw_only=True)
class ReplicaSettings:
    broker_id: BrokerId
    image: Callable[[], MetadataImage] = lambda: EMPTY_IMAGE  # the current metadata
    broker_epoch: Callable[[], int] = lambda: UNKNOWN_BROKER_EPOCH
    replica_lag_time_max_ms: int = 30_000
    isr_counts: IsrCounts = field(default_factory=IsrCounts)
    on_proposal: Callable[[TopicPartition, IsrProposal], None] = lambda key, proposal: None  # for the controller

    def alive_epoch(self, broker_id: BrokerId) -> int | None:
        """Return the epoch of a broker that is registered and not fenced, or None."""
        broker = self.image().brokers.get(broker_id)
        return None if broker is None or broker.fenced else broker.epoch

    def is_active(self, broker_id: BrokerId) -> bool:
        return self.image().is_active(broker_id)
