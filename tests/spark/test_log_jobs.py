"""Compact, reindex and export inside Spark. Their results are tested without it (tests/integration/test_*_job.py)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tailrace.spark.jobs.compact.compact import compact
from tailrace.spark.jobs.export.export import export
from tests.support.batches import batch
from tests.support.command import contents, tailrace
from tests.support.golden import golden
from tests.support.random_compacted import NOW_MS, TOPIC, RandomLog, clean_locally, copied, opened, opened_and_closed


def test_compaction_in_spark_writes_the_bytes_of_the_log_cleaner(spark: Any, tmp_path: Path) -> None:
    log = RandomLog(4)
    log.settings["internal.segment.bytes"] = "6000"
    log.grow(tmp_path / "here", 60, NOW_MS)
    copied(tmp_path / "here", tmp_path / "there")
    clean_locally(tmp_path / "here", log.settings, NOW_MS + 2000)
    found = compact(spark, str(tmp_path / "there"), topics=[TOPIC], configs={TOPIC: log.settings}, now_ms=NOW_MS + 2000)
    assert found.partitions[0].records_after < found.partitions[0].records_before
    opened_and_closed(tmp_path / "there", log.settings, NOW_MS + 2000)
    assert contents(tmp_path / "there") == contents(tmp_path / "here")


def test_a_damaged_log_ends_compaction_with_one_sentence(spark: Any, tmp_path: Path) -> None:
    log = RandomLog(3)
    log.grow(tmp_path / "data", 40, NOW_MS)
    segment = sorted((tmp_path / "data" / f"{TOPIC}-0").glob("*.log"))[1]
    data = bytearray(segment.read_bytes())
    data[70] ^= 1
    segment.write_bytes(data)
    before = contents(tmp_path / "data")
    ran = tailrace(
        "job", "compact", tmp_path / "data", "--topic", TOPIC, *(f"-o{k}={v}" for k, v in log.settings.items())
    )
    assert ran.status == 1
    assert ran.err.startswith(
        f"tailrace: {TOPIC}-0 is damaged at offset {int(segment.name[:20])} or after it ({segment}"
    )
    assert contents(tmp_path / "data") == before


def test_job_commands_work_on_a_brokers_directory(spark: Any, tmp_path: Path) -> None:
    """Topic configs come from the directory's metadata: only these of nine partitions are compacted."""
    path = golden("broker-clean").unpack(tmp_path / "data")
    found = tailrace("job", "compact", path, "--json").json
    assert {*found["cleanAlready"], *(one["name"] for one in found["partitions"])} >= {
        "users-0",
        "__consumer_offsets-0",
    }
    done = tailrace("job", "reindex", path, "--topic", "payments", "--output", tmp_path / "indexes")
    assert (done.status, done.lines[-1].split(" (")[0]) == (0, "indexes of 1 segment")
    exported = tailrace("job", "export", path, tmp_path / "out", "--topic", "orders", "--json").json
    assert (
        exported["records"] == sum(pq.read_table(file).num_rows for file in (tmp_path / "out").glob("*.parquet")) > 50
    )
    wrong = tailrace("job", "export", path, tmp_path / "out", "--topic", "orders", "--value-format", "json")
    assert (wrong.status, wrong.out) == (2, "")


def json_topic(path: Path, count: int) -> Path:
    directory, log = opened(path, {"internal.segment.bytes": "20000"}, NOW_MS)
    for start in range(0, count, 10):
        rows = [(b"k", json.dumps({"id": n, "name": f"n{n}"}).encode()) for n in range(start, start + 10)]
        log.append_as_leader(batch(*rows, timestamp=NOW_MS + start), leader_epoch=0, now_ms=NOW_MS)
    log.append_as_leader(batch((b"k", b"no json"), timestamp=NOW_MS), leader_epoch=0, now_ms=NOW_MS)
    log.advance_high_watermark(log.log_end_offset)
    directory.close(NOW_MS)
    return path


@pytest.mark.slow
def test_exported_json_values_become_columns(spark: Any, tmp_path: Path) -> None:
    data = json_topic(tmp_path / "data", 30)
    for number in range(2):
        found = export(
            spark,
            str(data),
            str(tmp_path / "out"),
            topics=[TOPIC],
            value_format="json",
            schema="infer",
            partition_by=["date"],
        )
        assert (found.records, found.records_in_all) == (0 if number else 31, 31)
    rows = (
        spark.read.parquet(str(tmp_path / "out")).orderBy("offset").select("value.id", "value.name", "date").collect()
    )
    assert [row.id for row in rows] == [*range(30), None]
    assert (rows[3].name, str(rows[3].date)) == ("n3", "2023-11-14")


@pytest.mark.slow
def test_a_killed_export_is_resumed(tmp_path: Path) -> None:
    """The command is killed with -9 at several moments. In the end each record is exported once."""
    data = json_topic(tmp_path / "data", 3000)
    command = [sys.executable, "-m", "tailrace.cli.main", "job", "export", str(data), str(tmp_path / "out")]
    command += ["--topic", TOPIC, "--batch-offsets", "300", "--master", "local[2]", "--json"]
    for commits in (0, 2, 5):
        process = subprocess.Popen(
            command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        folder = tmp_path / "out" / "_tailrace" / "commits"
        deadline = time.monotonic() + 120
        while process.poll() is None and time.monotonic() < deadline:
            if folder.exists() and len(list(folder.glob("0*"))) > commits:
                break
            time.sleep(0.005)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        seen = [
            row for file in (tmp_path / "out").glob("*.parquet") for row in pq.read_table(file)["offset"].to_pylist()
        ]
        assert len(seen) == len(set(seen))
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(ran.stdout)["recordsInAll"] == 3001
    rows = [row for file in (tmp_path / "out").glob("*.parquet") for row in pq.read_table(file)["offset"].to_pylist()]
    assert sorted(rows) == list(range(3001))
