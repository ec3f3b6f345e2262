"""Produce and Fetch handled inside this process: their cost without a socket.

`python -m benchmarks.bench_handling [--profile] [part of a name …]` prints each kind of request on its own.
"""

from __future__ import annotations

import cProfile
import gc
import itertools
import pstats
import shutil
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.broker import frames
from benchmarks.measure import Row
from tailrace.broker.broker import Broker
from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.requests.request_context import ConnectionContext
from tailrace.broker.startup.open_broker import open_broker
from tailrace.log.disk.files import DiskFiles
from tailrace.protocol.messages import CreateTopicsRequest, MetadataRequest, ProduceRequest
from tests.support.memory_node import Client

TITLE = "Requests in the process"
TEXT = (
    "Produce (acks=all, one record of 100 bytes a partition) and Fetch, handled inside this process: from the frame to "
    "the encoded response, with the write and the read of the log, without sockets. CPU per request, the least of many "
    "rounds."
)
WIDE = 1_000
ROUND_S = 0.05
ROUNDS = 30
_PREFIX = 4


class Handling:
    """A broker, and one request after the other."""

    def __init__(self, folder: Path) -> None:
        self.now_ms = time.time_ns() // 1_000_000
        ids = itertools.count(1_000_000)
        self.broker: Broker = open_broker(
            DiskFiles(),
            BrokerConfig.of(log_dirs=[str(folder)], port=9092, settings={}),
            now_ms=self.now_ms,
            new_id=lambda: next(ids).to_bytes(16, "big"),
            next_int=lambda limit: 0,
            work_ns=time.perf_counter_ns,
        )
        self._contexts = [ConnectionContext(number) for number in range(1, 9)]
        self.one = self._topic("one", 1)
        self.wide = self._topic("wide", WIDE)
        self.records = frames.batch(100, 100)
        for _ in range(100):
            self.handle(frames.produce(self.one, self.records)[_PREFIX:])
        for index in range(WIDE):
            self.handle(frames.produce(self.wide, self.records, partition=index)[_PREFIX:])

    def _topic(self, name: str, partitions: int) -> bytes:
        client = Client(self.broker)
        client.now_ms = self.now_ms
        wanted = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
        client.ask(CreateTopicsRequest(topics=[wanted], timeout_ms=30_000), 7)
        answer = client.ask(MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=name)]), 12)
        return bytes(answer.topics[0].topic_id)

    def handle(self, sent: bytes) -> None:
        """Handle a frame, which the broker changes in place."""
        self.handle_all([sent], self._contexts[:1])

    def handle_all(self, sent: list[bytes], contexts: list[ConnectionContext]) -> None:
        handle, now_ms = self.broker.handle, self.now_ms
        for frame, context in zip(sent, contexts, strict=True):
            handle(memoryview(bytearray(frame)), context, now_ms)
        replies = self.broker.take_replies()
        assert len(replies) == len(sent), f"{len(replies)} replies to {len(sent)} requests"

    # Kinds of requests

    def produce(self) -> tuple[Callable[[], None], int]:
        frame = frames.produce(self.one, self.records)[_PREFIX:]
        return lambda: self.handle(frame), 1

    def produce_of_eight_connections(self) -> tuple[Callable[[], None], int]:
        every = [frames.produce(self.one, self.records)[_PREFIX:]] * len(self._contexts)
        return lambda: self.handle_all(every, self._contexts), len(every)

    def produce_of_one_connection_pipelined(self) -> tuple[Callable[[], None], int]:
        every = [frames.produce(self.one, self.records)[_PREFIX:]] * 100
        contexts = self._contexts[:1] * 100
        return lambda: self.handle_all(every, contexts), len(every)

    def produce_of_100_partitions(self) -> tuple[Callable[[], None], int]:
        data = [ProduceRequest.PartitionProduceData(index=index, records=self.records) for index in range(100)]
        topic = ProduceRequest.TopicProduceData(topic_id=self.wide, partition_data=data)
        request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic])
        frame = frames.frame(request, frames.PRODUCE_VERSION)[_PREFIX:]
        return lambda: self.handle(frame), 1

    def fetch(self) -> tuple[Callable[[], None], int]:
        frame = frames.fetch(self.one, [(0, 5)], max_bytes=150)[_PREFIX:]
        return lambda: self.handle(frame), 1

    def fetch_that_waits(self) -> tuple[Callable[[], None], int]:
        """Return a Fetch at the end of the log, with the Produce that wakes it."""
        end = self.broker.services.partitions.of_topic(self.one, 0).log  # type: ignore[union-attr]
        fetch = bytearray(frames.fetch(self.one, [(0, 0)], max_bytes=1_000))[_PREFIX:]
        offset_at = frames.offset_place(self.one) - _PREFIX
        produce = frames.produce(self.one, self.records)[_PREFIX:]

        def run() -> None:
            struct.pack_into(">q", fetch, offset_at, end.log_end_offset)
            self.handle_all([fetch, produce], self._contexts[:2])

        return run, 1

    def fetch_of_1000_partitions(self) -> tuple[Callable[[], None], int]:
        every = [(index, 0) for index in range(WIDE)]
        frame = frames.fetch(self.wide, every, max_bytes=1_048_576, max_wait_ms=0)[_PREFIX:]
        return lambda: self.handle(frame), 1

    def session_without_news(self) -> tuple[Callable[[], None], int]:
        client = Client(self.broker)
        client.now_ms = self.now_ms
        partitions = self.broker.services.partitions
        ends = [(i, partitions.of_topic(self.wide, i).log.log_end_offset) for i in range(WIDE)]  # type: ignore[union-attr]
        opened = bytearray(frames.fetch(self.wide, ends, max_bytes=150, max_wait_ms=0, session_epoch=0))[_PREFIX:]
        self.broker.handle(memoryview(opened), self._contexts[0], self.now_ms)
        session_id = struct.unpack_from(">i", self.broker.take_replies()[0].parts[0], 11)[0]  # type: ignore[index,arg-type]
        frame = bytearray(
            frames.fetch(bytes(16), [], max_bytes=150, max_wait_ms=0, session_id=session_id, session_epoch=1)
        )[_PREFIX:]
        epoch_at = frames.epoch_place() - _PREFIX
        epochs = itertools.count(1)

        def run() -> None:
            struct.pack_into(">i", frame, epoch_at, next(epochs))
            self.handle(frame)

        return run, 1


