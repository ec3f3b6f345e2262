"""A topic is exported to Parquet files, every record once, also after crashes."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import tailrace
from tailrace.client.admin import delete_topic
from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.model.ids import TopicPartition
from tailrace.spark.jobs.errors import JobError
from tailrace.spark.jobs.export import export_ledger
from tailrace.spark.jobs.export.export import Exported, export
from tests.support.command import write_directory
from tests.support.filled_topics import numbered, put
from tests.support.golden import golden
from tests.support.inline_spark import InlineSpark


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[tailrace.Broker]:
    with tailrace.Broker(tmp_path / "data") as broker:
        broker.create_topic("t", partitions=2)
        yield broker


def rows(path: Path) -> list[tuple[int, int]]:
    """Return the rows as a Parquet reader sees them: of all files except those below `_…`."""
    files = [file for file in path.rglob("*.parquet") if not file.relative_to(path).parts[0].startswith("_")]
    table = [row for file in files for row in pq.read_table(file, partitioning=None).to_pylist()]
    return sorted((row["partition"], row["offset"]) for row in table)


def run(source: str, path: Path, **options: object) -> Exported:
    return export(InlineSpark(), source, str(path), topics=["t"], **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("way", ["files", "wire"])
def test_an_export_continues_after_the_last_commit(way: str, broker: tailrace.Broker, tmp_path: Path) -> None:
    source = broker.bootstrap if way == "wire" else str(broker.data)
    out = tmp_path / "out"
    assert run(source, out).records == 0
    put(broker.bootstrap, "t", 0, numbered(30))
    put(broker.bootstrap, "t", 1, [*numbered(5), (b"k", None)])
    first = run(source, out, batch_offsets=10)
    assert (first.records, first.commits) == (36, 4)
    put(broker.bootstrap, "t", 0, numbered(10))
    second = run(source, out)
    assert (second.records, second.records_in_all, second.commits) == (10, 46, 1)
    assert rows(out) == [(0, n) for n in range(40)] + [(1, n) for n in range(6)]
    table = pq.read_table(sorted(out.glob("t-1-*.parquet"))[0]).to_pylist()
    assert table[0]["key"] == b"key 0"
    assert table[0]["timestamp"].year == 2023
    assert run(source, out).files == 0


def test_aborted_records_are_skipped_and_partition_columns_are_folders(tmp_path: Path) -> None:
    data = write_directory(tmp_path / "data", "transactions")
    export(InlineSpark(), str(data), str(tmp_path / "all"), topics=["transactions"], read_committed=False)
    found = export(
        InlineSpark(), str(data), str(tmp_path / "out"), topics=["transactions"], partition_by=["date", "hour", "topic"]
    )
    committed, everything = rows(tmp_path / "out"), rows(tmp_path / "all")
    assert 0 < len(committed) == found.records < len(everything)
    assert set(committed) < set(everything)
    folders = {file.relative_to(tmp_path / "out").parts[:-1] for file in (tmp_path / "out").glob("date=*/**/*.parquet")}
    assert all([part.split("=")[0] for part in folder] == ["date", "hour", "topic"] for folder in folders)
    assert ("date=2023-11-14", "hour=22", "topic=transactions") in folders


def test_deleted_records_are_an_error_or_skipped(tmp_path: Path) -> None:
    data = write_directory(tmp_path / "data", "plain")
    out = tmp_path / "out"
    export(InlineSpark(), str(data), str(out), topics=["plain"])
    had = rows(out)
    shutil.rmtree(out)
    ledger = export_ledger.ExportLedger(str(out))
    settings = {"topics": ["plain"], "partitionBy": [], "valueFormat": None, "schema": None, "readCommitted": True}
    ledger.open(settings)
    ledger.commit({TopicPartition("plain", 0): 5}, [], {})
    ledger.close()
    segment = sorted((data / "plain-0").glob("*.log"))[0]
    for file in (data / "plain-0").glob(f"{segment.name[:20]}.*"):
        file.unlink()
    with pytest.raises(JobError, match=r"offsets 5 to \d+ of plain-0 are missing"):
        export(InlineSpark(), str(data), str(out), topics=["plain"])
    export(InlineSpark(), str(data), str(out), topics=["plain"], fail_on_data_loss=False)
    first = int(sorted((data / "plain-0").glob("*.log"))[0].name[:20])
    assert rows(out) == [row for row in had if row[1] >= first]


class Killed(BaseException):
    pass


@pytest.mark.parametrize("step", range(12))
def test_each_record_is_exported_once_after_a_crash_at_any_step(
    step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run is ended before the n-th call of os.replace or fsync, and started again."""
    data = golden("broker-clean").unpack(tmp_path / "data")
    out = tmp_path / "out"
    left = step

    def stop() -> None:
        nonlocal left
        if left == 0:
            raise Killed
        left -= 1

    replace, sync = os.replace, export_ledger._sync
    monkeypatch.setattr(os, "replace", lambda *names: (stop(), replace(*names)))
    monkeypatch.setattr(export_ledger, "_sync", lambda path: (stop(), sync(path)))
    ledger = shutil.rmtree
    monkeypatch.setattr(shutil, "rmtree", lambda path, ignore_errors=False: (stop(), ledger(path, ignore_errors=True)))
    with pytest.raises(Killed):
        export(InlineSpark(), str(data), str(out), topics=["orders"], batch_offsets=25)
    monkeypatch.undo()
    seen = rows(out)
    assert len(seen) == len(set(seen))
    export(InlineSpark(), str(data), str(out), topics=["orders"], batch_offsets=25)
    whole = tmp_path / "whole"
    export(InlineSpark(), str(data), str(whole), topics=["orders"])
    assert rows(out) == rows(whole)
    assert len(rows(whole)) == len(set(rows(whole))) > 50


