"""A query starts where an exported table ends: hot records after cold ones, without a gap or a repeated record."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyiceberg.utils.config import Config

import tailrace
from tailrace.client.admin import delete_topic
from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.spark.source.errors import Unreadable, WrongOption
from tests.support.exported_tables import FORMATS, NAME, catalog_properties, export, offsets
from tests.support.filled_topics import numbered, put
from tests.support.source_rows import read


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[tailrace.Broker]:
    with tailrace.Broker(tmp_path / "data") as broker:
        broker.create_topic("t", partitions=2)
        put(broker.bootstrap, "t", 0, numbered(8))
        yield broker


def place_of(form: str, folder: Path) -> str:
    if form == "delta":
        return str(folder / "delta")
    from pyiceberg.catalog import load_catalog

    return str(load_catalog("test", **catalog_properties(folder)).load_table(NAME).metadata_location)


def query(broker: tailrace.Broker, place: str, **more: str) -> dict[str, str]:
    return {
        "kafka.bootstrap.servers": broker.bootstrap, "subscribe": "t", "startingOffsets": f"table:{place}", **more
    }  # fmt: skip


@pytest.mark.parametrize("form", FORMATS)
def test_table_and_query_have_each_record_once(form: str, broker: tailrace.Broker, tmp_path: Path) -> None:
    export(form, tmp_path / "out", broker.bootstrap)
    put(broker.bootstrap, "t", 0, numbered(3))
    put(broker.bootstrap, "t", 1, numbered(2))
    fresh = [(row["PARTITION"], row["OFFSET"]) for row in read(query(broker, place_of(form, tmp_path / "out")))]
    assert sorted(fresh) == [(0, 8), (0, 9), (0, 10), (1, 0), (1, 1)]
    assert sorted([*offsets(form, tmp_path / "out"), *fresh]) == [*((0, n) for n in range(11)), (1, 0), (1, 1)]


@pytest.mark.parametrize("form", FORMATS)
def test_a_query_from_a_table_refuses_a_recreated_topic(form: str, broker: tailrace.Broker, tmp_path: Path) -> None:
    export(form, tmp_path / "out", broker.bootstrap)
    with ClusterClient(broker.bootstrap) as cluster:
        delete_topic(cluster, "t")
    broker.create_topic("t", partitions=2)
    with pytest.raises(Unreadable, match="was deleted and created again"):
        read(query(broker, place_of(form, tmp_path / "out")))


def test_an_iceberg_table_is_found_in_its_catalog(
    broker: tailrace.Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export("iceberg", tmp_path / "out", broker.bootstrap)
    for name, value in catalog_properties(tmp_path / "out").items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__TEST__{name.upper()}", value)
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())  # pyiceberg reads the environment once
    assert read(query(broker, f"test:{NAME}")) == []
    with pytest.raises(Unreadable, match="cannot be loaded"):
        read(query(broker, "test:lake.nope"))


def test_a_table_of_other_topics_or_no_table_is_an_error(broker: tailrace.Broker, tmp_path: Path) -> None:
    export("delta", tmp_path / "out", broker.bootstrap)
    broker.create_topic("u", partitions=1)
    place = str(tmp_path / "out" / "delta")
    with pytest.raises(WrongOption, match="has no offset for any selected partition"):
        read(query(broker, place, subscribe="u"))
    assert read(query(broker, place, subscribe="u", startingOffsetsWithoutCommit="earliest")) == []
    with pytest.raises(Unreadable, match="cannot be loaded"):
        read(query(broker, str(tmp_path / "nothing")))
