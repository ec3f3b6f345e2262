"""The parts of the broker benchmark, run against the same contenders one after the other."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from benchmarks.broker.comparison import Comparison, table
from benchmarks.broker.contenders import contenders

PARTS = ("requests", "throughput", "latency", "sessions", "cold", "clients", "groups", "shares", "start")
ROUNDS = 2


def run(parts: Sequence[str], rounds: int = ROUNDS) -> list[tuple[str, str, list[Comparison]]]:
    """Return (title, text, rows) of each part. One Kafka serves all parts, so it is warm for the later ones."""
    sections = []
    with contenders() as running:
        for part in parts:
            module = importlib.import_module(f"benchmarks.broker.{part}")
            print(f"{module.TITLE} …", flush=True)
            rows = module.run(running, rounds)
            print(table(rows), flush=True)
            sections.append((module.TITLE, module.TEXT, rows))
    return sections
