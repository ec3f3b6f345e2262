"""Security: encryption and authentication of a connection, from Kafka's client settings.

`security_of` reads security.protocol, ssl.* and sasl.*. Certificates and keys are PEM, or in JKS and PKCS12 stores. A
Security is an immutable value. It is sent to the workers of a Spark job, where the files that it names must exist as
well. Its repr shows no secrets.
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
# Settings for retrieving a token, see `oauth_settings.py`.
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
    oauth: OauthLogin | None = None  # for OAUTHBEARER, which uses a token instead of a password
    has_token: bool = False  # a delegation token: its id and its HMAC


@dataclass(frozen=True, slots=True, kw_only=True)
class Security:
    tls: Tls | None = None
    sasl: Sasl | None = None


PLAIN_TEXT: Final = Security()


def security_of(settings: Mapping[str, str]) -> Security:
    """Build a Security from Kafka's settings. Raise UnsupportedSecurity for settings that are not supported."""
    protocol = (settings.get("security.protocol") or "PLAINTEXT").strip().upper()
    if protocol not in PROTOCOLS:
        raise UnsupportedSecurity(f"security.protocol is {protocol!r}; it must be one of {', '.join(PROTOCOLS)}")
    for name in settings:
        for start, ending in (("ssl.", "SSL"), ("sasl.", "SASL")):
            if name.startswith(start) and ending not in protocol:
                raise UnsupportedSecurity(f"{name} has no effect while security.protocol is {protocol}")
    return Security(
        tls=tls_of(settings) if protocol.endswith("SSL") else None,
        sasl=sasl_of(settings) if protocol.startswith("SASL") else None,
    )


def sasl_of(settings: Mapping[str, str]) -> Sasl:
    """Build a Sasl from sasl.mechanism and sasl.jaas.config."""
    mechanism = settings.get("sasl.mechanism", "").strip().upper()
    if not mechanism:
        raise UnsupportedSecurity(f"sasl.mechanism is missing; set it to one of {', '.join(MECHANISMS)}")
    if mechanism not in MECHANISMS:
        raise UnsupportedSecurity(f"sasl.mechanism is {mechanism!r}; supported are {', '.join(MECHANISMS)}")
    found = parse_jaas(settings.get("sasl.jaas.config") or "")
    if found is None:
        raise UnsupportedSecurity('sasl.jaas.config is missing; write: MODULE required username="…" password="…";')
    module = _MODULES[mechanism.split("-")[0]]
    if not found.is_a(module):
        raise UnsupportedSecurity(f"sasl.jaas.config has the module {found.name}; {mechanism} needs {module}")
    options = found.options
    if mechanism == oauthbearer.MECHANISM:
        login = oauth_login_of(settings, options)
        return Sasl(mechanism=mechanism, username=login.name, password="", oauth=login)
    for name in settings:
        if name in OAUTH_SETTINGS:
            raise UnsupportedSecurity(f"{name} has no effect while sasl.mechanism is {mechanism}")
    if "username" not in options or "password" not in options:
        raise UnsupportedSecurity("sasl.jaas.config needs both username and password")
    return Sasl(
        mechanism=mechanism,
        username=options["username"],
        password=options["password"],
        has_token=options.get("tokenauth", "").lower() == "true",
    )
