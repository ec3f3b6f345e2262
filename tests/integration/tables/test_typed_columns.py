"""Values become typed columns of Iceberg and Delta tables, and the tables follow the schemas of their topics."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastavro")
pytest.importorskip("google.protobuf")

import fastavro
import pyarrow as pa

import tailrace
from tailrace.spark.jobs.errors import JobError
from tailrace.spark.jobs.place import Place
from tailrace.spark.tables.table_export import ExportSettings, TableExport
from tailrace.spark.tables.topic_source import TopicSource
from tailrace.spark.typed.schemas.registry import RegistryAddress
from tailrace.spark.typed.typed_rows import BrokenRecord, TypedRows
from tailrace.spark.typed.value_format import ValueFormat, registered_format
from tests.support.exported_tables import FORMATS, arrow_table, export, opened, rows
from tests.support.filled_topics import put
from tests.support.inline_spark import InlineSpark
from tests.support.protobuf_orders import message_class, order_file
from tests.support.schema_registry import FakeRegistry, fake_registry

pytestmark = pytest.mark.parametrize("form", FORMATS)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[tailrace.Broker]:
    with tailrace.Broker(tmp_path / "data") as broker:
        broker.create_topic("t", partitions=1)
        yield broker


@pytest.fixture
def server() -> Iterator[FakeRegistry]:
    with fake_registry() as found:
        yield found


def json_rows(schema: str, **more: Any) -> TypedRows:
    return TypedRows(ValueFormat("json", schema.encode()), **more)


def put_json(broker: tailrace.Broker, *values: Any) -> None:
    encoded = [value if isinstance(value, bytes) else json.dumps(value).encode() for value in values]
    put(broker.bootstrap, "t", 0, [(b"k", value) for value in encoded])


ORDER = "id int, total decimal(9,2), at timestamp, line struct<sku string, n int>, tags array<string>"


def test_members_of_json_values_are_columns(form: str, broker: tailrace.Broker, tmp_path: Path) -> None:
    put_json(
        broker,
        {"id": 1, "total": "2.50", "at": "2024-01-02T03:04:05Z", "line": {"sku": "a", "n": 2}, "tags": ["x"]},
        {},
        b"{",
    )
    put(broker.bootstrap, "t", 0, [(b"k", None)])
    assert export(form, tmp_path / "out", broker.bootstrap, form=json_rows(ORDER)).broken == 1
    first, empty, broken, tombstone = rows(form, tmp_path / "out")
    assert (first["id"], str(first["total"]), first["at"].hour) == (1, "2.50", 3)
    assert (first["line"], first["tags"], first["key"]) == ({"sku": "a", "n": 2}, ["x"], b"k")
    assert (empty["id"], empty["_error"], tombstone["id"], tombstone["_error"]) == (None,) * 4
    assert (broken["_raw_value"], broken["_error"]) == (b"{", "the value ends inside the JSON object")


def test_the_table_follows_a_newer_schema(form: str, broker: tailrace.Broker, tmp_path: Path) -> None:
    put_json(broker, {"id": 1, "line": {"sku": "a"}})
    export(form, tmp_path / "out", broker.bootstrap, form=json_rows("id int, line struct<sku string>"))
    put_json(broker, {"id": 2, "line": {"sku": "b", "n": 5}, "note": "x"})
    export(
        form, tmp_path / "out", broker.bootstrap, form=json_rows("id int, line struct<sku string, n int>, note string")
    )
    put_json(broker, {"id": 3})
    export(form, tmp_path / "out", broker.bootstrap, form=json_rows("id int"))
    found = rows(form, tmp_path / "out")
    assert [(row["id"], row["line"], row["note"]) for row in found] == [
        (1, {"sku": "a", "n": None}, None),
        (2, {"sku": "b", "n": 5}, "x"),
        (3, None, None),
    ]


def test_types_become_wider_where_the_format_can(form: str, broker: tailrace.Broker, tmp_path: Path) -> None:
    put_json(broker, {"id": 1, "f": 1.5, "d": "1.50"})
    export(form, tmp_path / "out", broker.bootstrap, form=json_rows("id int, f float, d decimal(5,2)"))
    put_json(broker, {"id": 2**40, "f": 1.1, "d": "12345.00"})
    wider = json_rows("id bigint, f double, d decimal(9,2)")
    if form == "delta":
        with pytest.raises(JobError, match="would have to become int64, and delta-rs cannot change the types"):
            export(form, tmp_path / "out", broker.bootstrap, form=wider)
        return
    export(form, tmp_path / "out", broker.bootstrap, form=wider)
    put_json(broker, {"id": 3})
    export(form, tmp_path / "out", broker.bootstrap, form=json_rows("id int, f float, d decimal(5,2)"))
    found = rows(form, tmp_path / "out")
    assert [(row["id"], row["f"], row["d"] and str(row["d"])) for row in found] == [
        (1, 1.5, "1.50"),
        (2**40, 1.1, "12345.00"),
        (3, None, None),
    ]
    assert arrow_table(form, tmp_path / "out").schema.field("id").type == pa.int64()


def test_other_changes_are_refused_and_leave_the_table_as_it_is(
    form: str, broker: tailrace.Broker, tmp_path: Path
) -> None:
    put_json(broker, {"id": 1})
    export(form, tmp_path / "out", broker.bootstrap, form=json_rows("id int"))
    put_json(broker, {"id": "x"})
    before = arrow_table(form, tmp_path / "out")
    with pytest.raises(JobError, match=r"column id is int32 in the table and string in the topic.*schema of the topic"):
        export(form, tmp_path / "out", broker.bootstrap, form=json_rows("id string, more int"))
    assert arrow_table(form, tmp_path / "out") == before


def test_broken_records_are_dropped_or_end_the_export(form: str, broker: tailrace.Broker, tmp_path: Path) -> None:
    put_json(broker, {"id": 1}, b"[]", {"id": 3})
    with pytest.raises(BrokenRecord, match="the record at offset 1 of t-0 cannot be decoded"):
        export(form, tmp_path / "a", broker.bootstrap, form=json_rows("id int", on_error="fail"))
    assert rows(form, tmp_path / "a") == []
    done = export(form, tmp_path / "b", broker.bootstrap, form=json_rows("id int", on_error="drop"))
    assert (done.broken, [row["offset"] for row in rows(form, tmp_path / "b")]) == (1, [0, 2])


def avro(schema: Any, schema_id: int, value: Any) -> bytes:
    out = io.BytesIO(b"\0" + schema_id.to_bytes(4))
    out.seek(5)
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def test_a_running_export_follows_the_registry(
    form: str, broker: tailrace.Broker, server: FakeRegistry, tmp_path: Path
) -> None:
    old: dict[str, Any] = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
    new = {**old, "fields": [*old["fields"], {"name": "note", "type": ["null", "string"], "default": None}]}
    server.add(1, json.dumps(old), subject="t-value")
    value = registered_format("avro", RegistryAddress.parse(server.url), "t-value")
    put_json(broker, avro(old, 1, {"id": 1}))
    with TopicSource(Place.parse(broker.bootstrap), ["t"]) as source:
        settings = ExportSettings(form=TypedRows(value))
        running = TableExport(InlineSpark(), source, opened(form, tmp_path / "out"), settings)
        running.open()
        assert running.run_round() is not None
        server.add(2, json.dumps(new), subject="t-value")
        put_json(broker, avro(new, 2, {"id": 2, "note": "x"}), avro(old, 1, {"id": 3}))
        done = running.run_round()
        assert done is not None
        assert done.broken == 0
    found = rows(form, tmp_path / "out")
    assert [(row["id"], row["note"]) for row in found] == [(1, None), (2, "x"), (3, None)]


def test_a_registry_that_is_down_ends_the_export_and_loses_no_record(
    form: str, broker: tailrace.Broker, server: FakeRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tailrace.spark.typed.schemas.registry._PAUSE_S", 0.001)
    schema = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
    server.add(1, json.dumps(schema), subject="t-value")
    put_json(broker, avro(schema, 1, {"id": 1}))
    form_of_rows = TypedRows(registered_format("avro", RegistryAddress.parse(server.url), "t-value"))
    known, server.answers["/schemas/ids/1"] = server.answers["/schemas/ids/1"], 503
    with pytest.raises(JobError, match="cannot be asked: it responds with status 503"):
        export(form, tmp_path / "out", broker.bootstrap, form=form_of_rows)
    server.answers["/schemas/ids/1"] = known
    export(form, tmp_path / "out", broker.bootstrap, form=form_of_rows)
    assert [row["id"] for row in rows(form, tmp_path / "out")] == [1]


def test_members_of_protobuf_messages_are_columns(form: str, broker: tailrace.Broker, tmp_path: Path) -> None:
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    order = message_class(order_file(), "shop.Order")(id=5, big=2**64 - 1, tags=["a"], sizes={"x": 1}, kind=1)
    put_json(broker, order.SerializeToString())
    descriptors = FileDescriptorSet(file=[order_file()]).SerializeToString()
    value = ValueFormat("protobuf", descriptors, "shop.Order")
    export(form, tmp_path / "out", broker.bootstrap, form=TypedRows(value, ValueFormat("string")))
    (row,) = rows(form, tmp_path / "out")
    assert (row["id"], row["big"], row["tags"], row["kind"], row["key"]) == (5, 2**64 - 1, ["a"], "WEB", "k")
    assert dict(row["sizes"]) == {"x": 1}