KINDS: tuple[tuple[str, Callable[[Handling], tuple[Callable[[], None], int]]], ...] = (
    ("produce", Handling.produce),
    ("produce, 8 connections", Handling.produce_of_eight_connections),
    ("produce, 1 connection, 100 in flight", Handling.produce_of_one_connection_pipelined),
    ("produce, 100 partitions", Handling.produce_of_100_partitions),
    ("fetch", Handling.fetch),
    ("fetch that waits, and the produce that wakes it", Handling.fetch_that_waits),
    ("fetch, 1,000 partitions", Handling.fetch_of_1000_partitions),
    ("session of 1,000 partitions without news", Handling.session_without_news),
)


@contextmanager
def _handling() -> Iterator[Handling]:
    folder = Path(tempfile.mkdtemp(prefix="tailrace-bench-"))
    try:
        yield Handling(folder)
    finally:
        shutil.rmtree(folder)


def least_s(run: Callable[[], None]) -> float:
    """Return the CPU seconds of a call, the least of many rounds."""
    clock = time.process_time
    start = clock()
    run()
    times = max(int(ROUND_S / max(clock() - start, 1e-6)), 1)
    best = float("inf")
    for _ in range(ROUNDS):
        start = clock()
        for _ in range(times):
            run()
        best = min(best, (clock() - start) / times)
    return best


def run(names: list[str] | None = None) -> list[Row]:
    rows = []
    with _handling() as handling:
        gc.freeze()
        for name, kind in KINDS:
            if names and not any(one in name for one in names):
                continue
            call, requests = kind(handling)
            call()
            rows.append(Row(name, f"{least_s(call) / requests * 1e6:.1f} µs", "", None, "", None))
    return rows


def _profile(names: list[str]) -> None:
    with _handling() as handling:
        for name, kind in KINDS:
            if any(one in name for one in names):
                call, _ = kind(handling)
                call()
                profile = cProfile.Profile()
                profile.enable()
                for _ in range(2_000 if "00 partitions" not in name else 20):
                    call()
                profile.disable()
                print(name)
                pstats.Stats(profile).sort_stats("tottime").print_stats(45)


if __name__ == "__main__":
    asked = [name for name in sys.argv[1:] if name != "--profile"]
    if "--profile" in sys.argv:
        _profile(asked)
    else:
        for row in run(asked):
            print(f"{row.work:50} {row.ours:>12}", flush=True)
