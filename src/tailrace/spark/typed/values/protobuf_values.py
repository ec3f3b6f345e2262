"""ProtobufDecoder: Protobuf messages to columns, with message classes made from the schema.

The parser of Protobuf reads each value, and refuses messages that are nested deeper than 100 levels. Unknown fields are
ignored, as Protobuf does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import pyarrow as pa

from tailrace.spark.typed.schemas.protobuf_schema import (
    JSON_TEXT,
    TIMESTAMP,
    WRAPPERS,
    ProtobufSchema,
    is_map,
    is_repeated,
    message_type,
)
from tailrace.spark.typed.values.decoded import Decoded, build_array, reason, spread

_MESSAGE, _ENUM = 10, 8
Getter = Callable[[Any], Any]


class ProtobufDecoder:
    """A decoder of one message type. It cannot be pickled, because message classes belong to a process."""

    def __init__(self, schema: ProtobufSchema, descriptor: Any) -> None:
        self._schema = schema  # keeps the pool of the descriptor alive
        self.type = message_type(descriptor)
        self._class = import_module("google.protobuf.message_factory").GetMessageClass(descriptor)
        self._getters = _getters(descriptor)

    def decode(self, values: Any) -> Decoded:
        items: list[tuple[int, Any]] = []
        errors: dict[int, str] = {}
        parse, getters = self._class.FromString, self._getters
        for row, value in enumerate(values.to_pylist()):
            try:
                message = parse(value)
                items.append((row, {name: get(message) for name, get in getters}))
            except Exception as error:  # Protobuf's errors have no common base class that is public
                errors[row] = f"the value does not match the Protobuf schema: {reason(error)}"
        return Decoded(spread(build_array(items, self._build, errors), len(values), errors, self.type), errors)

    def _build(self, values: Sequence[Any]) -> Any:
        array = pa.array(values, self.type)
        array.validate(full=True)
        return array


def message_path(payload: bytes) -> tuple[tuple[int, ...], int]:
    """Return the path of positions before a message, and its size. Raise ValueError if it is not valid."""
    count, position = _zigzag(payload, 0)
    if count == 0:
        return (0,), position
    if not 0 < count <= 32:
        raise ValueError(f"the list of message positions has {count} entries; at most 32 are possible")
    path = []
    for _ in range(count):
        number, position = _zigzag(payload, position)
        path.append(number)
    return tuple(path), position


def _zigzag(data: bytes, position: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 35, 7):
        if position >= len(data):
            raise ValueError("the value ends inside the list of message positions")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
    raise ValueError("the list of message positions has a number of more than 32 bits")


def _getters(descriptor: Any) -> list[tuple[str, Getter]]:
    return [(field.name, _getter(field)) for field in descriptor.fields]


def _getter(field: Any) -> Getter:
    name = field.name
    if is_map(field):
        convert = _converter(field.message_type.fields_by_name["value"])
        return partial(_map_items, name, convert)
    convert = _converter(field)
    if is_repeated(field):
        return partial(_list_items, name, convert)
    if field.has_presence:
        return partial(_optional, name, convert)
    return partial(_present, name, convert)


def _present(name: str, convert: Getter, message: Any) -> Any:
    return convert(getattr(message, name))


def _optional(name: str, convert: Getter, message: Any) -> Any:
    return convert(getattr(message, name)) if message.HasField(name) else None


def _list_items(name: str, convert: Getter, message: Any) -> Any:
    return [convert(one) for one in getattr(message, name)]


def _map_items(name: str, convert: Getter, message: Any) -> Any:
    return [(key, convert(value)) for key, value in getattr(message, name).items()]


def _same(value: Any) -> Any:
    return value


def _converter(field: Any) -> Getter:
    """Return a function for a single value of a field."""
    if field.cpp_type == _ENUM:
        names = {number: one.name for number, one in field.enum_type.values_by_number.items()}
        return lambda number: names.get(number, str(number))
    if field.cpp_type != _MESSAGE:
        return _same
    kind = field.message_type.full_name
    if kind == TIMESTAMP:
        return lambda moment: moment.seconds * 1_000_000 + moment.nanos // 1000
    if kind in WRAPPERS:
        return lambda wrapper: wrapper.value
    if kind in JSON_TEXT:
        to_json = import_module("google.protobuf.json_format").MessageToJson
        return partial(to_json, indent=None, preserving_proto_field_name=True)
    getters = _getters(field.message_type)
    return lambda message: {name: get(message) for name, get in getters}
