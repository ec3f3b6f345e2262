"""Run the cluster benchmarks: `python -m benchmarks.cluster [PART …] [--quick] [--write] [--only KIND]`.

Parts: throughput, latency, catch_up, memory, failover; by default all. The two kinds of cluster take turns, and each is
started again for each round.

    --quick   one short round, to check that everything works
    --write   replace the parts' sections in RESULTS.md
    --only    tailrace or kafka: only this kind of cluster

Unless --quick is given, the page cache is filled before each part (machine.py).
"""

from __future__ import annotations

import argparse
import importlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from benchmarks.broker.bars import bars
from benchmarks.broker.comparison import KAFKA, OURS
from benchmarks.broker.load import LoadUnavailable
from benchmarks.cluster import memory, throughput
from benchmarks.cluster.clusters import running
from benchmarks.cluster.machine import fill_page_cache
from benchmarks.cluster.samples import Samples, table
from benchmarks.measure import Section, page
from tests.support.kafka_install import KafkaUnavailable

PARTS = ("throughput", "latency", "catch_up", "memory", "failover")  # memory is measured after the parts that fill it
ROUNDS = 2
RESULTS = Path(__file__).parents[1] / "RESULTS.md"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster")
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--only", choices=("tailrace", "kafka"))
    options = parser.parse_args(arguments)
    unknown = [part for part in options.parts if part not in PARTS]
    if unknown:
        parser.error(f"no such part: {', '.join(unknown)}")
    parts = [part for part in PARTS if part in (options.parts or PARTS)]
    modules = [importlib.import_module(f"benchmarks.cluster.{part}") for part in parts]
    kinds = [kind for kind in (OURS, KAFKA) if not options.only or kind.lower().endswith(options.only)]
    samples = {part: Samples() for part in parts}
    try:
        with _directory() as filler:
            for number in range(options.rounds or (1 if options.quick else ROUNDS)):
                for kind in kinds:
                    _run(kind, dict(zip(parts, modules, strict=True)), samples, number, filler, quick=options.quick)
    except (KafkaUnavailable, LoadUnavailable) as why:
        print(f"left out: {why}", file=sys.stderr)
        return 1
    sections = [
        _section(part, module, samples[part], is_written=options.write)
        for part, module in zip(parts, modules, strict=True)
    ]
    if options.write:
        RESULTS.write_text(page(RESULTS.read_text(), sections))
        print(f"written to {RESULTS}")
    return 0


def _run(
    kind: str, parts: dict[str, ModuleType], samples: dict[str, Samples], number: int, filler: Path, *, quick: bool
) -> None:
    with (
        _directory() as directory,
        _reported(f"round {number + 1}, {kind}: start"),
        running(kind, directory) as cluster,
    ):
        if "memory" in parts:
            time.sleep(3)
            memory.note_idle(cluster, samples["memory"])
        if not cluster.is_warm:
            with _reported(f"round {number + 1}, {kind}: warm-up"):
                throughput.warm_up(cluster, quick=quick)
        for part, module in parts.items():
            if not quick:
                with _reported("page cache"):
                    fill_page_cache(filler)
            with _reported(f"round {number + 1}, {kind}: {part}"):
                module.measure(cluster, samples[part], quick=quick)


@contextmanager
def _directory() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="tailrace-cluster-", dir=os.environ.get("TAILRACE_BENCH_DIR")))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


@contextmanager
def _reported(what: str) -> Iterator[None]:
    print(f"{what} …", flush=True)
    began = time.monotonic()
    yield
    print(f"{what}: {time.monotonic() - began:.0f} s", flush=True)


def _section(part: str, module: ModuleType, samples: Samples, *, is_written: bool) -> Section:
    rows = module.rows(samples)
    print(f"\n{module.TITLE}\n{table(rows)}", flush=True)
    drawn = bars(module.TITLE, rows)
    picture = Path(f"plots/cluster-{part}.svg")
    if drawn and is_written:
        (RESULTS.parent / picture).write_text(drawn)
    plot = f"\n\n![{module.TITLE}]({picture})" if drawn else ""
    return Section(module.TITLE, module.TEXT, table(rows) + plot)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
