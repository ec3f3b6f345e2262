"""Coordinator records: keys and values in `__consumer_offsets`, `__transaction_state` and `__share_group_state`.

    key     int16 record number, message (always its version 0)
    value   int16 version, message; null deletes the entry of the key

The number in the key gives the type of key and value. Bytes after a message are ignored, as in Kafka.
"""

from __future__ import annotations

from typing import Any, Final

from tailrace.protocol.errors import MalformedMessage, UnknownRecordType, UnsupportedVersion
from tailrace.protocol.json_form import to_dict
from tailrace.protocol.message import Message, VersionedMessage
from tailrace.protocol.primitives import Buffer, Reader, Writer
from tailrace.protocol.registry import message_class, record_class

FAMILIES: Final = {"__consumer_offsets": "group", "__transaction_state": "transaction", "__share_group_state": "share"}


def decode_key(family: str, key: Buffer) -> VersionedMessage:
    """Decode a key of a coordinator's topic. Raise UnknownRecordType if its number is unknown."""
    reader = Reader(key, what=f"{family} record key")
    number = reader.int16()
    found = record_class(family, "key", number)
    if found is None:
        raise UnknownRecordType(f"{family} record key", f"number {number} is unknown", 0)
    message, _ = found.read(key, 0, reader.position)
    return VersionedMessage(found.SCHEMA.name, 0, message)


def decode_value(family: str, key: VersionedMessage, value: Buffer) -> VersionedMessage:
    """Decode the value of a decoded key. Raise UnknownRecordType if its version is unknown."""
    number = key.message.SCHEMA.api_key
    found = None if number is None else record_class(family, "value", number)
    if found is None:
        raise UnknownRecordType(f"{family} record value", f"{key.name} has no value", 0)
    reader = Reader(value, what=found.SCHEMA.name)
    version = reader.int16()
    if version not in found.SCHEMA.versions:
        raise UnknownRecordType(found.SCHEMA.name, f"version {version} is unknown", 0)
    message, _ = found.read(value, version, reader.position)
    return VersionedMessage(found.SCHEMA.name, version, message)


def encode_key(key: Message) -> bytes:
    assert key.SCHEMA.api_key is not None, f"{key.SCHEMA.name} is not a numbered record"
    writer = Writer()
    writer.int16(key.SCHEMA.api_key)
    writer.raw(key.encode(0))
    return writer.getvalue()


def encode_value(value: Message, version: int) -> bytes:
    writer = Writer()
    writer.int16(version)
    writer.raw(value.encode(version))
    return writer.getvalue()


# --------------------------------------------------------------------------------------- as DumpLogSegments shows them


def key_to_dict(key: VersionedMessage) -> dict[str, Any]:
    return {"type": str(key.message.SCHEMA.api_key), "data": to_dict(key.message, key.version)}


def value_to_dict(value: VersionedMessage) -> dict[str, Any]:
    """Return a value as a dict. The subscriptions and assignments of classic consumer groups are decoded if
    possible."""
    data = to_dict(value.message, value.version)
    if value.name == "GroupMetadataValue" and data["protocolType"] == "consumer":
        members: Any = value.message
        for reported, member in zip(data["members"], members.members, strict=True):
            reported["subscription"] = _opened(
                "ConsumerProtocolSubscription", member.subscription, reported["subscription"]
            )
            reported["assignment"] = _opened("ConsumerProtocolAssignment", member.assignment, reported["assignment"])
    return {"version": str(value.version), "data": data}


def _opened(name: str, embedded: bytes, otherwise: Any) -> Any:
    """Decode a message embedded in bytes that a client wrote and nobody has checked. Return `otherwise` if it is
    malformed."""
    try:
        reader = Reader(embedded, what=name)
        version = reader.int16()
        message, _ = message_class(name).read(embedded, version, reader.position)
    except (MalformedMessage, UnsupportedVersion):
        return otherwise
    return to_dict(message, version)
