"""Start: from exec, or from a call, to the first answered Metadata; and memory, idle and under load."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.broker import frames
from benchmarks.broker.comparison import OURS, Comparison, against_limit
from benchmarks.broker.contenders import Contender, cpu_s, delete_topic, make_topic, memory_mb, reset_peak
from benchmarks.broker.load import run_requests
from tailrace.protocol.messages import MetadataRequest
from tests.support.raw_client import RawClient

TITLE = "Broker: start and memory"
TEXT = (
    "The time from exec of the process to its first answered Metadata, on a directory that it has used before, with "
    "its files and bytecode in the page cache. The same for `tailrace.Broker()` within a process, from the call to "
    "the response, the first time with its imports and then without. The figures are wall time, with CPU time in "
    "parentheses. Our goals are for CPU time: a start is one thread's work, so on an idle machine both are the "
    "same. Memory is the resident memory after the start, and its peak under load: 1 GB is produced in 16 KB "
    "batches on 8 connections and read again, and 1,000 connections send tiny requests."
)
STARTS = 5
IN_PROCESS = """
import statistics, time
now = lambda: (time.perf_counter(), time.process_time())
began = now()
import tailrace
from tailrace.protocol.messages import MetadataRequest
from tests.support.raw_client import RawClient

def start(began):
    with tailrace.Broker() as broker, RawClient(broker.bootstrap) as client:
        client.ask(MetadataRequest(topics=[]), 12)
        return [end - start for start, end in zip(began, now())]

first = start(began)
later = [start(now()) for _ in range(5)]
print(*first, *(statistics.median(column) for column in zip(*later)))
"""


def run(contenders: list[Contender], rounds: int) -> list[Comparison]:
    """Start each contender several times, and leave it running."""
    return [*_starts(contenders), *_memory(contenders)]


def _starts(contenders: list[Contender]) -> list[Comparison]:
    taken: dict[str, list[tuple[float, float]]] = {}
    for one in contenders:
        for _ in range(STARTS + 1):
            one.stop()
            taken.setdefault(one.name, []).append(_started_s(one))
    # The first start may have compiled bytecode or recovered from the kill.
    wall = {name: statistics.median(wall for wall, _ in times[1:]) for name, times in taken.items()}
    cpu = {name: statistics.median(cpu for _, cpu in times[1:]) for name, times in taken.items()}
    reported = {name: f"{wall[name]:.2f} s ({cpu[name]:.2f} s CPU)" for name in taken}
    rows = [against_limit("exec to Metadata", reported, cpu, 0.3, "s")]
    first_wall, first_cpu, next_wall, next_cpu = (value * 1000 for value in _in_process_s())
    first = {OURS: f"{first_wall:.0f} ms ({first_cpu:.0f} ms CPU)"}
    rows.append(Comparison("`tailrace.Broker()`, first in a process", first, {}))
    later = {OURS: f"{next_wall:.0f} ms ({next_cpu:.0f} ms CPU)"}
    rows.append(against_limit("`tailrace.Broker()`, later ones", later, {OURS: next_cpu}, 50, "ms"))
    return rows


def _started_s(one: Contender) -> tuple[float, float]:
    began = time.perf_counter()
    one.start()  # `start` returns when the broker responds
    with RawClient(f"127.0.0.1:{one.port}") as client:
        client.ask(MetadataRequest(topics=[]), 12)
    return time.perf_counter() - began, cpu_s(one.pid)


def _in_process_s() -> list[float]:
    """Return wall and CPU time of the first start in a process, then of a later one."""
    environment = {key: text for key, text in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryDirectory(prefix="tailrace-bytecode-") as bytecode:
        if "PYTHONDONTWRITEBYTECODE" in os.environ:
            environment["PYTHONPYCACHEPREFIX"] = bytecode
        found = []
        for _ in range(STARTS + 1):
            done = subprocess.run(
                [sys.executable, "-c", IN_PROCESS],
                env=environment,
                cwd=Path(__file__).parents[2],
                capture_output=True,
                text=True,
                check=True,
            )
            found.append([float(word) for word in done.stdout.split()])
    return [statistics.median(column) for column in zip(*found[1:], strict=True)]


def _memory(contenders: list[Contender]) -> list[Comparison]:
    idle = {one.name: memory_mb(one.pid) for one in contenders}
    peak = {}
    for one in contenders:
        reset_peak(one.pid)
        topic_id = make_topic(one, "memory")
        batch = frames.batch(16_384)
        run_requests(one.port, [frames.produce(topic_id, batch)], connections=8, in_flight=5, seconds=60, max_bytes=1e9)
        reads = [frames.fetch(topic_id, [(0, offset)], max_bytes=1_048_576) for offset in range(0, 900_000, 1_000)]
        run_requests(one.port, reads, connections=8, seconds=60, max_bytes=2e9)
        tiny = [frames.produce(topic_id, frames.batch(100, 100))]
        run_requests(one.port, tiny, connections=1_000, seconds=3)
        peak[one.name] = memory_mb(one.pid, "VmHWM")
        delete_topic(one, "memory")
    return [
        against_limit(work, {name: f"{size:.0f} MB" for name, size in sizes.items()}, sizes, limit, "MB")
        for work, sizes, limit in (("memory, idle", idle, 60.0), ("memory, peak under load", peak, 150.0))
    ]
