"""Diff of two copies: its plan and the results of its tasks, without Spark."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import tailrace
from tailrace.cli.jobs.diff import report_text
from tailrace.model.ids import TopicPartition
from tailrace.records.batch import Codec
from tailrace.spark.jobs.diff.diff import DiffReport, compare, plan_diff
from tailrace.spark.jobs.errors import JobError
from tests.support.filled_topics import numbered, put
from tests.support.golden import golden


def diff(here: str | Path, there: str | Path, **options: Any) -> DiffReport:
    report, tasks = plan_diff(str(here), str(there), **options)
    for task in tasks:
        report.partitions[task.partition].add(compare(task))
    return report


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return two brokers with the same records in different batches; from the fifth record on the values differ."""
    with (
        tailrace.Broker(tmp_path_factory.mktemp("a") / "data") as one,
        tailrace.Broker(tmp_path_factory.mktemp("b") / "data") as other,
    ):
        one.create_topic("t", partitions=2)
        other.create_topic("copy", partitions=2)
        put(one.bootstrap, "t", 0, numbered(40), codec=Codec.ZSTD)
        put(other.bootstrap, "copy", 0, numbered(40), per_batch=7)
        put(one.bootstrap, "t", 1, numbered(10))
        put(other.bootstrap, "copy", 1, [*numbered(4), (b"key 4", None), *numbered(7, 5)])
        yield one, other


@pytest.mark.parametrize("side", ["files and files", "files and wire", "wire and wire"])
def test_diff_compares_files_and_clusters(two: Any, side: str) -> None:
    here = two[0].data if side.startswith("files") else two[0].bootstrap
    there = two[1].data if side.endswith("files") else two[1].bootstrap
    found = diff(here, there, topics=["t:copy"], parallelism=3)
    same, changed = found.partitions[TopicPartition("t", 0)], found.partitions[TopicPartition("t", 1)]
    assert same.is_equal
    assert same.equal == 40
    assert [(one.here, one.fields) for one in changed.mismatches] == [(4, ("value",))]
    assert changed.there.spans == [(10, 11, 2)]
    assert list(report_text(found))[-3:] == [
        "t-1: offsets 10 to 11 (2 records) only there",
        "t-1: offset 4: different value",
        "different",
    ]


def test_a_copy_of_kafkas_files_has_no_diff_and_a_missing_segment_is_reported(tmp_path: Path) -> None:
    path = golden("broker-clean").unpack(tmp_path / "a")
    copy = tmp_path / "b"
    shutil.copytree(path, copy)
    assert diff(path, copy).is_equal
    assert diff(path, copy, read_committed=True).is_equal
    gone = sorted(copy.glob("orders-0/*.log"))[0]
    for file in copy.glob(f"orders-0/{gone.stem}.*"):
        file.unlink()
    (span,) = diff(path, copy).partitions[TopicPartition("orders", 0)].here.spans
    assert span.first == 0


def test_diff_without_offsets_pairs_records_by_order(two: Any, tmp_path: Path) -> None:
    with tailrace.Broker(tmp_path / "data") as later:
        later.create_topic("t")
        put(later.bootstrap, "t", 0, [(b"", b"")] * 3)
        from tailrace.client.admin import delete_records
        from tailrace.client.cluster.cluster_client import ClusterClient

        put(later.bootstrap, "t", 0, numbered(40))
        with ClusterClient(later.bootstrap) as cluster:
            delete_records(cluster, {TopicPartition("t", 0): 3})
        found = diff(two[0].bootstrap, later.bootstrap, topics=["t"], ignore=["offsets"])
        assert found.partitions[TopicPartition("t", 0)].is_equal
        assert found.only_here == [TopicPartition("t", 1)]
        assert not diff(two[0].bootstrap, later.bootstrap, topics=["t"]).partitions[TopicPartition("t", 0)].is_equal


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"here": "nowhere/at/all"}, "nowhere/at/all is neither a directory nor the address of a cluster (host:port)"),
        ({"topics": ["none"]}, "there is neither a topic 'none' in {here} nor 'none' in {here}"),
        ({"ignore": ["values"]}, "ignore='values' is not possible; only offsets, timestamps, headers can be ignored"),
        ({"topics": ["a:"]}, "'a:' is not a topic: write NAME, or NAME:OTHER if it has another name there"),
    ],
)
def test_an_impossible_diff_is_refused_in_one_sentence(two: Any, arguments: dict[str, Any], sentence: str) -> None:
    data = two[0].data
    with pytest.raises(JobError) as caught:
        diff(arguments.pop("here", data), data, **arguments)
    assert str(caught.value) == sentence.format(here=data)
