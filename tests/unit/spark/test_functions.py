"""Framed Avro without Spark: types, versions of a schema, a registry over HTTP."""

from __future__ import annotations

import base64
import io
import json
import pickle
import struct
import threading
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("fastavro")

import fastavro

from tailrace.spark.functions.avro import AvroDecoder
from tailrace.spark.functions.avro_types import UnsupportedSchema, spark_type
from tailrace.spark.functions.schemas import Schemas, SchemaUnknown

FIRST = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
SECOND = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "note", "type": ["null", "string"], "default": None}],
}
BOTH = {1: json.dumps(FIRST), 2: json.dumps(SECOND)}


def framed(schema_id: int, schema: dict[str, Any], value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return b"\0" + struct.pack(">i", schema_id) + out.getvalue()


def test_each_value_is_decoded_by_its_writers_schema() -> None:
    decoder = pickle.loads(pickle.dumps(AvroDecoder(json.dumps(SECOND), BOTH)))
    assert decoder.decode(framed(1, FIRST, {"id": 7})) == {"id": 7, "note": None}
    assert decoder.decode(framed(2, SECOND, {"id": 8, "note": "x"})) == {"id": 8, "note": "x"}
    assert decoder.decode(None) is None
    older = AvroDecoder(json.dumps(FIRST), BOTH)
    assert older.decode(framed(2, SECOND, {"id": 8, "note": "x"})) == {"id": 8}


def test_an_unframed_value_is_an_error_or_null_by_mode() -> None:
    strict, lenient = (AvroDecoder(json.dumps(FIRST), BOTH, is_permissive=one) for one in (False, True))
    for wrong, words in ((b"\x01abcdef", "has no schema id"), (b"\0\0\0\0\1", "with schema 1 cannot be decoded")):
        with pytest.raises(ValueError, match=words):
            strict.decode(wrong)
        assert lenient.decode(wrong) is None
    for decoder in (strict, lenient):
        with pytest.raises(SchemaUnknown, match="schema 5 is not among the given schemas: 1, 2"):
            decoder.decode(framed(5, FIRST, {"id": 7}))


def test_avro_types_are_those_of_from_avro() -> None:
    schema = {
        "type": "record", "name": "R", "fields": [
            {"name": "b", "type": "boolean"},
            {"name": "s", "type": ["string", "null"]},
            {"name": "day", "type": {"type": "int", "logicalType": "date"}},
            {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}]},
            {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
            {"name": "kind", "type": {"type": "enum", "name": "K", "symbols": ["A", "B"]}},
            {"name": "again", "type": "K"},
            {"name": "list", "type": {"type": "array", "items": {"type": "map", "values": "float"}}},
            {"name": "inner", "type": {"type": "record", "name": "I", "fields": [{"name": "x", "type": "bytes"}]}},
        ],
    }  # fmt: skip
    assert spark_type(json.dumps(schema)).simpleString() == (
        "struct<b:boolean,s:string,day:date,at:timestamp,price:decimal(9,2),kind:string,again:string,"
        "list:array<map<string,float>>,inner:struct<x:binary>>"
    )
    value = {
        "b": True, "s": None, "day": date(2026, 1, 2), "at": datetime(2026, 1, 2, 3, tzinfo=UTC),
        "price": Decimal("12.30"), "kind": "A", "again": "B", "list": [{"k": 0.5}], "inner": {"x": b"y"},
    }  # fmt: skip
    text = json.dumps(schema)
    assert AvroDecoder(text, {1: text}).decode(framed(1, schema, value)) == value
    assert spark_type('"long"').simpleString() == "bigint"


@pytest.mark.parametrize(
    "schema",
    [
        ["int", "string"],
        "what",
        {"type": "record", "name": "R", "fields": [{"name": "next", "type": ["null", "R"]}]},
    ],
)
def test_an_avro_schema_without_a_spark_type_is_refused(schema: Any) -> None:
    with pytest.raises(UnsupportedSchema):
        spark_type(json.dumps(schema))


@pytest.fixture
def registry() -> Iterator[tuple[str, list[str]]]:
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(f"{self.path} {self.headers.get('Authorization')}")
            answers = {
                "/api/schemas/ids/1": {"schema": BOTH[1]},
                "/api/schemas/ids/2": {"schema": "syntax", "schemaType": "PROTOBUF"},
                "/api/schemas/ids/3": {"schema": BOTH[1], "references": [{"name": "x"}]},
            }
            found = answers.get(self.path)
            self.send_response(404 if found is None else 200)
            self.end_headers()
            self.wfile.write(json.dumps(found or {"error_code": 40403}).encode())

        def log_message(self, *words: object) -> None:
            """Suppress the log output."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}/api/", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_registry_is_queried_once_per_schema(registry: tuple[str, list[str]]) -> None:
    address, asked = registry
    decoder = AvroDecoder(json.dumps(FIRST), f"http://me:p%40ss@{address}")
    for number in range(3):
        assert decoder.decode(framed(1, FIRST, {"id": number})) == {"id": number}
    assert asked == [f"/api/schemas/ids/1 Basic {base64.b64encode(b'me:p@ss').decode()}"]


@pytest.mark.parametrize(
    ("schema_id", "words"),
    [(2, "has type PROTOBUF, not AVRO"), (3, "has references to other schemas"), (9, "cannot be read from http")],
)
def test_an_unsupported_schema_of_a_registry_is_reported(
    registry: tuple[str, list[str]], schema_id: int, words: str
) -> None:
    with pytest.raises(SchemaUnknown, match=words) as reported:
        Schemas(f"http://me:secret@{registry[0]}").text(schema_id)
    assert "secret" not in str(reported.value)


def test_a_malformed_registry_url_is_reported() -> None:
    with pytest.raises(SchemaUnknown, match="is not the URL of a schema registry"):
        Schemas("registry:8081").text(1)
