"""OauthSettings: the rules of server.properties for the tokens of a listener with OAUTHBEARER.

    listener.name.NAME.oauthbearer.sasl.jaas.config=…OAuthBearerLoginModule required;
    listener.name.NAME.oauthbearer.sasl.server.callback.handler.class=…OAuthBearerValidatorCallbackHandler
    listener.name.NAME.oauthbearer.sasl.oauthbearer.jwks.endpoint.url=https://identity.example.org/keys

Without a callback handler, the listener accepts unsigned tokens, as in Kafka. With it, the signing keys are fetched
from sasl.oauthbearer.jwks.endpoint.url. The `ssl.…` options of sasl.jaas.config configure TLS for that connection.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tailrace.broker.security.bearer_tokens import SignedRules, UnsecuredRules
from tailrace.model.configs.config_definitions import Value, definition
from tailrace.model.security.jaas import parse_jaas
from tailrace.model.topic_config import InvalidConfig

MODULE: Final = "OAuthBearerLoginModule"
URL: Final = "sasl.oauthbearer.jwks.endpoint.url"
HANDLER: Final = "sasl.server.callback.handler.class"
VALIDATOR: Final = "sasl.oauthbearer.jwt.validator.class"
_UNSECURED: Final = "OAuthBearerUnsecuredValidatorCallbackHandler"
_SECURED: Final = "OAuthBearerValidatorCallbackHandler"
_VALIDATORS: Final = ("DefaultJwtValidator", "BrokerJwtValidator")
_SCHEMES: Final = ("http", "https", "file")
_SCOPE: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class JwksSettings:
    """The address of the signing keys and the times at which they are fetched again."""

    url: str
    refresh_ms: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int
    tls_options: Mapping[str, str] = field(default_factory=dict, repr=False)  # ssl.… of sasl.jaas.config


@dataclass(frozen=True, slots=True, kw_only=True)
class OauthSettings:
    """Rules for unsigned tokens, or rules for signed tokens with the address of the keys."""

    unsecured: UnsecuredRules | None = None
    signed: SignedRules | None = None
    jwks: JwksSettings | None = None
    warnings: tuple[str, ...] = ()


def oauth_of_listener(settings: Mapping[str, str], name: str) -> OauthSettings:
    """Return the OAUTHBEARER settings of a listener. The keys of `settings` have no listener prefix.

    Raise InvalidConfig for a setting that is missing, invalid or not supported.
    """
    key = "oauthbearer.sasl.jaas.config"
    module = parse_jaas(settings.get(key, ""))
    if module is None or not module.is_a(MODULE):
        raise InvalidConfig(f"listener.name.{name.lower()}.{key}: OAUTHBEARER needs …{MODULE} required;")
    handler = settings.get(f"oauthbearer.{HANDLER}", _UNSECURED).rpartition(".")[2]
    if handler == _UNSECURED:
        return OauthSettings(unsecured=_unsecured(module.options, name))
    if handler != _SECURED:
        raise InvalidConfig(
            f"listener.name.{name.lower()}.oauthbearer.{HANDLER}: {handler} is a Java class that is not supported; "
            f"use {_UNSECURED} or {_SECURED}"
        )
    return _signed(settings, module.options, name)


def _unsecured(options: Mapping[str, str], name: str) -> UnsecuredRules:
    skew = options.get("unsecuredValidatorAllowableClockSkewMs", "").strip() or "0"
    if not skew.isdecimal():
        raise InvalidConfig(
            f"listener {name}: unsecuredValidatorAllowableClockSkewMs is {skew!r}; it must be a number of at least 0"
        )
    scope = tuple(options.get("unsecuredValidatorRequiredScope", "").split())
    for one in scope:
        if not _SCOPE.fullmatch(one):
            raise InvalidConfig(f"listener {name}: unsecuredValidatorRequiredScope: {one!r} is not a scope")
    return UnsecuredRules(
        principal_claim=options.get("unsecuredValidatorPrincipalClaimName", "").strip() or "sub",
        scope_claim=options.get("unsecuredValidatorScopeClaimName", "").strip() or "scope",
        required_scope=scope,
        clock_skew_ms=int(skew),
    )


def _signed(settings: Mapping[str, str], options: Mapping[str, str], name: str) -> OauthSettings:
    def value(key: str) -> Value:
        return oauth_value(settings, key)

    def integer(key: str, least: int) -> int:
        found = value(key)
        assert isinstance(found, int)
        if found < least:
            raise InvalidConfig(f"listener {name}: {key} is {found}; it must be at least {least}")
        return found

    def text(key: str) -> str:
        found = str(value(key) or "").strip()
        if not found:
            raise InvalidConfig(f"listener {name}: {key} is blank")
        return found

    validator = text(VALIDATOR).rpartition(".")[2]
    if validator not in _VALIDATORS:
        raise InvalidConfig(f"listener {name}: {VALIDATOR} {validator} is a Java class that is not supported")
    url = str(value(URL) or "").strip()
    if not url:
        raise InvalidConfig(
            f"listener {name}: {_SECURED} needs {URL} to check signatures; "
            "set it to the address of the identity provider's keys (JWKS)"
        )
    check_url(url, URL, name)
    from importlib.util import find_spec  # imported here, because other listeners do not need it

    if find_spec("joserfc") is None:
        remedy = "pip install 'tailrace[oauth]'"
        raise InvalidConfig(f"listener {name}: signed tokens (OAUTHBEARER) need the package joserfc: {remedy}")
    backoff_ms = integer("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", 0)
    backoff_max_ms = integer("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", backoff_ms)
    audiences, issuer = value("sasl.oauthbearer.expected.audience"), value("sasl.oauthbearer.expected.issuer")
    assert isinstance(audiences, tuple)
    return OauthSettings(
        signed=SignedRules(
            scope_claim=text("sasl.oauthbearer.scope.claim.name"),
            principal_claim=text("sasl.oauthbearer.sub.claim.name"),
            issuer=None if issuer is None else str(issuer),
            audiences=frozenset(audiences),
            clock_skew_s=integer("sasl.oauthbearer.clock.skew.seconds", 0),
        ),
        jwks=JwksSettings(
            url=url,
            refresh_ms=integer("sasl.oauthbearer.jwks.endpoint.refresh.ms", 1),
            retry_backoff_ms=backoff_ms,
            retry_backoff_max_ms=backoff_max_ms,
            tls_options={key: option for key, option in options.items() if key.startswith("ssl.")},
        ),
        warnings=tuple(
            f"listener {name}: {key} is not set; set it to refuse tokens that the identity provider made for others"
            for key, given in (
                ("sasl.oauthbearer.expected.audience", audiences),
                ("sasl.oauthbearer.expected.issuer", issuer),
            )
            if not given
        ),
    )


def oauth_value(settings: Mapping[str, str], key: str) -> Value:
    """Return a setting of the mechanism, else of the listener or the broker, else the default."""
    known = definition("broker")[key]
    text = settings.get(f"oauthbearer.{key}", settings.get(key, known.default))
    return None if text is None else known.parse(text)


def check_url(url: str, key: str, name: str) -> None:
    """Raise InvalidConfig for an invalid address."""
    from urllib.parse import urlsplit

    try:
        place = urlsplit(url)
        place.port  # noqa: B018 - is checked when it is read
    except ValueError as error:
        raise InvalidConfig(f"listener {name}: {key}: {url} is not an address: {error}") from None
    if place.scheme not in _SCHEMES:
        raise InvalidConfig(f"listener {name}: {key}: {url} must begin with one of {'://, '.join(_SCHEMES)}://")
    if place.scheme != "file" and not place.hostname:
        raise InvalidConfig(f"listener {name}: {key}: {url} has no host")
