"""RewritingProxy: a proxy in front of a broker that may answer requests in its place.

    def answer(exchange: Exchange) -> None:
        exchange.reply(exchange.ask())          # the broker's own response

    with RewritingProxy(advertised_port, broker_port, answer): …

The broker must advertise the proxy's port (`advertised.listeners`), or clients go around it.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from tailrace.protocol.headers import read_response_header
from tailrace.protocol.registry import response_class


class Exchange:
    """A request of a client, and the two connections of the proxy."""

    def __init__(self, client: socket.socket, broker: socket.socket, frame: bytes) -> None:
        self._client = client
        self._broker = broker
        self.frame = frame
        self.api_key, self.version = struct.unpack_from(">hh", frame)

    def next(self) -> Exchange:
        """Wait for the client's next request on this connection, while this one is still unanswered."""
        return Exchange(self._client, self._broker, _receive(self._client))

    def ask(self) -> bytes:
        """Return the broker's response."""
        _send(self._broker, self.frame)
        return _receive(self._broker)

    def reply(self, answer: bytes) -> None:
        _send(self._client, answer)

    def decode(self, answer: bytes) -> Any:
        position = read_response_header(self.api_key, self.version, answer)[1]
        return response_class(self.api_key).decode(answer, self.version, position)

    def encode(self, response: Any, answer: bytes) -> bytes:
        """Return `response` encoded as the response to this request. The rest of the header comes from a
        real response.
        """
        position = read_response_header(self.api_key, self.version, answer)[1]
        return self.frame[4:8] + answer[4:position] + bytes(response.encode(self.version))


class RewritingProxy:
    def __init__(self, port: int, broker_port: int, answer: Callable[[Exchange], None]) -> None:
        self._broker_port = broker_port
        self._answer = answer
        self._listener = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # the listener is closed
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with (
            client,
            contextlib.suppress(OSError),  # either side has closed its connection
            socket.create_connection(("127.0.0.1", self._broker_port)) as broker,
        ):
            while True:
                self._answer(Exchange(client, broker, _receive(client)))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


def _receive(connection: socket.socket) -> bytes:
    (size,) = struct.unpack(">i", _read(connection, 4))
    return _read(connection, size)


def _read(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = connection.recv(size - len(data))
        if not piece:
            raise ConnectionError("the connection is closed")
        data += piece
    return data


def _send(connection: socket.socket, frame: bytes) -> None:
    connection.sendall(struct.pack(">i", len(frame)) + frame)
