"""Spark types of the source's columns, created without a running Spark."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import types

from tailrace.spark.source.table_columns import HEADERS_TYPE, KNOWN, default_columns

_TYPES = {
    "binary": types.BinaryType(),
    "string": types.StringType(),
    "int": types.IntegerType(),
    "bigint": types.LongType(),
    "boolean": types.BooleanType(),
    "timestamp": types.TimestampType(),
    HEADERS_TYPE: types.ArrayType(
        types.StructType([
            types.StructField("key", types.StringType()),
            types.StructField("value", types.BinaryType()),
        ])
    ),
}  # fmt: skip


def struct_of(names: Iterable[str]) -> types.StructType:
    return types.StructType([types.StructField(name, _TYPES[KNOWN[name].spark_type]) for name in names])


def default_struct(*, headers: bool = False, batch_facts: bool = False) -> types.StructType:
    return struct_of(column.name for column in default_columns(headers=headers, batch_facts=batch_facts))
