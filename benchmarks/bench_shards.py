"""Produce and fetch with one shard and with two: `python -m benchmarks.run shards`."""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from benchmarks.broker import frames
from benchmarks.broker.contenders import cpu_s
from benchmarks.broker.load import LoadResult, run_requests
from benchmarks.measure import Row
from tailrace.client.admin import NewTopic, create_topic, delete_topic
from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.offsets import latest_offsets
from tests.support.cluster_command import free_ports
from tests.support.tailrace_process import TailraceProcess

TITLE = "Shards"
TEXT = (
    "Uncompressed batches of 16 KB, of records of 1 KB, to and from two partitions. Two load generators, each a "
    "process, have one connection each to the broker that leads its partition. CPU is that of the broker's processes, "
    "and of the generators apart. Two shards can be faster only where the generators leave a core free. The start is "
    "the time until clients can connect, on a directory that exists. Memory is the proportional set size of a shard."
)
GENERATORS = 2
BATCH = 16 * 2**10
SECONDS = 3.0
READ_BYTES = 200e6
ROUNDS = 3
STARTS = 5


@dataclass(frozen=True)
class Figure:
    gb_per_s: float
    cpu_s_per_gb: float
    generator_cores: float  # CPU of the generators by wall time

    def __str__(self) -> str:
        return f"{self.gb_per_s:.2f} GB/s, {self.cpu_s_per_gb:.2f} s/GB (generators {self.generator_cores:.1f} cores)"


class Topic(NamedTuple):
    id: bytes
    ports: list[int]  # of the leader of each partition


class Node:
    def __init__(self, directory: Path, shards: int) -> None:
        options = ["-o", "log.segment.delete.delay.ms=1000"]
        if shards > 1:
            options += ["--shards", str(shards)]
        self.shards = shards
        self.process = TailraceProcess(directory / f"shards-{shards}", *options, port=free_ports(8))
        self.process.ready_timeout_s = 120.0

    @property
    def port(self) -> int:
        return self.process.port

    @property
    def pid(self) -> int:
        assert self.process.process is not None
        return self.process.process.pid

    def start(self) -> None:
        self.process.start()

    def stop(self) -> None:
        if self.process.process is not None:
            self.process.stop()

    @property
    def brokers(self) -> list[int]:
        """Return the process ids of the brokers."""
        if self.shards == 1:
            return [self.pid]
        return [int(one) for one in Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()]

    def cpu_s(self) -> float:
        return sum(cpu_s(one) for one in {self.pid, *self.brokers})

    @contextmanager
    def topic(self, name: str) -> Iterator[Topic]:
        """Create a topic for the time of a measurement."""
        with ClusterClient(f"127.0.0.1:{self.port}") as cluster:
            create_topic(cluster, NewTopic(name=name, partitions=GENERATORS, replication_factor=1))
            found = cluster.topic(name)
            latest_offsets(cluster, found.topic_partitions)  # returns when every leader serves its partition
            found = cluster.topic(name)
            ports = [cluster.metadata.brokers[one.leader].address.port for one in found.partitions]
            yield Topic(found.topic_id, ports)
            delete_topic(cluster, name)


def run() -> list[Row]:
    directory = Path(tempfile.mkdtemp(prefix="tailrace-bench-", dir=os.environ.get("TAILRACE_BENCH_DIR")))
    nodes = [Node(directory, shards) for shards in (1, 2)]
    try:
        for one in nodes:
            one.start()
        produced = _in_turns(nodes, _produce)
        fetched = _in_turns(nodes, _fetch)
        memory = _megabytes(nodes[1])
        starts = [_start_ms(one) for one in nodes]
    finally:
        for one in nodes:
            one.stop()
        shutil.rmtree(directory, ignore_errors=True)
    return [
        *_rows("produce", produced),
        *_rows("fetch", fetched),
        Row("start", f"{starts[1]:.0f} ms", f"{starts[0]:.0f} ms, one shard", None, "≤ 600 ms", starts[1] <= 600),
        Row("memory of a shard", f"{memory:.1f} MB", "", None, "≤ 40 MB", memory <= 40),
    ]


def _rows(work: str, figures: Sequence[Figure]) -> list[Row]:
    one, two = figures
    faster, dearer = two.gb_per_s / one.gb_per_s, two.cpu_s_per_gb / one.cpu_s_per_gb
    return [
        Row(f"{work}, speed of two shards by one", str(two), str(one), faster, "≥ 1.7", faster >= 1.7),
        Row(f"{work}, CPU per GB of two shards by one", "", "", dearer, "≤ 1.1", dearer <= 1.1),
    ]


def _in_turns(nodes: Sequence[Node], work: Callable[[Node, int], Figure]) -> list[Figure]:
    """Return the median by speed of each node, over rounds in which they take turns."""
    figures: dict[int, list[Figure]] = {one.shards: [] for one in nodes}
    for number in range(ROUNDS):
        for one in nodes:
            figures[one.shards].append(work(one, number))
    return [
        next(one for one in found if one.gb_per_s == statistics.median_low([each.gb_per_s for each in found]))
        for found in figures.values()
    ]


def _produce(node: Node, number: int) -> Figure:
    batch = frames.batch(BATCH)
    with node.topic(f"produced-{number}") as topic:
        sent = [[frames.produce(topic.id, batch, partition=partition)] for partition in range(GENERATORS)]
        return _measure(node, topic, sent, frames.PRODUCE_ERROR_AT, lambda one: one.sent)


def _fetch(node: Node, number: int) -> Figure:
    batch = frames.batch(BATCH)
    records, each = BATCH // 1_000, 1_048_576 // len(batch)
    count = int(READ_BYTES * 0.98 / len(batch))  # slightly less than was written
    with node.topic(f"fetched-{number}") as topic:
        for partition, port in enumerate(topic.ports):
            written = [frames.produce(topic.id, batch, partition=partition)]
            run_requests(port, written, in_flight=5, seconds=60, max_bytes=READ_BYTES, error_at=frames.PRODUCE_ERROR_AT)
        asked = [
            [
                frames.fetch(topic.id, [(partition, first * records)], max_bytes=1_048_576)
                for first in range(0, count - each, each)
            ]
            for partition in range(GENERATORS)
        ]
        return _measure(node, topic, asked, frames.FETCH_ERROR_AT, lambda one: one.received)


def _measure(
    node: Node,
    topic: Topic,
    asked: Sequence[Sequence[bytes]],
    error_at: Sequence[int],
    moved: Callable[[LoadResult], float],
) -> Figure:
    """Run a generator for each partition, all at once."""

    def generate(partition: int) -> LoadResult:
        return run_requests(
            topic.ports[partition],
            asked[partition],
            in_flight=5,
            seconds=SECONDS,
            error_at=error_at,
            name=f"requests-{partition}",
        )

    before = node.cpu_s()
    with ThreadPoolExecutor(GENERATORS) as threads:
        results = list(threads.map(generate, range(GENERATORS)))
    cpu = node.cpu_s() - before
    size = sum(moved(one) for one in results)
    wall = max(one.wall_s for one in results)
    return Figure(size / wall / 1e9, cpu / size * 1e9, sum(one.cpu_s for one in results) / wall)


def _start_ms(node: Node) -> float:
    taken = []
    for _ in range(STARTS):
        node.stop()
        began = time.perf_counter()
        node.start()
        taken.append((time.perf_counter() - began) * 1_000)
    return statistics.median(taken)


def _megabytes(node: Node) -> float:
    """Return the largest proportional set size of a broker process."""
    sizes = []
    for pid in node.brokers:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        sizes.append(next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024)
    return max(sizes)
