"""OAUTHBEARER: the same tokens, signed and unsigned, to listeners of Apache Kafka and of Tailrace."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tailrace.model.security.jwt import encode_bytes, encode_part
from tailrace.protocol import messages as m
from tailrace.protocol.headers import RequestHeader, read_response_header, write_request_header
from tailrace.protocol.registry import response_class
from tests.support.identity_provider import AUDIENCE, ISSUER, IdentityProvider
from tests.support.kafka_broker import KafkaBroker, free_port
from tests.support.kafka_install import KafkaInstallation
from tests.support.raw_frames import CLOSED, ask_frame
from tests.support.tailrace_process import TailraceProcess

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

PATIENCE_S = 60
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
SECURED = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
ALLOWED = "-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls"
# UNSIGNED accepts tokens with alg none; LAX checks no issuer and no audience; STRICT checks both; FILE has keys from a
# file.
LISTENERS = ("UNSIGNED", "LAX", "STRICT", "FILE")


def settings_of(ports: dict[str, int], provider: IdentityProvider, keys: Path) -> dict[str, str]:
    made = {
        "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items()),
        "listener.security.protocol.map": ",".join(
            ["CONTROLLER:PLAINTEXT", "PLAINTEXT:PLAINTEXT", *(f"{name}:SASL_PLAINTEXT" for name in LISTENERS)]
        ),
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "listener.name.unsigned.oauthbearer.sasl.jaas.config": (
            f'{MODULE} unsecuredLoginStringClaim_sub="x" unsecuredValidatorRequiredScope="read write" '
            'unsecuredValidatorAllowableClockSkewMs="2000";'
        ),
        "listener.name.strict.oauthbearer.sasl.oauthbearer.expected.issuer": ISSUER,
        "listener.name.strict.oauthbearer.sasl.oauthbearer.expected.audience": f"other,{AUDIENCE}",
        "listener.name.strict.oauthbearer.connections.max.reauth.ms": "60000",
        "listener.name.file.oauthbearer.sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
        "listener.name.file.sasl.oauthbearer.sub.claim.name": "email",
        "listener.name.file.sasl.oauthbearer.scope.claim.name": "scp",
    }
    for name in ("lax", "strict", "file"):
        prefix = f"listener.name.{name}.oauthbearer"
        made[f"{prefix}.sasl.jaas.config"] = f"{MODULE};"
        made[f"{prefix}.sasl.server.callback.handler.class"] = SECURED
        made.setdefault(f"{prefix}.sasl.oauthbearer.jwks.endpoint.url", provider.jwks_url)
    return made


class Side:
    def __init__(self, ports: dict[str, int]) -> None:
        self.ports = ports

    def play(self, listener: str, steps: list[Any]) -> list[Any]:
        """Return the response to each step, until the broker closes the connection."""
        received: list[Any] = []
        with socket.create_connection(("127.0.0.1", self.ports[listener]), PATIENCE_S) as stream:
            for step in steps:
                received.append(_ask(stream, step))
                if received[-1] == CLOSED:
                    break
        return received


def _ask(stream: socket.socket, step: Any) -> Any:
    if isinstance(step, bytes):
        return ask_frame(stream, step)
    request, version = step
    key = request.SCHEMA.api_key
    frame = write_request_header(RequestHeader(key, version, 7, "test")) + request.encode(version)
    answer = ask_frame(stream, frame)
    if answer == CLOSED:
        return CLOSED
    response: Any = response_class(key).decode(answer, version, read_response_header(key, version, answer)[1])
    if isinstance(response, m.SaslAuthenticateResponse):
        # Clocks and response times differ a little.
        lifetime_s = round(response.session_lifetime_ms / 30_000)
        return response.error_code, response.error_message, bytes(response.auth_bytes), lifetime_s
    return type(response).__name__, getattr(response, "error_code", 0)


@pytest.fixture(scope="module")
def provider() -> Iterator[IdentityProvider]:
    with IdentityProvider() as running:
        yield running


@pytest.fixture(scope="module")
def sides(
    kafka: KafkaInstallation, provider: IdentityProvider, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Side, Side]]:
    path: Path = tmp_path_factory.mktemp("oauth")
    keys = path / "keys.json"
    keys.write_bytes(provider.jwks())
    theirs, ours = (Side({name: free_port() for name in ("PLAINTEXT", *LISTENERS)}) for _ in range(2))
    with ExitStack() as stack:
        broker = KafkaBroker(kafka, path / "kafka", port=theirs.ports["PLAINTEXT"])
        settings = settings_of(theirs.ports, provider, keys)
        settings["listeners"] += f",CONTROLLER://127.0.0.1:{broker.controller_port}"
        broker.properties |= settings
        stack.push(broker.__exit__)
        broker.start(jvm_flags=(f"{ALLOWED}={provider.jwks_url},{keys.as_uri()}",))
        options = [
            part for key, text in settings_of(ours.ports, provider, keys).items() for part in ("-o", f"{key}={text}")
        ]
        process = TailraceProcess(path / "ours" / "data", *options)
        process.ready_timeout_s = PATIENCE_S
        stack.enter_context(process)
        yield theirs, ours


def word(text: bytes | str) -> tuple[Any, int]:
    return m.SaslAuthenticateRequest(auth_bytes=text if isinstance(text, bytes) else text.encode()), 2


def message(token: str, authorization_id: str = "", extensions: str = "", scheme: str = "Bearer") -> str:
    return f"n,{authorization_id},\x01auth={scheme} {token}\x01{extensions}\x01"


HANDSHAKE = (m.SaslHandshakeRequest(mechanism="OAUTHBEARER"), 1)
METADATA = (m.MetadataRequest(topics=[]), 9)
SEEN = word(b"\x01")


def tried(text: bytes | str) -> list[Any]:
    """Return the steps of a client that confirms a refusal, and of one that continues after a success."""
    return [HANDSHAKE, word(text), SEEN]


def unsigned(header: dict[str, Any] | None = None, signature: str = "", **changes: Any) -> str:
    now = time.time()
    claims = {"sub": "alice", "exp": now + 900, "scope": ["read", "write"], **changes}
    claims = {name: value for name, value in claims.items() if value is not None}
    return f"{encode_part(header or {'alg': 'none'})}.{encode_part(claims)}.{signature}"


def plays(provider: IdentityProvider) -> dict[str, tuple[str, list[Any]]]:
    """Return listener and steps of each play, by name."""
    token = provider.token
    now = int(time.time())
    good = token(aud=None)
    head, body, signature = good.split(".")
    stranger = provider.stranger()
    payload = json.dumps(provider.claims(aud=None)).encode()
    raw = provider.sign(
        {"alg": "RS256", "kid": "rsa"}, b'{"sub":"a","sub":"b","exp":9999999999,"iat":1}', provider.keys["rsa"]
    )
    eve = token(aud=None, sub="eve")
    none = f"{encode_part({'alg': 'none'})}.{body}."
    texts: dict[str, tuple[str, str]] = {
        # signatures
        "good": ("LAX", good),
        "elliptic curve": ("LAX", token(key="ec", aud=None)),
        "PS256 with the same key": ("LAX", token(algorithm="PS256", aud=None)),
        "no kid": ("LAX", provider.sign({"alg": "RS256"}, payload, provider.keys["rsa"])),
        "unknown kid": ("LAX", token(header={"kid": "nobody"}, aud=None)),
        "kid of the other key": ("LAX", token(header={"kid": "ec"}, aud=None)),
        "alg none": ("LAX", none),
        "alg none with a signature": ("LAX", f"{encode_part({'alg': 'none'})}.{body}.{signature}"),
        "unknown alg": ("LAX", f"{encode_part({'alg': 'XX', 'kid': 'rsa'})}.{body}.{signature}"),
        "no alg": ("LAX", f"{encode_part({'kid': 'rsa'})}.{body}.{signature}"),
        "HMAC with the public key": (
            "LAX", f"{encode_part({'alg': 'HS256', 'kid': 'rsa'})}.{body}.{encode_bytes(bytes(32))}"
        ),
        "bad signature": ("LAX", f"{head}.{body}.{encode_bytes(bytes(256))}"),
        "changed claims": ("LAX", f"{head}.{encode_part(provider.claims(sub='root', aud=None))}.{signature}"),
        "a stranger's key": (
            "LAX", provider.sign({"alg": "RS256", "kid": "rsa"}, payload, stranger)
        ),
        "crit": ("LAX", f"{encode_part({'alg': 'RS256', 'kid': 'rsa', 'crit': ['x'], 'x': 1})}.{body}.{signature}"),
        # form
        "two parts": ("LAX", f"{head}.{body}"),
        "four parts": ("LAX", f"{good}.x"),
        "no signature": ("LAX", f"{head}.{body}."),
        "not base64": ("LAX", "~~~.~~~.~~~"),
        "not JSON": ("LAX", f"{encode_bytes(b'hello')}.{body}.{signature}"),
        "one letter": ("LAX", "x"),
        "a name twice": ("LAX", raw),
        "claims are a list": ("LAX", provider.sign({"alg": "RS256", "kid": "rsa"}, b"[]", provider.keys["rsa"])),
        # times
        "expired": ("LAX", token(aud=None, iat=now - 900, exp=now - 60)),
        "expired within the skew": ("LAX", token(aud=None, iat=now - 900, exp=now - 5)),
        "not yet valid": ("LAX", token(aud=None, nbf=now + 90)),
        "not yet valid within the skew": ("LAX", token(aud=None, nbf=now + 10)),
        "issued in the future": ("LAX", token(aud=None, iat=now + 600)),
        "expires before it is issued": ("LAX", token(aud=None, iat=now + 900, exp=now + 600)),
        "no exp": ("LAX", token(aud=None, exp=None)),
        "no iat": ("LAX", token(aud=None, iat=None)),
        "exp is a text": ("LAX", token(aud=None, exp="soon")),
        "exp is a fraction": ("LAX", token(aud=None, exp=now + 900.5)),
        "exp is huge": ("LAX", token(aud=None, exp=10**30)),
        # claims
        "no sub": ("LAX", token(aud=None, sub=None)),
        "blank sub": ("LAX", token(aud=None, sub="  ")),
        "sub with blanks around": ("LAX", token(aud=None, sub=" alice ")),
        "sub is a number": ("LAX", token(aud=None, sub=7)),
        "no scope": ("LAX", token(aud=None, scope=None)),
        "blank scope": ("LAX", token(aud=None, scope=" ")),
        "scope is a list": ("LAX", token(aud=None, scope=["a", "b"])),
        "scope has a value twice": ("LAX", token(aud=None, scope=["a", "a"])),
        "scope is a number": ("LAX", token(aud=None, scope=7)),
        "audience where none is expected": ("LAX", token()),
        "another issuer where none is expected": ("LAX", token(aud=None, iss="x")),
        "issuer is a number": ("LAX", token(aud=None, iss=7)),
        "jti is a number": ("LAX", token(aud=None, jti=7)),
        "valid for STRICT": ("STRICT", token()),
        "one of several audiences": ("STRICT", token(aud=["x", AUDIENCE])),
        "wrong audience": ("STRICT", token(aud="x")),
        "no audience": ("STRICT", token(aud=None)),
        "audience is a number": ("STRICT", token(aud=7)),
        "empty list of audiences": ("STRICT", token(aud=[])),
        "wrong issuer": ("STRICT", token(iss="https://evil.example.org")),
        "no issuer": ("STRICT", token(iss=None)),
        # keys in a file, and claims of other names
        "other claims": ("FILE", token(aud=None, email="a@b", scp="x", sub=None)),
        "sub instead of email": ("FILE", token(aud=None)),
        "unknown kid in a file": ("FILE", token(header={"kid": "nobody"}, aud=None, email="a@b")),
        # unsigned
        "unsigned": ("UNSIGNED", unsigned()),
        "unsigned: with a signature": ("UNSIGNED", good),
        "unsigned: a signature": ("UNSIGNED", unsigned(signature="AAAA")),
        "unsigned: no exp": ("UNSIGNED", unsigned(exp=None)),
        "unsigned: exp is a text": ("UNSIGNED", unsigned(exp="x")),
        "unsigned: expired": ("UNSIGNED", unsigned(exp=now - 10)),
        "unsigned: issued in the future": ("UNSIGNED", unsigned(iat=now + 60)),
        "unsigned: issued before it expires": ("UNSIGNED", unsigned(iat=now - 60, exp=now - 61)),
        "unsigned: iat": ("UNSIGNED", unsigned(iat=now - 60)),
        "unsigned: nbf in the future": ("UNSIGNED", unsigned(nbf=now + 600)),
        "unsigned: missing scope": ("UNSIGNED", unsigned(scope=None)),
        "unsigned: insufficient scope": ("UNSIGNED", unsigned(scope="read")),
        "unsigned: scope is a number": ("UNSIGNED", unsigned(scope=7)),
        "unsigned: no sub": ("UNSIGNED", unsigned(sub=None)),
        "unsigned: blank sub": ("UNSIGNED", unsigned(sub=" ")),
        "unsigned: sub is a number": ("UNSIGNED", unsigned(sub=7)),
        "unsigned: sub is true": ("UNSIGNED", unsigned(sub=True)),
        "unsigned: two dots": ("UNSIGNED", unsigned().replace(".", "..", 1)),
        "unsigned: not JSON": ("UNSIGNED", f"{encode_bytes(b'x')}.{encode_bytes(b'y')}."),
    }  # fmt: skip
    found = {name: (listener, tried(message(text))) for name, (listener, text) in texts.items()}
    words = {
        "extensions": message(good, "", "traceId=x y\x01other=z\x01"),
        "an extension of digits": message(good, "", "a1=x\x01"),
        "an extension named auth": message(good, "", f"auth=Bearer {good}\x01"),
        "an empty extension": message(good, "", "a=\x01"),
        "authorization id": message(good, "a=alice"),
        "authorization id of another": message(good, "a=root"),
        "another scheme": message(good, "", "", "Basic"),
        "lower-case scheme": message(good, "", "", "bearer"),
        "no token": message(""),
        "token with a space": message("a b"),
        "no auth": "n,,\x01a=b\x01\x01",
        "nothing at all": "n,,\x01\x01",
        "channel binding": message(good).replace("n,", "p=tls-unique,", 1),
        "one separator missing": message(good)[:-1],
        "one separator too many": message(good) + "\x01",
        "empty": "",
        "a password": "\0alice\0secret",
    }
    found |= {name: ("LAX", tried(text)) for name, text in words.items()}
    found |= {
        "in": ("STRICT", [HANDSHAKE, word(message(token())), METADATA]),
        "accepted with bare tokens": (
            "LAX", [(m.SaslHandshakeRequest(mechanism="OAUTHBEARER"), 0), message(good).encode(), METADATA]
        ),
        "refused with bare tokens": (
            "LAX", [(m.SaslHandshakeRequest(mechanism="OAUTHBEARER"), 0), message(none).encode(), b"\x01"]
        ),
        "a second try after a refusal": ("LAX", [HANDSHAKE, word(message(none)), word(message(good)), METADATA]),
        "0x01 first": ("LAX", [HANDSHAKE, SEEN]),
        "again": ("LAX", [HANDSHAKE, word(message(good)), HANDSHAKE, word(message(token(aud=None))), METADATA]),
        "again as another": ("LAX", [HANDSHAKE, word(message(good)), HANDSHAKE, word(message(eve))]),
        "again with a bad token": ("LAX", [HANDSHAKE, word(message(good)), HANDSHAKE, word(message(none)), SEEN]),
        "too large a frame": ("LAX", [HANDSHAKE, word("x" * 600_000)]),
        "another mechanism": ("LAX", [(m.SaslHandshakeRequest(mechanism="PLAIN"), 1)]),
    }  # fmt: skip
    return found


# Kafka fails with an internal exception and closes the connection; we respond that the credentials are invalid.
UNCAUGHT = ("another scheme",)


def test_the_same_tokens_get_the_same_responses(sides: tuple[Side, Side], provider: IdentityProvider) -> None:
    found = []
    for name, (listener, steps) in plays(provider).items():
        theirs, ours = (side.play(listener, steps) for side in sides)
        if name in UNCAUGHT:
            assert (theirs[-1], ours[1][0]) == (CLOSED, 58)
        elif theirs != ours:
            found.append(f"{name}:\n  Kafka {theirs}\n  ours  {ours}")
    assert not found, "\n".join(found)
