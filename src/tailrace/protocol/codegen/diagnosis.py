"""Diagnosis: finds the field that could not be written, and the reason. It is slow, and only runs after a failure."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from struct import Struct
from typing import Any

from tailrace.protocol.codegen.schema import Field, MessageSchema, StructSchema
from tailrace.protocol.errors import UnwritableMessage
from tailrace.protocol.primitives import FORMATS, STRING_MAX


def unwritable(message: Any, version: int, error: Exception) -> UnwritableMessage:
    """Return an error that names the first invalid field, or that repeats `error` if no field is invalid."""
    schema: MessageSchema = message.SCHEMA
    complaint = next(_complaints(message, schema, schema, version, ""), None)
    return UnwritableMessage(f"{schema.name} v{version}: {complaint or repr(error)}")


def _complaints(struct: Any, schema: StructSchema, message: MessageSchema, version: int, path: str) -> Iterator[str]:
    if getattr(struct, "SCHEMA", None) is not schema:
        yield f"{path.rstrip('.') or 'the message'} is not a {schema.name} but {struct!r}"
        return
    if struct.unknown_tags and version not in message.flexible:
        yield f"{path}unknown_tags are set, but this version has no tagged fields"
    for field in schema.fields:
        value, name = getattr(struct, field.attribute), f"{path}{field.attribute}"
        if version in field.versions:
            yield from _value_complaints(value, field, message, version, name)
        elif not field.ignorable and not field.is_default(value):
            yield f"{name} is {value!r}, but this version does not have that field"


def _value_complaints(value: Any, field: Field, message: MessageSchema, version: int, name: str) -> Iterator[str]:
    if value is None:
        if version not in field.nullable:
            yield f"{name} must not be None"
    elif not field.is_array:
        yield from _element_complaints(value, field, message, version, name)
    elif isinstance(value, str | bytes) or not hasattr(value, "__iter__") or not hasattr(value, "__len__"):
        yield f"{name} is {value!r}, not a list"
    else:
        for i, element in enumerate(value):
            yield from _element_complaints(element, field, message, version, f"{name}[{i}]")


def _element_complaints(value: Any, field: Field, message: MessageSchema, version: int, name: str) -> Iterator[str]:
    kind = field.element
    if field.struct is not None:
        yield from _complaints(value, field.struct, message, version, f"{name}.")
    elif kind == "uuid":
        if not isinstance(value, bytes) or len(value) != 16:
            yield f"{name} is {value!r}, not the 16 bytes of a uuid"
    elif kind in FORMATS:
        try:
            Struct(f">{FORMATS[kind]}").pack(value)
        except struct.error:
            yield f"{name} is {value!r}, which is not a valid {kind}"
    elif kind == "string":
        yield from _string_complaints(value, name)
    elif isinstance(value, str) or not hasattr(value, "__len__"):
        yield f"{name} is {value!r}, not {kind}"


def _string_complaints(value: Any, name: str) -> Iterator[str]:
    if not isinstance(value, str):
        yield f"{name} is {value!r}, not a string"
        return
    try:
        length = len(value.encode())
    except UnicodeEncodeError as error:
        yield f"{name} cannot be written as UTF-8: {error}"
        return
    if length > STRING_MAX:
        yield f"{name} has {length} bytes, the limit of a string is {STRING_MAX}"
