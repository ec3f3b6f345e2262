"""SASL authentication of a client: PLAIN, SCRAM (RFC 5802) and OAUTHBEARER (RFC 7628) over SaslAuthenticate.

An exchange is a generator. It yields the client's messages, receives the broker's messages, and returns at the end.
With SCRAM it also verifies that the broker knows the password.
"""

from __future__ import annotations

import base64
import hmac
import re
import secrets
from collections.abc import Callable, Generator, Mapping
from typing import Any, Final

from tailrace.client.errors import AuthenticationFailed, UnsupportedSecurity, code_name
from tailrace.client.security.security import Sasl
from tailrace.model.errors import ErrorCode
from tailrace.model.security import oauthbearer, scram
from tailrace.protocol.messages import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

Exchange = Generator[bytes, bytes, None]
# With version 0 of the handshake, the messages are not wrapped in SaslAuthenticate requests.
HANDSHAKE_AT_LEAST: Final = 1
_ITERATIONS_MIN: Final = 4_096
_ITERATIONS_MAX: Final = 1_000_000  # half a second of computation


def authenticate(sasl: Sasl, ask: Callable[..., Any], where: object) -> int:
    """Authenticate with a broker. Return the session lifetime in ms; 0: unlimited."""
    shaken: SaslHandshakeResponse = ask(SaslHandshakeRequest(mechanism=sasl.mechanism), version_min=HANDSHAKE_AT_LEAST)
    if shaken.error_code == ErrorCode.ILLEGAL_SASL_STATE:
        raise UnsupportedSecurity(f"{where} does not use SASL: set security.protocol to PLAINTEXT, or to SSL with TLS")
    if shaken.error_code:
        offered = ", ".join(shaken.mechanisms) or "none"
        raise AuthenticationFailed(f"{where} does not accept sasl.mechanism {sasl.mechanism}: it offers {offered}")
    exchange = exchange_of(sasl)
    message = next(exchange)
    while True:
        answer: SaslAuthenticateResponse = ask(SaslAuthenticateRequest(auth_bytes=message))
        if answer.error_code:
            why = answer.error_message or code_name(answer.error_code)
            raise AuthenticationFailed(f"{where} refused to authenticate {sasl.username!r}: {why}")
        try:
            message = exchange.send(bytes(answer.auth_bytes))
        except StopIteration:
            return int(answer.session_lifetime_ms)


def exchange_of(sasl: Sasl, nonce: str | None = None, *, may_wait: bool = True) -> Exchange:
    """Return a new exchange. Without `may_wait` it takes milliseconds: it uses the current token and does not retrieve
    a new one, and the limit of SCRAM iterations is that of Kafka's brokers."""
    if sasl.mechanism == oauthbearer.MECHANISM:
        return _oauthbearer(sasl, may_wait=may_wait)
    if sasl.mechanism == "PLAIN":
        return _plain(sasl)
    iterations_max = _ITERATIONS_MAX if may_wait else scram.ITERATIONS_MAX
    return _scram(sasl, nonce or secrets.token_urlsafe(24), scram.digest_of(sasl.mechanism), iterations_max)


def _plain(sasl: Sasl) -> Exchange:
    yield f"\0{sasl.username}\0{sasl.password}".encode()


def _oauthbearer(sasl: Sasl, *, may_wait: bool) -> Exchange:
    from tailrace.client.security.token_login import login_of

    assert sasl.oauth is not None
    login = login_of(sasl.oauth)
    token = login.token() if may_wait else login.current()
    if token is None:
        raise AuthenticationFailed(f"there is no valid token: {login.failure}")
    error = yield oauthbearer.write_message(token, dict(sasl.oauth.extensions))
    if error:
        login.refused(token)
        yield oauthbearer.REFUSAL_SEEN
        raise AuthenticationFailed(f"the broker refused the token: {error.decode('utf-8', 'replace'):.200}")


def _scram(sasl: Sasl, nonce: str, digest: str, iterations_max: int) -> Exchange:
    token = ",tokenauth=true" if sasl.has_token else ""
    first = f"n={scram.escaped_name(sasl.username)},r={nonce}{token}"
    server_first = yield f"n,,{first}".encode()
    fields = _fields(server_first)
    if not fields.get("r", "").startswith(nonce) or fields["r"] == nonce:
        raise AuthenticationFailed("the broker's SCRAM response has a wrong nonce")
    iterations = int(fields["i"]) if re.fullmatch("[0-9]{1,10}", fields.get("i", "")) else 0
    if not _ITERATIONS_MIN <= iterations <= iterations_max:
        raise AuthenticationFailed(
            f"the broker requests {fields.get('i', 'no')[:20]} SCRAM iterations; "
            f"the limits are {_ITERATIONS_MIN} to {iterations_max}"
        )
    salted = scram.salted_password(digest, sasl.password, _salt_of(fields), iterations)
    key = scram.client_key(digest, salted)
    without_proof = f"c=biws,r={fields['r']}"
    transcript = b",".join((first.encode(), server_first, without_proof.encode()))
    proof = scram.exclusive_or(key, scram.signature(digest, scram.stored_key(digest, key), transcript))
    server_final = yield f"{without_proof},p={base64.b64encode(proof).decode()}".encode()
    expected = base64.b64encode(scram.signature(digest, scram.server_key(digest, salted), transcript))
    if not hmac.compare_digest(_fields(server_final).get("v", "").encode(), expected):
        raise AuthenticationFailed("the broker does not know the password: it may be an impostor")


def _fields(message: bytes) -> dict[str, str]:
    try:
        text = message.decode()
    except UnicodeDecodeError:
        raise AuthenticationFailed("the broker's SCRAM response is not UTF-8") from None
    return dict(part.split("=", 1) for part in text.split(",") if "=" in part)


def _salt_of(fields: Mapping[str, str]) -> bytes:
    try:
        return base64.b64decode(fields["s"])
    except (KeyError, ValueError):
        raise AuthenticationFailed("the broker's SCRAM response has no valid salt") from None
