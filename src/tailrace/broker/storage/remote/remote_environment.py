"""RemoteEnvironment: what tiered storage needs of the broker around it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tailrace.model.ids import TopicId
from tailrace.tiers.steps import Work


@dataclass(frozen=True, slots=True)
class RemoteEnvironment:
    submit: Callable[[str, Work], None]  # runs work on a thread of a lane: copy, expiration or read
    is_turn_over: Callable[[], bool]
    is_tiered: Callable[[TopicId], bool]  # True if the metadata has a topic with this id and remote.storage.enable
    has_config_updates: Callable[[], bool]  # True while changed settings have not reached all logs
    pool_sizes: Callable[[], tuple[int, int]]  # the current sizes of the pools for copies and expirations
    task_interval_ms: int
    retry_ms: Callable[[int], int]  # returns the wait after a number of failures in a row
