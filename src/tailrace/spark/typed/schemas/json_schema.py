"""Converts a JSON Schema to Arrow fields.

An object with `properties` is a struct, an array a list. Strings with the format date-time or date become timestamps
and dates. A list of two types of which one is null stands for the other type. References to definitions in the same
schema are followed; a type that contains itself has no columns. Constraints, such as `minimum` and `required`, are not
checked: members may be missing in a broken value, so every member is nullable.
"""

from __future__ import annotations

import json
from typing import Any, Final

import pyarrow as pa

from tailrace.spark.typed.schemas.errors import FieldBudget, SchemaRefused

_SCALARS: Final = {
    "string": pa.string(),
    "integer": pa.int64(),
    "number": pa.float64(),
    "boolean": pa.bool_(),
}
_FORMATS: Final = {"date-time": pa.timestamp("us", tz="UTC"), "date": pa.date32()}
_ONE_TYPE: Final = "a column needs exactly one type, or null and one other type"


def json_schema_fields(text: str) -> Any:
    """Return the pyarrow.Schema for objects of a JSON Schema. Raise SchemaRefused if it has no columns."""
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SchemaRefused(f"the JSON Schema is not JSON: {str(error)[:100]}") from None
    if not isinstance(parsed, dict):
        raise SchemaRefused("the JSON Schema is not an object")
    found = _Reader(parsed).type_of(parsed, "$", 0, ())
    if not pa.types.is_struct(found):
        raise SchemaRefused(f"the JSON Schema describes {found}; only an object with properties has columns")
    return pa.schema(list(found))


class _Reader:
    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._budget = FieldBudget()

    def type_of(self, schema: Any, place: str, depth: int, followed: tuple[str, ...]) -> Any:
        self._budget.spend(place, depth)
        if not isinstance(schema, dict):
            raise SchemaRefused(f"{place} is {json.dumps(schema)[:60]}; a column needs a type")
        if "$ref" in schema:
            reference = schema["$ref"]
            if reference in followed:
                raise SchemaRefused(f"{place} contains itself ({reference}); such a type has no columns")
            return self.type_of(self._definition(reference, place), place, depth + 1, (*followed, reference))
        for word in ("oneOf", "anyOf"):
            if word in schema:
                return self._one_of(schema[word], word, place, depth, followed)
        kinds = schema.get("type")
        kinds = [one for one in kinds if one != "null"] if isinstance(kinds, list) else [kinds]
        if kinds == [None] and "properties" in schema:
            kinds = ["object"]
        if kinds == [None] and "enum" in schema:
            if not isinstance(schema["enum"], list):
                raise SchemaRefused(f"{place} has the enum {json.dumps(schema['enum'])[:60]}; it must be a list")
            if all(isinstance(one, str) for one in schema["enum"]):
                kinds = ["string"]
        if len(kinds) != 1:
            raise SchemaRefused(f"{place} has the types {kinds}; {_ONE_TYPE}")
        return self._one(kinds[0], schema, place, depth, followed)

    def _one(self, kind: Any, schema: dict[str, Any], place: str, depth: int, followed: tuple[str, ...]) -> Any:
        if kind == "object":
            members = schema.get("properties")
            if not isinstance(members, dict) or not members:
                raise SchemaRefused(f"{place} is an object without properties; list its members")
            return pa.struct([
                pa.field(name, self.type_of(member, f"{place}.{name}", depth + 1, followed))
                for name, member in members.items()
            ])  # fmt: skip
        if kind == "array":
            if not isinstance(schema.get("items"), dict):
                raise SchemaRefused(f"{place} is an array without one schema in items")
            return pa.list_(self.type_of(schema["items"], f"{place}[]", depth + 1, followed))
        if kind == "string":
            text_format = schema.get("format", "")
            if not isinstance(text_format, str):
                raise SchemaRefused(f"{place} has the format {json.dumps(text_format)[:60]}; it must be a string")
            return _FORMATS.get(text_format, _SCALARS["string"])
        if not isinstance(kind, str) or kind not in _SCALARS:
            raise SchemaRefused(f"{place} has the type {json.dumps(kind)[:60]}; a column needs a known one")
        return _SCALARS[kind]

    def _one_of(self, choices: Any, word: str, place: str, depth: int, followed: tuple[str, ...]) -> Any:
        others = [one for one in choices if one != {"type": "null"}] if isinstance(choices, list) else []
        if len(others) != 1:
            raise SchemaRefused(f"{place} has {word} with several types; {_ONE_TYPE}")
        return self.type_of(others[0], place, depth + 1, followed)

    def _definition(self, reference: Any, place: str) -> Any:
        if not isinstance(reference, str) or not reference.startswith("#"):
            raise SchemaRefused(f"{place} refers to {reference!r}; only definitions in the same schema are followed")
        found: Any = self._root
        for part in filter(None, reference[1:].split("/")):
            found = found.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
        if found is None:
            raise SchemaRefused(f"{place} refers to {reference!r}, which the schema does not have")
        return found
