"""TLS on the server's loop: the same requests and replies, limits in bytes and time, and hostile clients."""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from struct import pack

import pytest

from tailrace.client.security.tls_settings import tls_of
from tailrace.client.security.tls_socket import client_context
from tailrace.log.disk.files import DiskFiles
from tailrace.server.connections.connections import PROOF_MS_MAX
from tailrace.server.server import Server
from tailrace.server.settings import LimitSettings, ServerSettings
from tailrace.server.tls.tls_stream import HANDSHAKE_BYTES_MAX
from tests.unit.server.fake_broker import FakeBroker
from tests.unit.server.harness import Client, Harness

TLS = Path(__file__).parents[1] / "support" / "tls"
STORES = {
    "ssl.keystore.type": "PEM",
    "ssl.keystore.location": str(TLS / "broker.pem"),
    "ssl.truststore.type": "PEM",
    "ssl.truststore.location": str(TLS / "authority.pem"),
}
TRUST = {"ssl.truststore.location": str(TLS / "authority.pem")}
IDENTITY = {"ssl.keystore.location": str(TLS / "client.pem")}
FILE_BYTES = 3_000_000


def settings(**more: str) -> ServerSettings:
    chosen = {key.replace("_", "."): text for key, text in more.items()}
    return ServerSettings.parse({"listeners": "SSL://127.0.0.1:0", **STORES, **chosen})


class TlsClient(Client):
    def __init__(self, port: int, *, receive_buffer_bytes: int | None = None, **tls: str) -> None:
        super().__init__(port, receive_buffer_bytes=receive_buffer_bytes)
        context = client_context(tls_of({**TRUST, **{key.replace("_", "."): text for key, text in tls.items()}}))
        self.socket = context.wrap_socket(self.socket, server_hostname="127.0.0.1")


