"""ShardPlace: a partition of a coordinator's topic that is led here, with its shard and the shard's state."""

from __future__ import annotations

from enum import Enum
from typing import Generic, TypeVar

from tailrace.coordinator.loading import Loading
from tailrace.coordinator.shard import CoordinatorShard
from tailrace.coordinator.shard_writer import ShardWriter
from tailrace.coordinator.timers import Timers
from tailrace.model.ids import TopicPartition

S = TypeVar("S", bound=CoordinatorShard)


class ShardState(Enum):
    LOADING = "loading"
    ACTIVE = "active"
    FAILED = "failed"
    RESIGNED = "resigned"


class ShardPlace(Generic[S]):
    __slots__ = ("began_ms", "key", "loading", "shard", "state", "timers", "writer")

    def __init__(self, key: TopicPartition, shard: S, timers: Timers, writer: ShardWriter, now_ms: int) -> None:
        self.key = key
        self.shard = shard
        self.timers = timers
        self.writer = writer
        self.state = ShardState.LOADING
        self.loading: Loading | None = None
        self.began_ms = now_ms

    def begin(self, loading: Loading) -> None:
        """Note that loading has begun."""
        self.loading = loading

    def end_loading(self, state: ShardState) -> None:
        """Note that the shard is loaded, or that loading failed."""
        self.loading = None
        self.state = state
