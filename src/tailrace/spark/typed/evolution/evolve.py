"""evolve: the changes that a table needs to take rows of a newer schema, or a refusal.

A table can get nullable columns and members of structs, wider types (int → long, float → double, a decimal with more
digits) and nullable columns in place of required ones. Rows that lack a column of the table have null there. A type
that is narrower than the table's needs no change: the rows are converted. Everything else would change the meaning of
rows that are in the table already, and is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

Path = tuple[str, ...]  # names from the column down; `element` is that of a list, `value` that of a map


@dataclass(frozen=True, slots=True)
class AddColumn:
    path: Path
    field: Any  # a pyarrow.Field, nullable


@dataclass(frozen=True, slots=True)
class Widen:
    path: Path
    type: Any  # the pyarrow.DataType after the change


@dataclass(frozen=True, slots=True)
class MakeNullable:
    path: Path


Change = AddColumn | Widen | MakeNullable


@dataclass(frozen=True, slots=True)
class Refusal:
    path: Path
    why: str
    table_schema: Any
    topic_schema: Any

    def __str__(self) -> str:
        return (
            f"column {'.'.join(self.path)} {self.why}; schema of the table: {_shown(self.table_schema)}; "
            f"schema of the topic: {_shown(self.topic_schema)}"
        )


@dataclass(frozen=True, slots=True)
class Evolution:
    changes: tuple[Change, ...]
    table_schema: Any  # after the changes
    row_schema: Any  # the topic's columns, with the types of the table


class _Refused(Exception):
    def __init__(self, path: Path, why: str) -> None:
        super().__init__(why)
        self.path = path


def evolve(table_schema: Any, topic_schema: Any) -> Evolution | Refusal:
    """Compare the pyarrow.Schema of a table with that of the next rows."""
    changes: list[Change] = []
    try:
        merged = _members(_normal(table_schema), _normal(topic_schema), (), changes)
    except _Refused as error:
        return Refusal(error.path, str(error), table_schema, topic_schema)
    after = pa.schema(merged)
    rows = pa.schema([after.field(field.name) for field in topic_schema])
    return Evolution(tuple(changes), after, rows)


def _normal(schema: Any) -> list[Any]:
    return [field.with_type(table_type(field.type)) for field in schema]


def _members(table: Sequence[Any], topic: Sequence[Any], path: Path, changes: list[Change]) -> list[Any]:
    """Return the fields after the changes, those of the table first."""
    new = {field.name: field for field in topic}
    by_lower = {field.name.lower(): field.name for field in table}
    merged = []
    for field in table:
        here = (*path, field.name)
        if field.name in new:
            merged.append(_field(field, new.pop(field.name), here, changes))
        elif field.nullable:
            merged.append(field)
        else:
            changes.append(MakeNullable(here))
            merged.append(field.with_nullable(True))
    for name, field in new.items():
        if name.lower() in by_lower:
            raise _Refused(
                (*path, name), f"differs from the column {by_lower[name.lower()]!r} of the table in case only"
            )
        by_lower[name.lower()] = name
        added = pa.field(name, field.type)
        changes.append(AddColumn((*path, name), added))
        merged.append(added)
    return merged


def _field(table: Any, topic: Any, path: Path, changes: list[Change]) -> Any:
    if topic.nullable and not table.nullable:
        changes.append(MakeNullable(path))
    nullable = table.nullable or topic.nullable
    return pa.field(table.name, _type(table.type, topic.type, path, changes), nullable)


def _type(table: Any, topic: Any, path: Path, changes: list[Change]) -> Any:
    if table == topic:
        return table
    if pa.types.is_struct(table) and pa.types.is_struct(topic):
        return pa.struct(_members(list(table), list(topic), path, changes))
    if pa.types.is_list(table) and pa.types.is_list(topic):
        element = _field(table.value_field, topic.value_field, (*path, "element"), changes)
        return pa.list_(element)
    if pa.types.is_map(table) and pa.types.is_map(topic):
        if table.key_type != topic.key_type:
            raise _Refused((*path, "key"), f"is {table.key_type} in the table and {topic.key_type} in the topic")
        return pa.map_(table.key_type, _field(table.item_field, topic.item_field, (*path, "value"), changes))
    if is_wider(table, topic):
        changes.append(Widen(path, topic))
        return topic
    if is_wider(topic, table):
        return table
    raise _Refused(path, f"is {table} in the table and {topic} in the topic, and neither contains the other")


def is_wider(table: Any, topic: Any) -> bool:
    """Return True if every value of the table's type has the same value in the topic's type, for tables."""
    if pa.types.is_decimal(table) and pa.types.is_decimal(topic):
        return bool(table.scale == topic.scale and topic.precision > table.precision)
    return (table, topic) in ((pa.int32(), pa.int64()), (pa.float32(), pa.float64()))


def table_type(kind: Any) -> Any:
    """Return the type that a table has for a type of Arrow: small integers are int, large strings are strings."""
    if pa.types.is_int8(kind) or pa.types.is_int16(kind):
        return pa.int32()
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind) or pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", tz=None if kind.tz is None else "UTC")
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(table_type(field.type)) for field in kind])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(pa.field("element", table_type(kind.value_type), kind.value_field.nullable))
    if pa.types.is_map(kind):
        return pa.map_(
            table_type(kind.key_type), pa.field("value", table_type(kind.item_type), kind.item_field.nullable)
        )
    return kind


def _shown(schema: Any) -> str:
    text = ", ".join(f"{field.name} {field.type}{'' if field.nullable else ' not null'}" for field in schema)
    return text if len(text) <= 2000 else f"{text[:2000]}…"
