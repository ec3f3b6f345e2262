"""ValueFormat: the format of values or keys, with the schema of their columns. It is pickled to workers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tailrace.spark.typed.schemas.ddl import ddl_fields
from tailrace.spark.typed.schemas.errors import SchemaRefused
from tailrace.spark.typed.schemas.json_schema import json_schema_fields
from tailrace.spark.typed.schemas.protobuf_schema import ProtobufSchema
from tailrace.spark.typed.schemas.registry import Registry, RegistryAddress
from tailrace.spark.typed.values.avro_values import AvroDecoder
from tailrace.spark.typed.values.decoded import ValueDecoder
from tailrace.spark.typed.values.framed_values import framed_avro, framed_json, framed_protobuf
from tailrace.spark.typed.values.json_values import JsonDecoder
from tailrace.spark.typed.values.protobuf_values import ProtobufDecoder
from tailrace.spark.typed.values.text_values import TextDecoder

STRING: Final = "string"
FORMATS: Final = ("json", "avro", "protobuf", STRING)
MAX_SCHEMA_BYTES: Final = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ValueFormat:
    kind: str  # one of FORMATS
    schema: bytes = b""  # a file descriptor set for Protobuf from a file, else text
    message: str | None = None  # the name of a Protobuf message
    registry: RegistryAddress | None = None  # values have the frame of a registry
    references: Mapping[str, str] = field(default_factory=dict)  # of a schema from the registry
    subject: str | None = None  # the subject of a schema that comes from the registry

    def decoder(self) -> ValueDecoder:
        """Return a new decoder. Raise SchemaRefused if the schema has no columns."""
        if len(self.schema) > MAX_SCHEMA_BYTES:
            raise SchemaRefused(f"the schema has {len(self.schema):,} bytes; at most {MAX_SCHEMA_BYTES:,} are read")
        if self.kind == STRING:
            return TextDecoder()
        if self.kind == "protobuf":
            return self._protobuf()
        try:
            text = self.schema.decode()
        except UnicodeDecodeError:
            raise SchemaRefused(f"the schema of {self.kind} values is not text") from None
        if self.kind == "avro":
            references = tuple(self.references.values())
            if self.registry is None:
                return AvroDecoder(text, references=references)
            return framed_avro(text, references, Registry(self.registry))
        if self.references:
            raise SchemaRefused("JSON Schemas with references to other subjects are not supported")
        is_json_schema = text.lstrip().startswith("{")
        decoder = JsonDecoder(json_schema_fields(text) if is_json_schema else ddl_fields(text))
        return decoder if self.registry is None else framed_json(decoder)

    def latest(self) -> ValueFormat:
        """Return the format with the newest schema of its subject; the format itself if there is no newer one."""
        if self.registry is None or self.subject is None:
            return self
        newest = registered_format(self.kind, self.registry, self.subject, self.message)
        return self if (newest.schema, newest.references) == (self.schema, self.references) else newest

    def _protobuf(self) -> ValueDecoder:
        if self.subject is not None:
            schema = ProtobufSchema.from_registry(self.schema.decode(), self.references)
        else:
            schema = ProtobufSchema.from_set(self.schema)
        if self.registry is None:
            return ProtobufDecoder(schema, schema.message(self.message))
        return framed_protobuf(schema, self.message, Registry(self.registry))


def registered_format(kind: str, address: RegistryAddress, subject: str, message: str | None = None) -> ValueFormat:
    """Return a format with the latest schema of a subject, such as `orders-value`."""
    found = Registry(address).latest(subject)
    if found.kind != kind.upper():
        raise SchemaRefused(f"subject {subject} at {address.url} has the type {found.kind}, not {kind.upper()}")
    return ValueFormat(kind, found.text.encode(), message, address, found.references, subject)
