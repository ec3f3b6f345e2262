"""Chaos as a program: `make chaos`, or

    python -m tests.chaos.run --minutes 60 --seed 7 --controllers 3 --java-brokers 0 [--directory DIR]

It prints the plan of faults, each as it comes, and how far the load has come. What the nodes wrote, and their data, is
kept where something was found. Exit status: 0 if all is well, 1 if something was wrong (lost, doubled, changed), 3 if
something did not become so in time, which a machine with too much to do may also be the cause of.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from tests.chaos.cluster import Shape
from tests.chaos.trial import Report, Trial
from tests.support.kafka_install import kafka_installation

EXIT_WRONG: Final = 1
EXIT_LATE: Final = 3


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A cluster under load, and what befalls it.")
    parser.add_argument("--minutes", type=float, default=4)
    parser.add_argument("--seed", type=int, default=None, help="of the plan; one that was printed repeats that plan")
    parser.add_argument("--controllers", type=int, default=1)
    parser.add_argument(
        "--java-brokers", type=int, default=0, choices=range(4), help="so many of the three are Kafka's"
    )
    parser.add_argument(
        "--directory", type=Path, help="where one for data and logs is made; in the system's place for such otherwise"
    )
    parser.add_argument(
        "--tries", type=int, default=1, help="plans at most, each with the next seed, while they only come too late"
    )
    return parser.parse_args()


def main() -> None:
    arguments = parse()
    first = int(time.time()) % 1_000_000 if arguments.seed is None else arguments.seed
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # through whatever ends the nodes
    for seed in range(first, first + max(arguments.tries, 1)):
        report = run(arguments, seed)
        if not report.is_only_late:
            break
    if report.findings:
        sys.exit(EXIT_LATE if report.is_only_late else EXIT_WRONG)


def run(arguments: argparse.Namespace, seed: int) -> Report:
    shape = Shape(arguments.controllers, 3, arguments.java_brokers)
    directory = Path(tempfile.mkdtemp(prefix=f"tailrace-chaos-{seed}-", dir=arguments.directory))
    began = time.monotonic()

    def tell(text: str) -> None:
        print(f"{time.monotonic() - began:7.1f}  {text}", flush=True)

    trial = Trial(kafka_installation(), directory, shape, seed=seed, seconds=arguments.minutes * 60, tell=tell)
    print(f"{shape}; seed {seed}, {arguments.minutes:g} minutes, in {directory}")
    print("\n".join(str(one) for one in trial.plan), flush=True)
    report = trial.run()
    print(report, flush=True)
    if report.findings:
        print(f"seed {seed}; what the nodes wrote is in {directory}", flush=True)
    else:
        shutil.rmtree(directory)
    return report


if __name__ == "__main__":
    main()
