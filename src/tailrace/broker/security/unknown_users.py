"""Fake credentials for users that do not exist, so that SCRAM does not reveal which users exist.

An unknown user gets a challenge like a known one, and fails at the proof. The salt has the length and the alphabet of a
known user's salt, and the iteration count is the same too. The salt does not change between attempts: it is derived
from the name and from a key that never leaves the metadata. Apache Kafka refuses an unknown user at the first message,
which reveals that the user does not exist.
"""

from __future__ import annotations

import hmac
import string
from collections.abc import Mapping
from typing import Final

from tailrace.model.security import scram
from tailrace.protocol.messages import UserScramCredentialRecord

_SALT_BYTES: Final = 26  # as from Kafka's tools, which use digits and lower-case letters
_LETTERS: Final = (string.digits + string.ascii_lowercase).encode()


def credential_for_unknown(
    known: Mapping[tuple[int, str], UserScramCredentialRecord], mechanism: str, name: str
) -> UserScramCredentialRecord:
    """Return a credential that no password matches, and that looks like the known ones of the mechanism."""
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
