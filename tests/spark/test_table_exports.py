"""Exports to Iceberg and Delta inside Spark. Their results are tested without it (tests/integration/tables)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tailrace as tailrace_package
from tailrace.spark.jobs.place import Place
from tailrace.spark.tables.round_writer import Append
from tailrace.spark.tables.table_export import ExportSettings, TableExport, export_once
from tailrace.spark.tables.topic_source import TopicSource
from tests.support.command import tailrace
from tests.support.exported_tables import FORMATS, NAME, catalog_properties, data_files, named_files, offsets, opened
from tests.support.filled_topics import numbered, put

ROWS = [(0, n) for n in range(40)] + [(1, n) for n in range(30)] + [(2, n) for n in range(20)]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Any]:
    with tailrace_package.Broker(tmp_path / "data") as broker:
        broker.create_topic("t", partitions=3)
        for number, count in enumerate((40, 30, 20)):
            put(broker.bootstrap, "t", number, numbered(count))
        yield broker


@pytest.mark.parametrize("form", FORMATS)
def test_sparks_workers_write_the_files_and_merge_them(form: str, spark: Any, broker: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    settings = ExportSettings(rounds=Append(("partition",)), round_bytes=800)
    with TopicSource(Place.parse(broker.bootstrap), ["t"]) as source:
        export = TableExport(spark, source, opened(form, out), settings)
        found = export_once(export)
        assert found.records == 90
        assert found.commits >= 8
        assert offsets(form, out) == ROWS
        assert data_files(form, out) == named_files(form, out)
        assert export.merge().files_after == 3
        assert offsets(form, out) == ROWS


@pytest.mark.parametrize("form", FORMATS)
def test_the_command_exports_and_continues(form: str, spark: Any, broker: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    if form == "iceberg":
        place = [NAME, "--catalog", "test"]
        for name, value in catalog_properties(out).items():
            place += ["--catalog-property", f"{name}={value}"]
    else:
        place = [str(out / "delta")]
    command = ["job", "export", broker.bootstrap, *place, "--topic", "t", "--to", form]
    first = tailrace(*command, "--json").json
    assert (first["records"], first["commits"], first["offsets"]) == (90, 1, {"t": {"0": 40, "1": 30, "2": 20}})
    put(broker.bootstrap, "t", 2, numbered(5))
    again = tailrace(*command)
    assert again.status == 0, again.err
    assert "5 records in 1 file" in again.out
    assert offsets(form, out) == [*ROWS, *[(2, n) for n in range(20, 25)]]


def test_the_command_keeps_one_row_for_each_key(spark: Any, broker: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = ["job", "export", broker.bootstrap, str(out / "delta"), "--topic", "t", "--to", "delta", "--latest"]
    assert tailrace(*command, "--json").json["records"] == 90
    put(broker.bootstrap, "t", 2, [(b"key 3", b"new"), (b"key 4", None)])
    again = tailrace(*command)
    assert again.status == 0, again.err
    wanted = [row for row in ROWS if row not in ((2, 3), (2, 4))]
    assert offsets("delta", out) == [*wanted, (2, 20)]


def test_a_missing_catalog_is_reported_in_one_sentence(spark: Any, broker: Any, tmp_path: Path) -> None:
    ran = tailrace(
        "job", "export", broker.bootstrap, "lake.t", "--topic", "t", "--to", "iceberg", "--catalog", "none-such"
    )
    assert ran.status == 2
    assert ran.err.startswith("tailrace: catalog none-such cannot be opened: ")
    assert ran.err.count("\n") == 1


@pytest.mark.slow
def test_sigterm_for_the_process_group_ends_a_waiting_follower_with_status_0(spark: Any, tmp_path: Path) -> None:
    """systemd and `timeout` send the signal to Java, too."""
    with tailrace_package.Broker(tmp_path / "data") as broker:
        broker.create_topic("t", partitions=3)
        put(broker.bootstrap, "t", 0, numbered(40))
        process = subprocess.Popen(
            [
                sys.executable, "-m", "tailrace", "job", "export", broker.bootstrap, str(tmp_path / "out" / "delta"),
                "--topic", "t", "--to", "delta", "--follow", "--freshness", "1", "--master", "local[1]",
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )  # fmt: skip
        assert process.stderr is not None
        lines = iter(process.stderr.readline, "")
        assert any(line.startswith("40 records, 1 commit") for line in lines)  # the round is complete
        time.sleep(1)
        os.killpg(process.pid, signal.SIGTERM)
        out, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert "Traceback" not in errors
    assert "40 records in 1 file" in out
