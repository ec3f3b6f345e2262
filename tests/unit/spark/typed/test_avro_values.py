"""Avro values become columns without rounding; truncated and hostile ones are broken, and cost little."""

from __future__ import annotations

import io
import json
import pickle
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyarrow")
pytest.importorskip("fastavro")

import fastavro
import pyarrow as pa

from tailrace.spark.typed.schemas.errors import SchemaRefused
from tailrace.spark.typed.values.avro_values import AvroDecoder

DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 2}
LINE = {
    "type": "record",
    "name": "Line",
    "fields": [{"name": "sku", "type": "string"}, {"name": "price", "type": ["null", DECIMAL]}],
}
ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": ["null", "string"], "default": None},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "seen", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}], "default": None},
        {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}], "default": None},
        {"name": "total", "type": DECIMAL},
        {"name": "lines", "type": ["null", {"type": "array", "items": LINE}], "default": None},
        {"name": "prices", "type": {"type": "map", "values": DECIMAL}},
        {"name": "by_name", "type": ["null", {"type": "map", "values": ["null", "Line"]}], "default": None},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
        {"name": "hash", "type": {"type": "fixed", "name": "Hash", "size": 2}},
    ],
}
NOW = datetime(2024, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)
ROW = {
    "id": 1, "name": "é", "at": NOW, "seen": NOW, "day": date(1969, 12, 31), "total": Decimal("-123456789012345678.99"),
    "lines": [{"sku": "a", "price": Decimal("0.01")}, {"sku": "b", "price": None}], "prices": {"x": Decimal("5.00")},
    "by_name": {"x": {"sku": "a", "price": None}, "y": None}, "kind": "B", "hash": b"\x00\xff",
}  # fmt: skip


def encode(value: Any, schema: Any = ORDER) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def decode(*values: bytes, reader: Any = ORDER, writer: Any = None) -> tuple[list[Any], dict[int, str]]:
    decoder = AvroDecoder(json.dumps(reader), None if writer is None else json.dumps(writer))
    found = pickle.loads(pickle.dumps(decoder, 4)).decode(pa.array(values, pa.binary())) if writer is None else None
    found = found or decoder.decode(pa.array(values, pa.binary()))
    found.array.validate(full=True)
    return found.array.to_pylist(), found.errors


def plain(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with maps as pairs, as Arrow shows them."""
    return {name: list(value.items()) if isinstance(value, dict) else value for name, value in row.items()}


def test_records_become_columns_with_logical_types() -> None:
    empty = {**ROW, "name": None, "seen": None, "day": None, "lines": None, "prices": {}, "by_name": None}
    rows, errors = decode(encode(ROW), encode(empty), encode({**ROW, "lines": []}))
    assert errors == {}
    assert rows == [plain(ROW), plain(empty), plain({**ROW, "lines": []})]


def test_values_are_decoded_by_their_writers_schema() -> None:
    old = {
        "type": "record",
        "name": "Order",
        "fields": [{"name": "id", "type": "int"}, {"name": "gone", "type": "string"}],
    }
    new = {
        "type": "record",
        "name": "Order",
        "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": ["null", "string"], "default": None}],
    }
    assert decode(encode({"id": 7, "gone": "x"}, old), reader=new, writer=old) == ([{"id": 7, "name": None}], {})


def test_a_writer_with_another_unit_of_time_is_refused() -> None:
    def schema(unit: str) -> dict[str, Any]:
        kind = {"type": "long", "logicalType": unit}
        return {"type": "record", "name": "r", "fields": [{"name": "at", "type": kind}]}

    with pytest.raises(SchemaRefused, match=r"\$\.at was written as timestamp-millis, and the table has timestamp-mic"):
        decode(reader=schema("timestamp-micros"), writer=schema("timestamp-millis"))


def test_hostile_values_are_broken_and_harm_no_neighbour() -> None:
    def number(value: int) -> bytes:
        return encode(value, "long")

    good = encode(ROW)
    start = number(1) + number(0)
    hostile = [
        b"",
        good[:-1],
        good + b"x",
        start + b"\xff" * 12,
        number(1) + number(1) + number(2**40) + b"x",  # a string of a terabyte
        number(1) + number(1) + number(-5),
        number(1) + number(9),  # a branch that the union does not have
        number(1) + number(1) + number(2) + b"\xff\xff",  # not UTF-8
        encode({**ROW, "total": Decimal("0")}).replace(b"\x02\x00", b"\x02\x00", 1)[:5],
    ]
    rows, errors = decode(good, *hostile, good)
    assert rows == [plain(ROW), *([None] * len(hostile)), plain(ROW)]
    assert sorted(errors) == list(range(1, len(hostile) + 1))
    assert errors[3] == "the value has 1 bytes after the Avro data"


def test_numbers_that_do_not_fit_are_broken() -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": "d", "type": DECIMAL}]}
    raw = {"type": "record", "name": "r", "fields": [{"name": "d", "type": "bytes"}]}
    sizes = [b"", b"\x7f", b"\x7f" * 9, b"\x7f" * 16, b"\x7f" * 1_000_000]
    rows, errors = decode(*(encode({"d": data}, raw) for data in sizes), reader=schema)
    assert [row and row["d"] for row in rows] == [Decimal("0.00"), Decimal("1.27"), None, None, None]
    assert "does not fit into decimal128(20, 2)" in errors[4]
    times = {
        "type": "record",
        "name": "r",
        "fields": [{"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}}],
    }
    bare = {"type": "record", "name": "r", "fields": [{"name": "at", "type": "long"}]}
    assert list(decode(encode({"at": 2**62}, bare), encode({"at": 5}, bare), reader=times)[1]) == [0]


@given(st.lists(st.one_of(st.binary(max_size=40), st.integers(0, 80).map(lambda size: encode(ROW)[:size])), max_size=4))
def test_any_bytes_give_a_row_or_an_error(values: list[bytes]) -> None:
    rows, errors = decode(encode(ROW), *values)
    assert rows[0] == plain(ROW)
    assert all((rows[row] is None) == (row in errors) for row in range(len(rows)))
