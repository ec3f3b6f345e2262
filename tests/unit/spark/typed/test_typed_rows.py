"""Records become rows with typed columns; broken ones are kept with their bytes, dropped, or end the job."""

from __future__ import annotations

import json
import pickle
from datetime import UTC, datetime
from typing import Any

import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa

from tailrace.spark.tables.row_form import RECORD_SCHEMA
from tailrace.spark.typed.schemas.errors import SchemaRefused
from tailrace.spark.typed.typed_rows import BrokenRecord, TypedRows
from tailrace.spark.typed.value_format import ValueFormat

ORDERS = ValueFormat("json", b"id bigint, total double")


def records(*pairs: tuple[bytes | None, bytes | None]) -> Any:
    rows = [
        {
            "key": key, "value": value, "headers": None, "topic": "orders", "partition": 3, "offset": 10 + number,
            "timestamp": datetime(2024, 1, 1, tzinfo=UTC), "timestamp_type": 0,
        }
        for number, (key, value) in enumerate(pairs)
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, RECORD_SCHEMA)


def rows_of(form: Any, *pairs: tuple[bytes | None, bytes | None]) -> list[dict[str, Any]]:
    form = pickle.loads(pickle.dumps(form))
    found = form.convert(records(*pairs))
    assert found.schema == form.schema
    found.validate(full=True)
    return found.to_pylist()  # type: ignore[no-any-return]


def test_members_of_the_value_are_columns_beside_those_of_the_record() -> None:
    form = TypedRows(ORDERS)
    assert form.schema.names == [
        "key", "headers", "topic", "partition", "offset", "timestamp", "timestamp_type",
        "id", "total", "_error", "_raw_value", "_raw_key",
    ]  # fmt: skip
    (row,) = rows_of(form, (b"k", b'{"id":1,"total":2.5}'))
    assert (row["key"], row["offset"], row["id"], row["total"], row["_error"]) == (b"k", 10, 1, 2.5, None)


def test_a_tombstone_has_null_columns_and_no_error() -> None:
    rows = rows_of(TypedRows(ORDERS), (b"k", None), (b"k", b'{"id":1}'), (b"k", None))
    assert [(row["id"], row["_error"]) for row in rows] == [(None, None), (1, None), (None, None)]


def test_a_broken_record_is_kept_with_its_bytes_and_the_reason() -> None:
    rows = rows_of(TypedRows(ORDERS), (b"a", b'{"id":1}'), (b"b", None), (b"c", b"{"), (b"d", b'{"id":4}'))
    assert [row["id"] for row in rows] == [1, None, None, 4]
    assert (rows[2]["_raw_value"], rows[2]["_error"]) == (b"{", "the value ends inside the JSON object")
    assert [row["_raw_value"] for row in rows if row["_error"] is None] == [None] * 3


def test_broken_records_can_be_dropped_or_end_the_job() -> None:
    form = TypedRows(ORDERS, on_error="drop")
    assert "_error" not in form.schema.names
    assert [row["offset"] for row in form.convert(records((b"a", b"x"), (b"b", b"{}"))).to_pylist()] == [11]
    assert form.broken == 1
    with pytest.raises(BrokenRecord, match="the record at offset 11 of orders-3 cannot be decoded: the value is empty"):
        TypedRows(ORDERS, on_error="fail").convert(records((b"a", b"{}"), (b"b", b"")))


def test_keys_are_decoded_as_well() -> None:
    form = TypedRows(ORDERS, ValueFormat("string"))
    rows = rows_of(form, (b"k", b"{}"), (None, b"{}"), (b"\xff", b"{"))
    assert [row["key"] for row in rows] == ["k", None, None]
    assert rows[2]["_raw_key"] == b"\xff"
    assert rows[2]["_error"].startswith("the value ends inside the JSON object; key: ")
    structs = rows_of(TypedRows(ORDERS, ValueFormat("json", b"customer int")), (b'{"customer":7}', b"{}"))
    assert structs[0]["key"] == {"customer": 7}


def test_members_with_the_name_of_a_record_column_get_a_prefix() -> None:
    form = TypedRows(ValueFormat("json", b"timestamp string, Offset int, x int"))
    assert [name for name in form.schema.names if name.startswith("value_")] == ["value_timestamp", "value_Offset"]
    assert rows_of(form, (None, b'{"timestamp":"now","Offset":5}'))[0]["value_Offset"] == 5
    with pytest.raises(SchemaRefused, match="two members for the column value_offset"):
        TypedRows(ValueFormat("json", b"offset int, value_offset int"))
    with pytest.raises(SchemaRefused, match="two members 'ID' that differ in case only"):
        TypedRows(ValueFormat("json", b"id int, ID int"))


def test_a_value_that_is_not_a_record_is_one_column() -> None:
    pytest.importorskip("fastavro")
    form = TypedRows(ValueFormat("avro", b'"long"'))
    assert rows_of(form, (None, b"\x0e"))[0]["value"] == 7


def test_types_that_tables_do_not_have_are_refused() -> None:
    pytest.importorskip("fastavro")
    empty = {"type": "record", "name": "e", "fields": []}
    for inner, words in (("null", r"value\.a is always null"), (empty, r"value\.a is a record without members")):
        schema = {"type": "record", "name": "r", "fields": [{"name": "a", "type": inner}]}
        with pytest.raises(SchemaRefused, match=words):
            TypedRows(ValueFormat("avro", json.dumps(schema).encode()))
