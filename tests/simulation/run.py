"""Replication under trouble: many schedules, each played by its seed; what failed, and what all of them went through.

A schedule is four brokers, their disks, a network and a controller in one process and in virtual time, with producers
and readers, and with trouble of the kinds that its seed picks (weather.py): kills, power failures, stops, cuts, slow
disks and slow metadata, elections, reassignments, and scripts (scripts.py), which put rare things in the order in which
they do harm. After every event it is checked what must hold (invariants.py), and what clients are owed (watched.py).

    make simulate                                           # seeds 0-2000, on all processors
    make simulate SEEDS=5000-9999 ARGS='--jobs 1'           # others, one at a time
    python -m tests.simulation.run --seeds 17 --show        # one that failed: its weather, and where it failed
    SEED=17 python -m pytest tests/simulation/test_replication.py
    python -m tests.simulation.run --mistakes --seeds 0-60  # is each planted mistake found, and by which seed?
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


def first_failure(mistake: str, seeds: range, ms: int) -> tuple[str, int | None, str]:
    """A mistake, and the first seed that finds it, and how."""
    with pytest.MonkeyPatch.context() as patch:
        MISTAKES[mistake](patch)
        for seed in seeds:
            _, failure, _ = one_schedule(seed, ms)
            if failure:
                return mistake, seed, failure
    return mistake, None, ""


def play(seeds: range, ms: int, jobs: int) -> int:
    """How many failed."""
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
    """How many were not found."""
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
    print(f"nothing is wrong, after {dict(watched.faults)}")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation.run", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", default="0-2000", help="the first and the last one, or one (%(default)s)")
    parser.add_argument("--ms", type=int, default=6_000, help="virtual time of trouble in each (%(default)s)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="how many processes (%(default)s)")
    parser.add_argument("--show", action="store_true", help="play the first seed alone and tell more of it")
    parser.add_argument(
        "--mistakes",
        nargs="?",
        const=EVERYTHING,
        choices=[EVERYTHING, *MISTAKES],
        metavar="NAME",
        help="plant this one of mistakes.py, or each in turn, and look for the first seed that finds it",
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
