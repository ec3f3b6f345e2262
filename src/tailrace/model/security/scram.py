"""SCRAM (RFC 5802): the keys derived from a password, and signatures made with them.

    salted = salted_password(digest, password, salt, iterations)
    credential: stored_key(digest, client_key(digest, salted)) and server_key(digest, salted)

A broker stores the credential. With it the broker verifies that a client knows the password, and proves to the client
that it has the credential.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

MECHANISMS: Final = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}  # with their numbers in messages and records
ITERATIONS_MIN: Final = 4_096
ITERATIONS_MAX: Final = 16_384  # Kafka's limit for new credentials


def digest_of(mechanism: str) -> str:
    return "sha" + mechanism.rpartition("-")[2]


def salted_password(digest: str, password: str, salt: bytes, iterations: int) -> bytes:
    return hashlib.pbkdf2_hmac(digest, password.encode(), salt, iterations)


def client_key(digest: str, salted: bytes) -> bytes:
    return hmac.digest(salted, b"Client Key", digest)


def server_key(digest: str, salted: bytes) -> bytes:
    return hmac.digest(salted, b"Server Key", digest)


def stored_key(digest: str, key: bytes) -> bytes:
    return hashlib.new(digest, key).digest()


def signature(digest: str, key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, digest)


def exclusive_or(left: bytes, right: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(left, right, strict=True))


def escaped_name(name: str) -> str:
    return name.replace("=", "=3D").replace(",", "=2C")


def plain_name(escaped: str) -> str:
    return escaped.replace("=2C", ",").replace("=3D", "=")
