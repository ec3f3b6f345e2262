"""Refused authentication: the same bytes to secured listeners of Apache Kafka and of Tailrace get the same errors."""

from __future__ import annotations

import hashlib
import socket
import ssl
import struct
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.protocol import messages as m
from tailrace.protocol.headers import RequestHeader, read_response_header, write_request_header
from tailrace.protocol.json_form import to_dict
from tailrace.protocol.registry import response_class
from tests.support.kafka_broker import KafkaBroker, free_port
from tests.support.kafka_install import KafkaInstallation
from tests.support.raw_frames import CLOSED, ask_frame
from tests.support.secured import STORES, TLS, jaas
from tests.support.tailrace_process import TailraceProcess

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

KINDS = {"TLS": "SSL", "MUTUAL": "SSL", "SASL": "SASL_PLAINTEXT", "BOTH": "SASL_SSL"}
PATIENCE_S = 120


class Side:
    """A broker of either kind, by its ports."""

    def __init__(self, ports: dict[str, int]) -> None:
        self.ports = ports

    def settings(self) -> dict[str, str]:
        kinds = {"PLAINTEXT": "PLAINTEXT", **KINDS}
        users = {"alice": "secret", "eve": "other"}
        return {
            **STORES,
            "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in self.ports.items()),
            "listener.security.protocol.map": ",".join(
                f"{name}:{kind}" for name, kind in {"CONTROLLER": "PLAINTEXT", **kinds}.items()
            ),
            "listener.name.mutual.ssl.client.auth": "required",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
            "listener.name.sasl.connections.max.reauth.ms": "60000",
            **{
                f"listener.name.{name}.{key}.sasl.jaas.config": text
                for name in ("sasl", "both")
                for key, text in (
                    ("plain", jaas("Plain", "x", "x", **users)),
                    ("scram-sha-256", jaas("Scram", "x", "x")),
                )
            },
        }

    def add_user(self) -> None:
        salted = hashlib.pbkdf2_hmac("sha256", b"pencil", b"salt", 4_096)
        kind = m.AlterUserScramCredentialsRequest.ScramCredentialUpsertion
        bob = kind(name="bob", mechanism=1, iterations=4_096, salt=b"salt", salted_password=salted)
        with ClusterClient(f"127.0.0.1:{self.ports['PLAINTEXT']}") as cluster:
            cluster.change(m.AlterUserScramCredentialsRequest(upsertions=[bob]), lambda answer: None)

    def play(self, listener: str, steps: list[Any]) -> list[Any]:
        """Return the response to each step."""
        received: list[Any] = []
        with socket.create_connection(("127.0.0.1", self.ports[listener]), PATIENCE_S) as plain:
            stream: socket.socket = plain
            if KINDS[listener].endswith("SSL"):
                context = ssl.create_default_context(cafile=str(TLS / "authority.pem"))
                stream = context.wrap_socket(plain, server_hostname="127.0.0.1")
            for step in steps:
                received.append(_ask(stream, step))
                if received[-1] == CLOSED:
                    break
        return received


def _ask(stream: socket.socket, step: Any) -> Any:
    if isinstance(step, bytes):
        answer = ask_frame(stream, step)
        return answer if answer == CLOSED else bytes(answer)
    request, version = step
    key = request.SCHEMA.api_key
    frame = write_request_header(RequestHeader(key, version, 7, "test")) + request.encode(version)
    answer = ask_frame(stream, frame)
    if answer == CLOSED:
        return CLOSED
    response = response_class(key).decode(answer, version, read_response_header(key, version, answer)[1])
    if isinstance(response, m.ApiVersionsResponse | m.MetadataResponse):
        return type(response).__name__, getattr(response, "error_code", 0)
    if isinstance(response, m.SaslAuthenticateResponse):
        # A challenge contains random text, and the last message depends on it.
        return response.error_code, response.error_message, response.auth_bytes[:2], response.session_lifetime_ms
    return to_dict(response, version)


