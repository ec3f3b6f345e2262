"""TokenValidator: validates the tokens of a listener with OAUTHBEARER.

An `UnsecuredValidator` only applies its rules. A `SignedValidator` verifies the signature with a key of its `KeyCache`
before it decodes the claims, so the claims of an unknown issuer are never decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol, TypeAlias

from tailrace.broker.config.oauth_config import JwksSettings
from tailrace.broker.config.sasl_config import SaslSettings
from tailrace.broker.security.bearer_tokens import BearerToken, SignedRules, TokenRefused, UnsecuredRules
from tailrace.broker.security.key_cache import KeyCache
from tailrace.model.security.jwt import CLAIMS_CHARS_MAX, MalformedToken, decode_bytes, decode_part, split_token
from tailrace.model.topic_config import InvalidConfig
from tailrace.waiting.chore import Chore
from tailrace.waiting.purgatory import Purgatory

if TYPE_CHECKING:
    from tailrace.broker.security.signing_keys import SigningKeys

# Fetches the keys of an identity provider from the network or a file. Raises OSError if that fails.
FetchKeys: TypeAlias = Callable[[JwksSettings], bytes]


class KeysAwaited(Exception):
    """The token names an unknown key, and the keys are being fetched."""

    def __init__(self, cache: KeyCache) -> None:
        super().__init__("the keys of the identity provider are being fetched")
        self.cache = cache


class TokenValidator(Protocol):
    def validate(self, token: str, now_ms: int, *, may_wait: bool) -> BearerToken:
        """Return the validated token, or raise TokenRefused. With `may_wait`, KeysAwaited may be raised."""


class UnsecuredValidator:
    """Validator of tokens without a signature."""

    def __init__(self, rules: UnsecuredRules) -> None:
        self._rules = rules

    def validate(self, token: str, now_ms: int, *, may_wait: bool) -> BearerToken:
        return self._rules.accept(token, now_ms)


class SignedValidator:
    """Validator of tokens that the identity provider has signed."""

    def __init__(self, rules: SignedRules, cache: KeyCache) -> None:
        self._rules = rules
        self._cache = cache

    def validate(self, token: str, now_ms: int, *, may_wait: bool) -> BearerToken:
        from tailrace.broker.security.signing_keys import is_known_algorithm, is_signed_by

        try:
            header, body, signature = split_token(token.strip())
            head = decode_part(header)
            signed = decode_bytes(signature)
        except MalformedToken as error:
            raise TokenRefused(str(error)) from None
        algorithm, key_id = head.get("alg"), head.get("kid")
        if not isinstance(algorithm, str) or not is_known_algorithm(algorithm):
            raise TokenRefused(f"alg {algorithm!r:.40} is not accepted")
        if not isinstance(key_id, str | None) or "crit" in head:
            raise TokenRefused("the header has crit, or a kid that is not a string")
        key = self._cache.select(key_id, algorithm)
        if key is None:
            if may_wait and self._cache.fetch_for(key_id, now_ms):
                raise KeysAwaited(self._cache)
            raise TokenRefused(f"the identity provider has no key {key_id!r:.100} for {algorithm}")
        if not is_signed_by(key, algorithm, f"{header}.{body}".encode(), signed):
            raise TokenRefused("the signature is not valid")
        try:
            claims = decode_part(body, CLAIMS_CHARS_MAX)
        except MalformedToken as error:
            raise TokenRefused(str(error)) from None
        return self._rules.accept(claims, now_ms)


def token_validators(
    sasl: Mapping[str, SaslSettings],
    fetch: FetchKeys | None,
    submit: Callable[[Chore], None],
    purgatory: Purgatory,
    now_ms: int,
) -> dict[str, TokenValidator]:
    """Return the validators of listeners with OAUTHBEARER. Raise InvalidConfig if keys cannot be fetched."""
    found: dict[str, TokenValidator] = {}
    for listener, settings in sasl.items():
        oauth = settings.oauth
        if oauth is None:
            continue
        if oauth.unsecured is not None:
            found[listener] = UnsecuredValidator(oauth.unsecured)
            continue
        assert oauth.signed is not None
        assert oauth.jwks is not None
        assert fetch is not None, "signed tokens need a function that fetches keys"
        try:
            cache = KeyCache(oauth.jwks, _loader(oauth.jwks, fetch), submit, purgatory, now_ms)
        except (OSError, ValueError) as error:
            raise InvalidConfig(
                f"listener {listener}: sasl.oauthbearer.jwks.endpoint.url: no keys from {oauth.jwks.url}: {error}"
            ) from error
        found[listener] = SignedValidator(oauth.signed, cache)
    return found


def _loader(jwks: JwksSettings, fetch: FetchKeys) -> Callable[[], SigningKeys]:
    from tailrace.broker.security.signing_keys import SigningKeys

    return lambda: SigningKeys.parse(fetch(jwks))
