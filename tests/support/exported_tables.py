"""Iceberg and Delta tables in a folder, for tests of exports: how they are opened, and their rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tailrace.spark.jobs.place import Place
from tailrace.spark.tables.formats.delta import DeltaTable
from tailrace.spark.tables.formats.iceberg import IcebergTable
from tailrace.spark.tables.formats.table import Table
from tailrace.spark.tables.latest.latest_rounds import LatestRounds
from tailrace.spark.tables.round_writer import Append
from tailrace.spark.tables.table_export import Exported, ExportSettings, TableExport, export_once
from tailrace.spark.tables.topic_source import TopicSource
from tests.support.inline_spark import InlineSpark

FORMATS = ("iceberg", "delta")
NAME = "lake.events"


def catalog_properties(folder: Path) -> dict[str, str]:
    folder.mkdir(parents=True, exist_ok=True)
    return {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/warehouse"}


def opened(form: str, folder: Path) -> Table:
    if form == "iceberg":
        return IcebergTable(NAME, "test", catalog_properties(folder))
    return DeltaTable(str(folder / "delta"))


def export(form: str, folder: Path, source: str, /, topics: Sequence[str] = ("t",), **settings: Any) -> Exported:
    """Export once, in this process."""
    files = settings.pop("files", None)
    read_committed = settings.pop("read_committed", True)
    rounds = LatestRounds(settings.pop("buckets", None)) if settings.pop("latest", False) else None
    rounds = rounds or Append(settings.pop("partition_by", ()))
    place = None if files is None else Place.parse(str(files))
    with TopicSource(Place.parse(source), topics, files=place, read_committed=read_committed) as topic_source:
        return export_once(
            TableExport(InlineSpark(), topic_source, opened(form, folder), ExportSettings(rounds=rounds, **settings))
        )


def arrow_table(form: str, folder: Path) -> Any:
    """Read the whole table with the format's own library."""
    if form == "iceberg":
        from pyiceberg.catalog import load_catalog

        return load_catalog("test", **catalog_properties(folder)).load_table(NAME).scan().to_arrow()
    import deltalake
    import pyarrow as pa

    return pa.table(
        deltalake.QueryBuilder()
        .register("t", deltalake.DeltaTable(folder / "delta"))
        .execute("select * from t")
        .read_all()
    )


def rows(form: str, folder: Path) -> list[dict[str, Any]]:
    """Return the rows, ordered by topic, partition and offset."""
    found: list[dict[str, Any]] = arrow_table(form, folder).to_pylist()
    return sorted(found, key=lambda row: (row["topic"], row["partition"], row["offset"]))


def offsets(form: str, folder: Path) -> list[tuple[int, int]]:
    return [(row["partition"], row["offset"]) for row in rows(form, folder)]


def data_files(form: str, folder: Path) -> set[str]:
    """Return the names of the data files in the folder of the table."""
    base = folder / ("warehouse" if form == "iceberg" else "delta")
    return {file.name for file in base.rglob("*.parquet") if "_delta_log" not in file.parts}


def named_files(form: str, folder: Path) -> set[str]:
    """Return the names of the data files in the current snapshot of the table."""
    if form == "iceberg":
        from pyiceberg.catalog import load_catalog

        table = load_catalog("test", **catalog_properties(folder)).load_table(NAME)
        return {task.file.file_path.rpartition("/")[2] for task in table.scan().plan_files()}
    import deltalake

    return {uri.rpartition("/")[2] for uri in deltalake.DeltaTable(folder / "delta").file_uris()}
