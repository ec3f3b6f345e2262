"""Chore: work that takes long, such as an fsync or a compaction, done on a worker thread. The loop gets the result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol


class Chore(Protocol):
    def run(self) -> Any:
        """Do the work, on a worker thread. It must not touch objects that the broker may change."""

    def apply(self, result: Any, now_ms: int) -> None:
        """Apply the result, on the loop."""

    def failed(self, error: BaseException, now_ms: int) -> None:
        """Handle an exception of `run`, on the loop, instead of `apply`."""


@dataclass(slots=True)
class FunctionChore:
    """A chore made of three functions."""

    run: Callable[[], Any]
    apply: Callable[[Any, int], None]
    failed: Callable[[BaseException, int], None]
    # True: a client waits for the result, so the chore must not wait for a compaction or a sync.
    is_prompt: bool = False


def run_now(chore: Chore, now_ms: int) -> None:
    """Run a chore on this thread, if there is no other thread for it."""
    try:
        result = chore.run()
    except Exception as error:
        chore.failed(error, now_ms)
    else:
        chore.apply(result, now_ms)
