"""Connection: one blocking connection to one broker.

The first request is ApiVersions, in the newest version of the client. A broker that does not support it responds in
version 0 with error 35 (UNSUPPORTED_VERSION) and, since Kafka 2.4, with its own versions. All later requests use the
highest version that both sides support.

Responses arrive in the order of the requests. `send` returns a ticket, and `receive` waits for its response. So
requests can be sent to several brokers before the first response is read. `request` does both. After any failure the
connection is closed, because later bytes cannot be assigned to a request.
"""

from __future__ import annotations

import contextlib
import math
import socket
from struct import Struct
from typing import Any, Final, NamedTuple

import tailrace
from tailrace.client.errors import (
    AnswerTimedOut,
    ClientError,
    ConnectionLost,
    InvalidAnswer,
    Unreachable,
    UnsupportedByBroker,
)
from tailrace.client.network.address import Address
from tailrace.client.network.retry_budget import Clock, SystemClock
from tailrace.client.network.sockets import OpenSocket, fill, opener
from tailrace.client.security.listener_probe import (
    explain_failed_handshake,
    explain_lost_connection,
    explain_silence,
    http_server_error,
    tls_required_error,
)
from tailrace.client.security.sasl import authenticate
from tailrace.client.settings import ClientSettings
from tailrace.model.errors import ErrorCode
from tailrace.protocol.api_keys import ApiKey, api
from tailrace.protocol.codegen.schema import Versions
from tailrace.protocol.errors import ProtocolError, UnwritableMessage
from tailrace.protocol.framing import frame_length
from tailrace.protocol.headers import RequestHeader, read_response_header, write_request_header
from tailrace.protocol.message import Message
from tailrace.protocol.messages import ApiVersionsRequest, ApiVersionsResponse
from tailrace.protocol.registry import response_class

# A Fetch response has 50 MB by default, and may exceed that by one batch, which is below 100 MB. The limit also detects
# other protocols: the first bytes of an HTTP response or a TLS alert, read as a length, are above it.
ANSWER_BYTES_MAX: Final = 268_435_456
# A listener that is silent for longer after the first request may speak another protocol, so it is probed.
SILENCE_S: Final = 2.0
# Smaller parts are joined into one buffer. For a larger part, another system call is cheaper than a copy.
JOINED_BYTES_MAX: Final = 65_536
# After this share of its session lifetime a connection is replaced by a new one.
SHARE_OF_SESSION: Final = 0.85
_INT32: Final = Struct(">i")
_UNSUPPORTED_VERSION: Final = ErrorCode.UNSUPPORTED_VERSION.to_bytes(2, "big")


class Ticket(NamedTuple):
    """A sent request, used to receive its response."""

    api_key: int
    version: int
    correlation_id: int


