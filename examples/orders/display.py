"""Display: shows the progress. A terminal gets a picture that is redrawn; other outputs get a line from
time to time.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TextIO

from examples.orders.expected import Revenue, WindowKey
from tailrace.cli.output import table, time_text
from tailrace.spark.progress import partition_lags

_LINE_EVERY_S: Final = 5.0
_RESULTS_SHOWN: Final = 10
_UP: Final = "\x1b[{}A"
_CLEAR_LINE: Final = "\x1b[K"
_CLEAR_BELOW: Final = "\x1b[J"


@dataclass
class QueryState:
    """A query and its latest progress report."""

    name: str
    batch: int = -1
    rows: int = 0
    rows_per_s: float = 0.0
    duration_ms: int = 0
    lag: int = 0
    watermark: str = ""

    @classmethod
    def of(cls, name: str, progress: Mapping[str, Any] | None) -> QueryState:
        if progress is None:
            return cls(name)
        return cls(
            name,
            batch=progress["batchId"],
            rows=progress["numInputRows"],
            rows_per_s=progress.get("processedRowsPerSecond") or 0.0,
            duration_ms=progress["durationMs"].get("triggerExecution", 0),
            lag=sum(partition_lags(progress).values()),
            watermark=(progress.get("eventTime") or {}).get("watermark", "")[:19].replace("T", " "),
        )


@dataclass
class Picture:
    elapsed_s: float
    left_s: float | None
    bootstrap: str
    topics: Sequence[tuple[str, int]]  # name, records
    shop_time_ms: int
    queries: Sequence[QueryState] = ()
    results: Mapping[WindowKey, Revenue] = field(default_factory=dict)


class Display:
    def __init__(self, stream: TextIO | None = None, *, live: bool | None = None) -> None:
        self._stream = stream or sys.stdout
        self._is_live = self._stream.isatty() if live is None else live
        self._drawn = 0
        self._before: tuple[float, dict[str, int]] = (0.0, {})
        self._last_line_s = -_LINE_EVERY_S

    def log(self, text: str) -> None:
        """Print a line that stays."""
        self._stream.write(f"{text}\n")
        self._stream.flush()
        self._drawn = 0

    def show(self, picture: Picture) -> None:
        rates = self._rates(picture)
        if self._is_live:
            self._draw(picture_lines(picture, rates))
        elif picture.elapsed_s - self._last_line_s >= _LINE_EVERY_S:
            self._last_line_s = picture.elapsed_s
            self.log(one_line(picture, rates))

    def _rates(self, picture: Picture) -> dict[str, float]:
        now, counts = time.monotonic(), dict(picture.topics)
        then, before = self._before
        self._before = now, counts
        return {name: (count - before.get(name, count)) / max(now - then, 0.001) for name, count in counts.items()}

    def _draw(self, lines: list[str]) -> None:
        size = shutil.get_terminal_size()
        lines = lines[: size.lines - 1]
        over = _UP.format(self._drawn) if self._drawn else ""
        text = "".join(f"{line[: size.columns - 1]}{_CLEAR_LINE}\n" for line in lines)
        self._stream.write(f"{over}{text}{_CLEAR_BELOW}")
        self._stream.flush()
        self._drawn = len(lines)


def picture_lines(picture: Picture, rates: Mapping[str, float]) -> list[str]:
    left = "Ctrl-C ends it" if picture.left_s is None else f"{picture.left_s:.0f} s left, Ctrl-C stops earlier"
    lines = [f"{picture.elapsed_s:6.0f} s   broker at {picture.bootstrap}   {left}", ""]
    topics = [(name, f"{count:,}", f"{rates.get(name, 0.0):,.0f}") for name, count in picture.topics]
    lines += table(["<topic", "records", "a second"], topics)
    if picture.shop_time_ms:
        lines += ["", f"time in the shop: {time_text(picture.shop_time_ms)[:19]}"]
    queries = [
        (
            one.name, one.batch if one.batch >= 0 else "starting", f"{one.rows:,}", f"{one.rows_per_s:,.0f}",
            f"{one.duration_ms:,}", f"{one.lag:,}", one.watermark,
        )
        for one in picture.queries
    ]  # fmt: skip
    lines += ["", *table(["<query", "batch", "rows", "rows a second", "ms", "lag", "<watermark"], queries)]
    if picture.results:
        lines += ["", *result_lines(picture.results)]
    return lines


def result_lines(results: Mapping[WindowKey, Revenue]) -> list[str]:
    latest = sorted(results.items(), reverse=True)[:_RESULTS_SHOWN]
    rows = [
        (time_text(start)[:16], country, one.orders, one.paid, f"{one.revenue_cents / 100:,.2f}")
        for (start, country), one in reversed(latest)
    ]
    return table(["<five minutes from", "<country", "orders", "paid", "revenue"], rows)


def one_line(picture: Picture, rates: Mapping[str, float]) -> str:
    topics = ", ".join(f"{name} {count:,} ({rates.get(name, 0.0):,.0f}/s)" for name, count in picture.topics)
    queries = ", ".join(
        f"{one.name} batch {one.batch} lag {one.lag:,} ({one.duration_ms:,} ms)"
        for one in picture.queries
        if one.batch >= 0
    )
    return f"{picture.elapsed_s:5.0f} s  {topics}  |  {queries or 'Spark starts'}"
