"""Converts a Protobuf message type to an Arrow type.

Scalars without presence are never null: they have the default of Protobuf. Members with presence (`optional`, messages,
parts of a oneof) are nullable. Enums are the names of their values. uint64 is decimal(20, 0), because tables have no
unsigned numbers. google.protobuf.Timestamp is a timestamp, a wrapper such as Int64Value is its value, and Struct, Value
and ListValue are JSON text. A message that contains itself has no columns.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Final

import pyarrow as pa

from tailrace.spark.typed.schemas.errors import FieldBudget, SchemaRefused

TIMESTAMP: Final = "google.protobuf.Timestamp"
JSON_TEXT: Final = ("google.protobuf.Struct", "google.protobuf.Value", "google.protobuf.ListValue")
_WRAPPERS: Final = ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
WRAPPERS: Final = tuple(f"google.protobuf.{name}Value" for name in _WRAPPERS)
_WELL_KNOWN: Final = (
    "any", "api", "duration", "empty", "field_mask", "source_context", "struct", "timestamp", "type", "wrappers",
)  # fmt: skip
# By CPPTYPE of a field: int32, int64, uint32, uint64, double, float, bool, enum.
_SCALARS: Final = {
    1: pa.int32(),
    2: pa.int64(),
    3: pa.int64(),
    4: pa.decimal128(20, 0),
    5: pa.float64(),
    6: pa.float32(),
    7: pa.bool_(),
    8: pa.string(),
}
_STRING, _MESSAGE, _TYPE_BYTES = 9, 10, 12


class ProtobufSchema:
    """The message types of serialized file descriptors, of which each may use the ones before it."""

    def __init__(self, files: Sequence[bytes]) -> None:
        descriptor_pb2, descriptor_pool = _protobuf("descriptor_pb2"), _protobuf("descriptor_pool")
        self._pool = descriptor_pool.DescriptorPool()
        self._added: set[str] = set()
        parsed = []
        for data in files:
            try:
                parsed.append(descriptor_pb2.FileDescriptorProto.FromString(data))
            except Exception as error:
                raise SchemaRefused(f"the Protobuf schema is not a file descriptor: {error}") from None
        if not parsed:
            raise SchemaRefused("the Protobuf schema has no file")
        for file in parsed:
            self._add(file)
        self._last = parsed[-1].name

    @classmethod
    def from_set(cls, data: bytes) -> ProtobufSchema:
        """Read what `protoc --include_imports --descriptor_set_out FILE` writes."""
        try:
            found = _protobuf("descriptor_pb2").FileDescriptorSet.FromString(data)
        except Exception as error:
            raise SchemaRefused(
                f"the file is not a descriptor set, as protoc --include_imports --descriptor_set_out writes it: {error}"
            ) from None
        return cls([file.SerializeToString() for file in found.file])

    @classmethod
    def from_registry(cls, text: str, references: Mapping[str, str]) -> ProtobufSchema:
        """Read file descriptors in base64. `references` are their imports by name, in the order of their use."""
        descriptor_pb2 = _protobuf("descriptor_pb2")
        files = []
        for name, encoded in [*references.items(), ("", text)]:
            try:
                file = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(encoded, validate=True))
            except (binascii.Error, ValueError) as error:
                raise SchemaRefused(f"the registry sent a Protobuf schema that is not base64: {error}") from None
            except Exception as error:
                raise SchemaRefused(f"the registry sent a Protobuf schema that cannot be read: {error}") from None
            file.name = name or file.name or "value.proto"  # imports name the reference
            files.append(file.SerializeToString())
        return cls(files)

    def _add(self, file: Any) -> None:
        for name in file.dependency:
            if name not in self._added and name.startswith("google/protobuf/"):
                short = name.removeprefix("google/protobuf/").removesuffix(".proto")
                if short in _WELL_KNOWN:
                    imported = _protobuf("descriptor_pb2").FileDescriptorProto()
                    _protobuf(f"{short}_pb2").DESCRIPTOR.CopyToProto(imported)
                    self._add(imported)
        if file.name in self._added:
            return
        try:
            self._pool.Add(file)
            self._pool.FindFileByName(file.name)
        except Exception as error:
            raise SchemaRefused(
                f"the Protobuf schema {file.name!r} is not valid: {' '.join(str(error).split())}"
            ) from None
        self._added.add(file.name)

    def message(self, name: str | None = None) -> Any:
        """Return the descriptor of a message type; without a name, the only one of the last file."""
        if name is not None:
            try:
                return self._pool.FindMessageTypeByName(name)
            except KeyError:
                raise SchemaRefused(f"the Protobuf schema has no message {name!r}") from None
        found = list(self._pool.FindFileByName(self._last).message_types_by_name.values())
        if len(found) != 1:
            names = ", ".join(one.full_name for one in found) or "none"
            raise SchemaRefused(f"{self._last} has the messages {names}; name one: MESSAGE@FILE")
        return found[0]

    def message_at(self, path: Sequence[int]) -> Any:
        """Return the message type of a path of positions, as a registry's serializers write it."""
        found = list(self._pool.FindFileByName(self._last).message_types_by_name.values())
        message = None
        for position in path:
            if not 0 <= position < len(found):
                raise SchemaRefused(f"the Protobuf schema has no message at {list(path)}")
            message = found[position]
            found = list(message.nested_types)
        return message


