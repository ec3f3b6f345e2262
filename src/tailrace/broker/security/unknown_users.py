"""Credentials of users that do not exist, so that SCRAM answers them as it answers the others.

A name without a credential gets a challenge and fails at its proof. Its salt has the length and the alphabet of a known
user's salt and its iteration count, and is the same each time: it is derived from the name and from a key that never
leaves the metadata. Apache Kafka refuses such a name at its first message, and so reveals which users exist.
"""

from __future__ import annotations

import hmac
import string
from collections.abc import Mapping
from typing import Final

from tailrace.model.security import scram
from tailrace.protocol.messages import UserScramCredentialRecord

_SALT_BYTES: Final = 26  # what Kafka's tools make: digits and small letters
_LETTERS: Final = (string.digits + string.ascii_lowercase).encode()


def credential_for_unknown(
    known: Mapping[tuple[int, str], UserScramCredentialRecord], mechanism: str, name: str
) -> UserScramCredentialRecord:
    """Return a credential that no password proves, like those that are known for the mechanism."""
    number = scram.MECHANISMS[mechanism]
    model = next((one for (kind, _), one in known.items() if kind == number), None)
    key = b"nobody" if model is None else model.server_key
    digest = scram.digest_of(mechanism)
    size = _SALT_BYTES if model is None else len(model.salt)
    salt = _stream(key, f"salt {name}", digest, size)
    if model is None or all(byte in _LETTERS for byte in model.salt):
        salt = bytes(_LETTERS[byte % len(_LETTERS)] for byte in salt)
    return UserScramCredentialRecord(
        name=name,
        mechanism=number,
        salt=salt,
        stored_key=hmac.digest(key, f"stored {name}".encode(), digest),
        server_key=hmac.digest(key, f"server {name}".encode(), digest),
        iterations=scram.ITERATIONS_MIN if model is None else model.iterations,
    )


def _stream(key: bytes, text: str, digest: str, size: int) -> bytes:
    """Return `size` bytes that only the holder of the key can compute."""
    found = b""
    while len(found) < size:
        found += hmac.digest(key, f"{len(found)} {text}".encode(), digest)
    return found[:size]
