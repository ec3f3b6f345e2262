"""Large batches: CPU seconds per GB, and GB a second."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.broker import frames
from benchmarks.broker.comparison import Comparison, compare, take_turns
from benchmarks.broker.contenders import Contender, cpu_s, delete_topic, make_topic
from benchmarks.broker.load import run_requests

TITLE = "Broker: throughput"
TEXT = (
    "Uncompressed batches of 1 KB records, of one partition. Produce with acks=all, five requests in flight on one "
    "connection, one batch each. Fetch of up to 1 MB per request, over 500 MB in the page cache, on one connection "
    "and without a session. CPU is the broker's, of all its threads. GB/s depend on the other work of the machine; "
    "the load generator uses one core."
)
SIZES = ((16 * 2**10, "16 KB"), (128 * 2**10, "128 KB"), (1_000_000, "1 MB"))
BYTES = 1e9
READ_BYTES = 500e6
WARM_UPS = 3


@dataclass(frozen=True)
class ByteCost:
    cpu_s_per_gb: float
    gb_per_s: float

    @property
    def cost(self) -> float:
        return self.cpu_s_per_gb

    def __str__(self) -> str:
        return f"{self.cpu_s_per_gb:.2f} s/GB, {self.gb_per_s:.2f} GB/s"


def run(contenders: list[Contender], rounds: int) -> list[Comparison]:
    rows = []
    for size, name in SIZES:
        batch = frames.batch(size)
        numbers = {one.name: 0 for one in contenders}

        def produce(one: Contender, batch: bytes = batch, numbers: dict[str, int] = numbers) -> ByteCost:
            numbers[one.name] += 1
            topic = f"produced-{len(batch)}-{numbers[one.name]}"
            sent = frames.produce(make_topic(one, topic), batch)
            before = cpu_s(one.pid)
            result = run_requests(
                one.port, [sent], in_flight=5, seconds=60, max_bytes=BYTES, error_at=frames.PRODUCE_ERROR_AT
            )
            cpu = cpu_s(one.pid) - before
            delete_topic(one, topic)
            return ByteCost(cpu / result.sent * 1e9, result.sent / result.wall_s / 1e9)

        _warm_up(contenders, produce)
        rows.append(compare(f"produce, {name} batches", dict(take_turns(contenders, rounds, produce)), at_most=0.5))
    for size, name in SIZES:
        batch = frames.batch(size)
        records = max(size // 1_000, 1)
        count = int(READ_BYTES * 0.98 / len(batch))  # slightly less than was written
        each = max(1_048_576 // len(batch), 1)
        reads = {}
        for one in contenders:
            topic_id = make_topic(one, f"read-{size}")
            run_requests(one.port, [frames.produce(topic_id, batch)], in_flight=5, seconds=60, max_bytes=READ_BYTES)
            reads[one.name] = [
                frames.fetch(topic_id, [(0, first * records)], max_bytes=1_048_576)
                for first in range(0, count - each, each)
            ]

        def fetch(one: Contender, reads: dict[str, list[bytes]] = reads) -> ByteCost:
            before = cpu_s(one.pid)
            result = run_requests(
                one.port, reads[one.name], in_flight=1, seconds=60, max_bytes=2 * BYTES, error_at=frames.FETCH_ERROR_AT
            )
            cpu = cpu_s(one.pid) - before
            return ByteCost(cpu / result.received * 1e9, result.received / result.wall_s / 1e9)

        _warm_up(contenders, fetch)
        rows.append(compare(f"fetch, {name} batches", dict(take_turns(contenders, rounds, fetch)), at_most=1.0))
        for one in contenders:
            delete_topic(one, f"read-{size}")
    return rows


def _warm_up(contenders: list[Contender], work: object) -> None:
    for one in contenders:
        if not one.is_warmed_up:
            for _ in range(WARM_UPS):
                work(one)  # type: ignore[operator]
