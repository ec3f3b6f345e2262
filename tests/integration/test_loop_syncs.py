"""Syncs run outside the loop: when partitions are created, led and deleted, when epochs and checkpoints are written,
when segments are rolled, and when retention deletes them.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import tailrace
from tailrace.protocol.messages import CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest
from tests.support.filled_topics import numbered, put
from tests.support.raw_client import RawClient

LOOP = "tailrace-server"
SETTINGS = {
    "log.flush.offset.checkpoint.interval.ms": "50",
    "replica.high.watermark.checkpoint.interval.ms": "50",
    "log.segment.delete.delay.ms": "0",
}


class Calls:
    """Records which paths were synced or removed, and by which thread."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: list[tuple[str, str]] = []
        for name in ("fsync", "fdatasync", "rmdir"):
            monkeypatch.setattr(os, name, self._watched(getattr(os, name)))

    def _watched(self, real: Callable[..., None]) -> Callable[..., None]:
        def watched(target: int | str) -> None:
            path = target if isinstance(target, str) else os.readlink(f"/proc/self/fd/{target}")
            self.seen.append((threading.current_thread().name, path))
            real(target)

        return watched

    def on_loop(self) -> list[str]:
        return [path for thread, path in self.seen if thread == LOOP and "__cluster_metadata-0" not in path]

    def of(self, part: str, by: str = "") -> list[str]:
        return [path for thread, path in list(self.seen) if part in path and by in thread]


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "not within a minute"
        time.sleep(0.01)


def test_only_the_metadata_log_is_synced_on_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tmp_path / "data"
    with tailrace.Broker(data, config=SETTINGS) as broker, RawClient(broker.bootstrap) as client:
        calls = Calls(monkeypatch)
        topics = [
            CreateTopicsRequest.CreatableTopic(name=name, num_partitions=20, replication_factor=1)
            for name in ("a", "b")
        ]
        made = client.ask(CreateTopicsRequest(topics=topics, timeout_ms=60_000), 5)
        assert [one.error_code for one in made.topics] == [0, 0]
        assert len(calls.of("leader-epoch-checkpoint")) == len(calls.of("partition.metadata")) == 40
        assert len([path for path in calls.of(str(data)) if path == str(data)]) < 10, "one for many partitions"
        more = CreatePartitionsRequest.CreatePartitionsTopic(name="a", count=25, assignments=None)
        assert client.ask(CreatePartitionsRequest(topics=[more], timeout_ms=60_000), 1).results[0].error_code == 0
        wait_until(lambda: calls.of("recovery-point-offset-checkpoint") and calls.of("replication-offset-checkpoint"))
        gone = client.ask(DeleteTopicsRequest(topic_names=["b"], timeout_ms=60_000), 5)
        assert [one.error_code for one in gone.responses] == [0]
        wait_until(lambda: len(calls.of("-delete")) == 20)
        wait_until(lambda: not list(data.glob("*-delete")))
        assert calls.on_loop() == []
        assert any(thread == LOOP for thread, _ in calls.seen), "the loop has another name"
        monkeypatch.undo()
    calls = Calls(monkeypatch)
    flushing = {"log.flush.interval.ms": "50", "log.flush.scheduler.interval.ms": "50"}
    with tailrace.Broker(data, config={**SETTINGS, **flushing}) as broker:
        # The broker becomes leader again, in a new epoch. A flush of its first record makes the epoch durable.
        for number in range(25):
            put(broker.bootstrap, "a", number, numbered(1))
        wait_until(lambda: len(calls.of("leader-epoch-checkpoint", by="tailrace-chore")) == 25)
        assert calls.on_loop() == []
        monkeypatch.undo()


def test_rolls_and_retention_sync_nothing_on_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {**SETTINGS, "log.retention.check.interval.ms": "200", "log.segment.bytes": str(1 << 20)}
    with tailrace.Broker(tmp_path / "data", config=settings) as broker, RawClient(broker.bootstrap) as client:
        topic = CreateTopicsRequest.CreatableTopic(name="a", num_partitions=1, replication_factor=1)
        client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=60_000), 5)
        calls = Calls(monkeypatch)
        folder = tmp_path / "data" / "a-0"
        # Old records: retention deletes all segments, the active one too.
        put(broker.bootstrap, "a", 0, [bytes(200_000)] * 60, per_batch=1)
        wait_until(lambda: [path.stat().st_size for path in folder.glob("*.log")] == [0])
        assert int(next(folder.glob("*.log")).stem) == 60
        assert len(calls.of("a-0", by="tailrace-chore")) > 12, "names and removals are synced by another thread"
        assert calls.on_loop() == []
        monkeypatch.undo()
