"""Garbage: when the interpreter looks for objects that refer to each other and are not used any more.

A collection stops every thread, so its length is what a client may wait. Young objects are looked at in small portions,
and once more when a few portions have gathered. The old ones are looked at by the loop, and the more of them there are,
the less often: `OLD_SHARE` of the time at most goes into that.

What is there when the broker begins to serve stays until the end, so no collection looks at it again.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Final

YOUNG_OBJECTS: Final = 10_000  # about two milliseconds
YOUNG_PORTIONS: Final = 3
OLD_PORTIONS: Final = 20  # collections of younger objects before it is worth looking at the old ones
OLD_SHARE: Final = 1 / 1_000
OLD_INTERVAL_MS_MIN: Final = 60_000
_NEVER: Final = 1 << 30


class OldGarbage:
    """The old objects, looked at now and then by the loop. Times are those of a clock that cannot be set back."""

    def __init__(self, timer_ms: Callable[[], int]) -> None:
        self._timer_ms = timer_ms
        self._due_ms = timer_ms() + OLD_INTERVAL_MS_MIN

    def next_deadline_ms(self) -> int:
        return self._due_ms

    def tick(self) -> None:
        """Look for unused objects among the old ones, if it is time and there are new ones among them."""
        began_ms = self._timer_ms()
        if began_ms < self._due_ms:
            return
        if gc.get_count()[2] >= OLD_PORTIONS:
            gc.collect()
        ended_ms = self._timer_ms()
        self._due_ms = ended_ms + max(OLD_INTERVAL_MS_MIN, int((ended_ms - began_ms) / OLD_SHARE))


def collect_in_portions() -> None:
    """Set the interpreter's thresholds, and leave everything that exists now out of collections."""
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, YOUNG_PORTIONS, _NEVER)
