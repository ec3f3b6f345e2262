"""Metadata frames: the value of a record in `__cluster_metadata`, and in the log of tiered storage's metadata.

    uvarint frame version (1), uvarint record number, uvarint version, message

The meaning of a record number depends on the family, `metadata` or `remote_log`.
"""

from __future__ import annotations

from typing import Any, Final

from tailrace.protocol.errors import UnknownRecordType
from tailrace.protocol.json_form import to_dict
from tailrace.protocol.message import Message, VersionedMessage
from tailrace.protocol.primitives import Buffer, Reader, uvarint
from tailrace.protocol.registry import record_class

FRAME_VERSION = 1

# The class and version for each three-byte prefix of records seen so far.
_BEGINNINGS: Final[dict[tuple[str, bytes], tuple[type[Message], int]]] = {}


def decode_frame(value: Buffer, family: str = "metadata") -> VersionedMessage:
    """Decode the record in a value. Raise MalformedMessage if it is malformed, UnknownRecordType if only its number or
    version is unknown."""
    known = _BEGINNINGS.get((family, bytes(value[:3])))
    if known is not None:
        return VersionedMessage(known[0].SCHEMA.name, known[1], known[0].decode(value, known[1], 3))
    reader = Reader(value, what=f"{family} record")
    frame_version = reader.uvarint()
    if frame_version != FRAME_VERSION:
        raise reader.malformed(f"has frame version {frame_version}, not {FRAME_VERSION}")
    number = reader.uvarint()
    found = record_class(family, "metadata", number)
    if found is None:
        raise UnknownRecordType(f"{family} record", f"number {number} is unknown", reader.position)
    version = reader.uvarint()
    if version not in found.SCHEMA.versions:
        raise UnknownRecordType(found.SCHEMA.name, f"version {version} is unknown", reader.position)
    if reader.position == 3:
        _BEGINNINGS[family, bytes(value[:3])] = found, version
    return VersionedMessage(found.SCHEMA.name, version, found.decode(value, version, reader.position))


def encode_frame(message: Message, version: int) -> bytes:
    number = message.SCHEMA.api_key
    assert number is not None, f"{message.SCHEMA.name} is not a numbered record"
    return uvarint(FRAME_VERSION) + uvarint(number) + uvarint(version) + message.encode(version)


def frame_to_dict(record: VersionedMessage) -> dict[str, Any]:
    """Return a record as Kafka's DumpLogSegments shows it: PartitionRecord has the type PARTITION_RECORD."""
    data = to_dict(record.message, record.version)
    return {"type": record_type_name(record.name), "version": record.version, "data": data}


def record_type_name(name: str) -> str:
    return "".join(f"_{letter}" if letter.isupper() and i else letter for i, letter in enumerate(name)).upper()