@pytest.fixture(scope="module")
def sides(kafka: KafkaInstallation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    path: Path = tmp_path_factory.mktemp("security")
    theirs, ours = (Side({name: free_port() for name in ("PLAINTEXT", *KINDS)}) for _ in range(2))
    with ExitStack() as stack:
        broker = KafkaBroker(kafka, path / "kafka", port=theirs.ports["PLAINTEXT"])
        settings = theirs.settings()
        settings["listeners"] += f",CONTROLLER://127.0.0.1:{broker.controller_port}"
        broker.properties |= settings
        stack.enter_context(broker)
        options = [part for key, text in ours.settings().items() for part in ("-o", f"{key}={text}")]
        process = TailraceProcess(path / "ours" / "data", *options)
        process.ready_timeout_s = PATIENCE_S
        stack.enter_context(process)
        for side in (theirs, ours):
            side.add_user()
        yield theirs, ours


def handshake(mechanism: str, version: int = 1) -> tuple[Any, int]:
    return m.SaslHandshakeRequest(mechanism=mechanism), version


def token(data: bytes, version: int = 2) -> tuple[Any, int]:
    return m.SaslAuthenticateRequest(auth_bytes=data), version


VERSIONS = (m.ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3)
METADATA = (m.MetadataRequest(topics=[]), 9)
GROUPS = (m.ListGroupsRequest(), 1)
IN = [handshake("PLAIN"), token(b"\0alice\0secret")]

PLAYS: dict[str, list[Any]] = {
    "in": [VERSIONS, *IN, METADATA],
    "accepted, with the session lifetime": [handshake("PLAIN"), token(b"\0alice\0secret", 1), METADATA],
    "accepted with the oldest version": [handshake("PLAIN"), token(b"\0alice\0secret", 0), METADATA],
    "accepted with bare tokens": [handshake("PLAIN", 0), b"\0alice\0secret", METADATA],
    "wrong password": [handshake("PLAIN"), token(b"\0alice\0wrong")],
    "nobody": [handshake("PLAIN"), token(b"\0nobody\0secret")],
    "no name": [handshake("PLAIN"), token(b"\0\0secret")],
    "no password": [handshake("PLAIN"), token(b"\0alice\0")],
    "for somebody else": [handshake("PLAIN"), token(b"eve\0alice\0secret")],
    "for oneself": [handshake("PLAIN"), token(b"alice\0alice\0secret"), METADATA],
    "two parts": [handshake("PLAIN"), token(b"alice\0secret")],
    "four parts": [handshake("PLAIN"), token(b"\0alice\0secret\0x")],
    "nothing": [handshake("PLAIN"), token(b"")],
    "refused with bare tokens": [handshake("PLAIN", 0), b"\0alice\0wrong"],
    "another mechanism": [VERSIONS, handshake("OAUTHBEARER")],
    "an unknown mechanism": [handshake("nonsense", 0)],
    "a mechanism in lower case": [handshake("plain")],
    "a mechanism that is known and not enabled": [handshake("SCRAM-SHA-512")],
    "metadata first": [METADATA],
    "a token first": [token(b"\0alice\0secret")],
    "versions twice": [VERSIONS, VERSIONS],
    "unsupported versions": [(m.ApiVersionsRequest(), 0), *IN, METADATA],
    "groups in between": [handshake("PLAIN"), GROUPS],
    "versions in between": [handshake("PLAIN"), VERSIONS],
    "two handshakes": [handshake("PLAIN"), handshake("PLAIN")],
    "a token too many": [*IN, token(b"\0alice\0secret")],
    "again": [*IN, *IN, METADATA],
    "re-authentication twice in a row": [*IN, *IN, handshake("PLAIN")],
    "re-authentication as another user": [*IN, handshake("PLAIN"), token(b"\0eve\0other")],
    "again with a wrong password": [*IN, handshake("PLAIN"), token(b"\0alice\0wrong")],
    "re-authentication with another mechanism": [*IN, handshake("SCRAM-SHA-256"), token(b"n,,n=bob,r=x")],
    "another request during re-authentication": [*IN, handshake("PLAIN"), GROUPS],
    "SCRAM: nonsense": [handshake("SCRAM-SHA-256"), token(b"nonsense")],
    "SCRAM: binding": [handshake("SCRAM-SHA-256"), token(b"p=tls-unique,,n=bob,r=abc")],
    "SCRAM: for another user": [handshake("SCRAM-SHA-256"), token(b"n,a=root,n=bob,r=abc")],
    "SCRAM: a challenge": [handshake("SCRAM-SHA-256"), token(b"n,,n=bob,r=abc")],
    "SCRAM: an extension": [handshake("SCRAM-SHA-256"), token(b"n,,n=bob,r=abc,x=y")],
    "SCRAM: a token": [handshake("SCRAM-SHA-256"), token(b"n,,n=bob,r=abc,tokenauth=true")],
    "SCRAM: nonce": [handshake("SCRAM-SHA-256"), token(b"n,,n=bob,r=abc"), token(b"c=biws,r=other,p=AAAA")],
    "SCRAM: end of nonsense": [handshake("SCRAM-SHA-256"), token(b"n,,n=bob,r=abc"), token(b"nonsense")],
    "garbage": [b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"],
    "an empty frame": [b""],
    "too much": [handshake("PLAIN"), token(bytes(530_000))],
}
LISTENERS = ("SASL", "BOTH")


@pytest.mark.parametrize("listener", LISTENERS)
def test_the_same_authentication_steps_get_the_same_responses(sides: tuple[Side, Side], listener: str) -> None:
    found = []
    for name, steps in PLAYS.items():
        theirs, ours = (side.play(listener, steps) for side in sides)
        if theirs != ours:
            found.append(f"{name}:\n  Kafka {theirs}\n  ours  {ours}")
    assert not found, "\n".join(found)


@pytest.mark.parametrize("listener", LISTENERS)
def test_an_unknown_user_gets_kafkas_error_but_only_after_its_proof(sides: tuple[Side, Side], listener: str) -> None:
    kafka, ours = sides
    first, proof = b"n,,n=%b,r=abc", token(b"c=biws,r=other,p=AAAA")
    start = handshake("SCRAM-SHA-256")
    refusal = kafka.play(listener, [start, token(first % b"nobody")])[-1]  # Kafka sends no challenge
    nobody, bob = (ours.play(listener, [start, token(first % name), proof]) for name in (b"nobody", b"bob"))
    assert nobody == bob
    assert nobody[-1] == refusal


def _tls_outcome(side: Side, listener: str, version: ssl.TLSVersion, *, identity: str | None, data: bytes) -> str:
    context = ssl.create_default_context(cafile=str(TLS / "authority.pem"))
    context.minimum_version = context.maximum_version = version
    if identity is not None:
        context.load_cert_chain(str(TLS / identity))
    try:
        with (
            socket.create_connection(("127.0.0.1", side.ports[listener]), PATIENCE_S) as plain,
            context.wrap_socket(plain, server_hostname="127.0.0.1") as stream,
        ):
            stream.sendall(data)
            return "answered" if stream.recv(100) else CLOSED
    except (ssl.SSLError, ConnectionError):
        return CLOSED


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_the_same_client_certificates_are_accepted(sides: tuple[Side, Side], version: ssl.TLSVersion) -> None:
    asked = write_request_header(RequestHeader(18, 0, 1, "test"))
    data = struct.pack(">i", len(asked)) + asked
    outcomes = [
        [
            _tls_outcome(side, listener, version, identity=identity, data=data)
            for listener in ("TLS", "MUTUAL")
            for identity in (None, "client.pem", "odd-subject.pem")
        ]
        for side in sides
    ]
    assert outcomes[0] == outcomes[1] == ["answered", "answered", "answered", CLOSED, "answered", CLOSED]


@pytest.mark.parametrize("data", [struct.pack(">i", 10) + bytes(10), b"GET / HTTP/1.1\r\n\r\n", bytes(200)])
def test_plaintext_is_refused_by_a_tls_listener(sides: tuple[Side, Side], data: bytes) -> None:
    for side in sides:
        with socket.create_connection(("127.0.0.1", side.ports["TLS"]), PATIENCE_S) as stream:
            stream.sendall(data)
            received = b""
            try:
                while piece := stream.recv(1_000):
                    received += piece
            except ConnectionError:
                pass
            assert len(received) < 50
