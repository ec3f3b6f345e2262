"""Java key stores of type JKS: the file format, its password check, and Sun's protection of private keys.

    magic FEEDFEED, version, number of entries, entries …, SHA-1 over password, "Mighty Aphrodite" and all before it
    entry 1   a private key, encrypted, with its certificate chain
    entry 2   a trusted certificate

Strings are Java's modified UTF-8 with a length of two bytes; numbers are big-endian.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from typing import Final

from tailrace.client.security.key_entries import KeyEntry, StoreEntries, UnreadableStore

MAGIC: Final = b"\xfe\xed\xfe\xed"
JCEKS_MAGIC: Final = b"\xce\xce\xce\xce"
_DIGEST_BYTES: Final = 20
_PRIVATE_KEY, _CERTIFICATE = 1, 2
_WHITENER: Final = b"Mighty Aphrodite"
_KEY_PROTECTOR: Final = bytes.fromhex("060a2b060104012a02110101")  # the object identifier of Sun's key protector
_WRONG_PASSWORD: Final = "the password is wrong, or the file is damaged"


def read_jks(data: bytes, password: str | None, key_password: str | None) -> StoreEntries:
    """Return the entries of a JKS file. Without a password, nothing is verified and private keys are omitted."""
    if password is not None and not hmac.compare_digest(_digest(data[:-_DIGEST_BYTES], password), data[-20:]):
        raise UnreadableStore(_WRONG_PASSWORD)
    try:
        return _Reader(data[:-_DIGEST_BYTES]).entries(key_password if key_password is not None else password)
    except (struct.error, IndexError, UnicodeDecodeError):
        raise UnreadableStore("the file ends in the middle of an entry") from None


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = len(MAGIC)

    def entries(self, password: str | None) -> StoreEntries:
        version, count = self._number(), self._number()
        if version not in (1, 2):
            raise UnreadableStore(f"version {version} of JKS is not supported; versions 1 and 2 are")
        keys: list[KeyEntry] = []
        trusted: list[bytes] = []
        for _ in range(count):
            tag, alias = self._number(), self._text()
            self._read(8)  # its creation time
            if tag == _PRIVATE_KEY:
                protected = self._bytes()
                chain = tuple(self._certificate(version) for _ in range(self._number()))
                if password is not None:
                    keys.append(KeyEntry(alias, _unprotected(protected, password, alias), chain))
            elif tag == _CERTIFICATE:
                trusted.append(self._certificate(version))
            else:
                raise UnreadableStore(f"unknown entry type {tag}")
        return StoreEntries(tuple(keys), tuple(trusted))

    def _read(self, size: int) -> bytes:
        taken = self._data[self._position : self._position + size]
        if size < 0 or len(taken) < size:
            raise IndexError
        self._position += size
        return taken

    def _number(self) -> int:
        return int.from_bytes(self._read(4), "big")

    def _text(self) -> str:
        return self._read(int.from_bytes(self._read(2), "big")).decode("utf-8", "replace")

    def _bytes(self) -> bytes:
        return self._read(self._number())

    def _certificate(self, version: int) -> bytes:
        kind = self._text() if version == 2 else "X.509"
        if kind != "X.509":
            raise UnreadableStore(f"certificates of type {kind} are not supported; only X.509 is")
        return self._bytes()


def _digest(data: bytes, password: str) -> bytes:
    return hashlib.sha1(password.encode("utf-16-be") + _WHITENER + data, usedforsecurity=False).digest()


def _unprotected(protected: bytes, password: str, alias: str) -> bytes:
    """Decrypt a key. It is stored as a salt, the key XOR a stream of chained SHA-1 digests, and a check digest."""
    secret = _protected_octets(protected)
    word = password.encode("utf-16-be")
    salt, hidden, check = secret[:20], secret[20:-20], secret[-20:]
    stream, link = bytearray(), salt
    while len(stream) < len(hidden):
        link = _sha1(word + link)
        stream += link
    plain = bytes(one ^ other for one, other in zip(hidden, stream, strict=False))
    if not hmac.compare_digest(_sha1(word + plain), check):
        raise UnreadableStore(f"the password of key {alias!r} is wrong (ssl.key.password)")
    return plain


def _protected_octets(der: bytes) -> bytes:
    """Return the encrypted bytes of an EncryptedPrivateKeyInfo of Sun's key protector."""
    outer, _ = _element(der, 0x30)
    algorithm, rest = _element(outer, 0x30)
    if not algorithm.startswith(_KEY_PROTECTOR):
        raise UnreadableStore("a key is not encrypted with Sun's key protector, the scheme of JKS")
    return _element(rest, 0x04)[0]


def _element(der: bytes, tag: int) -> tuple[bytes, bytes]:
    """Return the content of a DER element, and the bytes after the element."""
    if der[0] != tag:
        raise UnreadableStore("a key is not encrypted with Sun's key protector, the scheme of JKS")
    size, start = der[1], 2
    if size & 0x80:
        start = 2 + (size & 0x7F)
        size = int.from_bytes(der[2:start], "big")
    return der[start : start + size], der[start + size :]


def _sha1(data: bytes) -> bytes:
    return hashlib.sha1(data, usedforsecurity=False).digest()
