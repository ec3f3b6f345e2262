"""Replay of a log into another cluster: its plan and its tasks, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tailrace
from tailrace.client.producing.producer import BatchProducer
from tailrace.model.ids import TopicPartition
from tailrace.records.batch import Codec
from tailrace.records.record import iter_records
from tailrace.spark.jobs.diff.diff import DiffReport, compare, plan_diff
from tailrace.spark.jobs.errors import JobError
from tailrace.spark.jobs.replay.copy import Replayed, replay_partition
from tailrace.spark.jobs.replay.replay import ReplayRange, plan_replay
from tests.support.filled_topics import numbered, put
from tests.support.golden import golden


@pytest.fixture
def target(tmp_path: Path) -> Iterator[tailrace.Broker]:
    with tailrace.Broker(tmp_path / "target") as broker:
        yield broker


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tailrace.Broker]:
    with tailrace.Broker(tmp_path_factory.mktemp("source") / "data") as broker:
        broker.create_topic("t", partitions=2)
        put(broker.bootstrap, "t", 0, numbered(60), codec=Codec.ZSTD)
        put(broker.bootstrap, "t", 1, [*numbered(30), (b"gone", None)], per_batch=7)
        yield broker


def replay(source: str, target: str, **options: Any) -> list[Replayed]:
    return [replay_partition(task) for task in plan_replay(source, target, **options)]


def compared(here: str, there: str, **options: Any) -> DiffReport:
    report, tasks = plan_diff(here, there, ignore=["offsets"], read_committed=True, **options)
    for task in tasks:
        report.partitions[task.partition].add(compare(task))
    return report


@pytest.mark.parametrize("way", ["wire", "files"])
def test_a_replayed_topic_is_equal(source: tailrace.Broker, target: tailrace.Broker, way: str) -> None:
    place = source.data if way == "files" else source.bootstrap
    done = replay(place, target.bootstrap, topics=["t:copy"], create=True)
    assert [(one.records, one.batches_decoded) for one in done] == [(60, 0), (31, 0)]
    assert compared(place, target.bootstrap, topics=["t:copy"]).is_equal


@pytest.mark.long
def test_a_replay_of_kafkas_files_keeps_transactions_gaps_and_headers(target: tailrace.Broker, tmp_path: Path) -> None:
    path = str(golden("broker-clean").unpack(tmp_path / "kafka"))
    topics = sorted({one["topic"] for one in golden("broker-clean").manifest["partitions"]})
    done = replay(path, target.bootstrap, topics=topics, create=True)
    assert sum(one.records for one in done) > 0
    found = compared(path, target.bootstrap, topics=topics).partitions
    # Timestamps that a broker set are kept, and become timestamps of the producer.
    of_the_broker = found.pop(TopicPartition("events", 0))
    assert of_the_broker.fields == {"timestampType": 10}
    assert all(one.is_equal for one in found.values())


def test_a_replay_copies_a_range_by_offset_or_time(source: tailrace.Broker, target: tailrace.Broker) -> None:
    put(source.bootstrap, "t", 0, [])
    (first, second) = replay(
        source.bootstrap,
        target.bootstrap,
        topics=["t"],
        create=True,
        wanted=ReplayRange(from_offset=3, to_time=1_700_000_000_012),
    )
    assert (first.records, first.batches_copied, first.batches_decoded) == (9, 1, 2)  # 3 4 | 5 … 9 | 10 11
    assert (second.start, second.end) == (3, 12)


def test_a_stopped_replay_is_resumed_without_duplicates(
    source: tailrace.Broker, target: tailrace.Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: dict[str, Any] = {"topics": ["t"], "create": True, "state": str(tmp_path / "state")}
    for number in (1, 4, 8):
        sent = 0
        send = BatchProducer.send

        def fail(self: BatchProducer, batches: Any, limit: int = number, send: Any = send) -> Any:
            nonlocal sent
            sent += 1
            if sent > limit:
                raise KeyboardInterrupt
            return send(self, batches)

        with monkeypatch.context() as patched:
            patched.setattr(BatchProducer, "send", fail)
            with pytest.raises(KeyboardInterrupt):
                replay(source.bootstrap, target.bootstrap, **options)
    done = replay(source.bootstrap, target.bootstrap, **options)
    assert sum(one.records_found for one in done) > 0
    assert compared(source.bootstrap, target.bootstrap, topics=["t"]).is_equal
    assert replay(source.bootstrap, target.bootstrap, **options) == []


def test_a_replay_resumes_in_the_middle_of_a_batch(source: tailrace.Broker, target: tailrace.Broker) -> None:
    """The state after a batch that was split into halves because it was too large, with only one half sent."""
    target.create_topic("t", partitions=2)
    tasks = plan_replay(source.bootstrap, target.bootstrap, topics=["t"])
    put(target.bootstrap, "t", 0, numbered(13), per_batch=13)
    done = [replay_partition(task) for task in tasks]
    assert [one.records_found for one in done] == [13, 0]
    assert compared(source.bootstrap, target.bootstrap, topics=["t"]).is_equal


def test_another_producer_in_the_target_stops_the_replay(source: tailrace.Broker, target: tailrace.Broker) -> None:
    target.create_topic("t", partitions=2)
    tasks = plan_replay(source.bootstrap, target.bootstrap, topics=["t"])
    put(target.bootstrap, "t", 0, numbered(3, first=1))
    with pytest.raises(
        JobError, match=r"another producer writes to t-0 .* the record at offset 2 is not from this replay"
    ):
        replay_partition(tasks[0])
    put(target.bootstrap, "t", 1, numbered(40))
    with pytest.raises(JobError, match="another producer writes to t-1"):
        replay_partition(tasks[1])


def test_batches_too_large_for_the_target_are_split(source: tailrace.Broker, target: tailrace.Broker) -> None:
    target.create_topic("t", partitions=2, config={"max.message.bytes": 120})
    replay(source.bootstrap, target.bootstrap, topics=["t"])
    assert compared(source.bootstrap, target.bootstrap, topics=["t"]).is_equal


def test_provenance_adds_a_header_with_the_source_of_a_record(source: tailrace.Broker, target: tailrace.Broker) -> None:
    from tailrace.client.batches import fetch_range
    from tailrace.client.cluster.cluster_client import ClusterClient

    replay(source.bootstrap, target.bootstrap, topics=["t"], create=True, provenance=True)
    with ClusterClient(target.bootstrap) as cluster:
        batches = list(fetch_range(cluster, TopicPartition("t", 1), 0, 31))
        records = [record for batch in batches for record in iter_records(batch)]  # type: ignore[arg-type]
    assert records[30].headers == (("tailrace.source", f"{source.bootstrap}/t-1@30".encode()),)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"topics": ["none"]}, "there is no topic 'none' at {source}"),
        ({"topics": ["t"]}, "there is no topic 't' at {target}: create it first, or use --create"),
        (
            {"topics": ["t"], "wanted": ReplayRange(from_offset=99)},
            "t-0 in {source} has offsets 0 to 59; --from-offset is 99",
        ),
    ],
)
def test_an_impossible_replay_is_refused_in_one_sentence_without_writes(
    source: tailrace.Broker, target: tailrace.Broker, arguments: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(JobError) as caught:
        plan_replay(source.bootstrap, target.bootstrap, **arguments)
    assert str(caught.value) == sentence.format(source=source.bootstrap, target=target.bootstrap)
