"""Shared code of the benchmarks: timing, rows, and the results page.

Figures are ratios within one run on one machine. Contenders take turns, so that a busy moment affects both, and the
median of the rounds counts. Nothing here passes or fails.
"""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tailrace.model.kernel_forms import is_request_path_compiled


@dataclass(frozen=True)
class Row:
    work: str
    ours: str
    other: str
    ratio: float | None
    goal: str
    met: bool | None


def cpu_and_wall(action: Callable[[], object]) -> tuple[float, float]:
    """Return (CPU seconds of this process, wall seconds) of an action."""
    cpu, wall = time.process_time(), time.perf_counter()
    action()
    return time.process_time() - cpu, time.perf_counter() - wall


def take_turns(rounds: int, *contenders: Callable[[], float]) -> list[float]:
    """Return each contender's median over rounds in which they take turns."""
    figures: list[list[float]] = [[] for _ in contenders]
    for _ in range(rounds):
        for column, contender in zip(figures, contenders, strict=True):
            column.append(contender())
    return [statistics.median(column) for column in figures]


def table(rows: list[Row]) -> str:
    lines = ["| work | ours | compared with | ratio | goal | met |", "|---|---|---|---|---|---|"]
    for row in rows:
        ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
        met = "" if row.met is None else ("yes" if row.met else "**no**")
        lines.append(f"| {row.work} | {row.ours} | {row.other} | {ratio} | {row.goal} | {met} |")
    return "\n".join(lines)


def machine() -> str:
    model = next(
        (
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.processor(),
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{os.cpu_count()} cores of {model}, {memory:.0f} GB, Linux {platform.release()}, {platform.python_version()}"
    )


def commit() -> str:
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False
    ).stdout.strip()
    return described or "unknown"


@dataclass(frozen=True)
class Section:
    title: str
    text: str
    figures: str  # a table, in Markdown


_HEAD = """# Benchmark results

Written by `make bench`. Contenders take turns within one run on one machine, so the ratios say more than the figures.
In the tables of the log, a ratio above 1 means that ours is faster. In the tables of the broker, the ratio is our cost
divided by Kafka's, so less is better.

"""


def page(before: str, sections: list[Section]) -> str:
    """Return the results page: a header, then each benchmark. Other sections of `before` stay unchanged."""
    head = before.partition("\n## ")[0].strip() if before else f"{_HEAD}Machine: {machine()}."
    kept = dict(_split(before))
    for section in sections:
        load = os.getloadavg()[1]
        form = "compiled" if is_request_path_compiled() else "interpreted"
        where = (
            f"*Commit {commit()}, {datetime.now(UTC):%Y-%m-%d}, load average {load:.1f} on {os.cpu_count()} cores, "
            f"Python {platform.python_version()}, request path {form}.*"
        )
        kept[section.title] = f"{section.text}\n\n{where}\n\n{section.figures}\n"
    parts = [f"## {title}\n\n{content.strip()}\n" for title, content in kept.items()]
    return f"{head}\n\n" + "\n".join(parts)


def _split(text: str) -> list[tuple[str, str]]:
    """Return the sections of a page with their titles."""
    found = []
    for piece in text.split("\n## ")[1:]:
        title, _, content = piece.partition("\n")
        found.append((title.strip(), content))
    return found