def message_type(descriptor: Any) -> Any:
    """Return the struct of a message type."""
    return _struct(descriptor, descriptor.full_name, 0, (), FieldBudget())


def _struct(descriptor: Any, place: str, depth: int, inside: tuple[str, ...], budget: FieldBudget) -> Any:
    budget.spend(place, depth)
    if descriptor.full_name in inside:
        raise SchemaRefused(f"{place} contains itself ({descriptor.full_name}); such a type has no columns")
    inside = (*inside, descriptor.full_name)
    fields = []
    for field in descriptor.fields:
        where = f"{place}.{field.name}"
        budget.spend(where, depth)
        fields.append(
            pa.field(
                field.name,
                _field_type(field, where, depth, inside, budget),
                field.has_presence and not is_repeated(field),
            )
        )
    return pa.struct(fields)


def _field_type(field: Any, place: str, depth: int, inside: tuple[str, ...], budget: FieldBudget) -> Any:
    if is_map(field):
        key, value = field.message_type.fields_by_name["key"], field.message_type.fields_by_name["value"]
        items = _single_type(value, f"{place}{{}}", depth + 1, inside, budget)
        return pa.map_(_single_type(key, place, depth, inside, budget), pa.field("value", items, False))
    single = _single_type(field, place, depth + 1, inside, budget)
    return pa.list_(pa.field("element", single, False)) if is_repeated(field) else single


def _single_type(field: Any, place: str, depth: int, inside: tuple[str, ...], budget: FieldBudget) -> Any:
    if field.cpp_type == _STRING:
        return pa.binary() if field.type == _TYPE_BYTES else pa.string()
    if field.cpp_type != _MESSAGE:
        return _SCALARS[field.cpp_type]
    name = field.message_type.full_name
    if name == TIMESTAMP:
        return pa.timestamp("us", tz="UTC")
    if name in JSON_TEXT:
        return pa.string()
    if name in WRAPPERS:
        return _single_type(field.message_type.fields_by_name["value"], place, depth, inside, budget)
    return _struct(field.message_type, place, depth, inside, budget)


def is_repeated(field: Any) -> bool:
    return bool(field.is_repeated)


def is_map(field: Any) -> bool:
    is_message = field.cpp_type == _MESSAGE and is_repeated(field)
    return bool(is_message and field.message_type.GetOptions().map_entry)


def _protobuf(module: str) -> Any:
    try:
        return import_module(f"google.protobuf.{module}")
    except ImportError:
        raise ImportError("Protobuf values need protobuf: pip install 'tailrace[protobuf]'") from None
