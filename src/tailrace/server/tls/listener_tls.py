"""ListenerTls: a listener's TLS settings, from Kafka's ssl.* configs, and its OpenSSL context.

Keys and certificates are PEM, in files or in the settings themselves, or in JKS and PKCS12 stores;
`listener.name.NAME.ssl.…` has precedence over `ssl.…`.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tailrace.client.errors import UnsupportedSecurity
from tailrace.client.security.key_entries import UnreadableStore
from tailrace.client.security.tls_settings import Tls, tls_of, with_kafkas_types
from tailrace.client.security.tls_socket import authorities, load_identity
from tailrace.model.listener_settings import PREFIX, settings_of_listener
from tailrace.model.topic_config import InvalidConfig
from tailrace.server.tls.certificate_names import PrincipalRules

_CLIENT_AUTH: Final = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_TLS13_SUITES: Final = frozenset({"TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerTls:
    context: ssl.SSLContext
    rules: PrincipalRules


def tls_of_listener(properties: Mapping[str, str], name: str, protocol: str) -> ListenerTls:
    """Return the TLS settings of a listener. Raise InvalidConfig if they are not valid."""
    settings = settings_of_listener(properties, name)
    try:
        identity = tls_of(with_kafkas_types(settings))
    except UnsupportedSecurity as error:
        raise InvalidConfig(f"listener {name}: {error}") from error
    if identity.identity_file is None and identity.certificates is None:
        raise InvalidConfig(
            f"listener {name}: {protocol} needs a certificate and its key: set ssl.keystore.location, or "
            "ssl.keystore.certificate.chain and ssl.keystore.key"
        )
    # As in Kafka: if clients use SASL, a certificate is requested only if the listener's own setting requires it.
    asked = (
        settings
        if protocol == "SSL"
        else {"ssl.client.auth": properties.get(_listener_key(name, "ssl.client.auth"), "none")}
    )
    client_auth = asked.get("ssl.client.auth", "none").lower()
    if client_auth not in _CLIENT_AUTH:
        raise InvalidConfig(f"ssl.client.auth: {client_auth!r} is not valid; use one of {', '.join(_CLIENT_AUTH)}")
    return ListenerTls(
        context=_context(identity, client_auth, settings),
        rules=PrincipalRules(settings.get("ssl.principal.mapping.rules", "DEFAULT")),
    )


def _context(identity: Tls, client_auth: str, settings: Mapping[str, str]) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    protocols = _protocols(settings)
    made.minimum_version = _VERSIONS[min(protocols)]
    made.maximum_version = _VERSIONS[max(protocols)]
    suites = _list(settings.get("ssl.cipher.suites", ""))
    if suites:
        _choose(made, suites)
    try:
        load_identity(made, identity)
        if identity.authorities_file is not None or identity.authorities is not None:
            made.load_verify_locations(**authorities(identity))
        elif client_auth != "none":
            made.load_default_certs(ssl.Purpose.CLIENT_AUTH)
    except UnreadableStore as error:
        raise InvalidConfig(str(error)) from error
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise InvalidConfig(f"ssl.keystore or ssl.truststore cannot be read as PEM: {error}") from error
    made.verify_mode = _CLIENT_AUTH[client_auth]
    return made


def _listener_key(name: str, key: str) -> str:
    return f"{PREFIX}{name.lower()}.{key}"


def _protocols(settings: Mapping[str, str]) -> tuple[str, ...]:
    chosen = _list(settings.get("ssl.enabled.protocols", ",".join(_VERSIONS)))
    for one in chosen:
        if one not in _VERSIONS:
            raise InvalidConfig(f"ssl.enabled.protocols: {one!r} is not supported; use {', '.join(_VERSIONS)}")
    if not chosen:
        raise InvalidConfig(f"ssl.enabled.protocols: the list is empty; use {', '.join(_VERSIONS)}")
    return chosen


def _list(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (part.strip() for part in text.split(","))))


def _choose(context: ssl.SSLContext, suites: tuple[str, ...]) -> None:
    """Allow only these cipher suites, in Java's names. Those of TLS 1.3 are all enabled, or TLS 1.3 is disabled."""
    newest = _TLS13_SUITES & set(suites)
    older = [_openssl_name(one) for one in suites if one not in _TLS13_SUITES]
    if newest and newest != _TLS13_SUITES and context.maximum_version == ssl.TLSVersion.TLSv1_3:
        missing = ", ".join(sorted(_TLS13_SUITES - newest))
        raise InvalidConfig(f"ssl.cipher.suites: list all TLS 1.3 suites or none: {missing} is missing")
    if not newest:
        context.maximum_version = ssl.TLSVersion.TLSv1_2
    if not older:
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        return
    for suite in older:
        try:
            context.set_ciphers(suite)
        except ssl.SSLError:
            raise InvalidConfig(f"ssl.cipher.suites: OpenSSL does not support {suite}") from None
    context.set_ciphers(":".join(older))


def _openssl_name(suite: str) -> str:
    """Convert `TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256` to `ECDHE-RSA-AES128-GCM-SHA256`."""
    exchange, _, rest = suite.removeprefix("TLS_").partition("_WITH_")
    rest = rest.replace("AES_128", "AES128").replace("AES_256", "AES256").replace("_CBC", "")
    rest = rest.replace("CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305")
    parts = [rest] if exchange == "RSA" else [exchange, rest]
    return "-".join(parts).replace("_", "-")
