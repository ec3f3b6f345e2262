"""Errors of decoding and encoding messages."""

from __future__ import annotations


class ProtocolError(Exception):
    """Bytes or a message that violate the protocol."""


class MalformedMessage(ProtocolError):
    """Bytes that are not a valid message. Reading raises no other error, whatever the bytes are."""

    def __init__(self, what: str, reason: str, position: int) -> None:
        super().__init__(f"{what}: {reason} (at byte {position})")
        self.what = what
        self.reason = reason
        self.position = position

    def __reduce__(self) -> tuple[type[MalformedMessage], tuple[str, str, int]]:
        return type(self), (self.what, self.reason, self.position)


class TooManyElements(MalformedMessage):
    """A message with more array elements than the reader's limit."""


class UnknownRecordType(MalformedMessage):
    """A record whose number or version has no schema. Usually it is not damaged, but written by a newer version."""


class UnwritableMessage(ProtocolError):
    """A message whose values do not fit its version. Writing raises no other error."""


class UnsupportedVersion(ProtocolError):
    """A message or version that has no schema."""
