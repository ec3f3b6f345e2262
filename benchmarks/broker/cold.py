"""Catch-up: a consumer reads records that are on the disk but no longer in the page cache."""

from __future__ import annotations

import os
from pathlib import Path

from benchmarks.broker import frames
from benchmarks.broker.comparison import Comparison, compare, take_turns
from benchmarks.broker.contenders import Contender, cpu_s, delete_topic, make_topic
from benchmarks.broker.load import run_requests
from benchmarks.broker.throughput import ByteCost

TITLE = "Broker: catch-up from a cold cache"
TEXT = (
    "500 MB of 1 MB batches are synced and dropped from the page cache (`POSIX_FADV_DONTNEED`), then read from the "
    "start, 1 MB per request. kfake keeps everything in memory and is left out."
)
BYTES = 500e6


def run(contenders: list[Contender], rounds: int) -> list[Comparison]:
    on_disk = [one for one in contenders if one.data is not None]
    reads = {}
    for one in on_disk:
        batch = frames.batch(1_000_000)
        topic_id = make_topic(one, "cold")
        run_requests(one.port, [frames.produce(topic_id, batch)], in_flight=5, seconds=120, max_bytes=BYTES)
        count = int(BYTES * 0.98 / len(batch))
        reads[one.name] = [frames.fetch(topic_id, [(0, at * 1_000)], max_bytes=1_048_576) for at in range(count)]

    def measure(one: Contender) -> ByteCost:
        assert one.data is not None
        drop_from_cache(one.data / "cold-0")
        before = cpu_s(one.pid)
        result = run_requests(
            one.port, reads[one.name], seconds=120, max_bytes=BYTES * 0.95, error_at=frames.FETCH_ERROR_AT
        )
        cpu = cpu_s(one.pid) - before
        return ByteCost(cpu / result.received * 1e9, result.received / result.wall_s / 1e9)

    for one in on_disk:
        if not one.is_warmed_up:
            measure(one)
    rows = [compare("catch-up, 1 MB batches", dict(take_turns(on_disk, rounds, measure)), at_most=1.0)]
    for one in on_disk:
        delete_topic(one, "cold")
    return rows


def drop_from_cache(directory: Path) -> None:
    for path in directory.glob("*.log"):
        descriptor = os.open(path, os.O_RDWR)
        try:
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)