def test_an_impossible_export_is_refused_in_one_sentence_without_writes(tmp_path: Path) -> None:
    data = golden("broker-clean").unpack(tmp_path / "data")
    out = tmp_path / "out"

    def refused(match: str, source: object = data, **options: object) -> None:
        with pytest.raises(JobError, match=match):
            export(InlineSpark(), str(source), str(out), **{"topics": ["orders"], **options})  # type: ignore[arg-type]
        assert not out.exists()

    refused("there is no topic 'order'", topics=["order"])
    refused("is neither a directory nor the address", source=tmp_path / "nowhere")
    refused("no broker can be reached at 127.0.0.1:1", source="127.0.0.1:1")
    refused("cannot be partitioned by 'day', only by topic, date, hour", partition_by=["day"])
    refused("json values need a schema", value_format="json")
    segment = min((data / "orders-1").glob("*.log"))
    bytes_ = bytearray(segment.read_bytes())
    bytes_[100] ^= 1
    segment.write_bytes(bytes_)
    with pytest.raises(JobError, match=r"orders-1 is damaged at offset 0 or after it \(.*\.log at position 0\)"):
        export(InlineSpark(), str(data), str(out), topics=["orders"], read_committed=False)
    assert list(out.rglob("*.parquet")) == []
    with pytest.raises(JobError, match=r"was exported with partitionBy=.* export into another directory"):
        export(InlineSpark(), str(data), str(out), topics=["orders"], read_committed=False, partition_by=["date"])
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("x")
    with pytest.raises(JobError, match="has files that are not from an export"):
        export(InlineSpark(), str(data), str(tmp_path / "mine"), topics=["orders"])


def test_a_topic_that_was_created_again_is_refused(broker: tailrace.Broker, tmp_path: Path) -> None:
    out = tmp_path / "out"
    put(broker.bootstrap, "t", 0, numbered(10))
    assert run(broker.bootstrap, out).records == 10
    with ClusterClient(broker.bootstrap) as cluster:
        delete_topic(cluster, "t")
    broker.create_topic("t", partitions=2)
    put(broker.bootstrap, "t", 0, numbered(30))  # ends after the exported offset: its records 10 to 29 look new
    with pytest.raises(
        JobError, match=r"topic t was deleted and created again: .*out has records of the topic with id"
    ):
        run(broker.bootstrap, out)
    assert rows(out) == [(0, n) for n in range(10)]


def test_a_topic_of_another_cluster_is_refused(broker: tailrace.Broker, tmp_path: Path) -> None:
    out = tmp_path / "out"
    put(broker.bootstrap, "t", 0, numbered(10))
    run(broker.bootstrap, out)
    with tailrace.Broker(tmp_path / "other") as other:
        other.create_topic("t", partitions=2)
        put(other.bootstrap, "t", 0, numbered(30))
        with pytest.raises(JobError, match=r"t was deleted and created again|records of topic t in cluster"):
            run(other.bootstrap, out)


def test_a_log_that_has_lost_exported_records_is_refused(broker: tailrace.Broker, tmp_path: Path) -> None:
    out = tmp_path / "out"
    put(broker.bootstrap, "t", 0, numbered(10))
    run(broker.bootstrap, out)
    commit = out / "_tailrace" / "commits" / "00000000"
    commit.write_text(commit.read_text().replace("10\n", "12\n", 1))
    with pytest.raises(JobError, match=r"t-0 ends at offset 10, but .* up to 12: the log has lost records"):
        run(broker.bootstrap, out)


def test_an_export_of_a_version_without_ids_continues(broker: tailrace.Broker, tmp_path: Path) -> None:
    out = tmp_path / "out"
    put(broker.bootstrap, "t", 0, numbered(10))
    run(broker.bootstrap, out)
    path = out / "_tailrace" / "commits" / "00000000"
    commit = json.loads(path.read_text())
    del commit["topics"]
    path.write_text(json.dumps(commit))
    put(broker.bootstrap, "t", 0, numbered(5))
    assert run(broker.bootstrap, out).records == 5
