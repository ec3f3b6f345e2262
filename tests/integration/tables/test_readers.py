"""Other programs read the rows that `tailrace log cat` shows, for logs of every kind that Apache Kafka wrote."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from tailrace.cli.main import main
from tests.support.exported_tables import FORMATS, NAME, arrow_table, catalog_properties, export
from tests.support.golden import golden, golden_names

# A damaged batch ends an export; the two others have no topic id, no record or a torn tail, as after a crash.
DIRECTORIES = [name for name in golden_names("partition") if name != "crashed-bad-crc"]


def shown(path: Path, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """Return the committed records as `tailrace log cat` prints them."""
    capsys.readouterr()
    main(
        ["log", "cat", str(path), "--topic", "topic", "--isolation", "read_committed", "--encoding", "base64", "--json"]
    )
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def text(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode()


def as_shown(row: dict[str, Any]) -> tuple[Any, ...]:
    headers = [(header["key"], text(header["value"])) for header in row["headers"] or []]
    milliseconds = round(row["timestamp"].timestamp() * 1000)
    return row["offset"], milliseconds, text(row["key"]), text(row["value"]), headers


def expected(lines: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [
        (
            line["offset"],
            line["timestamp"],
            line["key"],
            line["value"],
            [(header["key"], header["value"]) for header in line["headers"]],
        )
        for line in lines
    ]


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", DIRECTORIES)
def test_a_table_has_the_records_that_log_cat_shows(
    name: str, form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = golden(name).unpack(tmp_path / "data")
    lines = expected(shown(path, capsys))
    found = export(form, tmp_path / "out", str(path), ["topic"])
    assert found.records == len(lines)
    if not lines:
        return
    rows = sorted(arrow_table(form, tmp_path / "out").to_pylist(), key=lambda row: row["offset"])
    assert [as_shown(row) for row in rows] == lines


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", ["codecs", "transactions", "compacted-transactions"])
def test_polars_and_duckdb_read_the_same_rows(
    name: str, form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    duckdb, polars = pytest.importorskip("duckdb"), pytest.importorskip("polars")
    path = golden(name).unpack(tmp_path / "data")
    lines = expected(shown(path, capsys))
    export(form, tmp_path / "out", str(path), ["topic"], partition_by=("date",))
    if form == "iceberg":
        from pyiceberg.catalog import load_catalog

        table = load_catalog("test", **catalog_properties(tmp_path / "out")).load_table(NAME)
        frame = polars.scan_iceberg(table).collect()
        files = [task.file.file_path.removeprefix("file://") for task in table.scan().plan_files()]
    else:
        import deltalake

        frame = polars.read_delta(str(tmp_path / "out" / "delta"))
        files = [uri.removeprefix("file://") for uri in deltalake.DeltaTable(tmp_path / "out" / "delta").file_uris()]
    assert [as_shown(row) for row in frame.sort("offset").to_dicts()] == lines
    duck = duckdb.sql(f'select * from read_parquet({files!r}) order by "offset"').to_arrow_table().to_pylist()
    assert [as_shown(row) for row in duck] == lines


def test_statistics_let_delta_readers_skip_files(tmp_path: Path) -> None:
    import deltalake
    import pyarrow as pa

    path = golden("codecs").unpack(tmp_path / "data")
    export("delta", tmp_path / "out", str(path), ["topic"])
    actions = pa.table(deltalake.DeltaTable(tmp_path / "out" / "delta").get_add_actions(flatten=True)).to_pylist()
    rows = arrow_table("delta", tmp_path / "out").column("offset").to_pylist()
    assert [one["num_records"] for one in actions] == [len(rows)]
    assert (actions[0]["min.offset"], actions[0]["max.offset"]) == (min(rows), max(rows))
