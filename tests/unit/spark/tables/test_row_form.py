"""A slice's records become the rows of a table."""

from __future__ import annotations

import pickle

import pyarrow as pa

from tailrace.spark.source.arrow_batches import arrow_schema
from tailrace.spark.tables.row_form import NULLABLE, RECORD_SCHEMA, SOURCE_COLUMNS, PlainRows, record_table

NAMES = ["key", "value", "headers", "topic", "partition", "offset", "timestamp", "timestamp_type"]


def test_plain_rows_have_the_columns_of_a_record() -> None:
    assert PlainRows().schema.names == NAMES
    assert [field.name for field in RECORD_SCHEMA if field.nullable] == ["key", "value", "headers"]


def test_a_decoded_batch_becomes_a_table_of_plain_rows() -> None:
    schema = arrow_schema(SOURCE_COLUMNS, NULLABLE)
    row = {
        "key": b"k",
        "value": None,
        "headers": [{"key": "h", "value": b"1"}],
        "topic": "t",
        "partition": 1,
        "offset": 7,
        "timestamp": 1_700_000_000_000_000,
        "timestampType": 0,
    }
    batch = pa.RecordBatch.from_arrays(
        [pa.array([row[field.name]], type=field.type) for field in schema], schema=schema
    )
    table = PlainRows().convert(record_table(batch))
    assert table.column_names == NAMES
    assert table.column("offset").to_pylist() == [7]
    assert table.column("headers").to_pylist() == [[{"key": "h", "value": b"1"}]]


def test_plain_rows_can_be_sent_to_a_worker() -> None:
    assert pickle.loads(pickle.dumps(PlainRows())) == PlainRows()
