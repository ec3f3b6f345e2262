"""Messages as JSON values, in the form of Kafka's JSON converters.

Field names are Kafka's, with a lower-case first letter. Uuids are 22 characters of URL-safe base64, bytes are base64.
Tagged fields at their default and fields that the version lacks are left out. Records are shown by their size as
`recordsSizeInBytes`, unless the caller asks for their bytes.
"""

from __future__ import annotations

from binascii import b2a_base64
from typing import Any

from tailrace.protocol.codegen.schema import Field
from tailrace.protocol.errors import UnsupportedVersion
from tailrace.protocol.message import Message, Struct


def to_dict(message: Message, version: int, *, with_records: bool = False) -> dict[str, Any]:
    """Return the fields of a version as values for json.dumps."""
    if version not in message.SCHEMA.versions:
        raise UnsupportedVersion(f"{message.SCHEMA.name} has versions {message.SCHEMA.versions}, not {version}")
    return _struct_to_dict(message, version, with_records)


def _struct_to_dict(struct: Struct, version: int, with_records: bool) -> dict[str, Any]:
    form: dict[str, Any] = {}
    for field in struct.SCHEMA.fields:
        value = getattr(struct, field.attribute)
        if version not in field.versions or (version in field.tagged and field.is_default(value)):
            continue
        if field.element == "records" and value is not None and not with_records:
            form[f"{field.json_name}SizeInBytes"] = len(value)
        elif value is not None and field.is_array:
            form[field.json_name] = [_value_to_json(element, field, version, with_records) for element in value]
        else:
            form[field.json_name] = _value_to_json(value, field, version, with_records)
    return form


def _value_to_json(value: Any, field: Field, version: int, with_records: bool) -> Any:
    if value is None:
        return None
    if field.struct is not None:
        return _struct_to_dict(value, version, with_records)
    if field.element == "uuid":
        return base64_uuid_text(value)
    if field.element in ("bytes", "records"):
        return b2a_base64(value, newline=False).decode()
    return value


def base64_uuid_text(value: bytes) -> str:
    """Return a uuid as Kafka writes it."""
    return b2a_base64(value, newline=False).rstrip(b"=\n").translate(_URL_SAFE).decode()


_URL_SAFE = bytes.maketrans(b"+/", b"-_")
