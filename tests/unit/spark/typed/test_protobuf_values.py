"""Protobuf messages become columns; recursive schemas, truncated messages and deep nesting are bounded."""

from __future__ import annotations

import base64
from decimal import Decimal
from typing import Any

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("google.protobuf")

import pyarrow as pa
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

from tailrace.spark.typed.schemas.errors import SchemaRefused
from tailrace.spark.typed.schemas.protobuf_schema import ProtobufSchema, message_type
from tailrace.spark.typed.values.protobuf_values import ProtobufDecoder, message_path
from tests.support.protobuf_orders import field, message_class, order_file

EMPTY: dict[str, Any] = {
    "id": 0, "name": "", "at": None, "tags": [], "big": Decimal(0), "kind": "UNKNOWN", "extra": None, "count": None,
    "lines": [], "sizes": [],
}  # fmt: skip


def decoder(file: Any) -> ProtobufDecoder:
    schema = ProtobufSchema.from_set(FileDescriptorSet(file=[file]).SerializeToString())
    return ProtobufDecoder(schema, schema.message("shop.Order"))


def test_messages_become_columns() -> None:
    order = message_class(order_file(), "shop.Order")(
        id=-5, name="é", big=2**64 - 1, kind=1, tags=["a"], sizes={"x": 3}, lines=[{"sku": "s"}]
    )
    order.at.FromJsonString("2024-01-02T03:04:05.678901234Z")
    order.extra["q"] = 1
    order.count.value = 0
    found = decoder(order_file()).decode(pa.array([order.SerializeToString(), b""], pa.binary()))
    full, empty = found.array.to_pylist()
    assert (found.errors, empty) == ({}, EMPTY)
    assert full["at"].isoformat() == "2024-01-02T03:04:05.678901+00:00"
    assert (full["big"], full["kind"], full["count"], full["extra"]) == (2**64 - 1, "WEB", 0, '{"q": 1.0}')
    assert (full["lines"], full["sizes"], full["tags"]) == ([{"sku": "s"}], [("x", 3)], ["a"])


def test_broken_messages_harm_no_neighbour() -> None:
    good = message_class(order_file(), "shop.Order")(id=1, kind=7).SerializeToString()
    hostile = [b"\x08", b"\x12\x05ab", b"\x12\x01\xff", b"\xff" * 20, b"\x4b" * 100_000, b"\x12\xff\xff\xff\xff\x0f"]
    hostile.append(b"\x1a\x0b\x08" + b"\xff" * 9 + b"\x01")  # a time out of range is -1 seconds; it is valid
    found = decoder(order_file()).decode(pa.array([good, *hostile, good], pa.binary()))
    rows = found.array.to_pylist()
    assert rows[0] == rows[-1] == {**EMPTY, "id": 1, "kind": "7"}
    assert [row for row in range(1, 7) if rows[row] is None] == [1, 2, 3, 4, 5, 6]
    assert all(rows[row] is None for row in found.errors)


def test_schemas_without_columns_are_refused() -> None:
    def recursive() -> Any:
        file = FileDescriptorProto(name="r.proto", syntax="proto3")
        node = file.message_type.add(name="Node")
        field(node, "next", 1, "message", type_name=".Node")
        return file

    schema = ProtobufSchema([recursive().SerializeToString()])
    with pytest.raises(SchemaRefused, match=r"Node\.next contains itself"):
        message_type(schema.message())
    bomb = FileDescriptorProto(name="b.proto", syntax="proto3")
    field(bomb.message_type.add(name="M0"), "x", 1, "int32")
    for level in range(1, 9):
        message = bomb.message_type.add(name=f"M{level}")
        for number in range(1, 5):
            field(message, f"f{number}", number, "message", type_name=f".M{level - 1}")
    with pytest.raises(SchemaRefused, match="more than 10,000 fields"):
        message_type(ProtobufSchema([bomb.SerializeToString()]).message("M8"))


def test_malformed_schemas_are_refused() -> None:
    for data, words in ((b"\xff\xff", "not a descriptor set"), (b"", "has no file")):
        with pytest.raises(SchemaRefused, match=words):
            ProtobufSchema.from_set(data)
    missing = FileDescriptorProto(name="m.proto", dependency=["other.proto"])
    with pytest.raises(SchemaRefused, match=r"'m\.proto' is not valid"):
        ProtobufSchema([missing.SerializeToString()])
    with pytest.raises(SchemaRefused, match="not base64"):
        ProtobufSchema.from_registry("%%%", {})
    with pytest.raises(SchemaRefused, match=r"cannot be read|not base64|has no|is not valid"):
        ProtobufSchema.from_registry(base64.b64encode(b"\xff\xff").decode(), {})
    schema = ProtobufSchema([order_file().SerializeToString()])
    with pytest.raises(SchemaRefused, match=r"has the messages shop\.Other, shop\.Order; name one: MESSAGE@FILE"):
        schema.message()
    with pytest.raises(SchemaRefused, match="has no message 'Nope'"):
        schema.message("Nope")


def test_message_path_decodes_the_position_of_a_message_in_its_schema() -> None:
    assert message_path(b"\x00rest") == ((0,), 1)
    assert message_path(b"\x02\x02rest") == ((1,), 2)
    assert message_path(b"\x04\x02\x00rest") == ((1, 0), 3)
    for hostile in (b"", b"\x02", b"\x80" * 9, b"\x01", b"\xfe\xff\xff\xff\x0f", b"\x50" + b"\x00" * 50):
        with pytest.raises(ValueError, match="message positions"):
            message_path(hostile)
