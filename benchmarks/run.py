"""Run the benchmarks: `make bench`, or some of them: `python -m benchmarks.run append broker.latency`.

`broker` has parts, which can be named alone. A run of all benchmarks writes RESULTS.md; with --write, a run of some
replaces their sections.

`make compiled` builds the request path as wheels have it, and `PYTHONPATH=build/compiled` measures that.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from benchmarks.broker import run as broker
from benchmarks.broker.bars import bars
from benchmarks.broker.comparison import table as broker_table
from benchmarks.broker.load import LoadUnavailable
from benchmarks.measure import Section, page, table
from tests.support.kafka_install import KafkaUnavailable

LOG = ("append", "lookup", "open", "recovery", "compaction", "handling", "shards")
BROKER = tuple(f"broker.{part}" for part in broker.PARTS)
RESULTS = Path(__file__).with_name("RESULTS.md")


def main(arguments: list[str]) -> int:
    names = [name for name in arguments if name != "--write"]
    unknown = [name for name in names if name not in (*LOG, "broker", *BROKER)]
    if unknown:
        known = ", ".join((*LOG, "broker", *BROKER))
        print(f"no such benchmark: {', '.join(unknown)}; there are {known}", file=sys.stderr)
        return 2
    wanted = set(names or (*LOG, "broker"))
    sections = [section for name in LOG if name in wanted and (section := _log_section(name)) is not None]
    parts = [part for part in broker.PARTS if "broker" in wanted or f"broker.{part}" in wanted]
    if parts:
        sections += _broker_sections(parts)
    if not names or "--write" in arguments:
        RESULTS.write_text(page(RESULTS.read_text() if names else "", sections))
        print(f"written to {RESULTS}")
    return 0


def _log_section(name: str) -> Section | None:
    module = importlib.import_module(f"benchmarks.bench_{name}")
    print(f"{module.TITLE} …", flush=True)
    try:
        rows = table(module.run())
    except KafkaUnavailable as why:
        print(f"left out: no Apache Kafka to compare with: {why}", file=sys.stderr)
        return None
    print(rows, flush=True)
    return Section(module.TITLE, module.TEXT, rows)


def _broker_sections(parts: list[str]) -> list[Section]:
    try:
        found = broker.run(parts)
    except LoadUnavailable as why:
        print(f"left out: {why}", file=sys.stderr)
        return []
    sections = []
    for part, (title, text, rows) in zip(parts, found, strict=True):
        picture = Path(f"plots/broker-{part}.svg")
        drawn = bars(title, rows)
        if drawn:
            target = RESULTS.parent / picture
            target.parent.mkdir(exist_ok=True)
            target.write_text(drawn)
        plot = f"\n\n![{title}]({picture})" if drawn else ""
        sections.append(Section(title, text, broker_table(rows) + plot))
    return sections


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
