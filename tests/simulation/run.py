"""Replication under faults: plays many schedules, each from a seed, and prints the failures and the faults that
occurred.

A schedule runs four brokers, their disks, a network and a controller in one process and in virtual time, with producers
and readers. Its seed picks the kinds of faults (weather.py): kills, power failures, stops, cuts, slow disks and slow
metadata, elections, reassignments, and scripts. Scripts (scripts.py) put rare events into the order in which they do
harm. After every event the invariants of the cluster (invariants.py) and the promises to clients (watched.py) are
checked.

    make simulate                                           # seeds 0-2000, on all processors
    make simulate SEEDS=5000-9999 ARGS='--jobs 1'           # others, one at a time
    python -m tests.simulation.run --seeds 17 --show        # a failed seed: its weather, and where it failed
    SEED=17 python -m pytest tests/simulation/test_replication.py
    python -m tests.simulation.run --mistakes --seeds 0-60  # is each planted bug found, and by which seed?
    python -m tests.simulation.run --mistakes nobody_is_fenced --seeds 0-500

The same seed plays the same schedule as long as neither the broker's code nor the simulation's changes.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import time
import traceback
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat

import pytest

from tailrace.model.errors import ErrorCode
from tests.simulation.mistakes import MISTAKES
from tests.simulation.watched import Watched, simulate

EVERYTHING = "everything"


def one_schedule(seed: int, ms: int) -> tuple[int, str, Counter[str]]:
    """Return the seed, the failure or an empty text, and the count of each kind of event."""
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


def first_failure(mistake: str, seeds: range, ms: int) -> tuple[str, int | None, str]:
    """Return the planted bug, the first seed that finds it, and the failure."""
    with pytest.MonkeyPatch.context() as patch:
        MISTAKES[mistake](patch)
        for seed in seeds:
            _, failure, _ = one_schedule(seed, ms)
            if failure:
                return mistake, seed, failure
    return mistake, None, ""


def play(seeds: range, ms: int, jobs: int) -> int:
    """Play the schedules. Return the number of failures."""
    began, done, failed = time.monotonic(), Counter[str](), 0
    with ProcessPoolExecutor(jobs) as processes:
        schedules = processes.map(one_schedule, seeds, repeat(ms), chunksize=5)
        for n, (seed, failure, what) in enumerate(schedules, 1):
            done += what
            if failure:
                failed += 1
                print(f"seed {seed}: {failure}", flush=True)
            if n % 100 == 0:
                print(f"{n} of {len(seeds)} schedules, {failed} failed, {time.monotonic() - began:.0f} s", flush=True)
    print(", ".join(f"{what} {count:,}" for what, count in done.most_common()))
    print(f"{len(seeds)} schedules in {time.monotonic() - began:.0f} s, {failed} failed")
    return failed


def plant(mistakes: list[str], seeds: range, ms: int, jobs: int) -> int:
    """Plant each bug. Return the number of bugs that were not found."""
    missed = 0
    with ProcessPoolExecutor(jobs) as processes:
        for mistake, seed, failure in processes.map(first_failure, mistakes, repeat(seeds), repeat(ms)):
            missed += seed is None
            print(f"{mistake}: " + ("not found" if seed is None else f"seed {seed}: {failure}"), flush=True)
    print(f"{len(mistakes) - missed} of {len(mistakes)} mistakes found within {len(seeds)} schedules")
    return missed


def show(seed: int, ms: int) -> int:
    logging.disable(logging.CRITICAL)
    watched = Watched(seed)
    for name, value in vars(watched.weather).items():
        print(f"{name}: {value}")
    try:
        watched.play_out(ms)
    except Exception:
        traceback.print_exc()
        began_ms = watched.began_ms
        print(f"after {watched.cluster.network.now_ms - began_ms} ms, with {dict(watched.faults)}")
        return 1
    print(f"no failure, after {dict(watched.faults)}")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation.run", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", default="0-2000", help="first and last seed, or one seed (%(default)s)")
    parser.add_argument(
        "--ms", type=int, default=6_000, help="virtual milliseconds with faults in each schedule (%(default)s)"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="number of processes (%(default)s)")
    parser.add_argument(
        "--show", action="store_true", help="play only the first seed, and print its weather and traceback"
    )
    parser.add_argument(
        "--mistakes",
        nargs="?",
        const=EVERYTHING,
        choices=[EVERYTHING, *MISTAKES],
        metavar="NAME",
        help="plant this bug of mistakes.py, or each in turn, and find the first seed that detects it",
    )
    arguments = parser.parse_args()
    first, _, last = arguments.seeds.partition("-")
    seeds = range(int(first), int(last or first) + 1)
    if arguments.show:
        return show(seeds[0], arguments.ms)
    if arguments.mistakes:
        planted = list(MISTAKES) if arguments.mistakes == EVERYTHING else [arguments.mistakes]
        return 1 if plant(planted, seeds, arguments.ms, arguments.jobs) else 0
    return 1 if play(seeds, arguments.ms, arguments.jobs) else 0


if __name__ == "__main__":
    sys.exit(main())
