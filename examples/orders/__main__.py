"""`python -m examples.orders run`: see README.md."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from examples.orders.broker_process import BrokerFailed
from examples.orders.display import Display
from examples.orders.job import Failed, Job
from tailrace.spark.java import JavaMissing
from tailrace.spark.jobs.errors import JobError


def main() -> int:
    parser = argparse.ArgumentParser(prog="examples.orders", description="orders and payments through Spark")
    parser.add_argument("--directory", metavar="DIR", type=Path, default=Path(".run"), help="directory of all data")
    parser.add_argument("--seconds", metavar="N", type=float, default=30, help="seconds that the pipeline runs (30)")
    parser.add_argument("--forever", action="store_true", help="until Ctrl-C")
    parser.add_argument("--rate", metavar="N", type=float, default=400, help="events a second (400)")
    parser.add_argument(
        "--seed", metavar="N", type=int, default=7, help="seed of the events; the same for each run on a directory"
    )
    options = parser.parse_args()
    job = Job(
        options.directory.resolve(),
        Display(),
        seed=options.seed,
        rate=options.rate,
        seconds=None if options.forever else options.seconds,
    )
    try:
        return 0 if job.run() else 1
    except (Failed, BrokerFailed, JavaMissing, JobError) as error:
        print(f"tailrace: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
