"""Reading files while a broker works on them: appends, rolls, retention and compaction.

Every row of a reader was written at its offset, and is read once. A missing row was deleted from the log, or is
reported as lost.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

import tailrace
from tailrace.client.admin import delete_records
from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.producing.producer import BatchProducer
from tailrace.model.ids import TopicPartition
from tailrace.spark.source.errors import OffsetRangeLost, SourceError
from tests.support.batches import batch
from tests.support.source_rows import plan, read_slices

T0 = TopicPartition("t", 0)
PER_BATCH = 20
SMALL = {"segment_bytes": "1048576", "index_interval_bytes": "4096", "retention_ms": "-1"}  # 17 batches per segment


def value_at(offset: int) -> bytes:
    return b"%08d" % offset + b"." * (3_000 + offset % 40)


class Writer:
    """Append batches whose values contain their offsets, as fast as possible, until stopped."""

    def __init__(self, bootstrap: str, keys: int) -> None:
        self._bootstrap = bootstrap
        self._keys = keys
        self._ended = threading.Event()
        self.written = 0

    def run(self) -> None:
        with ClusterClient(self._bootstrap) as cluster:
            producer = BatchProducer(cluster)
            while not self._ended.is_set():
                self.write(producer)

    def write(self, producer: BatchProducer) -> None:
        offsets = range(self.written, self.written + PER_BATCH)
        values = [(b"k%d" % (offset % self._keys), value_at(offset)) for offset in offsets]
        producer.send({T0: batch(*values)})
        self.written += PER_BATCH

    def end(self) -> None:
        self._ended.set()


@contextmanager
def at_work(*works: Callable[[], object], end: Callable[[], None]) -> Iterator[None]:
    """Run functions in threads beside the body, and raise their errors."""
    failures: list[BaseException] = []

    def run(work: Callable[[], object]) -> None:
        try:
            work()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        end()
        for thread in threads:
            thread.join()
    assert not failures, failures


def check_rows(found: list[dict[str, Any]]) -> list[int]:
    """Check that every row has the written value, and return the offsets, each once."""
    offsets = [row["OFFSET"] for row in found]
    assert len(offsets) == len(set(offsets))
    for row in found:
        assert row["VALUE"] == value_at(row["OFFSET"])
    return offsets


def wait_for_removal(folder: Path) -> None:
    first = min(folder.glob("*.log"))
    deadline = time.monotonic() + 60
    while first.exists():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[tailrace.Broker]:
    with tailrace.Broker(tmp_path / "data", log_cleaner_backoff_ms=20, log_retention_check_interval_ms=20) as broker:
        yield broker


def topic(broker: tailrace.Broker, **config: str) -> None:
    settings = {name.replace("_", "."): value for name, value in {**SMALL, **config}.items()}
    broker.create_topic("t", config=settings)


@pytest.mark.parametrize("with_cluster", [False, True], ids=["files", "files and cluster"])
def test_reads_are_correct_during_appends_and_rolls(broker: tailrace.Broker, with_cluster: bool) -> None:
    topic(broker)
    writer = Writer(broker.bootstrap, keys=10)
    options = {"path": broker.data, "subscribe": "t", "maxBytesPerPartition": "2m"}
    if with_cluster:
        options["kafka.bootstrap.servers"] = broker.bootstrap
    reads = 0
    with at_work(writer.run, end=writer.end):
        while writer.written < 5_000:
            before = writer.written
            offsets = check_rows(read_slices(plan(options)))
            assert offsets == list(range(len(offsets)))  # without gaps, in order
            assert len(offsets) >= before
            reads += 1
    assert reads > 1
    assert check_rows(read_slices(plan(options))) == list(range(writer.written))


def test_reads_are_correct_or_report_loss_during_retention(broker: tailrace.Broker) -> None:
    """Slices are planned before retention and read after it: each returns all its rows or reports the lost ones."""
    topic(broker)
    writer, dice, lost, whole = Writer(broker.bootstrap, keys=10), Random(7), 0, 0
    options = {"path": broker.data, "subscribe": "t", "maxBytesPerPartition": "600k"}
    with ClusterClient(broker.bootstrap) as cluster:
        producer = BatchProducer(cluster)
        for number in range(12):
            for _ in range(40):
                writer.write(producer)
            slices = plan(options)
            start = slices[0].range.start
            up_to = dice.randrange((start + writer.written) // 2, writer.written)
            taking = partial(delete_records, cluster, {T0: up_to})
            with at_work(taking, end=lambda: None):
                if number % 2:  # every other time retention runs first
                    wait_for_removal(Path(broker.data) / "t-0")
                for one in slices:
                    try:
                        offsets = check_rows(read_slices([one]))
                    except OffsetRangeLost:
                        lost += 1
                    else:
                        assert offsets == list(range(one.range.start, one.range.end))
                        whole += 1
            broker.move_clock(61_000)  # deleted files are removed from disk a minute later
    assert whole > 10
    assert lost > 0
    lenient = {**options, "failOnDataLoss": "false"}
    offsets = check_rows(read_slices(plan(lenient), fail_on_data_loss=False))
    assert offsets == list(range(offsets[0], writer.written))


def test_reads_are_correct_during_compaction(broker: tailrace.Broker) -> None:
    """Compaction only removes rows: the latest row of each key is always read."""
    topic(broker, cleanup_policy="compact", min_cleanable_dirty_ratio="0.01", segment_ms="100")
    keys = 50
    writer = Writer(broker.bootstrap, keys=keys)
    options = {"path": broker.data, "subscribe": "t", "maxBytesPerPartition": "600k"}
    fewest = 1.0
    deadline = time.monotonic() + 60
    with at_work(writer.run, end=writer.end):
        while writer.written < 8_000 or (fewest >= 0.5 and time.monotonic() < deadline):
            try:
                found = read_slices(plan(options))
            except SourceError as error:
                pytest.fail(f"{error}")
            offsets = check_rows(found)
            assert offsets == sorted(offsets)
            latest: dict[bytes, int] = {}
            for row in found:
                latest[row["KEY"]] = row["OFFSET"]
            end = max(offsets, default=0) + 1
            if end >= keys:
                assert sorted(latest.values()) == list(range(end - keys, end))
                fewest = min(fewest, len(offsets) / end)
    assert fewest < 0.5  # the cleaner has run
