"""The client's first message of SASL/OAUTHBEARER (RFC 7628, section 3.1), written and read.

    n,a=AUTHZID,\\x01auth=Bearer TOKEN\\x01KEY=VALUE\\x01…\\x01

The keys other than `auth` are the client's extensions. A client whose token is refused receives a JSON error, sends
`REFUSAL_SEEN`, and then the authentication fails.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

MECHANISM: Final = "OAUTHBEARER"
REFUSAL_SEEN: Final = b"\x01"
MESSAGE_BYTES_MAX: Final = 131_072  # twice the longest claims that are accepted
NAME_CHARS_MAX: Final = 1_024
PAIRS_MAX: Final = 64
_SEPARATOR: Final = "\x01"
_INVALID: Final = "Invalid OAUTHBEARER client first message"
_NAME: Final = re.compile(r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+")
_KEY: Final = re.compile(r"[A-Za-z]+")
_VALUE: Final = re.compile(r"[\x21-\x7e \t\r\n]+")
_AUTH: Final = re.compile(r"(?P<scheme>\w+) +(?P<token>[-_~+/.a-zA-Z0-9]+=*)", re.ASCII)


class MalformedMessage(ValueError):
    """A message that does not follow RFC 7628."""


class ClientMessage(NamedTuple):
    token: str
    authorization_id: str  # "" if the client gives none
    extensions: Mapping[str, str]


def write_message(token: str, extensions: Mapping[str, str]) -> bytes:
    pairs = "".join(f"{key}={value}{_SEPARATOR}" for key, value in extensions.items())
    return f"n,,{_SEPARATOR}auth=Bearer {token}{_SEPARATOR}{pairs}{_SEPARATOR}".encode()


def check_extension(key: str, value: str) -> None:
    """Raise MalformedMessage if the extension's name or value is not allowed in the message."""
    if key == "auth" or not _KEY.fullmatch(key):
        raise MalformedMessage(f"extension name {key!r} is invalid: it must consist of letters and must not be auth")
    if not _VALUE.fullmatch(value):
        raise MalformedMessage(f"the value of extension {key} is invalid: it must be printable ASCII")


def read_message(data: bytes) -> ClientMessage:
    """Read the message. A message beyond the limits is malformed, so that unauthenticated clients can cause little
    work."""
    if len(data) > MESSAGE_BYTES_MAX:
        raise MalformedMessage(f"the message has {len(data)} bytes; the limit is {MESSAGE_BYTES_MAX}")
    text = data.decode("utf-8", "replace")
    start, comma, rest = text.removeprefix("n,").partition(",")
    authorization_id = start.removeprefix("a=")
    is_named = start.startswith("a=")
    if not text.startswith("n,") or not comma or not rest.startswith(_SEPARATOR) or not rest.endswith(_SEPARATOR):
        raise MalformedMessage(_INVALID)
    if is_named and not (len(start) <= NAME_CHARS_MAX and _NAME.fullmatch(authorization_id)):
        raise MalformedMessage(_INVALID)
    if start and not is_named:
        raise MalformedMessage(_INVALID)
    # The rest are the key-value pairs, each followed by a separator, and one final separator.
    *pairs, end = rest[1:].split(_SEPARATOR, PAIRS_MAX + 2)
    if end or not pairs or pairs.pop():
        raise MalformedMessage(_INVALID)
    found = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not _KEY.fullmatch(key) or not _VALUE.fullmatch(value):
            raise MalformedMessage(_INVALID)
        found[key] = value
    auth = _AUTH.fullmatch(found.pop("auth", ""))
    if auth is None:
        raise MalformedMessage(f"{_INVALID}: it has no valid auth value")
    if auth["scheme"].lower() != "bearer":
        raise MalformedMessage(f"Invalid scheme in OAUTHBEARER client first message: {auth['scheme']:.40}")
    return ClientMessage(auth["token"], authorization_id, found)
