"""Coordinators: the coordinators on this broker, by the topic that stores their state.

A coordinator is called when this broker becomes or stops being the leader of a partition of its topic, and when a
deadline of the coordinator passes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from tailrace.coordinator.key_partition import partition_of
from tailrace.metadata.image.image import MetadataImage
from tailrace.model.ids import TopicPartition


class Coordinator(Protocol):
    """A CoordinatorRuntime, or an object that wraps one."""

    topic: str

    def lead(self, partition: int, now_ms: int) -> None: ...

    def resign(self, partition: int, now_ms: int) -> None: ...

    def tick(self, now_ms: int, is_turn_over: Callable[[], bool]) -> None: ...

    def next_deadline_ms(self) -> int | None: ...


class Coordinators:
    def __init__(self, is_turn_over: Callable[[], bool]) -> None:
        """`is_turn_over()` returns True if the loop should do other work now."""
        self._is_turn_over = is_turn_over
        self._runtimes: dict[str, Coordinator] = {}

    def add(self, runtime: Coordinator) -> None:
        assert runtime.topic not in self._runtimes, f"{runtime.topic} already has a coordinator"
        self._runtimes[runtime.topic] = runtime

    def get(self, topic: str) -> Coordinator | None:
        return self._runtimes.get(topic)

    def partition_of(self, topic: str, key: str, image: MetadataImage) -> int:
        """Return the partition of a coordinator's topic for a key, or -1 if the topic does not exist."""
        known = image.topics.get(topic)
        return -1 if known is None else partition_of(key, len(known.partitions))

    # Leadership

    def lead(self, key: TopicPartition, now_ms: int) -> None:
        runtime = self._runtimes.get(key.topic)
        if runtime is not None:
            runtime.lead(key.partition, now_ms)

    def resign(self, key: TopicPartition, now_ms: int) -> None:
        runtime = self._runtimes.get(key.topic)
        if runtime is not None:
            runtime.resign(key.partition, now_ms)

    # Time

    def tick(self, now_ms: int) -> None:
        for runtime in self._runtimes.values():
            runtime.tick(now_ms, self._is_turn_over)

    def next_deadline_ms(self) -> int | None:
        first_ms = None
        for runtime in self._runtimes.values():
            deadline_ms = runtime.next_deadline_ms()
            if deadline_ms is not None and (first_ms is None or deadline_ms < first_ms):
                first_ms = deadline_ms
        return first_ms
