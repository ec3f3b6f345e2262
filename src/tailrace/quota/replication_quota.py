"""ReplicationQuota: how many bytes per second this broker may use for replication, measured as in Kafka.

All throttled partitions share one rate. While the rate of the last windows is above the limit, the quota is exceeded.
There is no computed pause: the replica fetcher asks again.
"""

from __future__ import annotations

from collections.abc import Callable

from tailrace.quota.rate import SimpleRate, Windows


class ReplicationQuota:
    def __init__(self, windows: Windows, limit: Callable[[], int]) -> None:
        """`limit` returns the current limit in bytes per second."""
        self._windows = windows
        self._rate: SimpleRate | None = None  # None until its first use
        self._limit = limit

    def record(self, size: int, now_ms: int) -> None:
        self._since(now_ms).record(size, now_ms)

    def per_second(self, now_ms: int) -> float:
        return self._since(now_ms).observe(now_ms).per_second

    def is_exceeded(self, now_ms: int) -> bool:
        return self.per_second(now_ms) > self._limit()

    def _since(self, now_ms: int) -> SimpleRate:
        if self._rate is None:
            self._rate = SimpleRate(self._windows, now_ms)
        return self._rate
