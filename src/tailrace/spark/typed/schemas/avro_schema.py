"""Converts an Avro schema to an Arrow type, and checks a writer's schema before values are read with it.

Types are those of Spark's from_avro. A type that contains itself has no columns, and is refused in a writer's schema as
well, because its values could be nested without a limit. So are arrays of items without bytes: a few bytes could
describe any number of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

import pyarrow as pa

from tailrace.spark.typed.schemas.errors import FieldBudget, SchemaRefused

_PRIMITIVES: Final = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
_LOGICAL: Final[dict[tuple[Any, Any], Any]] = {
    ("int", "date"): pa.date32(),
    ("long", "timestamp-millis"): pa.timestamp("us", tz="UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", tz="UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("us"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
}


class AvroSchema:
    """A schema with its Arrow type, without logical types (as values are read), and its logical types by place."""

    def __init__(self, text: str, references: Iterable[str] = ()) -> None:
        """Parse a schema. `references` are schemas that define types which the schema uses, in this order."""
        self._budget = FieldBudget()
        self._named: dict[str, Any] = {}
        self.logical: dict[str, str] = {}  # by place
        self.plain_references: list[Any] = []
        for reference in references:
            parsed = _parsed(reference)
            self._type(parsed, "$", 0, "", ())
            self.plain_references.append(_without_logical(parsed))
        self.logical = {}
        parsed = _parsed(text)
        self.type, self.is_nullable = self._type(parsed, "$", 0, "", ())
        self.plain = _without_logical(parsed)  # its depth is checked

    def _type(self, schema: Any, place: str, depth: int, space: str, inside: tuple[str, ...]) -> tuple[Any, bool]:
        """Return the type, and True if it is nullable."""
        self._budget.spend(place, depth)
        if isinstance(schema, list):
            others = [one for one in schema if one not in ("null", {"type": "null"})]
            if len(others) != 1:
                raise SchemaRefused(f"{place} is a union of {len(others)} types; a column needs null and one type")
            return self._type(others[0], place, depth + 1, space, inside)[0], len(others) < len(schema)
        if isinstance(schema, str):
            if schema in _PRIMITIVES:
                return _PRIMITIVES[schema], schema == "null"
            name = schema if "." in schema or not space else f"{space}.{schema}"
            name = name if name in self._named else schema
            if name in inside:
                raise SchemaRefused(f"{place} contains itself ({name}); such a type has no columns")
            if name not in self._named:
                raise SchemaRefused(f"{place} has the type {schema!r}, which the schema does not define")
            return self._type(self._named[name], place, depth + 1, space, inside)
        if not isinstance(schema, dict) or "type" not in schema:
            raise SchemaRefused(f"{place} is {json.dumps(schema)[:60]}; a column needs a type")
        return self._described(schema, place, depth, space, inside)

    def _described(
        self, schema: dict[str, Any], place: str, depth: int, space: str, inside: tuple[str, ...]
    ) -> tuple[Any, bool]:
        kind = schema["type"]
        if isinstance(kind, (dict, list)):
            return self._type(kind, place, depth + 1, space, inside)
        if kind in ("record", "error", "enum", "fixed"):
            space = str(schema.get("namespace", space))
            name = str(schema.get("name", ""))
            name = name if "." in name or not space else f"{space}.{name}"
            space = name.rpartition(".")[0]
            self._named[name] = schema
            inside = (*inside, name)
        if kind in ("record", "error"):
            return pa.struct([self._field(one, place, depth, space, inside) for one in schema.get("fields", [])]), False
        if kind == "array":
            items, nullable = self._type(schema.get("items"), f"{place}[]", depth + 1, space, inside)
            if _can_be_empty(items, nullable):
                raise SchemaRefused(f"{place} is an array of items without bytes; any number of them fits in a value")
            return pa.list_(pa.field("element", items, nullable)), False
        if kind == "map":
            values, nullable = self._type(schema.get("values"), f"{place}{{}}", depth + 1, space, inside)
            return pa.map_(pa.string(), pa.field("value", values, nullable)), False
        if kind == "enum":
            return pa.string(), False
        logical = schema.get("logicalType")
        if kind == "fixed" and (type(schema.get("size")) is not int or schema["size"] < 1):
            raise SchemaRefused(f"{place} is a fixed type of {schema.get('size')} bytes; it needs at least one")
        if kind in ("bytes", "fixed"):
            if logical == "decimal":
                return self._decimal(schema, place), False
            return pa.binary(), False
        if (kind, logical) in _LOGICAL:
            self.logical[place] = str(logical)
            return _LOGICAL[kind, logical], False
        return self._type(kind, place, depth + 1, space, inside)

    def _field(self, field: Any, place: str, depth: int, space: str, inside: tuple[str, ...]) -> Any:
        if not isinstance(field, dict) or not isinstance(field.get("name"), str):
            raise SchemaRefused(f"{place} has a field without a name")
        kind, nullable = self._type(field.get("type"), f"{place}.{field['name']}", depth + 1, space, inside)
        return pa.field(field["name"], kind, nullable)

    def _decimal(self, schema: dict[str, Any], place: str) -> Any:
        precision, scale = schema.get("precision"), schema.get("scale", 0)
        if (
            type(precision) is not int
            or type(scale) is not int
            or not 1 <= precision <= 38
            or not 0 <= scale <= precision
        ):
            raise SchemaRefused(f"{place} is decimal({precision},{scale}); the precision is 1 to 38")
        self.logical[place] = f"decimal({precision},{scale})"
        return pa.decimal128(precision, scale)

    def check_writer(self, writer: AvroSchema) -> None:
        """Raise SchemaRefused if a value would change its meaning: Avro ignores differences of logical types."""
        for place in sorted(self.logical.keys() & _places(writer.type)):
            if writer.logical.get(place) != self.logical[place]:
                raise SchemaRefused(
                    f"{place} was written as {writer.logical.get(place, 'a plain number')}, and the table has "
                    f"{self.logical[place]}"
                )


def _parsed(text: str) -> Any:
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        parsed = text.strip().strip('"')
    if not isinstance(parsed, (dict, list, str)):
        raise SchemaRefused(f"the Avro schema is {text[:60]!r}; it must be a type")
    return parsed


def _places(kind: Any, place: str = "$") -> set[str]:
    found = {place}
    if pa.types.is_struct(kind):
        for field in kind:
            found |= _places(field.type, f"{place}.{field.name}")
    elif pa.types.is_list(kind):
        found |= _places(kind.value_type, f"{place}[]")
    elif pa.types.is_map(kind):
        found |= _places(kind.item_type, f"{place}{{}}")
    return found


def _can_be_empty(kind: Any, nullable: bool) -> bool:
    """Return True if a value of the type has no bytes. A union has at least the number of its branch."""
    if pa.types.is_null(kind):
        return True
    if nullable or not pa.types.is_struct(kind):
        return False
    return all(_can_be_empty(field.type, field.nullable) for field in kind)


def _without_logical(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without_logical(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: _without_logical(value) for key, value in schema.items() if key not in ("logicalType", "default")} | (
        {"default": schema["default"]} if "default" in schema else {}
    )
