"""Schemas become Arrow types; recursive, huge and malformed ones are refused with the place."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa

from tailrace.spark.typed.schemas.avro_schema import AvroSchema
from tailrace.spark.typed.schemas.ddl import ddl_fields
from tailrace.spark.typed.schemas.errors import SchemaRefused
from tailrace.spark.typed.schemas.json_schema import json_schema_fields

UTC = pa.timestamp("us", tz="UTC")


def test_column_definitions_of_sql_become_arrow_types() -> None:
    found = ddl_fields(
        "id BIGINT NOT NULL, `a ``b` string, tags array<string>, "
        "line struct<sku: string, price: decimal(10, 2), more: array<struct<x int>>>, at timestamp, d decimal"
    )
    line = pa.struct([
        ("sku", pa.string()), ("price", pa.decimal128(10, 2)), ("more", pa.list_(pa.struct([("x", pa.int32())])))
    ])  # fmt: skip
    expected = [pa.int64(), pa.string(), pa.list_(pa.string()), line, UTC, pa.decimal128(10, 0)]
    assert (found.names, found.types) == (["id", "a `b", "tags", "line", "at", "d"], expected)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "has no columns"),
        ("id", "type 'its end'"),
        ("id nope", "type 'nope'; the known types are"),
        ("id int,", "the name of a column is expected"),
        ("id int name string", "has 'name' where ',' is expected"),
        ("a struct<b int", "has 'the end' where"),
        ("a decimal(39,0)", "the precision is 1 to 38"),
        ("a decimal(5,6)", "the precision is 1 to 38"),
        ("a decimal(,)", "write decimal"),
        ("a int; drop", "cannot be read at"),
        ("a " + "array<" * 100_000, "nested deeper than 32 levels"),
        (",".join(f"c{n} int" for n in range(10_001)), "more than 10,000 fields"),
    ],
)
def test_malformed_definitions_are_refused(text: str, words: str) -> None:
    with pytest.raises(SchemaRefused, match=words.replace("(", r"\(")):
        ddl_fields(text)


def test_a_json_schema_becomes_arrow_types() -> None:
    schema = {
        "$defs": {"line": {"type": "object", "properties": {"sku": {"type": "string"}}}},
        "type": "object",
        "required": ["id"],
        "properties": {
            "id": {"type": "integer", "minimum": 0},
            "name": {"type": ["null", "string"]},
            "total": {"oneOf": [{"type": "null"}, {"type": "number"}]},
            "at": {"type": "string", "format": "date-time"},
            "kind": {"enum": ["a", "b"]},
            "lines": {"type": "array", "items": {"$ref": "#/$defs/line"}},
        },
    }
    found = json_schema_fields(json.dumps(schema))
    lines = pa.list_(pa.struct([("sku", pa.string())]))
    assert found.types == [pa.int64(), pa.string(), pa.float64(), UTC, pa.string(), lines]


def bomb(levels: int) -> dict[str, Any]:
    """Return a schema of some lines with 4 ** levels fields."""
    defs: dict[str, Any] = {"0": {"type": "integer"}}
    for level in range(1, levels + 1):
        following = {"$ref": f"#/$defs/{level - 1}"}
        defs[str(level)] = {"type": "object", "properties": dict.fromkeys("abcd", following)}
    return {"$defs": defs, "$ref": f"#/$defs/{levels}"}


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ("{", "is not JSON"),
        ("[1]", "is not an object"),
        ({"type": "string"}, "only an object with properties has columns"),
        ({"type": "object"}, "an object without properties"),
        ({"type": "object", "properties": {"a": True}}, r"\$\.a is true"),
        ({"type": "object", "properties": {"a": {"type": ["string", "integer"]}}}, r"\$\.a has the types"),
        ({"type": "object", "properties": {"a": {"type": "array"}}}, r"\$\.a is an array without"),
        ({"type": "object", "properties": {"a": {"$ref": "http://x/y"}}}, "only definitions in the same schema"),
        ({"type": "object", "properties": {"a": {"$ref": "#/nope"}}}, "which the schema does not have"),
        ({"type": "object", "properties": {"a": {"$ref": "#"}}}, "contains itself"),
        ({"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}, "contains itself"),
        (bomb(10), "more than 10,000 fields"),
        ({"properties": {"a": {"enum": 5}}}, r"\$\.a has the enum 5"),
        ({"properties": {"a": {"type": {"b": 1}}}}, r'\$\.a has the type \{"b": 1\}'),
        ({"properties": {"a": {"type": "string", "format": [1]}}}, r"\$\.a has the format \[1\]"),
    ],
)
def test_json_schemas_without_columns_are_refused(schema: Any, words: str) -> None:
    with pytest.raises(SchemaRefused, match=words):
        json_schema_fields(schema if isinstance(schema, str) else json.dumps(schema))


def record(name: str, *fields: tuple[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": field, "type": kind} for field, kind in fields]}


def avro_bomb(levels: int) -> dict[str, Any]:
    found = record("r0", ("x", "int"))
    for level in range(1, levels + 1):
        found = record(f"r{level}", ("a", found), *((name, f"r{level - 1}") for name in "bcd"))
    return found


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ([], "is a union of 0 types"),
        (["int", "string"], "is a union of 2 types"),
        (record("r", ("a", "nope")), r"\$\.a has the type 'nope'"),
        (record("r", ("a", ["null", "r"])), r"\$\.a contains itself"),
        (record("r", ("a", {"type": "array", "items": "r"})), "contains itself"),
        (record("r", ("a", {"type": "array", "items": "null"})), "items without bytes"),
        (record("r", ("a", {"type": "array", "items": record("e")})), "items without bytes"),
        (record("r", ("a", {"type": "array", "items": record("e", ("n", "null"))})), "items without bytes"),
        (record("r", ("a", {"type": "fixed", "name": "f", "size": 0})), "needs at least one"),
        (record("r", ("a", {"type": "bytes", "logicalType": "decimal", "precision": 99})), "the precision is 1 to 38"),
        ({"name": "x"}, "a column needs a type"),
        (avro_bomb(10), "more than 10,000 fields"),
        ("[" * 100_000, "which the schema does not define"),
    ],
)
def test_avro_schemas_that_are_dangerous_or_have_no_columns_are_refused(schema: Any, words: str) -> None:
    with pytest.raises(SchemaRefused, match=words):
        AvroSchema(schema if isinstance(schema, str) else json.dumps(schema))


def test_names_of_avro_types_are_found_in_their_namespace() -> None:
    inner = {**record("Line", ("sku", "string")), "namespace": "shop"}
    schema = {**record("Order", ("a", inner), ("b", ["null", "shop.Line"]), ("c", "Line")), "namespace": "shop"}
    line = pa.struct([pa.field("sku", pa.string(), False)])
    assert AvroSchema(json.dumps(schema)).type == pa.struct([
        pa.field("a", line, False), pa.field("b", line), pa.field("c", line, False)
    ])  # fmt: skip
