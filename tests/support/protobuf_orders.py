"""Protobuf schemas of orders, made without protoc."""

from __future__ import annotations

from typing import Any


def field(message: Any, name: str, number: int, kind: str, *, repeated: bool = False, type_name: str = "") -> Any:
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field

    added = message.field.add(name=name, number=number, type=getattr(Field, f"TYPE_{kind.upper()}"))
    added.label = Field.LABEL_REPEATED if repeated else Field.LABEL_OPTIONAL
    if type_name:
        added.type_name = type_name
    return added


def order_file(*, newer: bool = False, package: str = "shop") -> Any:
    """Return a FileDescriptorProto with the messages Other and Order. The newer one has a further field."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    names = ("timestamp", "struct", "wrappers")
    file = FileDescriptorProto(
        name="order.proto",
        package=package,
        syntax="proto3",
        dependency=[f"google/protobuf/{name}.proto" for name in names],
    )
    field(file.message_type.add(name="Other"), "x", 1, "int32")
    order = file.message_type.add(name="Order")
    kind = file.enum_type.add(name="Kind")
    for number, name in enumerate(("UNKNOWN", "WEB")):
        kind.value.add(name=name, number=number)
    field(order, "id", 1, "int64")
    field(order, "name", 2, "string")
    field(order, "at", 3, "message", type_name=".google.protobuf.Timestamp")
    field(order, "tags", 4, "string", repeated=True)
    field(order, "big", 5, "uint64")
    field(order, "kind", 6, "enum", type_name=f".{package}.Kind")
    field(order, "extra", 7, "message", type_name=".google.protobuf.Struct")
    field(order, "count", 8, "message", type_name=".google.protobuf.Int64Value")
    line = order.nested_type.add(name="Line")
    field(line, "sku", 1, "string")
    field(order, "lines", 9, "message", repeated=True, type_name=f".{package}.Order.Line")
    entry = order.nested_type.add(name="SizesEntry")
    entry.options.map_entry = True
    field(entry, "key", 1, "string")
    field(entry, "value", 2, "int32")
    field(order, "sizes", 10, "message", repeated=True, type_name=f".{package}.Order.SizesEntry")
    if newer:
        field(order, "note", 11, "string")
    return file


def message_class(file: Any, name: str) -> Any:
    """Return a class for writing messages, from a pool of its own."""
    from google.protobuf.message_factory import GetMessageClass

    from tailrace.spark.typed.schemas.protobuf_schema import ProtobufSchema

    return GetMessageClass(ProtobufSchema([file.SerializeToString()]).message(name))
