"""Chaos as a program: `make chaos`, or

    python -m tests.chaos.run --minutes 60 --seed 7 --controllers 3 --java-brokers 0 [--directory DIR]
    python -m tests.chaos.run --minutes 10 --controllers tailrace --java-brokers 1

The program prints the plan of faults, each fault as it starts, and the progress of the load. If there are findings, the
logs and data of the nodes are kept. Exit status: 0 if all checks passed; 1 if records were lost, duplicated or changed;
3 if conditions were only not met in time, which may also mean that the machine is overloaded.
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
    parser = argparse.ArgumentParser(description="Put a cluster under load, cause faults, and check the logs.")
    parser.add_argument("--minutes", type=float, default=4)
    parser.add_argument(
        "--seed", type=int, default=None, help="seed of the plan of faults; a printed seed repeats its plan"
    )
    parser.add_argument(
        "--controllers", default="1", help="number of Apache Kafka controllers, or 'tailrace' for one of our own"
    )
    parser.add_argument(
        "--java-brokers", type=int, default=0, choices=range(4), help="number of Apache Kafka brokers among the three"
    )
    parser.add_argument(
        "--directory", type=Path, help="parent directory for data and logs (default: the system's temporary directory)"
    )
    parser.add_argument(
        "--tries",
        type=int,
        default=1,
        help="repeat up to N times, with the next seed, while all findings are about time",
    )
    return parser.parse_args()


def main() -> None:
    arguments = parse()
    first = int(time.time()) % 1_000_000 if arguments.seed is None else arguments.seed
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # exit through the code that ends the nodes
    for seed in range(first, first + max(arguments.tries, 1)):
        report = run(arguments, seed)
        if not report.is_only_late:
            break
    if report.findings:
        sys.exit(EXIT_LATE if report.is_only_late else EXIT_WRONG)


def run(arguments: argparse.Namespace, seed: int) -> Report:
    is_ours = arguments.controllers == "tailrace"
    shape = Shape(1 if is_ours else int(arguments.controllers), 3, arguments.java_brokers, is_ours=is_ours)
    directory = Path(tempfile.mkdtemp(prefix=f"tailrace-chaos-{seed}-", dir=arguments.directory))
    began = time.monotonic()

    def print_line(text: str) -> None:
        print(f"{time.monotonic() - began:7.1f}  {text}", flush=True)

    trial = Trial(
        kafka_installation(), directory, shape, seed=seed, seconds=arguments.minutes * 60, print_line=print_line
    )
    print(f"{shape}; seed {seed}, {arguments.minutes:g} minutes, in {directory}")
    print("\n".join(str(one) for one in trial.plan), flush=True)
    report = trial.run()
    print(report, flush=True)
    if report.findings:
        print(f"seed {seed}; the nodes' logs and data are in {directory}", flush=True)
    else:
        shutil.rmtree(directory)
    return report


if __name__ == "__main__":
    main()
