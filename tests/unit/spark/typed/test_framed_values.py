"""Values with a schema id: each is read by its own schema, into the columns of the reader's."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("fastavro")
pytest.importorskip("google.protobuf")

import fastavro
import pyarrow as pa

from tailrace.spark.typed.schemas.errors import SchemaRefused
from tailrace.spark.typed.schemas.registry import RegistryAddress
from tailrace.spark.typed.value_format import registered_format
from tests.support.protobuf_orders import message_class, order_file
from tests.support.schema_registry import FakeRegistry, fake_registry


@pytest.fixture
def server() -> Iterator[FakeRegistry]:
    with fake_registry() as found:
        yield found


def framed(schema_id: int, payload: bytes) -> bytes:
    return b"\0" + schema_id.to_bytes(4) + payload


def avro_schema(*fields: tuple[str, Any]) -> dict[str, Any]:
    found = [
        {"name": name, "type": kind, "default": None} if isinstance(kind, list) else {"name": name, "type": kind}
        for name, kind in fields
    ]
    return {"type": "record", "name": "Order", "fields": found}


def avro(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


OLD = avro_schema(("id", "int"))
NEW = avro_schema(("id", "long"), ("name", ["null", "string"]))


def avro_decoder(server: FakeRegistry) -> Any:
    server.add(1, json.dumps(OLD))
    server.add(2, json.dumps(NEW), subject="orders-value")
    return registered_format("avro", RegistryAddress.parse(server.url), "orders-value").decoder()


def test_values_of_several_schema_versions_share_columns(server: FakeRegistry) -> None:
    values = [framed(2, avro(NEW, {"id": 2, "name": "b"})), framed(1, avro(OLD, {"id": 1}))]
    found = avro_decoder(server).decode(pa.array(values * 2))
    assert found.errors == {}
    assert found.array.to_pylist() == [{"id": 2, "name": "b"}, {"id": 1, "name": None}] * 2
    assert [path for path, _ in server.asked] == [
        "/subjects/orders-value/versions/latest", "/schemas/ids/2", "/schemas/ids/1"
    ]  # fmt: skip


def test_values_without_a_frame_or_with_another_schema_are_broken(server: FakeRegistry) -> None:
    decoder = avro_decoder(server)
    server.add(3, "{}", schemaType="JSON")
    server.add(4, json.dumps({"type": "record", "name": "Order", "fields": [{"name": "id", "type": "Order"}]}))
    server.add(5, json.dumps(avro_schema(("other", "int"))))
    good = framed(1, avro(OLD, {"id": 1}))
    values = [
        good,
        b"",
        b"\0\0\0\0",
        b"\1" + good[1:],
        *(framed(number, b"\x02") for number in (3, 4, 5, 99)),
        good[:5],
    ]
    found = decoder.decode(pa.array([*values, good]))
    assert [row for row in range(len(values) + 1) if row not in found.errors] == [0, len(values)]
    words = [
        "has 0 bytes",
        "has 4 bytes",
        "starts with byte 1",
        "type JSON, not AVRO",
        "contains itself",
        "",
        "has no sch",
        "EOF",
    ]
    for (row, why), word in zip(sorted(found.errors.items()), words, strict=True):
        assert word in why, (row, why)
    assert [one and one["id"] for one in found.array.to_pylist()] == [1, *[None] * 8, 1]


def test_an_unknown_schema_id_is_requested_once(server: FakeRegistry) -> None:
    decoder = avro_decoder(server)
    server.asked.clear()
    for _ in range(3):
        assert len(decoder.decode(pa.array([framed(99, b"x")] * 5)).errors) == 5
    assert [path for path, _ in server.asked] == ["/schemas/ids/99"]


def test_avro_types_of_other_subjects_are_found(server: FakeRegistry) -> None:
    line = {"type": "record", "name": "Line", "fields": [{"name": "sku", "type": "string"}]}
    schema = avro_schema(("line", "Line"))
    reference = {"name": "Line", "subject": "line", "version": 1}
    server.answers["/subjects/line/versions/1"] = {"schema": json.dumps(line)}
    server.add(1, json.dumps(schema), subject="s", references=[reference])
    decoder = registered_format("avro", RegistryAddress.parse(server.url), "s").decoder()
    payload = avro(avro_schema(("line", line)), {"line": {"sku": "a"}})
    assert decoder.decode(pa.array([framed(1, payload)])).array.to_pylist() == [{"line": {"sku": "a"}}]


def test_json_values_have_a_frame_as_well(server: FakeRegistry) -> None:
    schema = {"type": "object", "properties": {"id": {"type": "integer"}}}
    server.add(1, json.dumps(schema), subject="s", schemaType="JSON")
    decoder = registered_format("json", RegistryAddress.parse(server.url), "s").decoder()
    found = decoder.decode(pa.array([framed(1, b'{"id":5}'), b'{"id":6}', framed(1, b"{")]))
    assert ([one and one["id"] for one in found.array.to_pylist()], sorted(found.errors)) == ([5, None, None], [1, 2])


def test_protobuf_values_name_their_message(server: FakeRegistry) -> None:
    for number, newer in ((1, False), (2, True)):
        text = base64.b64encode(order_file(newer=newer).SerializeToString()).decode()
        server.add(number, "syntax …", subject="s", schemaType="PROTOBUF")
        server.answers[f"/schemas/ids/{number}?format=serialized"] = {"schema": text, "schemaType": "PROTOBUF"}
    decoder = registered_format("protobuf", RegistryAddress.parse(server.url), "s", "shop.Order").decoder()
    old = message_class(order_file(), "shop.Order")(id=1).SerializeToString()
    new = message_class(order_file(newer=True), "shop.Order")(id=2, note="x").SerializeToString()
    values = [
        framed(1, b"\x02\x02" + old),
        framed(2, b"\x02\x02" + new),
        framed(2, b"\x00" + new),
        framed(2, b"\x02\x0e"),
    ]
    found = decoder.decode(pa.array(values))
    rows = found.array.to_pylist()
    assert [(row["id"], row["note"]) for row in rows[:2]] == [(1, ""), (2, "x")]
    assert rows[2:] == [None, None]
    assert "is a message shop.Other, not shop.Order" in found.errors[2]


def test_a_subject_of_another_type_is_refused(server: FakeRegistry) -> None:
    server.add(1, "{}", subject="s", schemaType="JSON")
    with pytest.raises(SchemaRefused, match=r"subject s at .* has the type JSON, not AVRO"):
        registered_format("avro", RegistryAddress.parse(server.url), "s")
