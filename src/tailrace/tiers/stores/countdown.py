"""Countdown: the time that is left for one copy. The clock is passed in."""

from __future__ import annotations

from collections.abc import Callable

from tailrace.tiers.stores.remote_store import RemoteStorageError


class Countdown:
    def __init__(self, timeout_ms: int, clock_ms: Callable[[], int], what: str) -> None:
        self._timeout_ms = timeout_ms
        self._clock_ms = clock_ms
        self._what = what
        self._end_ms = clock_ms() + timeout_ms

    def remaining(self) -> int:
        """Return the remaining milliseconds; not positive if the time is over."""
        return self._end_ms - self._clock_ms()

    def check(self) -> None:
        """Raise RemoteStorageError if the time is over."""
        if self.remaining() <= 0:
            raise RemoteStorageError(
                f"{self._what} is not complete after {self._timeout_ms:,} ms; the limit is reached"
            )
