"""Run the benchmarks and write RESULTS.md: `make bench`, or some of them: `python -m benchmarks.run append lookup`."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from benchmarks.measure import page, table
from tests.support.kafka_install import KafkaUnavailable

BENCHMARKS = ("append", "lookup", "open", "recovery", "compaction")


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        print(f"no such benchmark: {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    sections = []
    for name in names or BENCHMARKS:
        module = importlib.import_module(f"benchmarks.bench_{name}")
        print(f"{module.TITLE} …", flush=True)
        try:
            rows = module.run()
        except KafkaUnavailable as why:
            print(f"left out: no Apache Kafka to compare with: {why}", file=sys.stderr)
            continue
        print(table(rows), flush=True)
        sections.append((module.TITLE, module.TEXT, rows))
    if not names:
        target = Path(__file__).with_name("RESULTS.md")
        target.write_text(page(sections))
        print(f"written to {target}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
