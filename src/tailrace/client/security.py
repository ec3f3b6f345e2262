"""Security: how a connection is made private and who it is that connects, as Kafka's client settings say it.

`security_of` reads security.protocol, ssl.* and sasl.*; certificates and keys are PEM. A Security is a value: it
travels to the workers of a job, and files that it names have to be there too. It never shows its secrets.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tailrace.client.errors import UnsupportedSecurity

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
_JAAS = re.compile(r"\s*(?P<module>[\w.$]+)\s+required\b(?P<options>.*?);?\s*", re.DOTALL)
_JAAS_OPTION = re.compile(r"(\w+)\s*=\s*(?:\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)'|(\S+?))(?=\s|;|$)")
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
        tls=_tls(settings) if protocol.endswith("SSL") else None,
        sasl=_sasl(settings) if protocol.startswith("SASL") else None,
    )


def _tls(settings: Mapping[str, str]) -> Tls:
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
        authorities=_pem(settings.get("ssl.truststore.certificates")),
        identity_file=settings.get("ssl.keystore.location"),
        certificates=_pem(certificates),
        key=_pem(key),
        key_password=settings.get("ssl.key.password"),
        checks_name=algorithm == "https",
    )


def _pem(text: str | None) -> str | None:
    """PEM with its line breaks: in a properties file they are often written as \\n, or left out as blanks."""
    if text is None:
        return None
    text = text.replace("\\n", "\n")
    if "\n" in text.strip():
        return text
    return re.sub(
        r"(-----BEGIN [^-]+-----)(.*?)(-----END [^-]+-----)",
        lambda found: f"{found[1]}\n" + "\n".join(found[2].split()) + f"\n{found[3]}\n",
        text,
    )


def _sasl(settings: Mapping[str, str]) -> Sasl:
    mechanism = settings.get("sasl.mechanism", "GSSAPI").strip().upper()
    if mechanism not in MECHANISMS:
        raise UnsupportedSecurity(f"sasl.mechanism is {mechanism!r}: {', '.join(MECHANISMS)} are spoken here")
    found = _JAAS.fullmatch(settings.get("sasl.jaas.config") or "")
    if found is None:
        raise UnsupportedSecurity('sasl.jaas.config is missing: MODULE required username="…" password="…";')
    module = _MODULES[mechanism.split("-")[0]]
    if not found["module"].endswith(module):
        raise UnsupportedSecurity(f"sasl.jaas.config names {found['module']}, and {mechanism} needs {module}")
    options = {
        name: re.sub(r"\\(.)", r"\1", double or single) or bare
        for name, double, single, bare in _JAAS_OPTION.findall(found["options"])
    }
    if "username" not in options or "password" not in options:
        raise UnsupportedSecurity("sasl.jaas.config has no username or no password")
    return Sasl(mechanism=mechanism, username=options["username"], password=options["password"])
