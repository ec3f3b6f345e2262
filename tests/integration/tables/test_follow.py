"""A follower keeps a table up to date, also beside another one, and ends cleanly."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tailrace
from tailrace.client.admin import delete_records, delete_topic
from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.cluster.coordinators import Coordinators
from tailrace.client.groups.group_offsets import committed_offsets
from tailrace.model.ids import TopicPartition
from tailrace.spark.jobs.errors import JobError
from tailrace.spark.jobs.place import Place
from tailrace.spark.source.group_commits import GroupCommits
from tailrace.spark.source.options import WireOptions
from tailrace.spark.source.transports.segment_feed import SegmentSlice
from tailrace.spark.source.transports.wire_transport import FetchSlice
from tailrace.spark.tables import round_writer
from tailrace.spark.tables.follow import Follower, FollowPolicy
from tailrace.spark.tables.table_export import Exported, ExportSettings, TableExport
from tailrace.spark.tables.topic_source import TopicSource
from tests.support.exported_tables import FORMATS, data_files, export, named_files, offsets, opened
from tests.support.filled_topics import numbered, put
from tests.support.inline_spark import InlineSpark


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[tailrace.Broker]:
    with tailrace.Broker(tmp_path / "data") as broker:
        broker.create_topic("t", partitions=2)
        put(broker.bootstrap, "t", 0, numbered(10))
        yield broker


class Running:
    """A follower in a thread."""

    def __init__(self, form: str, folder: Path, broker: tailrace.Broker, **policy: Any) -> None:
        self.stopped = threading.Event()
        self.result: Exported | None = None
        self.error: BaseException | None = None
        self._arguments = form, folder, broker.bootstrap, policy
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        form, folder, bootstrap, policy = self._arguments
        group = policy.pop("group", None)
        commits = None if group is None else GroupCommits(group, WireOptions(bootstrap=bootstrap))
        settings = ExportSettings(
            round_bytes=policy.pop("round_bytes", 1 << 30), allow_loss=policy.pop("allow_loss", False)
        )
        try:
            with TopicSource(Place.parse(bootstrap), ["t"]) as source:
                job = TableExport(InlineSpark(), source, opened(form, folder), settings)
                policy = {"freshness_s": 0.05, **policy}
                self.result = Follower(job, FollowPolicy(**policy), group=commits).run(self.stopped)
        except BaseException as error:
            self.error = error

    def has_rows(self, count: int) -> bool:
        """Return True if the table has this number of rows. Raise the follower's error if it has failed."""
        if self.error is not None:
            raise self.error
        return has_rows(self._arguments[0], self._arguments[1], count)

    def stop(self) -> Exported:
        self.stopped.set()
        self._thread.join()
        if self.error is not None:
            raise self.error
        assert self.result is not None
        return self.result


def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def has_rows(form: str, folder: Path, count: int) -> bool:
    try:
        return len(offsets(form, folder)) >= count
    except Exception:  # the table is not created yet
        return False


