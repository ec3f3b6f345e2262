"""Strings for hand-written encoders, with a length that every reader of the field accepts.

Each function raises UnwritableMessage for a string without UTF-8 (a lone surrogate) or longer than STRING_MAX bytes.
"""

from __future__ import annotations

from tailrace.protocol.errors import UnwritableMessage
from tailrace.protocol.primitives import STRING_MAX, uvarint


def encode_text(text: str) -> bytes:
    """Return the UTF-8 of a string, without a length."""
    try:
        encoded = text.encode()
    except UnicodeEncodeError as error:
        raise UnwritableMessage(f"a string has no UTF-8: {error.reason} at character {error.start}") from error
    if len(encoded) > STRING_MAX:
        raise UnwritableMessage(f"a string of {len(encoded)} bytes is longer than {STRING_MAX}")
    return encoded


def plain_string(text: str) -> bytes:
    """Return a string after its int16 length."""
    encoded = encode_text(text)
    return len(encoded).to_bytes(2, "big") + encoded


def compact_string(text: str) -> bytes:
    """Return a string after its compact length."""
    encoded = encode_text(text)
    return uvarint(len(encoded) + 1) + encoded
