"""RegistryValues: keys and values with the frame of a schema registry, decoded for people.

Avro and Protobuf are decoded with the schema that the frame names, JSON Schema frames are JSON. A value without a frame
is not decoded.
"""

from __future__ import annotations

import base64
import json
import math
from typing import Any, Final, NamedTuple

import pyarrow as pa

from tailrace.spark.typed.schemas.errors import SchemaRefused
from tailrace.spark.typed.schemas.protobuf_schema import ProtobufSchema
from tailrace.spark.typed.schemas.registry import RegisteredSchema, Registry, RegistryAddress, SchemaUnknown
from tailrace.spark.typed.values.avro_values import AvroDecoder
from tailrace.spark.typed.values.decoded import ValueDecoder
from tailrace.spark.typed.values.protobuf_values import ProtobufDecoder, message_path

_FRAME_BYTES: Final = 5
_SCHEMAS_MAX: Final = 1_000


class DecodedValue(NamedTuple):
    schema_id: int
    value: Any
    error: str | None


class RegistryValues:
    def __init__(self, url: str) -> None:
        """Raise ValueError if the URL is malformed."""
        self._registry = Registry(RegistryAddress.parse(url))
        self._schemas: dict[int, RegisteredSchema] = {}
        self._decoders: dict[tuple[int, tuple[int, ...]], ValueDecoder] = {}

    def decode(self, data: bytes) -> DecodedValue | None:
        """Decode a value. Return None if it has no frame."""
        if len(data) < _FRAME_BYTES or data[0]:
            return None
        schema_id = int.from_bytes(data[1:_FRAME_BYTES])
        try:
            return DecodedValue(schema_id, self._value(schema_id, data[_FRAME_BYTES:]), None)
        except (SchemaUnknown, SchemaRefused, ValueError) as error:
            return DecodedValue(schema_id, None, str(error))

    def plain(self, data: bytes) -> Any:
        """Return the decoded value, or text if it cannot be decoded."""
        found = self.decode(data)
        if found is not None and found.error is None:
            return found.value
        text = data.decode("utf-8", "replace")
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text

    def _value(self, schema_id: int, payload: bytes) -> Any:
        schema = self._schema(schema_id)
        if schema.kind == "JSON":
            return _plain(json.loads(payload))
        path: tuple[int, ...] = ()
        if schema.kind == "PROTOBUF":
            path, size = message_path(payload)
            payload = payload[size:]
        decoded = self._decoder(schema_id, path).decode(pa.array([payload], pa.binary()))
        if decoded.errors:
            raise ValueError(decoded.errors[0])
        return _plain(decoded.array.to_pylist()[0])

    def _schema(self, schema_id: int) -> RegisteredSchema:
        found = self._schemas.get(schema_id)
        if found is None:
            if len(self._schemas) >= _SCHEMAS_MAX:
                raise ValueError(f"the records have more than {_SCHEMAS_MAX} schemas")
            found = self._schemas[schema_id] = self._registry.by_id(schema_id)
        return found

    def _decoder(self, schema_id: int, path: tuple[int, ...]) -> ValueDecoder:
        key = schema_id, path
        if key not in self._decoders:
            schema = self._schemas[schema_id]
            if schema.kind == "PROTOBUF":
                parsed = ProtobufSchema.from_registry(schema.text, schema.references)
                self._decoders[key] = ProtobufDecoder(parsed, parsed.message_at(path))
            else:
                self._decoders[key] = AvroDecoder(schema.text, references=tuple(schema.references.values()))
        return self._decoders[key]


def _plain(value: Any) -> Any:
    """Return a value in a form that JSON can express: bytes as base64, times and decimal numbers as text."""
    if isinstance(value, dict):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)
