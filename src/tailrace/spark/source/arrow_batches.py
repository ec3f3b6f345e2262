"""Turns columns into Arrow record batches: the filled buffers become arrays without copying."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tailrace.model.ids import TopicPartition
from tailrace.records.batch import CODEC_MASK, TRANSACTIONAL_BIT, Codec
from tailrace.records.columnar import columns as kernel
from tailrace.records.columnar.columns import BytesColumn, RecordColumns
from tailrace.spark.source.table_columns import Column

_HEADER = pa.struct([("key", pa.string()), ("value", pa.binary())])
_HEADERS = pa.list_(pa.field("element", _HEADER))
_TYPES: dict[str, Any] = {
    "binary": pa.binary(),
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "boolean": pa.bool_(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}
_CODEC_NAMES = pa.array([codec.name.lower() for codec in Codec])


def arrow_schema(chosen: Sequence[Column], nullable: Sequence[bool]) -> Any:
    return pa.schema([
        pa.field(column.name, _TYPES.get(column.spark_type, _HEADERS), nullable=may_be_null)
        for column, may_be_null in zip(chosen, nullable, strict=True)
    ])  # fmt: skip


def arrow_batch(columns: RecordColumns, chosen: Sequence[Column], schema: Any, partition: TopicPartition) -> Any:
    """Return the rows of the columns as a batch. It takes over their buffers, so call `columns.reset()` afterwards."""
    arrays = [_array(columns, column, field.type, partition) for column, field in zip(chosen, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _array(columns: RecordColumns, column: Column, kind: Any, partition: TopicPartition) -> Any:
    rows = columns.rows
    if column.name == "topic":
        return pa.repeat(pa.scalar(partition.topic), rows)
    if column.name == "partition":
        return pa.repeat(pa.scalar(partition.partition, pa.int32()), rows)
    if column.bit in (kernel.KEY, kernel.VALUE):
        return _bytes_array(columns.columns[column.bit], kind)
    if column.bit == kernel.HEADERS:
        return _headers(columns)
    if column.bit == kernel.ATTRIBUTES:
        attributes = pa.Array.from_buffers(pa.int32(), rows, [None, columns.columns[column.bit].buffer])
        if column.name == "compression":
            return _CODEC_NAMES.take(pc.bit_wise_and(attributes, CODEC_MASK))
        return pc.not_equal(pc.bit_wise_and(attributes, TRANSACTIONAL_BIT), 0)
    return pa.Array.from_buffers(kind, rows, [None, columns.columns[column.bit].buffer])


def _bytes_array(column: BytesColumn, kind: Any) -> Any:
    validity = column.validity_buffer if column.nulls else None
    return pa.Array.from_buffers(kind, column.rows, [validity, column.offsets_buffer, column.data_buffer], column.nulls)


def _headers(columns: RecordColumns) -> Any:
    keys = _bytes_array(columns.header_keys, pa.string())
    values = _bytes_array(columns.header_values, pa.binary())
    pairs = pa.StructArray.from_buffers(_HEADER, len(keys), [None], children=[keys, values])
    missing = columns.rows_without_headers
    validity = columns.header_validity if missing else None
    return pa.ListArray.from_buffers(
        _HEADERS, columns.rows, [validity, columns.header_ends.buffer], missing, children=[pairs]
    )
