"""Converts an Avro schema to a Spark type, by the rules of Spark's own from_avro."""

from __future__ import annotations

import json
from typing import Any

from pyspark.sql import types

_PRIMITIVES = {
    "null": types.NullType(),
    "boolean": types.BooleanType(),
    "int": types.IntegerType(),
    "long": types.LongType(),
    "float": types.FloatType(),
    "double": types.DoubleType(),
    "bytes": types.BinaryType(),
    "string": types.StringType(),
    "enum": types.StringType(),
    "fixed": types.BinaryType(),
}
_LOGICAL = {
    ("int", "date"): types.DateType(),
    ("long", "timestamp-millis"): types.TimestampType(),
    ("long", "timestamp-micros"): types.TimestampType(),
}


class UnsupportedSchema(ValueError):
    """An Avro schema that has no Spark type, or is not supported."""


def spark_type(schema: str) -> types.DataType:
    """Return the Spark type for values of this schema."""
    try:
        parsed = json.loads(schema)
    except ValueError:
        parsed = schema.strip().strip('"')
    return _type(parsed, {})[0]


def _type(schema: Any, named: dict[str, Any]) -> tuple[types.DataType, bool]:
    """Return the type, and True if it is nullable."""
    if isinstance(schema, list):
        others = [one for one in schema if one != "null"]
        if len(others) != 1:
            raise UnsupportedSchema(
                f"the union {json.dumps(schema)} is not supported; only a union of null and one type is"
            )
        return _type(others[0], named)[0], len(others) < len(schema)
    if isinstance(schema, str):
        if schema in _PRIMITIVES:
            return _PRIMITIVES[schema], schema == "null"
        if schema not in named or named[schema] is None:
            raise UnsupportedSchema(f"{schema!r} is not a known type, or it contains itself")
        return named[schema], False
    kind = schema["type"]
    if isinstance(kind, (dict, list)):
        return _type(kind, named)
    logical = schema.get("logicalType")
    if logical == "decimal":
        return types.DecimalType(schema["precision"], schema.get("scale", 0)), False
    if (kind, logical) in _LOGICAL:
        return _LOGICAL[kind, logical], False
    if kind == "array":
        items, nullable = _type(schema["items"], named)
        return types.ArrayType(items, nullable), False
    if kind == "map":
        values, nullable = _type(schema["values"], named)
        return types.MapType(types.StringType(), values, nullable), False
    if kind in ("record", "error"):
        named[schema["name"]] = None  # during its own fields, to detect recursion
        fields = []
        for field in schema["fields"]:
            found, nullable = _type(field["type"], named)
            fields.append(types.StructField(field["name"], found, nullable))
        named[schema["name"]] = types.StructType(fields)
        return named[schema["name"]], False
    found, nullable = _type(kind, named)
    if kind in ("enum", "fixed"):
        named[schema["name"]] = found
    return found, nullable