class Connection:
    def __init__(
        self,
        address: Address,
        settings: ClientSettings | None = None,
        *,
        node_id: int | None = None,
        open_socket: OpenSocket | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Connect, negotiate versions and authenticate.

        node_id: the broker at this address, according to the metadata.
        open_socket: replaces real sockets in tests. With real sockets, `listener_probe.py` explains why a broker
        ended a new connection.
        """
        self.address = address
        self.node_id = node_id
        self._settings = settings or ClientSettings()
        self._clock = clock or SystemClock()
        self._correlation_id = 0
        self._waiting = 0  # requests whose responses are not read yet
        self._closed = False
        self._may_probe = open_socket is None  # until the first response after ApiVersions
        self.broker_versions: dict[int, Versions] = {}
        self.features: dict[str, int] = {}  # finalized levels
        self._connect = open_socket or opener(self._settings.security)
        self._open()
        self._negotiate_versions()
        self._expires_s = self._authenticate()

    def _open(self) -> None:
        try:
            self._socket = self._connect(self.address, self._settings.connect_timeout_ms / 1000)
        except OSError as error:
            raise self._not_connected(error) from error
        except ValueError as error:  # the metadata has a host that cannot be a name
            raise Unreachable(self.address, "the host name is invalid", self.node_id, is_transient=False) from error
        self._closed = False
        self._waiting = 0

    def _not_connected(self, error: OSError) -> ClientError:
        security = self._settings.security
        if security.tls is not None and self._may_probe:
            explained = explain_failed_handshake(self.address, security, error)
            if explained is not None:
                return explained
        is_transient = not isinstance(error, socket.gaierror)
        return Unreachable(self.address, _reason(error), self.node_id, is_transient=is_transient)

    @property
    def is_usable(self) -> bool:
        """Return True if a request can be sent: open, no unread response, not closed by the broker."""
        return (
            not self._closed
            and self._waiting == 0
            and self._clock.monotonic() < self._expires_s
            and not self._socket.has_input()
        )

    def close(self) -> None:
        self._closed = True
        with contextlib.suppress(OSError):
            self._socket.close()

    # ------------------------------------------------------------------------------------------------------- versions

    def _negotiate_versions(self) -> None:
        request = ApiVersionsRequest(client_software_name="tailrace", client_software_version=tailrace.__version__)
        newest = api(ApiKey.API_VERSIONS).offered.high
        answer = self._ask_versions(request, newest)
        if answer.error_code == ErrorCode.UNSUPPORTED_VERSION:
            theirs = [
                Versions(k.min_version, k.max_version) for k in answer.api_keys if k.api_key == ApiKey.API_VERSIONS
            ]
            answer = self._ask_versions(request, min(newest, theirs[0].high) if theirs else 0)
        if answer.error_code:
            self.close()
            raise UnsupportedByBroker(f"{self.address} refused ApiVersions with error {answer.error_code}")
        self.broker_versions = {k.api_key: Versions(k.min_version, k.max_version) for k in answer.api_keys}
        self.features = {one.name: one.max_version_level for one in answer.finalized_features}

    def _authenticate(self) -> float:
        """Authenticate. Return the time until which the connection may be used; later the broker closes it."""
        sasl = self._settings.security.sasl
        if sasl is None:
            return math.inf
        try:
            lifetime_ms = authenticate(sasl, self.request, self.address)
        except ClientError:
            self.close()
            raise
        if lifetime_ms <= 0:
            return math.inf
        return self._clock.monotonic() + lifetime_ms / 1000 * SHARE_OF_SESSION

    def _ask_versions(self, request: ApiVersionsRequest, version: int) -> ApiVersionsResponse:
        timeout_s = self._settings.request_timeout_ms / 1000
        try:
            ticket = self._send(request, version)
            frame, position = self._receive_frame(ticket, min(timeout_s, SILENCE_S) if self._may_probe else timeout_s)
        except AnswerTimedOut:
            if not self._may_probe or timeout_s <= SILENCE_S:
                raise
            explained = explain_silence(self.address, self._settings.security)
            if explained is not None:
                raise explained from None
            self._open()  # the broker may only be slow
            ticket = self._send(request, version)
            frame, position = self._receive_frame(ticket, timeout_s)
        # This is the only response whose version can differ from its request.
        if frame[position : position + 2] == _UNSUPPORTED_VERSION:
            version = 0
        answer: ApiVersionsResponse = self._decode(ApiVersionsResponse, frame, version, position)
        return answer

    def version(self, api_key: int, *, version_min: int = 0, version_max: int | None = None) -> int:
        """Return the highest version of an API that both sides support, within the caller's bounds."""
        ours = api(api_key).versions
        high = api(api_key).offered.high
        theirs = self.broker_versions.get(api_key)
        name = api(api_key).name
        if theirs is None:
            raise UnsupportedByBroker(f"{self.address} does not support {name} requests")
        chosen = min(high, theirs.high, high if version_max is None else version_max)
        if chosen < max(ours.low, theirs.low, version_min):
            needed = Versions(max(ours.low, version_min), high if version_max is None else version_max)
            raise UnsupportedByBroker(f"{self.address} supports {name} versions {theirs}; {needed} is required")
        return chosen

    # ------------------------------------------------------------------------------------------ requests and responses

    def request(
        self, message: Message, *, timeout_s: float | None = None, version_min: int = 0, version_max: int | None = None
    ) -> Any:
        """Send a request and return its response."""
        return self.receive(self.send(message, version_min=version_min, version_max=version_max), timeout_s)

    def send(self, message: Message, *, version_min: int = 0, version_max: int | None = None) -> Ticket:
        """Send a request. Call `receive` with the tickets in the order of the requests."""
        assert message.SCHEMA.api_key is not None, "only requests are sent"
        return self._send(
            message, self.version(message.SCHEMA.api_key, version_min=version_min, version_max=version_max)
        )

    def send_unanswered(self, message: Message, *, version_min: int = 0, version_max: int | None = None) -> None:
        """Send a request without a response: Produce with acks=0."""
        self.send(message, version_min=version_min, version_max=version_max)
        self._waiting -= 1

    def receive(self, ticket: Ticket, timeout_s: float | None = None) -> Any:
        """Return the response to a sent request. Its record fields are views of the receive buffer."""
        timeout_s = self._settings.request_timeout_ms / 1000 if timeout_s is None else timeout_s
        frame, position = self._receive_frame(ticket, timeout_s)
        return self._decode(response_class(ticket.api_key), frame, ticket.version, position)

    def _send(self, message: Message, version: int) -> Ticket:
        assert message.SCHEMA.api_key is not None
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        ticket = Ticket(message.SCHEMA.api_key, version, self._correlation_id)
        header = RequestHeader(ticket.api_key, version, ticket.correlation_id, self._settings.client_id)
        parts: list[Any] = [write_request_header(header)]
        try:
            message.write(parts, version)
        except UnwritableMessage as error:
            raise UnsupportedByBroker(
                f"{self.address} supports only a {_name(ticket)} version that cannot express the request: {error}"
            ) from error
        parts.insert(0, frame_length(parts))
        if self._closed:
            raise ConnectionLost(self.address, _name(ticket), "the connection is closed")
        self._waiting += 1
        try:
            self._socket.settimeout(self._settings.request_timeout_ms / 1000)
            for piece in _joined(parts):
                self._socket.sendall(piece)
        except TimeoutError:
            self.close()
            raise AnswerTimedOut(self.address, _name(ticket), self._settings.request_timeout_ms / 1000) from None
        except OSError as error:
            raise self._lost(ticket, error) from error
        except BaseException:
            self.close()  # a part of the request may have been sent
            raise
        return ticket

    def _receive_frame(self, ticket: Ticket, timeout_s: float) -> tuple[memoryview, int]:
        """Return the frame of the response, and the position of the message in it."""
        deadline = self._clock.monotonic() + timeout_s
        try:
            length = bytearray(4)
            fill(memoryview(length), self._socket, deadline, self._clock)
            size = _INT32.unpack(length)[0]
            if not 4 <= size <= ANSWER_BYTES_MAX:
                raise self._unexpected_start(ticket, bytes(length))
            frame = memoryview(bytearray(size))
            fill(frame, self._socket, deadline, self._clock)
            correlation_id, position = read_response_header(ticket.api_key, ticket.version, frame)
        except TimeoutError:
            self.close()
            raise AnswerTimedOut(self.address, _name(ticket), timeout_s) from None
        except OSError as error:
            raise self._lost(ticket, error) from error
        except ProtocolError as error:
            self.close()
            raise InvalidAnswer(f"{self.address} sent a malformed response to {_name(ticket)}: {error}") from error
        except BaseException:
            self.close()  # a part of the response may have been read
            raise
        self._waiting -= 1
        if ticket.api_key != ApiKey.API_VERSIONS:
            self._may_probe = False
        if correlation_id != ticket.correlation_id:
            self.close()
            expected = f"{ticket.correlation_id} ({_name(ticket)})"
            raise InvalidAnswer(f"{self.address} sent a response to request {correlation_id} instead of {expected}")
        return frame, position

    def _lost(self, ticket: Ticket, error: OSError) -> ClientError:
        """Close the connection that the broker has ended. Return the error, with the reason if a probe finds it."""
        self.close()
        if self._may_probe:
            explained = explain_lost_connection(self.address, self._settings.security, ticket.api_key, error)
            if explained is not None:
                return explained
        return ConnectionLost(self.address, _name(ticket), _reason(error))

    def _unexpected_start(self, ticket: Ticket, start: bytes) -> Exception:
        if start[:2] in (b"\x15\x03", b"\x16\x03"):
            return tls_required_error(self.address, self._settings.security)
        if start == b"HTTP":
            return http_server_error(self.address)
        return InvalidAnswer(f"{self.address} responded to {_name(ticket)} with {start!r}…: is it a Kafka broker?")

    def _decode(self, kind: type[Any], frame: memoryview, version: int, position: int) -> Any:
        try:
            return kind.decode(frame, version, position)
        except ProtocolError as error:
            self.close()
            raise InvalidAnswer(f"{self.address} sent a response that cannot be decoded: {error}") from error


def _joined(parts: list[Any]) -> list[Any]:
    """Return the same bytes in few buffers: small parts joined, large ones unchanged."""
    pieces: list[Any] = []
    small = bytearray()
    for part in parts:
        if len(part) < JOINED_BYTES_MAX:
            small += part
            continue
        if small:
            pieces.append(small)
            small = bytearray()
        pieces.append(part)
    if small:
        pieces.append(small)
    return pieces


def _name(ticket: Ticket) -> str:
    return api(ticket.api_key).name


def _reason(error: OSError) -> str:
    """Return a short reason why a connection failed."""
    if isinstance(error, TimeoutError):
        return "timed out"
    if isinstance(error, socket.gaierror):
        return "the host name cannot be resolved"
    return str(error.strerror or error or type(error).__name__).lower()
