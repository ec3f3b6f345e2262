"""The soak: `make soak`, or

    python -m tests.soak.run --minutes 30 [--attacker NAME …]

Honest clients of every kind use one broker, first alone and then beside attackers. The run fails if an honest client
sees an error, if its latency more than doubles, if the broker's memory keeps growing, or if the broker ends. With
`--attacker` only the named attackers take part, to find the one that causes a delay.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

from tailrace.protocol.messages import CreateTopicsRequest, SaslAuthenticateRequest, SaslHandshakeRequest
from tests.costs.measure import memory_bytes
from tests.soak import attackers, honest
from tests.soak.verdict import Report, judge
from tests.support.kafka_broker import free_port
from tests.support.raw_client import RawClient
from tests.support.secured import jaas
from tests.support.tailrace_process import TailraceProcess

_FORK = multiprocessing.get_context("fork")
WARM_UP_S = 10.0
ALONE_SHARE = 0.25  # of the whole time, the honest clients are alone


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--ratio", type=float, default=2.0, help="how much latency may rise beside attackers")
    names = [one.__name__ for one in attackers.ATTACKERS]
    parser.add_argument("--attacker", action="append", choices=names, help="one that takes part; all by default")
    return parser.parse_args()


def settings(port: int, guarded_port: int) -> dict[str, str]:
    return {
        "listeners": f"PLAINTEXT://127.0.0.1:{port},SASL_PLAINTEXT://127.0.0.1:{guarded_port}",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": jaas(
            "Plain", "x", "y", honest=honest.PASSWORD, attacker="secret"
        ),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:{honest.USER};User:attacker",
        "group.initial.rebalance.delay.ms": "0",
    }


def create_topics(guarded_port: int) -> None:
    wanted = CreateTopicsRequest(timeout_ms=60_000)
    names = [*honest.TOPICS, attackers.TOPIC, *(f"other-{number}" for number in range(200))]
    wanted.topics = [wanted.CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names]
    with RawClient(f"127.0.0.1:{guarded_port}") as client:
        client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        client.ask(SaslAuthenticateRequest(auth_bytes=f"\0{honest.USER}\0{honest.PASSWORD}".encode()), 2)
        assert not any(topic.error_code for topic in client.ask(wanted, 7).topics)


def _start(function: Callable[..., None], *arguments: Any, priority: int = 0) -> Any:
    def run() -> None:
        os.nice(priority)
        function(*arguments)

    process = _FORK.Process(target=run, daemon=True, name=function.__name__)
    process.start()
    return process


def soak(directory: Path, minutes: float, names: Collection[str] | None = None) -> Report:
    """Run honest clients alone, then beside attackers (those named, or all); return what was measured."""
    chosen = [one for one in attackers.ATTACKERS if names is None or one.__name__ in names]
    port, guarded_port = free_port(), free_port()
    options = [part for key, value in settings(port, guarded_port).items() for part in ("-o", f"{key}={value}")]
    notes: Any = _FORK.SimpleQueue()
    operations: list[honest.Operation] = []
    memory: list[tuple[float, int]] = []
    started: list[Any] = []
    acts = {one.__name__: _FORK.Value("q", 0, lock=False) for one in chosen}
    attackers.expensive_frames()
    with TailraceProcess(directory / "data", *options, port=port) as broker:
        assert broker.process is not None
        pid = broker.process.pid
        create_topics(guarded_port)
        try:
            began = time.monotonic()
            for client in honest.CLIENTS:
                started.append(_start(client, f"127.0.0.1:{guarded_port}", notes.put))
            attacked_at = began + WARM_UP_S + minutes * 60 * ALONE_SHARE
            end = began + WARM_UP_S + minutes * 60
            are_attacking = False
            while (now := time.monotonic()) < end and broker.process.poll() is None:
                while not notes.empty():
                    operations.append(notes.get())
                memory.append((now, memory_bytes(pid)))
                if now >= attacked_at and not are_attacking:
                    are_attacking = True
                    for one in chosen:
                        started.append(_start(one, port, guarded_port, acts[one.__name__], priority=5))
                time.sleep(0.25)
        finally:
            for process in started:
                process.kill()
                process.join()
        is_alive = broker.process.poll() is None
        status = broker.stop() if is_alive else None
    counted = [one for one in operations if one.at >= began + WARM_UP_S or one.error]
    done = {name: count.value for name, count in acts.items()}
    return Report(counted, memory, attacked_at, is_alive, status, broker.errors, done)


def print_latencies(report: Report) -> None:
    by_client: dict[str, tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
    for one in report.operations:
        if not one.error:
            by_client[one.client][one.at >= report.attacked_at].append(one.seconds)
    for client, (alone, attacked) in sorted(by_client.items()):
        print(f"{client:28} alone {_quantiles(alone)}   attacked {_quantiles(attacked)}")


def _quantiles(seconds: Sequence[float]) -> str:
    if len(seconds) < 2:
        return f"{len(seconds)} operations"
    cuts = statistics.quantiles(seconds, n=100)
    return f"p50 {cuts[49] * 1e3:7.1f} ms p99 {cuts[98] * 1e3:7.1f} ms of {len(seconds):6}"


def main() -> None:
    arguments = parse()
    with tempfile.TemporaryDirectory(prefix="tailrace-soak-") as scratch:
        report = soak(Path(scratch), arguments.minutes, arguments.attacker)
    print_latencies(report)
    print("attackers:", ", ".join(f"{name} {count}" for name, count in report.acts.items()))
    first, last = report.memory[0][1], report.memory[-1][1]
    most = max(size for _, size in report.memory)
    print(f"resident memory {first / 1e6:.0f} MB at first, {most / 1e6:.0f} MB at most, {last / 1e6:.0f} MB at last")
    problems = judge(report, arguments.ratio)
    for problem in problems:
        print(f"BROKEN {problem}")
    print("the soak is broken" if problems else "the soak is passed")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
