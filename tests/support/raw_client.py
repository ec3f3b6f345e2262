"""RawClient: one blocking connection that speaks the protocol through our own message classes."""

from __future__ import annotations

import socket
import struct
from itertools import count
from types import TracebackType
from typing import Any, Self

from tailrace.protocol.headers import RequestHeader, read_response_header, write_request_header
from tailrace.protocol.registry import response_class


class RawClient:
    def __init__(self, bootstrap: str, *, client_id: str = "raw", timeout_s: float = 30) -> None:
        host, _, port = bootstrap.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=timeout_s)
        self._client_id = client_id
        self._correlation_ids = count(1)

    def send(self, request: Any, version: int) -> None:
        header = RequestHeader(request.SCHEMA.api_key, version, next(self._correlation_ids), self._client_id)
        frame = write_request_header(header) + request.encode(version)
        self.socket.sendall(struct.pack(">i", len(frame)) + frame)

    def receive(self, api_key: int, version: int) -> Any:
        """Return the next response. Raise ConnectionError if the broker has closed the connection."""
        (size,) = struct.unpack(">i", self._read(4))
        answer = self._read(size)
        position = read_response_header(api_key, version, answer)[1]
        return response_class(api_key).decode(answer, version, position)

    def ask(self, request: Any, version: int) -> Any:
        self.send(request, version)
        return self.receive(request.SCHEMA.api_key, version)

    def _read(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            piece = self.socket.recv(size - len(data))
            if not piece:
                raise ConnectionError("the broker closed the connection")
            data += piece
        return bytes(data)

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
