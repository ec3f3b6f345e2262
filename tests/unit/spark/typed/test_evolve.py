"""A table takes a newer schema of its topic, or refuses it with both schemas; no change loses a value."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyarrow")

import pyarrow as pa

from tailrace.spark.typed.evolution.evolve import (
    AddColumn,
    Evolution,
    MakeNullable,
    Refusal,
    Widen,
    evolve,
    is_wider,
    table_type,
)


def schema(**fields: Any) -> Any:
    return pa.schema(
        [pa.field(name, kind) if not isinstance(kind, pa.Field) else kind for name, kind in fields.items()]
    )


def changes(table: Any, topic: Any) -> tuple[Any, ...]:
    found = evolve(table, topic)
    assert isinstance(found, Evolution), str(found)
    return found.changes


def test_new_columns_are_added_as_nullable() -> None:
    found = changes(schema(id=pa.int64()), schema(id=pa.int64(), name=pa.field("name", pa.string(), nullable=False)))
    assert found == (AddColumn(("name",), pa.field("name", pa.string())),)


def test_types_become_wider() -> None:
    table = schema(a=pa.int32(), b=pa.float32(), c=pa.decimal128(5, 2))
    topic = schema(a=pa.int64(), b=pa.float64(), c=pa.decimal128(9, 2))
    assert changes(table, topic) == (
        Widen(("a",), pa.int64()),
        Widen(("b",), pa.float64()),
        Widen(("c",), pa.decimal128(9, 2)),
    )


def test_a_narrower_topic_changes_nothing_and_rows_get_the_wider_type() -> None:
    found = evolve(schema(a=pa.int64(), gone=pa.string()), schema(a=pa.int32()))
    assert isinstance(found, Evolution)
    assert found.changes == ()
    assert found.row_schema == schema(a=pa.int64())


def test_required_columns_become_nullable_if_the_topic_lacks_them() -> None:
    table = schema(a=pa.field("a", pa.int64(), nullable=False), b=pa.field("b", pa.int64(), nullable=False))
    assert changes(table, schema(a=pa.int64())) == (MakeNullable(("a",)), MakeNullable(("b",)))


def test_members_of_structs_lists_and_maps_evolve() -> None:
    def nested(**members: Any) -> Any:
        inner = pa.struct(list(members.items()))
        return schema(s=inner, lines=pa.list_(inner), by_name=pa.map_(pa.string(), inner))

    found = changes(nested(x=pa.int32()), nested(x=pa.int64(), y=pa.string()))
    assert [change.path for change in found] == [
        ("s", "x"),
        ("s", "y"),
        ("lines", "element", "x"),
        ("lines", "element", "y"),
        ("by_name", "value", "x"),
        ("by_name", "value", "y"),
    ]


@pytest.mark.parametrize(
    ("table", "topic", "words"),
    [
        (pa.int64(), pa.string(), "is int64 in the table and string in the topic"),
        (pa.int64(), pa.float64(), "neither contains the other"),
        (pa.decimal128(5, 2), pa.decimal128(9, 3), "is decimal128"),
        (pa.date32(), pa.timestamp("us"), "is date32"),
        (pa.timestamp("us"), pa.timestamp("us", tz="UTC"), "timestamp"),
        (pa.struct([("x", pa.int32())]), pa.list_(pa.int32()), "is struct"),
        (pa.map_(pa.int32(), pa.int32()), pa.map_(pa.int64(), pa.int32()), "is int32 in the table and int64"),
    ],
)
def test_other_changes_are_refused_with_both_schemas(table: Any, topic: Any, words: str) -> None:
    found = evolve(schema(a=table), schema(a=topic))
    assert isinstance(found, Refusal)
    assert words in str(found)
    assert f"schema of the table: a {table}" in str(found)
    assert f"schema of the topic: a {topic}" in str(found)


def test_a_column_that_differs_in_case_only_is_refused() -> None:
    assert "differs from the column 'id' of the table in case only" in str(
        evolve(schema(id=pa.int64()), schema(ID=pa.int64()))
    )


LEAVES = st.sampled_from([
    pa.int8(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string(), pa.large_string(), pa.bool_(),
    pa.decimal128(5, 2), pa.decimal128(9, 2), pa.decimal128(9, 3), pa.date32(), pa.timestamp("ms", tz="UTC"),
    pa.timestamp("us"), pa.binary(),
])  # fmt: skip


def fields(kinds: Any) -> Any:
    names = st.sampled_from(["a", "b", "c", "d", "B"])
    one = st.tuples(names, kinds, st.booleans()).map(lambda found: pa.field(found[0], found[1], found[2]))
    return st.lists(one, min_size=1, max_size=4, unique_by=lambda field: field.name.lower())


TYPES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        fields(inner).map(pa.struct),
        inner.map(pa.list_),
        inner.map(lambda kind: pa.map_(pa.string(), kind)),
    ),
    max_leaves=6,
)
SCHEMAS = fields(TYPES).map(pa.schema)


def normal(kind: Any) -> Any:
    return pa.schema([field.with_type(table_type(field.type)) for field in kind])


@given(SCHEMAS)
def test_a_schema_needs_no_change_for_itself(one: Any) -> None:
    assert changes(one, one) == ()


@given(SCHEMAS, SCHEMAS)
def test_after_the_changes_the_table_accepts_old_and_new_rows(table: Any, topic: Any) -> None:
    found = evolve(table, topic)
    if isinstance(found, Refusal):
        return
    assert changes(found.table_schema, topic) == ()
    assert all(not isinstance(change, Widen | AddColumn) for change in changes(found.table_schema, table))
    assert found.row_schema.names == topic.names


@given(SCHEMAS, SCHEMAS)
def test_no_column_is_lost_or_becomes_narrower(table: Any, topic: Any) -> None:
    found = evolve(table, topic)
    if isinstance(found, Refusal):
        return

    def check(before: Any, after: Any) -> None:
        assert not (before.nullable and not after.nullable)
        old, new = table_type(before.type), after.type
        if pa.types.is_struct(old):
            for field in old:
                check(field, new.field(field.name))
        elif pa.types.is_list(old):
            check(old.value_field, new.value_field)
        elif pa.types.is_map(old):
            check(old.item_field, new.item_field)
        else:
            assert new == old or is_wider(old, new)

    for field in table:
        check(field, found.table_schema.field(field.name))
