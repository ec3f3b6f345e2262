"""Bearer tokens: validation of a token's claims by the rules of Kafka's two validators.

A valid token becomes a `BearerToken`. For an invalid one `TokenRefused` is raised. Its status is for the client:
`invalid_token`, or `insufficient_scope` with the required scope. Its reason is for the broker's log.

`UnsecuredRules` is for tokens without a signature (alg none). `SignedRules` is for tokens whose signature was already
verified. It follows jose4j, whose rules differ in two details: if no audience is expected, a token with an audience is
refused, and times are compared in seconds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from tailrace.model.security.jwt import MalformedToken, decode_part, split_token

PRINCIPAL_BYTES_MAX: Final = 4_096
_BLANK: Final = "".join(map(chr, range(0x21)))  # the characters that Java's trim removes
_SECONDS_MAX: Final = 2**53  # since the epoch; larger numbers are not valid dates


class BearerToken(NamedTuple):
    principal: str
    expires_ms: int


class TokenRefused(Exception):
    """The token is not accepted."""

    def __init__(self, reason: str, *, status: str = "invalid_token", scope: str | None = None) -> None:
        super().__init__(reason)
        self.status = status
        self.scope = scope


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsecuredRules:
    """The `unsecuredValidator…` options of sasl.jaas.config."""

    principal_claim: str = "sub"
    scope_claim: str = "scope"
    required_scope: tuple[str, ...] = ()
    clock_skew_ms: int = 0

    def accept(self, token: str, now_ms: int) -> BearerToken:
        try:
            header, body, signature = split_token(token)
            algorithm = decode_part(header).get("alg")
            found = decode_part(body)
        except MalformedToken as error:
            raise TokenRefused(str(error)) from None
        used = ("exp", "iat", self.principal_claim, self.scope_claim)
        claims = {name: _plain(found[name]) for name in used if name in found}
        if algorithm != "none" or signature:
            raise TokenRefused(f"alg is {algorithm!r}; this listener accepts only unsigned tokens (alg none)")
        scope = self._scope(claims)
        expires = _number(claims, "exp")
        if expires is None:
            raise TokenRefused("exp is missing")
        principal = claims.get(self.principal_claim)
        if not isinstance(principal, str) or not principal.strip(_BLANK):
            raise TokenRefused(f"{self.principal_claim} is not a name")
        issued = _number(claims, "iat")
        if issued is not None and round(1_000 * issued) > now_ms + self.clock_skew_ms:
            raise TokenRefused(f"the token is issued in the future: iat {issued}")
        if now_ms - self.clock_skew_ms >= 1_000 * expires:
            raise TokenRefused(f"the token has expired: exp {expires}")
        if issued is not None and expires <= issued:
            raise TokenRefused(f"exp {expires} is not after iat {issued}")
        if not scope.issuperset(self.required_scope):
            raise TokenRefused(
                f"scope {sorted(scope)} does not include {self.required_scope}",
                status="insufficient_scope",
                scope=f"[{', '.join(self.required_scope)}]",
            )
        return _accepted(principal, round(expires * 1_000))

    def _scope(self, claims: Mapping[str, Any]) -> set[str]:
        value = claims.get(self.scope_claim, [])
        if isinstance(value, int | float):
            raise TokenRefused(f"{self.scope_claim} is a number")
        found = (one.strip(_BLANK) for one in ([value] if isinstance(value, str) else value))
        return {one for one in found if one}


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedRules:
    """The sasl.oauthbearer.… settings about claims."""

    scope_claim: str = "scope"
    principal_claim: str = "sub"
    issuer: str | None = None
    audiences: frozenset[str] = frozenset()
    clock_skew_s: int = 30

    def accept(self, claims: Mapping[str, Any], now_ms: int) -> BearerToken:
        now_s = now_ms // 1_000
        expires = self._date(claims, "exp")
        issued = self._date(claims, "iat")
        not_before = self._date(claims, "nbf")
        if expires is None or issued is None:
            raise TokenRefused("exp or iat is missing")
        if now_s - self.clock_skew_s >= expires:
            raise TokenRefused(f"the token has expired: exp {expires}")
        if expires < issued or (not_before is not None and expires < not_before):
            raise TokenRefused(f"exp {expires} is before iat {issued} or nbf {not_before}")
        if not_before is not None and now_s + self.clock_skew_s < not_before:
            raise TokenRefused(f"the token is not valid yet: nbf {not_before}")
        self._check_audience(claims)
        for name in ("iss", "sub", "jti"):
            if claims.get(name) is not None and not isinstance(claims[name], str):
                raise TokenRefused(f"{name} is not a string")
        if self.issuer is not None and claims.get("iss") != self.issuer:
            raise TokenRefused(f"iss is {claims.get('iss')!r}; {self.issuer!r} is expected")
        self._check_scope(claims)
        if expires < 0 or issued < 0:
            raise TokenRefused(f"exp {expires} or iat {issued} is negative")
        return _accepted(_trimmed(self.principal_claim, claims.get(self.principal_claim)), expires * 1_000)

    def _date(self, claims: Mapping[str, Any], name: str) -> int | None:
        value = _number(claims, name)
        return None if value is None else int(value)

    def _check_audience(self, claims: Mapping[str, Any]) -> None:
        value = claims.get("aud")
        if value is None and not self.audiences:
            return
        given = [value] if isinstance(value, str) else value
        if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
            raise TokenRefused("aud is not a string or a list of strings")
        if self.audiences.isdisjoint(given):
            raise TokenRefused(f"aud is {given}; one of {sorted(self.audiences)} is expected")

    def _check_scope(self, claims: Mapping[str, Any]) -> None:
        value = claims.get(self.scope_claim)
        given = [value] if isinstance(value, str) else value if isinstance(value, list) else []
        names = [_trimmed(self.scope_claim, one) for one in given]
        if len(set(names)) < len(names):
            raise TokenRefused(f"{self.scope_claim} contains a value twice")


def _accepted(principal: str, expires_ms: int) -> BearerToken:
    """Return the token, or raise TokenRefused if its principal cannot be encoded or is too long."""
    try:
        size = len(principal.encode())
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON can express
        raise TokenRefused("the principal is not valid Unicode") from None
    if size > PRINCIPAL_BYTES_MAX:
        raise TokenRefused(f"the principal has {size} bytes; the limit is {PRINCIPAL_BYTES_MAX}")
    return BearerToken(principal, expires_ms)


def _trimmed(claim: str, value: Any) -> str:
    if not isinstance(value, str) or not (trimmed := value.strip(_BLANK)):
        raise TokenRefused(f"{claim} is not a string, or is blank")
    return trimmed


def _number(claims: Mapping[str, Any], name: str) -> int | float | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TokenRefused(f"{name} is not a number")
    if isinstance(value, float) and not math.isfinite(value):
        raise TokenRefused(f"{name} is not a finite number")
    if abs(value) > _SECONDS_MAX:
        raise TokenRefused(f"{name} is not a date")
    return value


def _plain(value: Any) -> Any:
    """Return a claim as Kafka's unsecured validator reads it: a string, a number or a list of strings."""
    if isinstance(value, list):
        return [_text(one) for one in value]
    return value if isinstance(value, int | float) and not isinstance(value, bool) else _text(value)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    return "" if isinstance(value, dict | list) else str(value)
