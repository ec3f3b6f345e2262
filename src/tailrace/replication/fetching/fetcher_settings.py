"""FetcherSettings: the settings that all replica fetchers of a broker share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tailrace.model.ids import BrokerId
from tailrace.replication.fetching.throttles import FollowerThrottle


@dataclass(frozen=True, slots=True, kw_only=True)
class FetcherSettings:
    """The broker's id and epoch, and its `replica.fetch.…` settings."""

    broker_id: BrokerId
    broker_epoch: Callable[[], int]
    wait_ms_max: int
    bytes_min: int
    partition_bytes_max: int
    response_bytes_max: int
    backoff_ms: int
    timeout_ms: int
    throttle: FollowerThrottle | None = None
    ahead_bytes_min: int = 65_536  # a response of this size or more: the next fetch is sent before the append
