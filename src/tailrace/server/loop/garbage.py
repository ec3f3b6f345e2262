"""Garbage: when the interpreter looks for unused objects that refer to each other.

Such a look stops every thread, so its length is what a client may wait. In a process that is the broker's alone,

    each object is looked at once, when YOUNG_OBJECTS more have come; this takes a few milliseconds
    what is still used then is looked at again when the broker has been idle for a moment, or after PATIENCE_MS

Objects that do not refer to each other in a ring are freed at once and need no look. The broker makes few rings.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any, Final

YOUNG_OBJECTS: Final = 10_000
OLD_INTERVAL_MS: Final = 600_000
IDLE_RETRY_MS: Final = 1_000
PATIENCE_MS: Final = 6 * 3_600_000
_NEVER: Final = 1 << 30


def look_once() -> None:
    """Have the interpreter look at each object once, beginning with those that do not exist yet."""
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, _NEVER, _NEVER)
    if _keep not in gc.callbacks:
        gc.callbacks.append(_keep)


def _keep(phase: str, info: dict[str, Any]) -> None:
    if phase == "stop":
        gc.freeze()


class OldGarbage:
    """The next look at all objects. Times are those of a clock that cannot be set back."""

    def __init__(self, timer_ms: Callable[[], int]) -> None:
        self._timer_ms = timer_ms
        self._looked_ms = timer_ms()
        self._due_ms = self._looked_ms + OLD_INTERVAL_MS

    def next_deadline_ms(self) -> int:
        return self._due_ms

    def tick(self, *, is_idle: bool) -> None:
        """Look at all objects if it is time, and nobody waits or nobody could be let wait for long enough."""
        now_ms = self._timer_ms()
        if now_ms < self._due_ms:
            return
        if not is_idle and now_ms < self._looked_ms + PATIENCE_MS:
            self._due_ms = now_ms + IDLE_RETRY_MS
            return
        gc.unfreeze()
        gc.collect()
        self._looked_ms = self._timer_ms()
        self._due_ms = self._looked_ms + OLD_INTERVAL_MS
