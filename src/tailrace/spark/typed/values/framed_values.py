"""Decoders of values with the frame of a schema registry. The frame has a schema id, which selects the decoder.

All values become columns of one reader's schema. Avro resolves the writer's schema against it. Protobuf fields are
matched by their numbers, and JSON members by their names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from tailrace.spark.typed.schemas.errors import SchemaRefused
from tailrace.spark.typed.schemas.protobuf_schema import ProtobufSchema
from tailrace.spark.typed.schemas.registry import RegisteredSchema, Registry, SchemaUnknown
from tailrace.spark.typed.values.avro_values import AvroDecoder
from tailrace.spark.typed.values.decoded import Decoded, ValueDecoder, reason
from tailrace.spark.typed.values.framing import split_frames
from tailrace.spark.typed.values.json_values import JsonDecoder
from tailrace.spark.typed.values.protobuf_values import ProtobufDecoder, message_path


class FramedDecoder:
    def __init__(self, kind: Any, decoder_of: Callable[[int], ValueDecoder]) -> None:
        """`decoder_of` returns the decoder of payloads for a schema id, or raises SchemaUnknown or SchemaRefused."""
        self.type = kind
        self._decoder_of = decoder_of
        self._decoders: dict[int, ValueDecoder] = {}
        self._refused: dict[int, str] = {}

    def decode(self, values: Any) -> Decoded:
        groups, errors = split_frames(values)
        parts: list[Any] = []
        places: list[int | None] = [None] * len(values)
        used = 0
        for group in groups:
            decoder = self._decoder(group.schema_id)
            rows = range(len(values)) if group.rows is None else group.rows
            if decoder is None:
                errors |= dict.fromkeys(rows, self._refused[group.schema_id])
                continue
            found = decoder.decode(group.payload)
            if group.rows is None:
                return found
            errors |= {rows[row]: why for row, why in found.errors.items()}
            parts.append(found.array)
            for number, row in enumerate(rows):
                places[row] = used + number
            used += len(rows)
        if not parts:
            return Decoded(pa.nulls(len(values), self.type), errors)
        return Decoded(pa.concat_arrays(parts).take(pa.array(places, pa.int32())), errors)

    def _decoder(self, schema_id: int) -> ValueDecoder | None:
        if schema_id not in self._decoders and schema_id not in self._refused:
            try:
                self._decoders[schema_id] = self._decoder_of(schema_id)
            except (SchemaUnknown, SchemaRefused) as error:
                self._refused[schema_id] = f"the value has schema {schema_id}: {reason(error)}"
        return self._decoders.get(schema_id)


def framed_avro(reader: str, references: tuple[str, ...], registry: Registry) -> FramedDecoder:
    def decoder_of(schema_id: int) -> ValueDecoder:
        writer = _of_kind(registry.by_id(schema_id), "AVRO", schema_id)
        return AvroDecoder(reader, writer.text, tuple(writer.references.values()), reader_references=references)

    return FramedDecoder(AvroDecoder(reader, references=references).type, decoder_of)


def framed_json(decoder: JsonDecoder) -> FramedDecoder:
    return FramedDecoder(decoder.type, lambda _: decoder)


def framed_protobuf(reader: ProtobufSchema, message: str | None, registry: Registry) -> FramedDecoder:
    descriptor = reader.message(message)
    decoder = ProtobufDecoder(reader, descriptor)

    def decoder_of(schema_id: int) -> ValueDecoder:
        writer = _of_kind(registry.by_id(schema_id), "PROTOBUF", schema_id)
        schema = ProtobufSchema.from_registry(writer.text, writer.references)
        return _MessageOf(schema, descriptor.full_name, decoder)

    return FramedDecoder(decoder.type, decoder_of)


def _of_kind(schema: RegisteredSchema, kind: str, schema_id: int) -> RegisteredSchema:
    if schema.kind != kind:
        raise SchemaRefused(f"schema {schema_id} has the type {schema.kind}, not {kind}")
    return schema


class _MessageOf:
    """Decodes payloads that start with the position of their message type in the schema."""

    def __init__(self, schema: ProtobufSchema, wanted: str, decoder: ProtobufDecoder) -> None:
        self._schema = schema
        self._wanted = wanted
        self._decoder = decoder
        self.type = decoder.type

    def decode(self, values: Any) -> Decoded:
        payloads, errors = [], {}
        for row, value in enumerate(values.to_pylist()):
            try:
                path, size = message_path(value)
                found = self._schema.message_at(path).full_name
                if found != self._wanted:
                    raise ValueError(f"the value is a message {found}, not {self._wanted}")
                payloads.append(value[size:])
            except (ValueError, SchemaRefused) as error:
                errors[row] = reason(error)
                payloads.append(b"")
        decoded = self._decoder.decode(pa.array(payloads, pa.binary()))
        if not errors:
            return decoded
        kept = pa.array([None if row in errors else row for row in range(len(payloads))], pa.int32())
        return Decoded(decoded.array.take(kept), {**decoded.errors, **errors})