@pytest.mark.parametrize("form", FORMATS)
def test_a_follower_adds_new_records_and_commits_to_its_group(
    form: str, broker: tailrace.Broker, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    running = Running(form, out, broker, group="lake")
    eventually(lambda: running.has_rows(10))
    put(broker.bootstrap, "t", 1, numbered(5))
    eventually(lambda: running.has_rows(15))
    assert running.stop().records == 15
    assert offsets(form, out) == [(0, n) for n in range(10)] + [(1, n) for n in range(5)]
    with ClusterClient(broker.bootstrap) as cluster:
        found = committed_offsets(Coordinators(cluster), "lake")
    assert {partition: one.offset for partition, one in found.items()} == {
        TopicPartition("t", 0): 10,
        TopicPartition("t", 1): 5,
    }


@pytest.mark.parametrize("form", FORMATS)
def test_two_followers_of_a_topic_add_each_record_once(form: str, broker: tailrace.Broker, tmp_path: Path) -> None:
    out = tmp_path / "out"
    export(form, out, broker.bootstrap)
    both = [Running(form, out, broker, merge_every=2) for _ in range(2)]
    for number in range(8):
        put(broker.bootstrap, "t", number % 2, numbered(5))
        time.sleep(0.2)
    eventually(lambda: all(one.has_rows(50) for one in both))
    assert sum(one.stop().records for one in both) == 40
    assert offsets(form, out) == [(0, n) for n in range(30)] + [(1, n) for n in range(20)]
    assert named_files(form, out) <= data_files(form, out)


@pytest.mark.parametrize("form", FORMATS)
def test_a_follower_merges_small_files_and_removes_old_snapshots(
    form: str, broker: tailrace.Broker, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    running = Running(form, out, broker, merge_every=4, keep_snapshots_s=0.0, expire_every_s=0.0, round_bytes=4096)
    for number in range(10):
        put(broker.bootstrap, "t", 1, numbered(8))
        eventually(lambda number=number: running.has_rows(10 + 8 * (number + 1)))
    result = running.stop()
    assert result.commits >= 10
    assert len(named_files(form, out)) < result.files
    assert offsets(form, out) == [(0, n) for n in range(10)] + [(1, n) for n in range(80)]


def test_a_round_waits_for_the_freshness_target(broker: tailrace.Broker, tmp_path: Path) -> None:
    now = [0.0]
    with TopicSource(Place.parse(broker.bootstrap), ["t"]) as source:
        job = TableExport(InlineSpark(), source, opened("delta", tmp_path / "out"), ExportSettings())
        follower = Follower(job, FollowPolicy(freshness_s=60), clock=lambda: now[0])
        assert not follower._is_due(0)
        assert not follower._is_due(10)
        now[0] = 59.9
        assert not follower._is_due(20)
        now[0] = 60.0
        assert follower._is_due(20)
        assert not follower._is_due(0)
        assert not follower._is_due(5)
        assert follower._is_due(100_000_000)  # a file of the target size is full


@pytest.mark.parametrize("form", FORMATS)
def test_sigterm_completes_the_round_and_ends_with_status_0(form: str, broker: tailrace.Broker, tmp_path: Path) -> None:
    asked = {
        "form": form,
        "folder": str(tmp_path / "out"),
        "bootstrap": broker.bootstrap,
        "topics": ["t"],
        "point": "none",
        "count": 0,
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.follower_process", json.dumps(asked)], stdout=subprocess.PIPE, text=True
    )
    eventually(lambda: has_rows(form, tmp_path / "out", 10))
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    assert json.loads(out.splitlines()[-1])["records"] == 10
    assert not list((tmp_path / "out").rglob("_tailrace/*.json"))


@pytest.mark.parametrize("form", FORMATS)
def test_a_follower_ends_with_an_error_if_its_topic_is_created_again(
    form: str, broker: tailrace.Broker, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    running = Running(form, out, broker)
    eventually(lambda: running.has_rows(10))
    with ClusterClient(broker.bootstrap) as cluster:
        delete_topic(cluster, "t")
    broker.create_topic("t", partitions=2)
    put(broker.bootstrap, "t", 0, numbered(30))
    eventually(lambda: running.error is not None)
    assert isinstance(running.error, JobError)
    with pytest.raises(JobError, match="topic t was deleted and created again"):
        export(form, out, broker.bootstrap)
    assert len(offsets(form, out)) == 10


@pytest.mark.parametrize("form", FORMATS)
def test_a_follower_that_retention_overtook_counts_the_lost_offsets(
    form: str, broker: tailrace.Broker, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    export(form, out, broker.bootstrap)
    put(broker.bootstrap, "t", 0, numbered(10))
    with ClusterClient(broker.bootstrap) as cluster:
        delete_records(cluster, {TopicPartition("t", 0): 15})
    refused = Running(form, out, broker)
    eventually(lambda: refused.error is not None)
    assert "offsets 10 to 14 of t-0 were deleted before they were exported" in str(refused.error)
    running = Running(form, out, broker, allow_loss=True)
    eventually(lambda: running.has_rows(15))
    result = running.stop()
    assert (result.records, result.lost) == (5, 5)


# Files first, then the network


def slices_of(monkeypatch: pytest.MonkeyPatch) -> list[type]:
    """Note the kinds of slices that are read."""
    kinds: list[type] = []
    real = round_writer.write_tasks

    def write_tasks(slices: Any, *rest: Any) -> Any:
        kinds.extend(type(one) for one in slices)
        return real(slices, *rest)

    monkeypatch.setattr(round_writer, "write_tasks", write_tasks)
    return kinds


@pytest.mark.parametrize("form", FORMATS)
def test_sealed_segments_come_from_files_and_the_rest_over_the_network(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = slices_of(monkeypatch)
    with tailrace.Broker(tmp_path / "data") as broker:
        broker.create_topic("t", partitions=1, config={"segment.bytes": 1 << 20})
        put(broker.bootstrap, "t", 0, [(b"k", bytes(100_000)) for _ in range(60)])
        found = export(form, tmp_path / "out", broker.bootstrap, files=broker.data, round_bytes=20 * 1024)
        assert found.commits > 1
        assert {SegmentSlice, FetchSlice} <= set(kinds)
        assert offsets(form, tmp_path / "out") == [(0, n) for n in range(60)]
        kinds.clear()
        put(broker.bootstrap, "t", 0, numbered(3))
        export(form, tmp_path / "out", broker.bootstrap)
        assert set(kinds) == {FetchSlice}
        assert offsets(form, tmp_path / "out") == [(0, n) for n in range(63)]


def test_files_of_another_topic_are_refused(broker: tailrace.Broker, tmp_path: Path) -> None:
    with tailrace.Broker(tmp_path / "other") as other:
        other.create_topic("t", partitions=2)
        put(other.bootstrap, "t", 0, numbered(50))
        with pytest.raises(JobError, match="are not those of topic t at"):
            export("delta", tmp_path / "out", broker.bootstrap, files=other.data)
