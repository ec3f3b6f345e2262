"""Security: how a connection is made private and who it is that connects, as Kafka's client settings say it.

`security_of` reads security.protocol, ssl.* and sasl.*; certificates and keys are PEM, or in JKS and PKCS12 stores. A
Security is a value: it travels to the workers of a job, and files that it names have to be there too. It never shows
its secrets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tailrace.client.errors import UnsupportedSecurity
from tailrace.client.security.oauth_settings import OauthLogin, oauth_login_of
from tailrace.client.security.tls_settings import Tls, tls_of
from tailrace.model.security import oauthbearer
from tailrace.model.security.jaas import parse_jaas

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", oauthbearer.MECHANISM)
# How a client gets a token: `oauth_settings.py`.
OAUTH_SETTINGS: Final = (
    "sasl.login.callback.handler.class",
    "sasl.login.connect.timeout.ms",
    "sasl.login.read.timeout.ms",
    "sasl.login.refresh.buffer.seconds",
    "sasl.login.refresh.min.period.seconds",
    "sasl.login.refresh.window.factor",
    "sasl.login.refresh.window.jitter",
    "sasl.login.retry.backoff.max.ms",
    "sasl.login.retry.backoff.ms",
    "sasl.oauthbearer.assertion.algorithm",
    "sasl.oauthbearer.assertion.claim.aud",
    "sasl.oauthbearer.assertion.claim.exp.seconds",
    "sasl.oauthbearer.assertion.claim.iss",
    "sasl.oauthbearer.assertion.claim.jti.include",
    "sasl.oauthbearer.assertion.claim.nbf.seconds",
    "sasl.oauthbearer.assertion.claim.sub",
    "sasl.oauthbearer.assertion.file",
    "sasl.oauthbearer.assertion.private.key.file",
    "sasl.oauthbearer.assertion.private.key.passphrase",
    "sasl.oauthbearer.assertion.template.file",
    "sasl.oauthbearer.client.credentials.client.id",
    "sasl.oauthbearer.client.credentials.client.secret",
    "sasl.oauthbearer.header.urlencode",
    "sasl.oauthbearer.jwt.retriever.class",
    "sasl.oauthbearer.scope",
    "sasl.oauthbearer.token.endpoint.url",
)
SETTINGS: Final = (
    "security.protocol",
    "ssl.truststore.type",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.certificates",
    "ssl.keystore.type",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.key.password",
    "ssl.endpoint.identification.algorithm",
    "sasl.mechanism",
    "sasl.jaas.config",
    *OAUTH_SETTINGS,
)
_MODULES: Final = {
    "PLAIN": "PlainLoginModule",
    "SCRAM": "ScramLoginModule",
    oauthbearer.MECHANISM: "OAuthBearerLoginModule",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sasl:
    mechanism: str
    username: str
    password: str = field(repr=False)
    oauth: OauthLogin | None = None  # with OAUTHBEARER, which has a token in the place of a password
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
    if mechanism == oauthbearer.MECHANISM:
        login = oauth_login_of(settings, options)
        return Sasl(mechanism=mechanism, username=login.name, password="", oauth=login)
    for name in settings:
        if name in OAUTH_SETTINGS:
            raise UnsupportedSecurity(f"{name} has no effect while sasl.mechanism is {mechanism}")
    if "username" not in options or "password" not in options:
        raise UnsupportedSecurity("sasl.jaas.config has no username or no password")
    return Sasl(
        mechanism=mechanism,
        username=options["username"],
        password=options["password"],
        has_token=options.get("tokenauth", "").lower() == "true",
    )
