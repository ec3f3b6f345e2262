"""A progress bar on a terminal, or a line every ten seconds in a file, a pipe and a dumb terminal.

The bar is written to standard error, at most ten times a second, so that standard output can be piped.
"""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TextIO

from tailrace.cli.output import report_progress, size_text, visible
from tailrace.cli.terminal.columns import can_repaint, cut, terminal_size

_WIDTH = 28
_INTERVAL_S = 0.1
_LINE_INTERVAL_S = 10.0


class Progress:
    """A counter of bytes towards a total. `advance` is cheap and may be called often."""

    def __init__(self, total: int, stream: TextIO | None = None) -> None:
        self.total = total
        self.done = 0
        self._stream = sys.stderr if stream is None else stream
        self._is_shown = can_repaint(self._stream)
        self._started = self._last = time.monotonic()
        self._label = ""

    def label(self, text: str) -> None:
        """Set the text after the bar."""
        self._label = text

    def advance(self, size: int) -> None:
        self.done += size
        now = time.monotonic()
        if now - self._last >= (_INTERVAL_S if self._is_shown else _LINE_INTERVAL_S):
            self._last = now
            if self._is_shown:
                self._draw(now)
            else:
                self._write_line(now)

    def _draw(self, now: float) -> None:
        share, rate, left = self._figures(now)
        bar = ("█" * int(share * _WIDTH)).ljust(_WIDTH, "░")
        line = f"{bar} {share:4.0%}  {size_text(int(rate))}/s  {left:.0f} s left  {visible(self._label)}"
        self._stream.write(f"\r\x1b[K{cut(line, terminal_size(self._stream).columns - 1)}")
        self._stream.flush()

    def _write_line(self, now: float) -> None:
        share, rate, left = self._figures(now)
        done = f"{share:.0%} of {size_text(self.total)}"
        report_progress(f"{done}, {size_text(int(rate))}/s, {left:.0f} s left, at {self._label}")

    def _figures(self, now: float) -> tuple[float, float, float]:
        """Return the share that is done, the rate in bytes per second, and the seconds left."""
        share = min(self.done / self.total, 1.0) if self.total else 1.0
        rate = self.done / max(now - self._started, 0.001)
        return share, rate, (self.total - self.done) / rate if rate and self.total > self.done else 0.0

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
