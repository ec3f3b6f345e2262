"""`python -m benchmarks.scale [--partitions 10000,100000] [--brokers 10,1000] [--kafka]`: docs/explanation/scale.md.

Worlds of every size are made below --directory, which should be a file system in memory: CPU time is measured, and a
start that syncs thousands of files to a busy disk would take long without a use. Every measurement is a process.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

from benchmarks.scale.child import in_process


def main() -> None:
    arguments = _arguments()
    with tempfile.TemporaryDirectory(prefix="tailrace-scale-", dir=arguments.directory) as work:
        for brokers in arguments.brokers:
            for partitions in arguments.partitions:
                if partitions * 3 / brokers <= arguments.hosted_max:
                    _measure(Path(work), brokers, partitions, arguments)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale")
    parser.add_argument("--partitions", type=_numbers, default=[1_000, 10_000, 100_000])
    parser.add_argument("--brokers", type=_numbers, default=[10, 1_000])
    parser.add_argument("--hosted-max", type=int, default=10_000, help="largest number of replicas of a broker")
    parser.add_argument("--restarted", type=int, default=5, help="number of brokers that restart in the simulation")
    parser.add_argument("--kafka", action="store_true", help="compare with Apache Kafka's broker and controller")
    parser.add_argument("--directory", default="/dev/shm" if Path("/dev/shm").is_dir() else None)
    return parser.parse_args()


def _numbers(text: str) -> list[int]:
    return [int(word) for word in text.split(",")]


def _measure(work: Path, brokers: int, partitions: int, arguments: argparse.Namespace) -> None:
    world, member = str(work / "world"), str(work / "broker")
    size = {"brokers": brokers, "partitions": partitions}
    print(f"\n## {brokers:,} brokers, {partitions:,} partitions\n\n| | |\n|---|---|")
    in_process("image:make", directory=world, **size)
    _report("metadata log replayed", in_process("image:load", directory=world, source="log"))
    _report("snapshot loaded", in_process("image:load", directory=world, source="snapshot"))
    _report("one delta", in_process("image:changes", directory=world, **size))
    in_process("hosted:prepare", world=world, directory=member)
    for title, how in (
        ("start, new", "new"),
        ("start, clean", "clean"),
        ("", "crashed"),
        ("start, crashed", "crashed"),
    ):
        found = in_process("hosted:start", directory=member, how=how)
        if title:  # the start in between is clean, and leaves a crashed directory
            _report(title, found)
    _report("passes", in_process("hosted:passes", directory=member))
    _report("idle rounds, asked", in_process("hosted:rounds", directory=member, **size))
    _report("idle rounds, served", in_process("hosted:serving", directory=member, **size))
    _report("heartbeat", in_process("hosted:heartbeats", directory=member))
    _report("answers", in_process("answers:answers", directory=member))
    restarted = min(arguments.restarted, brokers - 1)
    restart = in_process("events:rolling_restart", directory=member, restarted=restarted, **size)
    _report("rolling restart", restart)
    if arguments.kafka:
        _report("below Kafka's controller", in_process("kafka:below_controllers", directory=world))
    shutil.rmtree(world)
    shutil.rmtree(member)


def _report(title: str, found: dict[str, float]) -> None:
    print(f"| {title} | {', '.join(f'{name} {value:,.4g}' for name, value in found.items())} |", flush=True)


if __name__ == "__main__":
    main()
