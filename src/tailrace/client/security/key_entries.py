"""KeyEntry and StoreEntries: private keys and certificates read from a key store, as DER."""

from __future__ import annotations

import base64
from typing import NamedTuple


class UnreadableStore(ValueError):
    """A key store that cannot be used, with the reason."""


class KeyEntry(NamedTuple):
    alias: str
    key: bytes  # PKCS 8, not encrypted
    chain: tuple[bytes, ...]  # the key's own certificate first

    def pem(self) -> str:
        return "".join([*(_pem("CERTIFICATE", one) for one in self.chain), _pem("PRIVATE KEY", self.key)])

    def __repr__(self) -> str:
        return f"KeyEntry({self.alias!r})"


class StoreEntries(NamedTuple):
    keys: tuple[KeyEntry, ...]
    trusted: tuple[bytes, ...]

    @property
    def authorities(self) -> tuple[bytes, ...]:
        """The trusted certificates of a trust store: its certificate entries, and the first certificate of each key."""
        return (*self.trusted, *(one.chain[0] for one in self.keys if one.chain))


def _pem(kind: str, der: bytes) -> str:
    return f"-----BEGIN {kind}-----\n{base64.encodebytes(der).decode()}-----END {kind}-----\n"
