"""retrieve: gets a token for SASL/OAUTHBEARER from a token endpoint (RFC 6749, RFC 7523) or a file, or creates one.

The call blocks. Transient failures are retried for `retry_backoff_max_ms`, plus the time of one response.
"""

from __future__ import annotations

import base64
import json
import time
from typing import Any, Final
from urllib.parse import quote_plus, urlencode

from tailrace.client.errors import AuthenticationFailed, UnsupportedSecurity
from tailrace.client.security.http_exchange import Answer, exchange, read_file_url
from tailrace.client.security.oauth_settings import Assertion, OauthLogin, TokenEndpoint, UnsignedToken
from tailrace.model.security.jwt import MalformedToken, encode_bytes, encode_part

JWT_BEARER: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
CLIENT_ASSERTION: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
# HTTP statuses for which a retry does not help.
_FINAL: Final = frozenset({400, 401, 402, 403, 404, 405, 406, 407, 409, 410, 411, 412, 413, 414, 415, 501, 505})


def retrieve(login: OauthLogin) -> str:
    """Return a new token.

    Raise AuthenticationFailed, with a reason that names no secret, or UnsupportedSecurity if a file is unusable.
    """
    source = login.source
    if isinstance(source, UnsignedToken):
        return unsigned_token(source, int(time.time() * 1_000) / 1_000)  # whole milliseconds, the precision of brokers
    try:
        if source.url.startswith("file:"):
            return _text_of(source.url)
        return _token_in(_ask_until(source, time.monotonic() + source.retry_backoff_max_ms / 1_000), source.url)
    except OSError as error:
        raise AuthenticationFailed(f"cannot get a token from {source.url}: {error}") from error


def unsigned_token(source: UnsignedToken, now_s: float) -> str:
    claims: dict[str, Any] = {name: list(value) if isinstance(value, tuple) else value for name, value in source.claims}
    claims |= {"iat": now_s, "exp": now_s + source.lifetime_s}
    return f"{encode_part({'alg': 'none'})}.{encode_part(claims)}."


def _text_of(url: str) -> str:
    return read_file_url(url).decode("ascii", "replace").strip()


def _ask_until(source: TokenEndpoint, deadline_s: float) -> Answer:
    """Send requests until one succeeds. Raise the last failure when the time is over."""
    backoff_s = source.retry_backoff_ms / 1_000
    while True:
        try:
            answer = _ask(source)
            if answer.status in (200, 201):
                return answer
            failure = f"HTTP status {answer.status}: {_error_in(answer.body)}"
            if answer.status in _FINAL:
                raise AuthenticationFailed(f"cannot get a token from {source.url}: {failure}")
        except OSError as error:
            failure = str(error)
        left_s = deadline_s - time.monotonic()
        if left_s <= 0:
            raise AuthenticationFailed(f"cannot get a token from {source.url}: {failure}")
        time.sleep(min(backoff_s, left_s))
        backoff_s = max(2 * backoff_s, 0.001)


def _ask(source: TokenEndpoint) -> Answer:
    form: dict[str, str] = {}
    headers = {"Cache-Control": "no-cache", "Content-Type": "application/x-www-form-urlencoded"}
    if source.is_jwt_bearer:
        assert source.assertion is not None
        form = {"grant_type": JWT_BEARER, "assertion": assertion_of(source.assertion, time.time())}
    else:
        form = {"grant_type": "client_credentials"}
        if source.assertion is not None:
            form |= {"client_assertion_type": CLIENT_ASSERTION}
            form |= {"client_assertion": assertion_of(source.assertion, time.time())}
            form |= {"client_id": source.client_id} if source.client_id else {}
        else:
            name, secret = source.client_id or "", source.client_secret or ""
            if source.encodes_header:
                name, secret = quote_plus(name), quote_plus(secret)
            headers["Authorization"] = f"Basic {base64.b64encode(f'{name}:{secret}'.encode()).decode()}"
    if source.scope:
        form["scope"] = source.scope
    return exchange(
        source.url,
        method="POST",
        headers=headers,
        body=urlencode(form).encode(),
        tls=source.tls,
        connect_timeout_s=source.connect_timeout_ms / 1_000,
        timeout_s=source.read_timeout_ms / 1_000,
    )


def _token_in(answer: Answer, url: str) -> str:
    try:
        found = json.loads(answer.body)
        token = found.get("access_token") or found.get("id_token")
    except (ValueError, AttributeError, RecursionError):
        token = None
    if not isinstance(token, str) or not token.strip():
        raise AuthenticationFailed(f"the response of {url} has no access_token")
    return token.strip()


def _error_in(body: bytes) -> str:
    """Return the error of the endpoint (RFC 6749, section 5.2) as one short line."""
    try:
        found = json.loads(body)
        text = f"{found['error']} ({found.get('error_description', 'no description')})"
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        text = body[:100].decode("utf-8", "replace")
    return " ".join("".join(one if one.isprintable() else " " for one in text).split())[:200]


def assertion_of(assertion: Assertion, now_s: float) -> str:
    """Sign an assertion, or read it from its file. Raise UnsupportedSecurity if a file is unusable."""
    if assertion.file is not None:
        data = _bytes_in(assertion.file)
        if not data.isascii():
            raise UnsupportedSecurity(f"{assertion.file} is not ASCII text")
        return data.decode("ascii").strip()
    try:
        from joserfc.errors import JoseError
        from joserfc.jwk import ECKey, RSAKey
        from joserfc.jws import JWSRegistry
    except ImportError:
        raise UnsupportedSecurity("signing needs the package joserfc: pip install 'tailrace[oauth]'") from None

    header: dict[str, Any] = {"alg": assertion.algorithm, "typ": "JWT"}
    claims: dict[str, Any] = dict(assertion.claims)
    if assertion.template_file is not None:
        data = _bytes_in(assertion.template_file)
        try:
            template = json.loads(data.decode())
            header = {**template.get("header", {}), **header}
            claims = {**template.get("payload", {}), **claims}
        except (ValueError, AttributeError, TypeError) as error:
            raise UnsupportedSecurity(f"{assertion.template_file} is not a template in JSON: {error}") from None
    issued = int(now_s)
    claims |= {"iat": issued, "exp": issued + assertion.expires_s, "nbf": issued - assertion.not_before_s}
    if assertion.has_id:
        import uuid

        claims["jti"] = str(uuid.uuid4())
    pem = _bytes_in(assertion.key_file)
    try:
        kind = RSAKey if assertion.algorithm == "RS256" else ECKey
        key: Any = kind.import_key(pem, password=assertion.key_passphrase)
        message = f"{encode_part(header)}.{encode_part(claims)}"
        signature = JWSRegistry.algorithms[assertion.algorithm].sign(message.encode(), key)
    except (JoseError, MalformedToken, ValueError, TypeError) as error:
        raise UnsupportedSecurity(
            f"{assertion.key_file} cannot be used to sign with {assertion.algorithm}: {error}"
        ) from None
    return f"{message}.{encode_bytes(signature)}"


def _bytes_in(path: str) -> bytes:
    """Read a file. An unreadable file is UnsupportedSecurity: an OSError would be retried like a network failure."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise UnsupportedSecurity(f"{path} cannot be read: {error}") from error
