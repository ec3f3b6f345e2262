"""OauthLogin: the settings by which a client gets its token for SASL/OAUTHBEARER. The names are Kafka's.

`sasl.login.callback.handler.class` selects the source. Without it, the client creates an unsigned token from the
`unsecuredLogin…` options of sasl.jaas.config. With OAuthBearerLoginCallbackHandler, the token comes from
`sasl.oauthbearer.token.endpoint.url`, over HTTP or from a file. An OauthLogin is an immutable value, as Security is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from tailrace.client.errors import UnsupportedSecurity
from tailrace.client.security.tls_settings import Tls, tls_of
from tailrace.model.security.oauthbearer import MalformedMessage, check_extension

HANDLER: Final = "sasl.login.callback.handler.class"
RETRIEVER: Final = "sasl.oauthbearer.jwt.retriever.class"
URL: Final = "sasl.oauthbearer.token.endpoint.url"
_HTTP: Final = "sasl.oauthbearer.client.credentials.client"
_ASSERTION: Final = "sasl.oauthbearer.assertion"
_UNSECURED: Final = "OAuthBearerUnsecuredLoginCallbackHandler"
_SECURED: Final = "OAuthBearerLoginCallbackHandler"
_RETRIEVERS: Final = (
    "DefaultJwtRetriever",
    "ClientCredentialsJwtRetriever",
    "FileJwtRetriever",
    "JwtBearerJwtRetriever",
)
_ALGORITHMS: Final = ("RS256", "ES256")
_EXTENSION: Final = "extension_"
_LOGIN: Final = "unsecuredLogin"
_TIMEOUT_MS: Final = 10_000
_Number = TypeVar("_Number", int, float)


@dataclass(frozen=True, slots=True, kw_only=True)
class Assertion:
    """A token that the client signs itself, instead of a secret; or a file with such a token."""

    file: str | None = None
    algorithm: str = "RS256"
    key_file: str = ""
    key_passphrase: str | None = field(default=None, repr=False)
    template_file: str | None = None
    claims: tuple[tuple[str, str], ...] = ()  # aud, iss, sub
    expires_s: int = 300
    not_before_s: int = 60
    has_id: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenEndpoint:
    """The source of a token: an http or https URL, or a file."""

    url: str
    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    scope: str | None = None
    encodes_header: bool = False
    assertion: Assertion | None = None
    is_jwt_bearer: bool = False  # the assertion is the grant, not the client's identity
    tls: Tls | None = None
    connect_timeout_ms: int = _TIMEOUT_MS
    read_timeout_ms: int = _TIMEOUT_MS
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsignedToken:
    """The claims of a token without a signature."""

    claims: tuple[tuple[str, str | float | tuple[str, ...]], ...]
    lifetime_s: float = 3_600


@dataclass(frozen=True, slots=True, kw_only=True)
class OauthLogin:
    source: TokenEndpoint | UnsignedToken
    extensions: tuple[tuple[str, str], ...] = ()
    # A token is replaced after this share of its lifetime plus a random jitter, but not within min_period_s after it
    # was issued, and at least buffer_s before it expires.
    window_factor: float = 0.8
    window_jitter: float = 0.05
    min_period_s: int = 60
    buffer_s: int = 300

    @property
    def name(self) -> str:
        """Return the name to show in messages."""
        if isinstance(self.source, UnsignedToken):
            return str(dict(self.source.claims).get("sub", "?"))
        return self.source.client_id or self.source.url


def oauth_login_of(settings: Mapping[str, str], options: Mapping[str, str]) -> OauthLogin:
    """Build an OauthLogin from the settings and the options of sasl.jaas.config. Raise UnsupportedSecurity."""
    handler = settings.get(HANDLER, _UNSECURED).strip().rpartition(".")[2]
    source: TokenEndpoint | UnsignedToken
    if handler == _UNSECURED:
        prefix, source = f"{_LOGIN}Extension_", _unsigned(options)
    elif handler == _SECURED:
        prefix, source = _EXTENSION, _endpoint(settings, options)
    else:
        raise UnsupportedSecurity(f"{HANDLER} is {handler!r}, which is not supported; use {_SECURED}")
    extensions = _named(options, prefix)
    for key, value in extensions:
        try:
            check_extension(key, value)
        except MalformedMessage as error:
            raise UnsupportedSecurity(f"sasl.jaas.config, {prefix}{key}: {error}") from None
    return OauthLogin(
        source=source,
        extensions=tuple(extensions),
        window_factor=_number(settings, "sasl.login.refresh.window.factor", 0.8, float, 0.5, 1.0),
        window_jitter=_number(settings, "sasl.login.refresh.window.jitter", 0.05, float, 0.0, 0.25),
        min_period_s=_number(settings, "sasl.login.refresh.min.period.seconds", 60, int, 0, 900),
        buffer_s=_number(settings, "sasl.login.refresh.buffer.seconds", 300, int, 0, 3_600),
    )


def _named(options: Mapping[str, str], prefix: str) -> list[tuple[str, str]]:
    return [(key.removeprefix(prefix), text) for key, text in options.items() if key.startswith(prefix)]


def _number(
    settings: Mapping[str, str], name: str, default: _Number, kind: Callable[[str], _Number], low: float, high: float
) -> _Number:
    text = settings.get(name)
    if text is None:
        return default
    try:
        value = kind(text.strip())
    except ValueError:
        raise UnsupportedSecurity(f"{name} is {text!r}, which is not a number") from None
    if not low <= value <= high:
        raise UnsupportedSecurity(f"{name} is {text}; it must be between {low:g} and {high:g}")
    return value


def _unsigned(options: Mapping[str, str]) -> UnsignedToken:
    claims: list[tuple[str, Any]] = list(_named(options, f"{_LOGIN}StringClaim_"))
    for name, text in _named(options, f"{_LOGIN}NumberClaim_"):
        claims.append((name, _number({name: text}, name, 0.0, float, -1e18, 1e18)))
    for name, text in _named(options, f"{_LOGIN}ListClaim_"):
        claims.append((name, tuple(text[1:].split(text[0])) if text else ()))
    for name, _ in claims:
        if name in ("iat", "exp"):
            raise UnsupportedSecurity(f"sasl.jaas.config: the claim {name} cannot be set")
    principal = options.get(f"{_LOGIN}PrincipalClaimName", "").strip() or "sub"
    if not any(name == principal and value for name, value in claims):
        raise UnsupportedSecurity(
            f'sasl.jaas.config: {_LOGIN}StringClaim_{principal}="NAME" is missing: an unsigned token needs a '
            f"principal. For a token of an identity provider set {HANDLER} to …{_SECURED}"
        )
    lifetime_s = _number(options, f"{_LOGIN}LifetimeSeconds", 3_600.0, float, 1, 1e9)
    return UnsignedToken(claims=tuple(claims), lifetime_s=lifetime_s)


def _endpoint(settings: Mapping[str, str], options: Mapping[str, str]) -> TokenEndpoint:
    retriever = settings.get(RETRIEVER, "DefaultJwtRetriever").strip().rpartition(".")[2]
    url = settings.get(URL, "").strip()
    try:
        place = urlsplit(url)
        scheme, has_place = place.scheme, bool(place.path if place.scheme == "file" else place.hostname)
        place.port  # noqa: B018 - is checked when it is read
    except ValueError as error:
        raise UnsupportedSecurity(f"{URL} is {url!r}, which is not a URL: {error}") from None
    if scheme not in ("http", "https", "file") or not has_place:
        raise UnsupportedSecurity(f"{URL} is {url!r}; it must start with https://, http:// or file://")
    if retriever not in _RETRIEVERS:
        raise UnsupportedSecurity(f"{RETRIEVER} is {retriever}; supported are {', '.join(_RETRIEVERS)}")
    reads_file = retriever == "FileJwtRetriever" or (retriever == "DefaultJwtRetriever" and scheme == "file")
    if reads_file != (scheme == "file"):
        raise UnsupportedSecurity(f"{RETRIEVER} is {retriever}, which cannot read {url}")
    if scheme == "file":
        return TokenEndpoint(url=url)
    is_jwt_bearer = retriever == "JwtBearerJwtRetriever"
    client_id = settings.get(f"{_HTTP}.id", options.get("clientId"))
    secret = settings.get(f"{_HTTP}.secret", options.get("clientSecret"))
    assertion = _assertion(settings, is_needed=is_jwt_bearer)
    if assertion is None and not (client_id and secret):
        raise UnsupportedSecurity(f"{_HTTP}.id or {_HTTP}.secret is missing; {url} needs both")
    if settings.get("sasl.oauthbearer.header.urlencode", "false").lower() not in ("true", "false"):
        raise UnsupportedSecurity("sasl.oauthbearer.header.urlencode must be true or false")
    backoff_ms = _number(settings, "sasl.login.retry.backoff.ms", 100, int, 0, 86_400_000)
    return TokenEndpoint(
        url=url,
        client_id=client_id,
        client_secret=secret,
        scope=settings.get("sasl.oauthbearer.scope", options.get("scope")),
        encodes_header=settings.get("sasl.oauthbearer.header.urlencode", "false").lower() == "true",
        assertion=assertion,
        is_jwt_bearer=is_jwt_bearer,
        tls=tls_of({key: text for key, text in options.items() if key.startswith("ssl.")}),
        connect_timeout_ms=_number(settings, "sasl.login.connect.timeout.ms", _TIMEOUT_MS, int, 1, 86_400_000),
        read_timeout_ms=_number(settings, "sasl.login.read.timeout.ms", _TIMEOUT_MS, int, 1, 86_400_000),
        retry_backoff_ms=backoff_ms,
        retry_backoff_max_ms=_number(settings, "sasl.login.retry.backoff.max.ms", 10_000, int, backoff_ms, 86_400_000),
    )  # fmt: skip


def _assertion(settings: Mapping[str, str], *, is_needed: bool) -> Assertion | None:
    file = settings.get(f"{_ASSERTION}.file")
    if file is not None:
        return Assertion(file=file)
    claims = tuple(
        (name, settings[f"{_ASSERTION}.claim.{name}"])
        for name in ("aud", "iss", "sub")
        if f"{_ASSERTION}.claim.{name}" in settings
    )
    if not is_needed and "iss" not in dict(claims):
        return None
    key_file = settings.get(f"{_ASSERTION}.private.key.file")
    algorithm = settings.get(f"{_ASSERTION}.algorithm", "RS256").strip().upper()
    if not key_file:
        raise UnsupportedSecurity(f"{_ASSERTION}.private.key.file is missing; it is needed to sign the assertion")
    if algorithm not in _ALGORITHMS:
        raise UnsupportedSecurity(f"{_ASSERTION}.algorithm is {algorithm}; it must be one of {', '.join(_ALGORITHMS)}")
    return Assertion(
        algorithm=algorithm,
        key_file=key_file,
        key_passphrase=settings.get(f"{_ASSERTION}.private.key.passphrase"),
        template_file=settings.get(f"{_ASSERTION}.template.file"),
        claims=claims,
        expires_s=_number(settings, f"{_ASSERTION}.claim.exp.seconds", 300, int, 0, 86_400),
        not_before_s=_number(settings, f"{_ASSERTION}.claim.nbf.seconds", 60, int, 0, 3_600),
        has_id=settings.get(f"{_ASSERTION}.claim.jti.include", "false").strip().lower() == "true",
    )
