"""ReplicationQuota: how many bytes a second copies of partitions may take of this broker, as Kafka measures it.

One rate for all of them together. It is exceeded while the rate of the last windows is above the limit; nothing is
held back by a calculated pause, whoever copies asks again.
"""

from __future__ import annotations

from collections.abc import Callable

from tailrace.quota.rate import Rate, Windows


class ReplicationQuota:
    def __init__(self, windows: Windows, limit: Callable[[], int], now_ms: int) -> None:
        """`limit`: bytes per second, as it is set now."""
        self._rate = Rate(windows, now_ms)
        self._limit = limit

    def record(self, size: int, now_ms: int) -> None:
        self._rate.record(size, now_ms)

    def is_exceeded(self, now_ms: int) -> bool:
        return self._rate.observe(now_ms).per_second > self._limit()
