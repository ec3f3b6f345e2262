"""Garbage: when the interpreter's cyclic collector runs.

A collection stops every thread, so clients may have to wait for it. In a process that only runs the broker,

    each object is examined once, when YOUNG_OBJECTS more exist; this takes about a millisecond
    objects that are still used are examined again when the broker was idle for a moment, or after
    COLLECTION_INTERVAL_MS_MAX

Objects without reference cycles are freed at once, without the collector. The broker makes few cycles.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any, Final

YOUNG_OBJECTS: Final = 2_000
OLD_INTERVAL_MS: Final = 600_000
IDLE_RETRY_MS: Final = 1_000
COLLECTION_INTERVAL_MS_MAX: Final = 6 * 3_600_000
_NEVER: Final = 1 << 30


def examine_objects_once() -> None:
    """Configure the collector to examine each object once, beginning with objects that do not exist yet."""
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, _NEVER, _NEVER)
    if _freeze_after_collection not in gc.callbacks:
        gc.callbacks.append(_freeze_after_collection)


def _freeze_after_collection(phase: str, info: dict[str, Any]) -> None:
    if phase == "stop":
        gc.freeze()


class FullCollection:
    """The next full collection. Times are those of a clock that cannot be set back."""

    def __init__(self, timer_ms: Callable[[], int]) -> None:
        self._timer_ms = timer_ms
        self._collected_ms = timer_ms()
        self._due_ms = self._collected_ms + OLD_INTERVAL_MS

    def next_deadline_ms(self) -> int:
        return self._due_ms

    def tick(self, *, is_idle: bool) -> None:
        """Run a full collection if it is due, and the loop is idle or was never idle for too long."""
        now_ms = self._timer_ms()
        if now_ms < self._due_ms:
            return
        if not is_idle and now_ms < self._collected_ms + COLLECTION_INTERVAL_MS_MAX:
            self._due_ms = now_ms + IDLE_RETRY_MS
            return
        gc.unfreeze()
        gc.collect()
        self._collected_ms = self._timer_ms()
        self._due_ms = self._collected_ms + OLD_INTERVAL_MS
