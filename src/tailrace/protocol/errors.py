"""What can go wrong between bytes and messages."""

from __future__ import annotations


class ProtocolError(Exception):
    """Bytes or a message that the protocol has no meaning for."""


class MalformedMessage(ProtocolError):
    """Bytes that are not what they claim to be. The one error that reading raises, whatever the bytes."""

    def __init__(self, what: str, reason: str, position: int) -> None:
        super().__init__(f"{what}: {reason} (at byte {position})")
        self.what = what
        self.reason = reason
        self.position = position

    def __reduce__(self) -> tuple[type[MalformedMessage], tuple[str, str, int]]:
        return type(self), (self.what, self.reason, self.position)


class TooManyElements(MalformedMessage):
    """A message with more array elements than its reader was allowed to decode."""


class UnknownRecordType(MalformedMessage):
    """A record whose number or version no schema describes; not damaged, as a rule, but newer than we are."""


class UnwritableMessage(ProtocolError):
    """A message whose values do not fit its version; the one error that writing raises."""


class UnsupportedVersion(ProtocolError):
    """A message or version that no schema describes."""
