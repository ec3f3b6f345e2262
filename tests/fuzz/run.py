"""Coverage-guided fuzzing: `make fuzz`, or

    python -m tests.fuzz.run requests --minutes 5 [--corpus DIR]

Inputs that reach new code are kept in the corpus, by default `build/fuzz/TARGET`, and tried first the next time. What
an input breaks is written to `build/fuzz/failures`, as the inputs that a new broker has to meet, the fewest that will
do; moved to `tests/fuzz/regressions/TARGET` it is a test.
"""

from __future__ import annotations

import argparse
import hashlib
import logging
import os
import random
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.fuzz.targets import Target

ROOT = Path(__file__).parents[2]
INPUT_BYTES_MAX = 200_000


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Fuzz one target, guided by the code that inputs reach.")
    parser.add_argument("target")
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--failures", type=Path, default=ROOT / "build" / "fuzz" / "failures")
    parser.add_argument("--keep-going", action="store_true", help="note failures and continue; each place once")
    return parser.parse_args()


class Session:
    """Tries inputs, and writes down those that break something."""

    def __init__(self, target: Target, arguments: argparse.Namespace) -> None:
        self._target = target
        self._failures: Path = arguments.failures
        self._keeps_going: bool = arguments.keep_going
        self._until = time.monotonic() + arguments.minutes * 60
        self._seen: set[str] = set()
        self.tried = 0

    def test_one_input(self, data: bytes) -> None:
        from tests.fuzz.failures import place_of, save_failure

        self.tried += 1
        try:
            self._target.run(data)
        except Exception as error:
            place = place_of(error)
            if place not in self._seen:
                self._seen.add(place)
                print(f"\nFAILURE {place}\n   {save_failure(self._target, error, self._failures)}", flush=True)
            if not self._keeps_going:
                raise
            self._target.renew()
        if time.monotonic() > self._until:
            print(f"{self.tried} inputs, {len(self._seen)} failures", flush=True)
            os._exit(1 if self._seen else 0)  # the fuzzer knows no other end


def main() -> None:
    arguments = parse()
    try:
        import atheris
    except ImportError:
        sys.exit("atheris is not installed: make fuzz installs it, or: python -m pip install atheris")
    logging.disable(logging.CRITICAL)
    with atheris.instrument_imports(include=["tailrace"], enable_loader_override=False):
        from tests.fuzz.targets import make_target

        target = make_target(arguments.target)
        for seed in target.seeds():  # much is imported only when it is first used, and has to be here to be watched
            target.run(seed)
        target.renew()
    corpus: Path = arguments.corpus or ROOT / "build" / "fuzz" / arguments.target
    corpus.mkdir(parents=True, exist_ok=True)
    for seed in target.seeds():
        corpus.joinpath(hashlib.sha1(seed).hexdigest()).write_bytes(seed)

    def mutate(data: bytes, max_size: int, seed: int) -> bytes:
        dice = random.Random(seed)
        if dice.random() < 0.05:
            return bytes(atheris.Mutate(data, max_size))
        return target.mutate(data, dice)[:max_size]

    arguments.failures.mkdir(parents=True, exist_ok=True)
    session = Session(target, arguments)
    options = [sys.argv[0], str(corpus), f"-max_len={INPUT_BYTES_MAX}", "-rss_limit_mb=3000", "-timeout=300"]
    options += [f"-artifact_prefix={arguments.failures}/", "-report_slow_units=300"]
    atheris.Setup([*options, "-print_final_stats=1", "-len_control=0"], session.test_one_input, custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
