"""OTLP messages for tests, written field by field (see `tailrace.metrics.otlp` for the field numbers)."""

from __future__ import annotations

import struct
from collections.abc import Mapping


def varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def message(number: int, contents: bytes) -> bytes:
    """Return a field with a string, bytes or an embedded message."""
    return varint(number << 3 | 2) + varint(len(contents)) + contents


def flag(number: int, value: int) -> bytes:
    return varint(number << 3) + varint(value)


def attribute(number: int, key: str, value: bytes) -> bytes:
    """Return an attribute whose AnyValue has these bytes."""
    return message(number, message(1, key.encode()) + message(2, value))


def point(value: float, attributes: Mapping[str, str] | None = None) -> bytes:
    """Return a data point of a gauge or a sum; integers and doubles differ on the wire."""
    number = b"\x31" + struct.pack("<q", value) if isinstance(value, int) else b"\x21" + struct.pack("<d", value)
    labels = [attribute(7, key, message(1, text.encode())) for key, text in (attributes or {}).items()]
    return message(1, number + b"".join(labels))


def gauge(name: str, *points: bytes) -> bytes:
    return message(2, message(1, name.encode()) + message(5, b"".join(points)))


def total(name: str, *points: bytes, is_delta: bool = False) -> bytes:
    """Return a sum that only grows."""
    kind = flag(2, 1 if is_delta else 2) + flag(3, 1)
    return message(2, message(1, name.encode()) + message(7, b"".join(points) + kind))


def metrics_data(*metrics: bytes, resource: Mapping[str, str] | None = None) -> bytes:
    attributes = [attribute(1, key, message(1, text.encode())) for key, text in (resource or {}).items()]
    return message(1, message(1, b"".join(attributes)) + message(2, b"".join(metrics)))
