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
from confluent_kafka import Consumer

import tailrace
from tailrace.client.admin import delete_records, delete_topic
from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.cluster.coordinators import Coordinators
from tailrace.client.groups.group_offsets import committed_offsets
from tailrace.model.ids import TopicPartition
from tailrace.spark.jobs.errors import JobError, can_heal
from tailrace.spark.jobs.place import Place
from tailrace.spark.source.group_commits import GroupCommits
from tailrace.spark.source.options import WireOptions
from tailrace.spark.source.transports.segment_feed import SegmentSlice
from tailrace.spark.source.transports.wire_transport import FetchSlice
from tailrace.spark.tables import round_writer
from tailrace.spark.tables.follow import Follower, FollowPolicy, Progress
from tailrace.spark.tables.formats.delta import DeltaTable
from tailrace.spark.tables.formats.iceberg import IcebergTable
from tailrace.spark.tables.row_form import PlainRows
from tailrace.spark.tables.table_export import Exported, ExportSettings, TableExport
from tailrace.spark.tables.topic_source import TopicSource
from tailrace.spark.typed.typed_rows import TypedRows
from tailrace.spark.typed.value_format import ValueFormat
from tests.support.exported_tables import FORMATS, data_files, export, named_files, offsets, opened
from tests.support.filled_topics import numbered, put
from tests.support.inline_spark import InlineSpark


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[tailrace.Broker]:
    with tailrace.Broker(tmp_path / "data") as broker:
        broker.create_topic("t", partitions=2)
        put(broker.bootstrap, "t", 0, numbered(10))
        yield broker


QUICK = {"default.api.timeout.ms": "500", "request.timeout.ms": "500"}  # for tests with a broker that is away


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
            round_bytes=policy.pop("round_bytes", 1 << 30),
            allow_loss=policy.pop("allow_loss", False),
            form=policy.pop("rows", PlainRows()),
        )
        report = policy.pop("report", lambda progress: None)
        place, topic = Place.parse(bootstrap, policy.pop("client", {})), policy.pop("topic", "t")
        try:
            with TopicSource(place, [topic]) as source:
                job = TableExport(InlineSpark(), source, opened(form, folder), settings)
                policy = {"freshness_s": 0.05, **policy}
                self.result = Follower(job, FollowPolicy(**policy), group=commits, report=report).run(self.stopped)
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


# Errors that heal, and others


class Outage:
    """Lets every request to the catalog of a table fail while it is on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
        self.is_on = False
        kind = IcebergTable if form == "iceberg" else DeltaTable
        real = kind._load
        self.attempts = 0

        def load(table: Any) -> Any:
            self.attempts += 1
            if self.is_on:
                raise JobError("the catalog is away", is_transient=can_heal(ConnectionError()))
            return real(table)

        monkeypatch.setattr(kind, "_load", load)


@pytest.mark.parametrize("form", FORMATS)
def test_a_follower_survives_the_restart_of_its_broker(form: str, broker: tailrace.Broker, tmp_path: Path) -> None:
    out = tmp_path / "out"
    reports: list[Progress] = []
    running = Running(form, out, broker, report=reports.append, group="lake", longest_pause_s=0.2, client=QUICK)
    eventually(lambda: running.has_rows(10))
    broker.stop()
    eventually(lambda: any(one.problem is not None for one in reports) or running.error is not None)
    broker.start()
    put(broker.bootstrap, "t", 0, numbered(5))
    eventually(lambda: running.has_rows(15))
    running.stop()
    assert offsets(form, out) == [(0, n) for n in range(15)]


@pytest.mark.parametrize("form", FORMATS)
def test_a_follower_survives_an_outage_of_its_catalog(
    form: str, broker: tailrace.Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    outage = Outage(monkeypatch, form)
    reports: list[Progress] = []
    running = Running(form, out, broker, report=reports.append, first_pause_s=0.02, longest_pause_s=0.05)
    eventually(lambda: running.has_rows(10))
    outage.is_on = True
    put(broker.bootstrap, "t", 0, numbered(5))
    eventually(lambda: sum(one.problem == "the catalog is away" for one in reports) >= 3)
    outage.is_on = False
    eventually(lambda: running.has_rows(15))
    assert running.stop().records == 15
    pauses = [one.retry_s for one in reports if one.problem is not None]
    assert pauses[:3] == [0.02, 0.04, 0.05]


def test_a_group_with_members_ends_the_follower_with_one_sentence(broker: tailrace.Broker, tmp_path: Path) -> None:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "lake", "auto.offset.reset": "earliest"})
    try:
        consumer.subscribe(["t"])
        assert consumer.poll(60) is not None  # it is a member now
        running = Running("delta", tmp_path / "out", broker, group="lake")
        eventually(lambda: running.error is not None)
    finally:
        consumer.close()
    assert isinstance(running.error, JobError)
    assert str(running.error).startswith("offsets cannot be committed to group lake: ")


POISON = [(b"k", b'{"n": 1}'), (b"k", b"{"), (b"k", None), (b"k", b'{"n": "text"}'), (b"k", b'{"n": 2}')]


@pytest.mark.parametrize(("on_error", "rows"), [("keep", 5), ("drop", 3)])
@pytest.mark.parametrize("form", FORMATS)
def test_a_follower_counts_values_that_cannot_be_decoded_and_continues(
    form: str, on_error: str, rows: int, broker: tailrace.Broker, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    typed = TypedRows(ValueFormat("json", b"n bigint"), on_error=on_error)
    broker.create_topic("typed", partitions=1)
    running = Running(form, out, broker, topic="typed", rows=typed)
    for number in range(2):
        put(broker.bootstrap, "typed", 0, POISON)
        eventually(lambda number=number: running.has_rows((number + 1) * rows))
    assert running.stop().broken == 4


@pytest.mark.parametrize("form", FORMATS)
def test_a_round_that_fails_before_its_commit_leaves_no_files(
    form: str, broker: tailrace.Broker, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    broker.create_topic("typed", partitions=1)
    put(broker.bootstrap, "typed", 0, POISON)
    strict = TypedRows(ValueFormat("json", b"n bigint"), on_error="fail")
    for _ in range(3):
        with pytest.raises(JobError, match="the record at offset 1 of typed-0 cannot be decoded"):
            export(form, out, broker.bootstrap, topics=["typed"], form=strict)
    assert not list(out.rglob("_tailrace/*.json"))
    assert not data_files(form, out)


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
