"""The cost table: `make costs`, or

    python -m tests.costs.run [--api NAME …] [--kafka] [--climb SECONDS] [--write PATH]

For each API the most expensive request of 1 MB is looked for: first among the recipes that follow from its schema, then
by changing the worst of them again and again for `--climb` seconds. With `--kafka` an Apache Kafka gets the same
requests. The table is printed, or written to PATH.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from tailrace.broker.requests.api_table import API_TABLE, TELEMETRY_TABLE
from tests.costs.measure import DEADLINE_S
from tests.costs.search import worst_of
from tests.costs.table import markdown
from tests.costs.world import KafkaProcess, OurProcess, World


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--api", action="append", help="measure this API only (may be repeated), e.g. DESCRIBE_CONFIGS")
    parser.add_argument("--kafka", action="store_true", help="send the worst requests to an Apache Kafka, too")
    parser.add_argument(
        "--climb", type=float, default=0, metavar="SECONDS", help="make the worst request of an API worse"
    )
    parser.add_argument("--deadline", type=float, default=DEADLINE_S, metavar="SECONDS", help="give a request up then")
    parser.add_argument("--seed", type=int, default=1, help="of the changes that --climb makes")
    parser.add_argument("--write", type=Path, help="write the table to this file")
    parser.add_argument("--verbose", action="store_true", help="print every request that is measured")
    return parser.parse_args()


def main() -> None:
    arguments = parse()
    every_api = (API_TABLE | TELEMETRY_TABLE).values()
    chosen = [row for row in every_api if not arguments.api or row.key.name in arguments.api]
    options = {"climb_s": arguments.climb, "seed": arguments.seed, "deadline_s": arguments.deadline}
    rows = []
    with tempfile.TemporaryDirectory(prefix="tailrace-costs-") as scratch:
        with World(OurProcess(Path(scratch) / "ours")) as world:
            for row in chosen:
                world.reset()
                rows.append(worst_of(world, row, **options, verbose=arguments.verbose))
                print(rows[-1], flush=True)
                if arguments.write:
                    arguments.write.write_text(markdown(rows))
        if arguments.kafka:
            with World(KafkaProcess(Path(scratch) / "kafka")) as world:
                for one in rows:
                    world.measure(one.recipe, arguments.deadline)  # the first time compiles what the second one runs
                    one.kafka = world.measure(one.recipe, arguments.deadline)
                    print(one, flush=True)
    text = markdown(rows)
    if arguments.write:
        arguments.write.write_text(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
