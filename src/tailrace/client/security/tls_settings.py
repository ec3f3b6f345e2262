"""Tls: the keys and certificates of a connection, as Kafka's ssl.* settings give them.

`tls_of` reads and checks the settings. A Tls is a value whose repr shows no secrets. `tls_socket.py` opens its files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tailrace.client.errors import UnsupportedSecurity
from tailrace.client.security.key_stores import TYPES
from tailrace.model.security.pem import whole_pem

_STORES: Final = {
    "ssl.truststore": "certificates",
    "ssl.keystore": "certificate.chain",
}  # store: its setting for PEM text


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """Keys and certificates: PEM as a file or as text, or a Java store. The default authorities are the system's.

    The type of a store is PEM, JKS or PKCS12. None: detected from the file.
    """

    authorities_file: str | None = None
    authorities_type: str | None = None
    authorities_password: str | None = field(default=None, repr=False)
    authorities: str | None = field(default=None, repr=False)
    identity_file: str | None = None  # certificates and key in one file
    identity_type: str | None = None
    identity_password: str | None = field(default=None, repr=False)
    certificates: str | None = field(default=None, repr=False)
    key: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)
    checks_name: bool = True


def tls_of(settings: Mapping[str, str]) -> Tls:
    """Build a Tls from the ssl.* settings."""
    types = {store: _store_type(settings, store) for store in _STORES}
    algorithm = settings.get("ssl.endpoint.identification.algorithm", "https").strip().lower()
    if algorithm not in ("https", ""):
        raise UnsupportedSecurity(f"ssl.endpoint.identification.algorithm is {algorithm!r}; it must be https or empty")
    certificates, key = settings.get("ssl.keystore.certificate.chain"), settings.get("ssl.keystore.key")
    if (certificates is None) != (key is None):
        raise UnsupportedSecurity("ssl.keystore.certificate.chain and ssl.keystore.key must be set together")
    return Tls(
        authorities_file=settings.get("ssl.truststore.location"),
        authorities_type=types["ssl.truststore"],
        authorities_password=settings.get("ssl.truststore.password"),
        authorities=whole_pem(settings.get("ssl.truststore.certificates")),
        identity_file=settings.get("ssl.keystore.location"),
        identity_type=types["ssl.keystore"],
        identity_password=settings.get("ssl.keystore.password"),
        certificates=whole_pem(certificates),
        key=whole_pem(key),
        key_password=settings.get("ssl.key.password"),
        checks_name=algorithm == "https",
    )


def with_kafkas_types(settings: Mapping[str, str]) -> dict[str, str]:
    """Return a broker's ssl.* settings. The default type of a store is JKS, as in Kafka."""
    chosen = {key: text for key, text in settings.items() if key.startswith("ssl.") and text}
    for store, inline in _STORES.items():
        if {f"{store}.location", f"{store}.{inline}"} & set(chosen):
            chosen.setdefault(f"{store}.type", TYPES[0])
    return chosen


def _store_type(settings: Mapping[str, str], store: str) -> str | None:
    """Return the type of a store. Raise UnsupportedSecurity if it contradicts the other settings."""
    given = settings.get(f"{store}.type")
    kind = None if given is None else given.strip().upper()
    location, password = settings.get(f"{store}.location"), settings.get(f"{store}.password")
    if kind not in (None, "PEM", *TYPES):
        raise UnsupportedSecurity(f"{store}.type is {given!r}; supported are PEM, {', '.join(TYPES)}")
    if location is None:
        if password is not None:
            raise UnsupportedSecurity(f"{store}.password has no effect without {store}.location")
    elif kind == "PEM" and password is not None:
        raise UnsupportedSecurity(f"{store}.password: a PEM store has no password; use ssl.key.password for the key")
    elif kind in TYPES and password is None and store == "ssl.keystore":
        raise UnsupportedSecurity(f"{store}.password is missing: {location} is a store of type {kind}")
    if f"{store}.{_STORES[store]}" in settings and kind in TYPES:
        raise UnsupportedSecurity(f"{store}.{_STORES[store]} is PEM text: set {store}.type to PEM, not {kind}")
    return kind
