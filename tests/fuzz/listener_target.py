"""Listeners: hostile bytes on the sockets of a running server, before and inside TLS, at every kind of listener.

An input is one byte that chooses the listener and the mode, one byte that chooses the size of the pieces, and the bytes
to send. After each input an honest client at that listener must be answered. The server must not count an internal
error.
"""

from __future__ import annotations

import contextlib
import random
import socket
import ssl
import struct
import urllib.request
from collections.abc import Sequence
from typing import Final

import tailrace
from tailrace.broker.requests.api_table import API_TABLE, ApiRow
from tailrace.broker.requests.controller_table import CONTROLLER_TABLE
from tailrace.client.security.security import tls_of
from tailrace.client.security.tls_socket import client_context
from tailrace.protocol.headers import RequestHeader, write_request_header
from tailrace.protocol.messages import ApiVersionsRequest, SaslHandshakeRequest
from tailrace.protocol.registry import request_class
from tests.fuzz.bytes_mutator import damage
from tests.fuzz.limits import InvariantBroken
from tests.fuzz.request_seeds import request_frame
from tests.support.kafka_broker import free_port
from tests.support.secured import STORES, TLS, jaas
from tests.unit.protocol.random_messages import random_message

KINDS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL", "CONTROLLER")
KINDS_OF_CLIENTS: Final = 4
INSIDE_TLS: Final = 4  # this bit of the first byte: the bytes are sent after a handshake
WITHOUT_END: Final = 8  # this bit: the sending side is left open
AT_CONTROLLER: Final = 16  # this bit: the bytes go to the controller listener
PIECES: Final = (1 << 20, 1, 7, 1_000)
PATIENCE_S: Final = 5.0
READ_S: Final = 0.02
INPUTS_A_BROKER: Final = 20_000
INPUTS_A_LOOK: Final = 100  # then the count of internal errors is checked


class ListenerTarget:
    def __init__(self) -> None:
        self.history: list[bytes] = []
        self._context = client_context(tls_of({"ssl.truststore.location": str(TLS / "authority.pem")}))
        self._broker: tailrace.Broker | None = None
        self._ports: list[int] = []
        self.renew()

    def renew(self) -> None:
        """Start another broker."""
        if self._broker is not None:
            self._broker.stop()
        self._ports = [free_port() for _ in KINDS]
        listeners = ",".join(f"{kind}://127.0.0.1:{port}" for kind, port in zip(KINDS, self._ports, strict=True))
        self._broker = tailrace.Broker(
            config={
                "listeners": listeners,
                "process.roles": "broker,controller",
                "node.id": "1",
                "controller.listener.names": "CONTROLLER",
                "listener.security.protocol.map": ",".join(
                    f"{kind}:{'PLAINTEXT' if kind == 'CONTROLLER' else kind}" for kind in KINDS
                ),
                "sasl.enabled.mechanisms": "PLAIN",
                "listener.name.sasl_plaintext.plain.sasl.jaas.config": jaas("Plain", "x", "y", alice="secret"),
                "listener.name.sasl_ssl.plain.sasl.jaas.config": jaas("Plain", "x", "y", alice="secret"),
                "tailrace.metrics.port": "0",
                **STORES,
            }
        )
        self._broker.start()
        self.history = []

    def seeds(self) -> Sequence[bytes]:
        frames = [_seed(row) for row in API_TABLE.values()]
        frames = [struct.pack(">i", len(frame)) + frame for frame in frames]
        hello = self._client_hello()
        plain = [bytes([mode, piece]) + frame for frame in frames for mode, piece in ((0, 0), (2, 1), (5, 0), (7, 2))]
        of_controller = [
            bytes([AT_CONTROLLER, piece]) + struct.pack(">i", len(frame)) + frame
            for row in CONTROLLER_TABLE.values()
            for frame in (_seed(row),)
            for piece in (0, 2)
        ]
        return [*plain, *of_controller, *(bytes([mode, piece]) + hello for mode in (1, 3, 9) for piece in (0, 1, 2))]

    def _client_hello(self) -> bytes:
        """Return the first bytes that a TLS client sends."""
        outgoing = ssl.MemoryBIO()
        client = self._context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="127.0.0.1")
        with contextlib.suppress(ssl.SSLWantReadError):
            client.do_handshake()
        return outgoing.read()

    def mutate(self, data: bytes, dice: random.Random) -> bytes:
        if dice.random() < 0.2:
            data = bytes([dice.randrange(32), dice.randrange(4)]) + data[2:]
        return data[:2] + damage(data[2:], dice, dice.randrange(1, 4))

    def run(self, data: bytes) -> None:
        """Send an input, then ask as an honest client."""
        if len(data) < 2:
            return
        if len(self.history) >= INPUTS_A_BROKER:
            self.renew()
        self.history.append(data)
        kind = KINDS.index("CONTROLLER") if data[0] & AT_CONTROLLER else data[0] % KINDS_OF_CLIENTS
        with contextlib.suppress(OSError, ValueError):
            self._attack(kind, data[0], PIECES[data[1] % len(PIECES)], data[2:])
        self._ask(kind)
        if not len(self.history) % INPUTS_A_LOOK:
            self._look_at_errors()

    def _look_at_errors(self) -> None:
        assert self._broker is not None
        with urllib.request.urlopen(self._broker.metrics, timeout=PATIENCE_S) as page:
            lines = page.read().decode().splitlines()
        counts = [
            line for line in lines if line.startswith("tailrace_internal_errors_total") and not line.endswith(" 0")
        ]
        if counts:
            raise InvariantBroken(f"internal errors: {counts}")

    def _attack(self, kind: int, mode: int, piece: int, data: bytes) -> None:
        is_inside = bool(mode & INSIDE_TLS) and "SSL" in KINDS[kind]
        with self._connect(kind) if is_inside else self._open(kind) as connection:
            for start in range(0, min(len(data), 200 * piece), piece):
                connection.sendall(data[start : start + piece])
            if not mode & WITHOUT_END and not is_inside:
                connection.shutdown(socket.SHUT_WR)
            connection.settimeout(READ_S)
            connection.recv(65_536)

    def _open(self, kind: int) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self._ports[kind]), timeout=PATIENCE_S)

    def _connect(self, kind: int) -> socket.socket:
        connection = self._open(kind)
        if "SSL" in KINDS[kind]:
            return self._context.wrap_socket(connection, server_hostname="127.0.0.1")
        return connection

    def _ask(self, kind: int) -> None:
        """Send a small request and wait for the response."""
        request, version = (SaslHandshakeRequest(mechanism="PLAIN"), 1)
        frame = write_request_header(RequestHeader(ApiVersionsRequest.SCHEMA.api_key, 0, 1, "honest"))
        if "SASL" in KINDS[kind]:
            frame = request_frame(request, version, 1)
        try:
            with self._connect(kind) as connection:
                connection.sendall(struct.pack(">i", len(frame)) + frame)
                if len(connection.recv(4)) != 4:
                    raise InvariantBroken(f"an honest client at {KINDS[kind]} is not answered")
        except OSError as error:
            raise InvariantBroken(f"an honest client at {KINDS[kind]} is not answered: {error!r}") from error

    def replay(self, inputs: Sequence[bytes]) -> None:
        self.renew()
        for data in inputs:
            self.run(data)
        self._look_at_errors()

    def pieces(self, data: bytes) -> list[bytes]:
        return [data]


def _seed(row: ApiRow) -> bytes:
    """Return a request of an API, in its latest version."""
    request = random_message(request_class(row.key).SCHEMA.name, row.max_version, 0, modest=True)
    return request_frame(request, row.max_version, 1)
