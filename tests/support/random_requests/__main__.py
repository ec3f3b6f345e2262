"""Play seeds and print the first difference of each."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.support.kafka_install import kafka_installation
from tests.support.random_requests.random_play import play
from tests.support.random_requests.random_twins import Different


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.support.random_requests", description=__doc__)
    parser.add_argument("seeds", nargs="+", help="a seed, or a range such as 100-120")
    parser.add_argument("--steps", type=int, default=400)
    arguments = parser.parse_args()
    failed = 0
    for text in arguments.seeds:
        first, _, last = text.partition("-")
        for seed in range(int(first), int(last or first) + 1):
            began = time.monotonic()
            with tempfile.TemporaryDirectory(prefix="random-requests-") as directory:
                try:
                    compared = play(kafka_installation(), Path(directory), seed=seed, steps=arguments.steps)
                    print(
                        f"seed {seed}: {compared} responses are the same, {time.monotonic() - began:.1f} s", flush=True
                    )
                except Different as error:
                    failed += 1
                    print(error, "\n", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
