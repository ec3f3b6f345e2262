"""JSON Web Tokens in their compact form (RFC 7515, RFC 7519): the three parts, encoded and decoded.

Nothing here checks a signature. The size of an unauthenticated client's token is checked before the token is decoded.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping
from typing import Any, Final

CLAIMS_CHARS_MAX: Final = 65_536  # of a token with a valid signature; real tokens have a few thousand
UNTRUSTED_CHARS_MAX: Final = 16_384  # of a header, and of claims without a signature, which anybody can send
_ALPHABET: Final = re.compile(r"[A-Za-z0-9_-]*={0,2}")


class MalformedToken(ValueError):
    """A text that is not a JSON Web Token."""


def split_token(token: str) -> tuple[str, str, str]:
    """Return header, claims and signature as they are encoded; the signature may be empty."""
    parts = token.split(".", 3)
    if len(parts) != 3 or not parts[0] or not parts[1]:
        raise MalformedToken("a token has three parts with dots between them")
    return parts[0], parts[1], parts[2]


def decode_bytes(part: str) -> bytes:
    """Decode base64url, with or without padding."""
    if not _ALPHABET.fullmatch(part):
        raise MalformedToken("a part of the token has characters that base64url does not have")
    try:
        return base64.urlsafe_b64decode(part.rstrip("=") + "=" * (-len(part.rstrip("=")) % 4))
    except binascii.Error:
        raise MalformedToken("a part of the token has a length that base64url cannot have") from None


def decode_part(part: str, chars_max: int = UNTRUSTED_CHARS_MAX) -> dict[str, Any]:
    """Decode the header or the claims: a JSON object without duplicate names."""
    if len(part) > chars_max:
        raise MalformedToken(f"a part of the token has {len(part)} characters; the limit is {chars_max}")
    try:
        found = json.loads(decode_bytes(part), object_pairs_hook=_object, parse_constant=_constant)
    except (ValueError, RecursionError) as error:  # also UnicodeDecodeError and numbers of thousands of digits
        raise MalformedToken(f"a part of the token is not a JSON object: {error}") from None
    if not isinstance(found, dict):
        raise MalformedToken("a part of the token is JSON, but not an object")
    return found


def encode_bytes(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def encode_part(values: Mapping[str, Any]) -> str:
    return encode_bytes(json.dumps(values, separators=(",", ":")).encode())


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise MalformedToken("a JSON object of the token has the same name twice")
    return found


def _constant(name: str) -> None:
    raise MalformedToken(f"{name} is not JSON")
