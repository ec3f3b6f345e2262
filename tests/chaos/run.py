"""Chaos as a program: `make chaos`, or

    python -m tests.chaos.run --minutes 60 --seed 7 --controllers 3 --java-brokers 0 [--directory DIR]

It prints the plan of faults, each as it comes, and how far the load has come. What the nodes wrote, and their data, is
kept where something was found.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from tests.chaos.cluster import Shape
from tests.chaos.trial import Trial
from tests.support.kafka_install import kafka_installation


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A cluster under load, and what befalls it.")
    parser.add_argument("--minutes", type=float, default=4)
    parser.add_argument("--seed", type=int, default=None, help="of the plan; one that was printed repeats that plan")
    parser.add_argument("--controllers", type=int, default=1)
    parser.add_argument(
        "--java-brokers", type=int, default=0, choices=range(4), help="so many of the three are Kafka's"
    )
    parser.add_argument(
        "--directory", type=Path, help="for data and logs; one in the system's place for such otherwise"
    )
    return parser.parse_args()


def main() -> None:
    arguments = parse()
    seed = int(time.time()) % 1_000_000 if arguments.seed is None else arguments.seed
    shape = Shape(arguments.controllers, 3, arguments.java_brokers)
    directory = arguments.directory or Path(tempfile.mkdtemp(prefix="tailrace-chaos-"))
    directory.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # through whatever ends the nodes

    def tell(text: str) -> None:
        print(f"{time.monotonic() - began:7.1f}  {text}", flush=True)

    trial = Trial(kafka_installation(), directory, shape, seed=seed, seconds=arguments.minutes * 60, tell=tell)
    print(f"{shape}; seed {seed}, {arguments.minutes:g} minutes, in {directory}")
    print("\n".join(str(one) for one in trial.plan), flush=True)
    report = trial.run()
    print(report, flush=True)
    if report.findings:
        print(f"seed {seed}; what the nodes wrote is in {directory}", flush=True)
        sys.exit(1)
    shutil.rmtree(directory)


if __name__ == "__main__":
    main()
