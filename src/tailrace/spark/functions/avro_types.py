"""An Avro schema as Spark's type, by the rules of Spark's own from_avro."""

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
    """An Avro schema that has no counterpart in Spark, or that we do not take."""


def spark_type(schema: str) -> types.DataType:
    """The type of what values of this schema become."""
    try:
        parsed = json.loads(schema)
    except ValueError:
        parsed = schema.strip().strip('"')
    return _type(parsed, {})[0]


def _type(schema: Any, named: dict[str, Any]) -> tuple[types.DataType, bool]:
    """The type, and whether it can be null."""
    if isinstance(schema, list):
        others = [one for one in schema if one != "null"]
        if len(others) != 1:
            raise UnsupportedSchema(f"a union of {json.dumps(schema)} is none of null and one type")
        return _type(others[0], named)[0], len(others) < len(schema)
    if isinstance(schema, str):
        if schema in _PRIMITIVES:
            return _PRIMITIVES[schema], schema == "null"
        if schema not in named or named[schema] is None:
            raise UnsupportedSchema(f"{schema!r} is no type, or one that contains itself")
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
        named[schema["name"]] = None  # while its fields are looked at
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
