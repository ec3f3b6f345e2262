"""Spark reads exported tables with Iceberg's and Delta's own jars. Each has an older Spark, in a folder of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tailrace.spark.java import JavaMissing, use_java
from tests.support.cache import Unavailable, make_once, run_to_fetch
from tests.support.exported_tables import NAME, export, rows
from tests.support.foreign_clients import maven_jars
from tests.support.golden import golden

_READ = """
import json, sys
from pyspark.sql import SparkSession
confs, query = json.loads(sys.argv[1])
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
for name, value in confs.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
columns = "offset, unix_millis(timestamp) as time, hex(key) as key, hex(value) as value, to_json(headers) as headers"
for row in spark.sql(f"select {columns} from {query} order by offset").toJSON().collect():
    print("row", row)
"""


@dataclass(frozen=True)
class Reader:
    pyspark: str
    jars: tuple[str, ...]
    confs: dict[str, str]


READERS = {
    "iceberg": Reader(
        "4.1.4",
        ("org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0", "org.xerial:sqlite-jdbc:3.50.3.0"),
        {
            "spark.sql.catalog.test": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.test.catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
        },
    ),
    "delta": Reader(
        "4.2.0",
        ("io.delta:delta-spark_4.2_2.13:4.4.0",),
        {
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        },
    ),
}


def rows_in_spark(form: str, folder: Path) -> list[dict[str, Any]]:
    """Return the rows of the table as a Spark with the format's jar reads them."""
    reader = READERS[form]
    confs = {**reader.confs, "spark.jars": ",".join(map(str, maven_jars(*reader.jars)))}
    query = f"delta.`{folder}/delta`"
    if form == "iceberg":
        confs["spark.sql.catalog.test.uri"] = f"jdbc:sqlite:{folder}/catalog.db"
        confs["spark.sql.catalog.test.warehouse"] = f"file://{folder}/warehouse"
        query = f"test.{NAME}"
    spark = packages(f"pyspark=={reader.pyspark}")
    environment = {
        **os.environ,
        "PYTHONPATH": str(spark),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_HOME": str(spark / "pyspark"),
    }
    command = [sys.executable, "-c", _READ, json.dumps([confs, query])]
    ran = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=900)
    assert ran.returncode == 0, ran.stderr[-4000:]
    return [json.loads(line.removeprefix("row ")) for line in ran.stdout.splitlines() if line.startswith("row ")]


def packages(*requirements: str) -> Path:
    """Return a folder with packages for PYTHONPATH."""
    home = Path(os.environ.get("TAILRACE_CLIENTS_CACHE") or "~/.cache/tailrace/clients").expanduser().resolve()

    def install(folder: Path) -> None:
        pip = (sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder))
        run_to_fetch(", ".join(requirements), *pip, *requirements)

    return make_once(home / f"packages-{'-'.join(requirements)}", install)


def as_spark_shows(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row in the form of the query, without nulls, as `toJSON` leaves them out."""
    headers = [
        {name: value for name, value in (("key", one["key"]), ("value", one["value"])) if value is not None}
        for one in row["headers"] or []
    ]
    shown = {
        "offset": row["offset"],
        "time": round(row["timestamp"].timestamp() * 1000),
        "key": None if row["key"] is None else row["key"].hex().upper(),
        "value": None if row["value"] is None else row["value"].hex().upper(),
        "headers": len(headers),
    }
    return {name: value for name, value in shown.items() if value is not None}


@pytest.mark.slow
@pytest.mark.parametrize("latest", [False, True], ids=["all", "latest"])
@pytest.mark.parametrize("form", READERS)
@pytest.mark.parametrize("name", ["codecs", "compacted-transactions"])
def test_spark_reads_a_table_with_the_jar_of_its_format(name: str, form: str, latest: bool, tmp_path: Path) -> None:
    try:
        use_java()
    except JavaMissing as missing:
        pytest.skip(str(missing))
    path = golden(name).unpack(tmp_path / "data")
    if latest and any(row["key"] is None for row in _exported(form, tmp_path / "all", path)):
        pytest.skip("the topic has records without keys")
    export(form, tmp_path / "out", str(path), ["topic"], latest=latest)
    wanted = [as_spark_shows(row) for row in rows(form, tmp_path / "out")]
    try:
        found = rows_in_spark(form, tmp_path / "out")
    except Unavailable as missing:
        pytest.skip(str(missing))
    for row in found:
        row["headers"] = len(json.loads(row.get("headers") or "[]"))
    assert wanted
    assert found == wanted


def _exported(form: str, folder: Path, path: Path) -> list[dict[str, Any]]:
    export(form, folder, str(path), ["topic"])
    return rows(form, folder)
