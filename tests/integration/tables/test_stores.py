"""Tables in S3 and in Google's store, which have no rename."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

import tailrace
from tailrace.spark.jobs.place import Place
from tailrace.spark.tables.formats.delta import DeltaTable
from tailrace.spark.tables.formats.iceberg import IcebergTable
from tailrace.spark.tables.formats.table import Table
from tailrace.spark.tables.round_writer import Append
from tailrace.spark.tables.row_form import RECORD_SCHEMA
from tailrace.spark.tables.table_export import Exported, ExportSettings, TableExport, export_once
from tailrace.spark.tables.topic_source import TopicSource
from tests.support.filled_topics import numbered, put
from tests.support.gcs_server import gcs_server
from tests.support.inline_spark import InlineSpark

KEYS = ("someone", "nobody-may-see-this")


# delta-rs holds the interpreter's lock during some requests, so the server has a process of its own.
_SERVE = """
import time
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
time.sleep(3600)
"""


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    pytest.importorskip("moto")
    process = subprocess.Popen(
        [sys.executable, "-c", _SERVE], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert process.stdout is not None
        endpoint = f"http://127.0.0.1:{int(process.stdout.readline())}"
        urlopen(Request(f"{endpoint}/lake", method="PUT")).read()
        yield endpoint
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[tailrace.Broker]:
    with tailrace.Broker(tmp_path / "data") as broker:
        broker.create_topic("t", partitions=2)
        put(broker.bootstrap, "t", 0, numbered(10))
        yield broker


def s3_table(form: str, s3: str, folder: Path) -> Table:
    if form == "delta":
        options = {
            "AWS_ENDPOINT_URL": s3,
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": KEYS[0],
            "AWS_SECRET_ACCESS_KEY": KEYS[1],
        }
        return DeltaTable(f"s3://lake/{folder.name}/delta", options)
    properties = {
        "type": "sql",
        "uri": f"sqlite:///{folder}/catalog.db",
        "warehouse": f"s3://lake/{folder.name}/warehouse",
        "s3.endpoint": s3,
        "s3.region": "us-east-1",
        "s3.access-key-id": KEYS[0],
        "s3.secret-access-key": KEYS[1],
    }
    return IcebergTable("shop.t", "test", properties)


def glue_table(s3: str, folder: Path) -> Table:
    location = {"region": "us-east-1", "access-key-id": KEYS[0], "secret-access-key": KEYS[1]}
    properties = {
        "type": "glue",
        "warehouse": f"s3://lake/{folder.name}/warehouse",
        **{
            f"{service}.{name}": value
            for service in ("s3", "glue")
            for name, value in {**location, "endpoint": s3}.items()
        },
    }
    return IcebergTable(f"{folder.name.replace('-', '_')}.t", "test", properties)


def run(table: Table, broker: tailrace.Broker) -> Exported:
    with TopicSource(Place.parse(broker.bootstrap), ["t"]) as source:
        return export_once(TableExport(InlineSpark(), source, table, ExportSettings(rounds=Append(("partition",)))))


def count(table: Table) -> int:
    if isinstance(table, IcebergTable):
        return int(table._load().scan().count())
    assert isinstance(table, DeltaTable)
    return int(table._load().count())


@pytest.mark.parametrize("form", ["iceberg", "delta"])
def test_a_table_in_s3_grows_is_merged_and_cleaned(form: str, s3: str, broker: tailrace.Broker, tmp_path: Path) -> None:
    table = s3_table(form, s3, tmp_path)
    assert run(table, broker).records == 10
    for _ in range(8):
        put(broker.bootstrap, "t", 1, numbered(3))
        assert run(table, broker).records == 3
    assert count(table) == 34
    table.open(RECORD_SCHEMA, ())
    merged = table.merge(InlineSpark(), target_bytes=1 << 20, compression="zstd")
    assert (merged.files_before, merged.files_after) == (8, 1)
    assert table.expire(4_000_000_000_000).files >= 8
    assert count(table) == 34
    assert run(table, broker).commits == 0


def test_a_table_in_a_glue_catalog_grows_and_is_merged(s3: str, broker: tailrace.Broker, tmp_path: Path) -> None:
    table = glue_table(s3, tmp_path)
    assert run(table, broker).records == 10
    for _ in range(8):
        put(broker.bootstrap, "t", 1, numbered(3))
        assert run(glue_table(s3, tmp_path), broker).records == 3
    table.open(RECORD_SCHEMA, ())
    merged = table.merge(InlineSpark(), target_bytes=1 << 20, compression="zstd")
    assert (merged.files_before, merged.files_after) == (8, 1)
    assert count(table) == 34
    assert run(table, broker).commits == 0


@pytest.mark.parametrize("form", ["iceberg", "delta"])
def test_two_exports_into_s3_at_the_same_time_add_each_record_once(
    form: str, s3: str, broker: tailrace.Broker, tmp_path: Path
) -> None:
    s3_table(form, s3, tmp_path).open(RECORD_SCHEMA, ("partition",))
    errors: list[BaseException] = []

    def work() -> None:
        try:
            run(s3_table(form, s3, tmp_path), broker)
        except BaseException as error:
            errors.append(error)

    for round_ in range(3):
        put(broker.bootstrap, "t", 1, numbered(5))
        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        assert count(s3_table(form, s3, tmp_path)) == 10 + 5 * (round_ + 1)


def test_an_iceberg_table_in_googles_store_grows(broker: tailrace.Broker, tmp_path: Path) -> None:
    """The emulator has no XML interface, which delta-rs needs to list objects. So there is no test with Delta."""
    pytest.importorskip("gcp_storage_emulator")
    with gcs_server() as endpoint:
        properties = {
            "type": "sql",
            "uri": f"sqlite:///{tmp_path}/catalog.db",
            "warehouse": "gs://logs/warehouse",
            "gcs.service.host": endpoint,
            "gcs.oauth2.token": "none",
            "gcs.oauth2.token-expires-at": "4000000000000",
        }
        table = IcebergTable("shop.t", "test", properties)
        assert run(table, broker).records == 10
        put(broker.bootstrap, "t", 1, numbered(3))
        assert run(table, broker).records == 3
        assert count(table) == 13
