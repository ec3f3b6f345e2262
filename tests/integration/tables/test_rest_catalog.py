"""An Iceberg table in a REST catalog: the server is Iceberg's own reference of the protocol, in Java."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import tailrace
from tailrace.spark.jobs.place import Place
from tailrace.spark.tables.formats.iceberg import IcebergTable
from tailrace.spark.tables.latest.latest_rounds import LatestRounds
from tailrace.spark.tables.round_writer import Append, RoundWriter
from tailrace.spark.tables.table_export import Exported, ExportSettings, TableExport, export_once
from tailrace.spark.tables.topic_source import TopicSource
from tests.support.cache import Unavailable
from tests.support.filled_topics import numbered, put
from tests.support.foreign_clients import java_program, maven_jars
from tests.support.inline_spark import InlineSpark
from tests.support.kafka_broker import free_port

ICEBERG = "1.10.0"
JARS = (
    f"org.apache.iceberg:iceberg-open-api:{ICEBERG}:test-fixtures",
    f"org.apache.iceberg:iceberg-core:{ICEBERG}",
    f"org.apache.iceberg:iceberg-core:{ICEBERG}:tests",
    "org.eclipse.jetty:jetty-servlet:11.0.25",
    "org.xerial:sqlite-jdbc:3.50.3.0",
    "org.apache.hadoop:hadoop-client-api:3.4.1",
    "org.apache.hadoop:hadoop-client-runtime:3.4.1",
    "org.slf4j:slf4j-nop:2.0.16",
)

pytestmark = pytest.mark.slow


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Run the server. Return the properties of its catalog."""
    try:
        program = java_program(maven_jars(*JARS), "org.apache.iceberg.rest.RESTCatalogServer")
    except Unavailable as missing:
        pytest.skip(str(missing))
    port, warehouse = free_port(), f"file://{tmp_path}/warehouse"
    settings = {
        "CATALOG_REST_PORT": str(port),
        "CATALOG_WAREHOUSE": warehouse,
        "CATALOG_URI": f"jdbc:sqlite:{tmp_path}/catalog.db",
    }
    server = subprocess.Popen(program.command, env={**os.environ, **settings})
    try:
        wait_for(port, server)
        yield {"type": "rest", "uri": f"http://127.0.0.1:{port}", "warehouse": warehouse}
    finally:
        server.kill()
        server.wait()


def wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and server.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except ConnectionRefusedError:
            time.sleep(0.1)
    raise AssertionError("the catalog does not answer")


def run(catalog: dict[str, str], broker: tailrace.Broker, name: str, rounds: RoundWriter) -> Exported:
    with TopicSource(Place.parse(broker.bootstrap), ["t"]) as source:
        table = IcebergTable(f"shop.{name}", "test", catalog)
        return export_once(TableExport(InlineSpark(), source, table, ExportSettings(rounds=rounds)))


def count(catalog: dict[str, str], name: str) -> int:
    from pyiceberg.catalog import load_catalog

    return int(load_catalog("test", **catalog).load_table(f"shop.{name}").scan().count())


def test_a_table_grows_with_each_record_once(catalog: dict[str, str], tmp_path: Path) -> None:
    with tailrace.Broker(tmp_path / "data") as broker:
        broker.create_topic("t")
        for _ in range(3):
            put(broker.bootstrap, "t", 0, numbered(10))
            assert run(catalog, broker, "all", Append(("date",))).records == 10
            run(catalog, broker, "latest", LatestRounds(4))
        assert count(catalog, "all") == 30
        assert count(catalog, "latest") == 10


def test_exports_at_the_same_time_add_each_record_once(catalog: dict[str, str], tmp_path: Path) -> None:
    with tailrace.Broker(tmp_path / "data") as broker:
        broker.create_topic("t")
        run(catalog, broker, "all", Append())  # creates the table
        put(broker.bootstrap, "t", 0, numbered(20))
        found: list[int] = []
        work = [
            threading.Thread(target=lambda: found.append(run(catalog, broker, "all", Append()).records))
            for _ in range(3)
        ]
        for thread in work:
            thread.start()
        for thread in work:
            thread.join()
        assert sum(found) == 20
        assert count(catalog, "all") == 20