@pytest.fixture
def content(tmp_path: Path) -> bytes:
    made = (bytes(range(251)) * (FILE_BYTES // 251 + 1))[:FILE_BYTES]
    (tmp_path / "slices").write_bytes(made)
    return made


@pytest.fixture
def broker(tmp_path: Path, content: bytes) -> FakeBroker:
    return FakeBroker(DiskFiles().open(str(tmp_path / "slices")))


@pytest.fixture
def server(broker: FakeBroker) -> Iterator[Server]:
    with Server(lambda server_functions: broker, settings()) as running:
        yield running


def test_requests_of_every_size_are_answered(server: Server, content: bytes) -> None:
    client = TlsClient(server.port())
    assert client.ask(b"Ehello") == b"hello"
    large = bytes(range(256)) * 8_000
    assert client.ask(b"E" + large) == large
    assert client.ask(b"S" + pack(">qi", 17, 2_500_000) + b"head") == b"head" + content[17:2_500_017]
    client.close()


def test_pipelined_requests_are_all_answered(server: Server) -> None:
    """One read may leave decrypted bytes in OpenSSL, which no poll reports."""
    client = TlsClient(server.port())
    requests = [b"E%d" % number + b"x" * (number % 900) for number in range(2_000)]
    sender = threading.Thread(target=lambda: client.send(*requests))
    sender.start()
    for request in requests:
        assert client.receive() == request[1:]
    sender.join()


def test_a_client_that_reads_slowly_gets_everything(server: Server, content: bytes) -> None:
    client = TlsClient(server.port(), receive_buffer_bytes=8_192)
    client.send(*[b"S" + pack(">qi", number, 1_000_000) for number in range(8)])
    for number in range(8):
        assert client.receive() == content[number : number + 1_000_000]
    assert server.statistics().pinned_files == 0


def test_the_bytes_encrypted_ahead_are_bounded(broker: FakeBroker) -> None:
    with Harness(broker, settings(socket_send_buffer_bytes="65536")) as harness:
        client = handshaken(harness)
        client.send(b"S" + pack(">qi", 0, FILE_BYTES))
        harness.until(lambda: harness.loop.statistics().writing == 1)
        harness.turn(50)
        assert harness.loop.statistics().pending_bytes > FILE_BYTES / 4
        (connection,) = harness.loop._connections
        assert 0 < connection.socket.unsent < 140_000  # type: ignore[attr-defined]


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_tls_1_2_and_1_3_are_accepted_if_enabled(server: Server, version: ssl.TLSVersion) -> None:
    context = ssl.create_default_context(cafile=str(TLS / "authority.pem"))
    context.minimum_version = context.maximum_version = version
    with (
        socket.create_connection(("127.0.0.1", server.port())) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as wrapped,
    ):
        wrapped.sendall(pack(">i", 3) + b"Ehi")
        assert wrapped.recv(100) == pack(">i", 2) + b"hi"
    only = "TLSv1.3" if version == ssl.TLSVersion.TLSv1_2 else "TLSv1.2"
    with Server(lambda server_functions: FakeBroker(), settings(ssl_enabled_protocols=only)) as strict:
        plain = socket.create_connection(("127.0.0.1", strict.port()))
        with pytest.raises(ssl.SSLError):
            context.wrap_socket(plain, server_hostname="localhost")
        plain.close()


def test_only_configured_cipher_suites_are_accepted() -> None:
    chosen = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"
    with Server(lambda server_functions: FakeBroker(), settings(ssl_cipher_suites=chosen)) as server:
        client = TlsClient(server.port())
        assert client.socket.cipher()[0] in (  # type: ignore[attr-defined]
            "ECDHE-ECDSA-AES256-GCM-SHA384",
            "ECDHE-ECDSA-CHACHA20-POLY1305",
        )
        assert client.ask(b"Ex") == b"x"


def test_a_client_certificate_sets_the_principal(broker: FakeBroker) -> None:
    rules = "RULE:^CN=(.*)$/$1/U"
    both = settings(ssl_client_auth="requested", ssl_principal_mapping_rules=rules)
    with Server(lambda server_functions: broker, both) as server:
        known, unknown = TlsClient(server.port(), **IDENTITY), TlsClient(server.port())
        assert [known.ask(b"Ex"), unknown.ask(b"Ey")] == [b"x", b"y"]
        assert sorted(one.principal for one in broker.contexts.values()) == ["User:ANONYMOUS", "User:CLIENT"]


def test_a_client_without_a_trusted_certificate_is_refused_if_one_is_required() -> None:
    with Server(lambda server_functions: FakeBroker(), settings(ssl_client_auth="required")) as server:
        for identity in ({}, {"ssl.keystore.location": str(TLS / "odd-subject.pem")}):
            with pytest.raises((ssl.SSLError, ConnectionError, EOFError)):
                TlsClient(server.port(), **identity).ask(b"Ex")
        assert TlsClient(server.port(), **IDENTITY).ask(b"Ex") == b"x"
        assert server.statistics().closed["receive failed"] == 2


def handshaken(harness: Harness) -> TlsClient:
    """Return a client whose handshake was completed while the loop ran here."""
    made: list[TlsClient] = []
    thread = threading.Thread(target=lambda: made.append(TlsClient(harness.port)))
    thread.start()
    harness.until(lambda: bool(made))
    thread.join()
    harness.clients.append(made[0])
    return made[0]


HOSTILE: dict[str, bytes] = {
    "plain text": pack(">i", 30) + b"\x00\x12\x00\x03" + bytes(26),
    "HTTP": b"GET / HTTP/1.1\r\n\r\n",
    "an alert": b"\x15\x03\x03\x00\x02\x02\x28",
    "a record that is too long": b"\x16\x03\x01\xff\xff" + bytes(70_000),
    "application data first": b"\x17\x03\x03\x00\x10" + bytes(16),
    "a ClientHello of zeros": b"\x16\x03\x01\x00\x20\x01\x00\x00\x1c" + bytes(28),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_bytes_that_are_not_tls_close_only_their_connection(server: Server, what: str) -> None:
    friend = TlsClient(server.port())
    stranger = Client(server.port())
    stranger.socket.sendall(HOSTILE[what])
    received = b""
    try:
        while data := stranger.socket.recv(4_096):
            received += data
    except ConnectionError:
        pass
    assert len(received) < 100  # a TLS alert at most
    assert friend.ask(b"Ex") == b"x"


def test_an_endless_handshake_is_closed(server: Server) -> None:
    stranger = Client(server.port())
    # A ClientHello with a length of 16 MB, in well-formed records.
    record = b"\x16\x03\x01\x40\x00" + b"\x01\xff\xff\xff" + bytes(16_380)
    with pytest.raises((BrokenPipeError, ConnectionResetError)):  # noqa: PT012
        for _ in range(100 * HANDSHAKE_BYTES_MAX // len(record)):
            stranger.socket.sendall(record)


@pytest.mark.parametrize("sends", [b"", b"\x16\x03\x01\x02\x00\x01\x00"])
def test_a_stalled_handshake_times_out(sends: bytes) -> None:
    with Harness(settings=settings()) as harness:
        stalled = harness.client()
        stalled.socket.sendall(sends)
        patient = handshaken(harness)
        harness.timer_ms += PROOF_MS_MAX - 1
        harness.turn(5)
        assert harness.loop.statistics().connections == 2
        harness.timer_ms += 1
        harness.until(stalled.is_closed)
        assert harness.loop.statistics().closed == {"unproven": 1}
        patient.send(b"Ex")
        harness.until(lambda: harness.broker.handled == 1)
        harness.turn()
        assert patient.receive() == b"x"


def test_a_client_that_disconnects_within_a_handshake_leaves_no_state(broker: FakeBroker) -> None:
    with Harness(broker, settings()) as harness:
        for leave in (Client.close, Client.reset):
            client = handshaken(harness)
            client.send(b"S" + pack(">qi", 0, FILE_BYTES))
            harness.until(lambda: harness.loop.statistics().writing == 1)
            leave(client)
            harness.until(lambda: harness.loop.statistics().connections == 0)
        assert harness.loop.statistics().pinned_files == 0
        assert harness.loop.statistics().pending_bytes == 0


def test_plaintext_listeners_of_the_same_server_are_unaffected() -> None:
    both = ServerSettings.parse({"listeners": "SSL://127.0.0.1:0,PLAINTEXT://127.0.0.1:0", **STORES})
    with Server(lambda server_functions: FakeBroker(), both) as server:
        assert Client(server.port("PLAINTEXT")).ask(b"Ex") == b"x"
        assert TlsClient(server.port("SSL")).ask(b"Ex") == b"x"


def test_a_close_notify_is_sent_and_accepted(server: Server) -> None:
    client = TlsClient(server.port())
    assert client.ask(b"Ex") == b"x"
    assert client.ask(b"Cbye") == b"bye"
    with pytest.raises(EOFError):  # and not a TLS error, as after a truncated stream
        client.receive()
    leaving: Callable[[], ssl.SSLSocket | socket.socket] = TlsClient(server.port()).socket.unwrap  # type: ignore[attr-defined]
    leaving()


def client_hello() -> bytes:
    outgoing = ssl.MemoryBIO()
    connection = client_context(tls_of(TRUST)).wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="127.0.0.1")
    with contextlib.suppress(ssl.SSLWantReadError):
        connection.do_handshake()
    return outgoing.read()


def test_clients_that_connect_at_once_delay_each_other_and_not_the_connected_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Harness(settings=settings()) as harness:
        connected = handshaken(harness)
        crowd = [harness.client() for _ in range(6)]
        monkeypatch.setattr("tailrace.server.loop.turn.PASS_NS_MAX", 0)  # every pass is late
        for one in crowd:
            one.socket.sendall(client_hello())
        connected.send(b"Ex")
        harness.turn()
        assert harness.broker.handled == 1
        answered = [len(select.select([one.socket for one in crowd], [], [], 0)[0])]
        for _ in crowd:
            harness.turn()
            answered.append(len(select.select([one.socket for one in crowd], [], [], 0)[0]))
        assert answered == [1, 2, 3, 4, 5, 6, 6]


def guarded() -> ServerSettings:
    return ServerSettings.parse({"listeners": "SASL_PLAINTEXT://127.0.0.1:0", "sasl.server.max.receive.size": "1000"})


def test_an_unauthenticated_client_may_send_only_a_limited_number_of_bytes() -> None:
    with Harness(settings=guarded()) as harness:
        known, stranger = harness.client(), harness.client()
        assert harness.ask(known, b"Ex") == b"x"
        assert harness.ask(known, b"E" + bytes(5_000)) == bytes(5_000)
        stranger.send(b"N")
        stranger.socket.sendall(pack(">i", 1_001))
        harness.until(stranger.is_closed)
        assert harness.loop.statistics().closed == {"invalid frame": 1}


def test_an_unauthenticated_client_is_closed_after_a_time_limit() -> None:
    with Harness(settings=guarded()) as harness:
        known, stranger = harness.client(), harness.client()
        assert harness.ask(known, b"Ex") == b"x"
        stranger.send(b"N")
        harness.until(lambda: harness.broker.handled == 2)
        harness.timer_ms += PROOF_MS_MAX
        harness.until(stranger.is_closed)
        assert harness.ask(known, b"Ey") == b"y"
        assert harness.loop.statistics().closed == {"unproven": 1}


def test_unfinished_handshakes_take_at_most_half_of_the_connections() -> None:
    chosen = replace(settings(), limits=LimitSettings(connections_max=10))
    with Harness(settings=chosen) as harness:
        patient = handshaken(harness)
        stalled = [harness.client() for _ in range(8)]
        harness.until(lambda: sum(one.is_closed() for one in stalled) == 3)
        assert [one.is_closed() for one in stalled] == [True] * 3 + [False] * 5
        patient.send(b"Ex")
        harness.until(lambda: harness.broker.handled == 1)
        harness.turn()
        assert patient.receive() == b"x"
