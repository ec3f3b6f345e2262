"""Security: how a connection is made private and who it is that connects, as Kafka's client settings say it.

`security_of` reads security.protocol, ssl.* and sasl.*; certificates and keys are PEM. A Security is a value: it
travels to the workers of a job, and files that it names have to be there too. It never shows its secrets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tailrace.client.errors import UnsupportedSecurity
from tailrace.model.jaas import parse_jaas
from tailrace.model.pem import whole_pem

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
SETTINGS: Final = (
    "security.protocol",
    "ssl.truststore.type",
    "ssl.truststore.location",
    "ssl.truststore.certificates",
    "ssl.keystore.type",
    "ssl.keystore.location",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.key.password",
    "ssl.endpoint.identification.algorithm",
    "sasl.mechanism",
    "sasl.jaas.config",
)
_MODULES: Final = {"PLAIN": "PlainLoginModule", "SCRAM": "ScramLoginModule"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """PEM, each as a file or as text; without authorities those of the system are believed."""

    authorities_file: str | None = None
    authorities: str | None = field(default=None, repr=False)
    identity_file: str | None = None  # certificates and key in one file
    certificates: str | None = field(default=None, repr=False)
    key: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)
    checks_name: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Sasl:
    mechanism: str
    username: str
    password: str = field(repr=False)
    has_token: bool = False  # a delegation token: its id and its HMAC


@dataclass(frozen=True, slots=True, kw_only=True)
class Security:
    tls: Tls | None = None
    sasl: Sasl | None = None


PLAIN_TEXT: Final = Security()


def security_of(settings: Mapping[str, str]) -> Security:
    """What Kafka's settings, by their names in lower case, come to; UnsupportedSecurity for what is not spoken here."""
    protocol = (settings.get("security.protocol") or "PLAINTEXT").strip().upper()
    if protocol not in PROTOCOLS:
        raise UnsupportedSecurity(f"security.protocol is {protocol!r}: it takes {', '.join(PROTOCOLS)}")
    for name in settings:
        for start, ending in (("ssl.", "SSL"), ("sasl.", "SASL")):
            if name.startswith(start) and ending not in protocol:
                raise UnsupportedSecurity(f"{name} has no effect while security.protocol is {protocol}")
    return Security(
        tls=tls_of(settings) if protocol.endswith("SSL") else None,
        sasl=sasl_of(settings) if protocol.startswith("SASL") else None,
    )


def tls_of(settings: Mapping[str, str]) -> Tls:
    """What the ssl.* settings say."""
    for store in ("ssl.truststore.type", "ssl.keystore.type"):
        if settings.get(store, "PEM").strip().upper() != "PEM":
            raise UnsupportedSecurity(f"{store} is {settings[store]!r}: only PEM is read here")
    algorithm = settings.get("ssl.endpoint.identification.algorithm", "https").strip().lower()
    if algorithm not in ("https", ""):
        raise UnsupportedSecurity(f"ssl.endpoint.identification.algorithm is {algorithm!r}: it takes https, or nothing")
    certificates, key = settings.get("ssl.keystore.certificate.chain"), settings.get("ssl.keystore.key")
    if (certificates is None) != (key is None):
        raise UnsupportedSecurity("ssl.keystore.certificate.chain and ssl.keystore.key go together")
    return Tls(
        authorities_file=settings.get("ssl.truststore.location"),
        authorities=whole_pem(settings.get("ssl.truststore.certificates")),
        identity_file=settings.get("ssl.keystore.location"),
        certificates=whole_pem(certificates),
        key=whole_pem(key),
        key_password=settings.get("ssl.key.password"),
        checks_name=algorithm == "https",
    )


def sasl_of(settings: Mapping[str, str]) -> Sasl:
    """What sasl.mechanism and sasl.jaas.config say."""
    mechanism = settings.get("sasl.mechanism", "GSSAPI").strip().upper()
    if mechanism not in MECHANISMS:
        raise UnsupportedSecurity(f"sasl.mechanism is {mechanism!r}: {', '.join(MECHANISMS)} are spoken here")
    found = parse_jaas(settings.get("sasl.jaas.config") or "")
    if found is None:
        raise UnsupportedSecurity('sasl.jaas.config is missing: MODULE required username="…" password="…";')
    module = _MODULES[mechanism.split("-")[0]]
    if not found.is_a(module):
        raise UnsupportedSecurity(f"sasl.jaas.config names {found.name}, and {mechanism} needs {module}")
    options = found.options
    if "username" not in options or "password" not in options:
        raise UnsupportedSecurity("sasl.jaas.config has no username or no password")
    return Sasl(
        mechanism=mechanism,
        username=options["username"],
        password=options["password"],
        has_token=options.get("tokenauth", "").lower() == "true",
    )
