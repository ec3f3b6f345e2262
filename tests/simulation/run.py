"""Many schedules, on all processors: what failed, by seed, and what all of them went through.

.venv/bin/python -m tests.simulation.run --seeds 0-5000
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

from tailrace.model.errors import ErrorCode
from tests.simulation.watched import simulate


def one_schedule(seed: int, ms: int) -> tuple[int, str, Counter[str]]:
    """The seed, why it failed, if it did, and what happened."""
    logging.disable(logging.CRITICAL)
    try:
        watched = simulate(seed, ms)
    except Exception as error:
        return seed, f"{type(error).__name__}: {error}", Counter()
    done = Counter(watched.faults)
    done["acknowledged"] = watched.answered[ErrorCode.NONE]
    done["refused or unknown"] = watched.answered.total() - watched.answered[ErrorCode.NONE]
    done["read by consumers"] = watched.consumed
    return seed, "", done


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0-1000", help="from-to")
    parser.add_argument("--ms", type=int, default=6_000, help="virtual time of trouble in each")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    first, _, last = arguments.seeds.partition("-")
    seeds = range(int(first), int(last or first) + 1)
    began, done, failed = time.monotonic(), Counter[str](), 0
    with ProcessPoolExecutor(arguments.processes) as processes:
        for n, (seed, failure, what) in enumerate(
            processes.map(one_schedule, seeds, [arguments.ms] * len(seeds), chunksize=5), 1
        ):
            done += what
            if failure:
                failed += 1
                print(f"seed {seed}: {failure}", flush=True)
            if n % 100 == 0:
                print(f"{n} of {len(seeds)} schedules, {failed} failed, {time.monotonic() - began:.0f} s", flush=True)
    print(", ".join(f"{what} {count:,}" for what, count in done.most_common()))
    print(f"{len(seeds)} schedules in {time.monotonic() - began:.0f} s, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
