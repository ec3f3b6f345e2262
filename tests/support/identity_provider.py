"""IdentityProvider: a small OAuth 2 server on loopback, with keys (JWKS) and a token endpoint.

    with IdentityProvider() as provider:
        provider.jwks_url, provider.token_url      addresses for the configuration of brokers and clients
        provider.token(sub="alice")                a signed token; any claim or header can be changed
        provider.rotate()                          replaces the first key by a new one

The token endpoint supports client credentials (Basic), client assertions and the grant type jwt-bearer. `requests`
counts the requests to each path. `delay_s`, `status` and `body` make the server misbehave.
"""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, unquote_plus

from joserfc import jws
from joserfc.jwk import ECKey, Key, RSAKey

from tests.support.secured import TLS

CLIENTS = {"alice": "secret", "broker": "brk secret"}
ISSUER = "https://identity.example.org"
AUDIENCE = "kafka"
JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"


class IdentityProvider:
    def __init__(self, *, tls: bool = False, lifetime_s: int = 3_600) -> None:
        self.keys: dict[str, Key] = {"rsa": RSAKey.generate_key(2_048), "ec": ECKey.generate_key("P-256")}
        self.lifetime_s = lifetime_s
        self.requests: Counter[str] = Counter()
        self.refusals = 0  # token requests that were refused
        self.forms: list[dict[str, str]] = []  # forms that the token endpoint received
        self.delay_s = 0.0
        self.status = 200
        self.body: bytes | None = None
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(TLS / "broker.pem")
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        scheme = "https" if tls else "http"
        self.url = f"{scheme}://127.0.0.1:{self._server.server_address[1]}"
        self.jwks_url, self.token_url = f"{self.url}/keys", f"{self.url}/token"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def jwks(self) -> bytes:
        entries = [{**key.as_dict(private=False), "kid": name, "use": "sig"} for name, key in self.keys.items()]
        return json.dumps({"keys": entries}).encode()

    def rotate(self, name: str) -> None:
        """Replace the first key by a new one with this name."""
        del self.keys[next(iter(self.keys))]
        self.keys = {name: RSAKey.generate_key(2_048), **self.keys}

    def claims(self, **changes: Any) -> dict[str, Any]:
        """Return acceptable claims with changes. A change to None removes a claim."""
        now = int(time.time())
        made = {
            "sub": "alice", "iss": ISSUER, "aud": AUDIENCE, "iat": now, "exp": now + self.lifetime_s, "scope": "kafka",
            **changes,
        }  # fmt: skip
        return {name: value for name, value in made.items() if value is not None}

    def token(
        self, *, key: str = "rsa", algorithm: str = "", header: dict[str, Any] | None = None, **claims: Any
    ) -> str:
        algorithm = algorithm or ("ES256" if key == "ec" else "RS256")
        head = {"alg": algorithm, "kid": key, **(header or {})}
        return self.sign(head, json.dumps(self.claims(**claims)).encode(), self.keys[key])

    @staticmethod
    def sign(header: dict[str, Any], payload: bytes, key: Key) -> str:
        registry = jws.JWSRegistry(algorithms=list(jws.JWSRegistry.algorithms), strict_check_header=False)
        return jws.serialize_compact(header, payload, key, registry=registry)

    @staticmethod
    def stranger() -> Key:
        return RSAKey.generate_key(2_048)

    def issue(self, form: dict[str, str], authorization: str) -> dict[str, Any] | None:
        """Return the response to a token request, or None if the client is unknown."""
        self.forms.append(form)
        name = _client_of(form, authorization)
        if name is None:
            return None
        token = self.token(sub=name, scope=form.get("scope", "kafka"))
        return {"access_token": token, "token_type": "Bearer", "expires_in": self.lifetime_s}


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors: clients that disconnect are part of the tests."""


def _client_of(form: dict[str, str], authorization: str) -> str | None:
    assertion = form.get("client_assertion") or (form.get("assertion") if form["grant_type"] == JWT_BEARER else None)
    if assertion:
        claims: dict[str, Any] = json.loads(base64.urlsafe_b64decode(assertion.split(".")[1] + "=="))
        return str(claims["sub"]) if claims["exp"] > time.time() else None
    name, _, secret = base64.b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
    name, secret = unquote_plus(name), unquote_plus(secret)
    return name if form["grant_type"] == "client_credentials" and CLIENTS.get(name) == secret else None


def _handler(provider: IdentityProvider) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._send(provider.status, provider.jwks() if provider.body is None else provider.body)

        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers["Content-Length"])).decode()
            form = {name: values[0] for name, values in parse_qs(data).items()}
            answer = provider.issue(form, self.headers.get("Authorization", ""))
            if answer is None:
                provider.refusals += 1
                self._send(401, b'{"error":"invalid_client","error_description":"unknown client"}')
            else:
                self._send(provider.status, json.dumps(answer).encode() if provider.body is None else provider.body)

        def _send(self, status: int, data: bytes) -> None:
            provider.requests[self.path] += 1
            time.sleep(provider.delay_s)
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002
            pass

    return Handler
