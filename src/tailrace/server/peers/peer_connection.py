"""PeerConnection: one non-blocking connection to another node, as its client.

    connecting ──► (TLS) ──► ApiVersions ──► (SASL) ──► ready: requests are sent, responses arrive in their order

Bytes are written as the socket takes them. Received bytes go to memory that connections share. A response that is
complete there is copied; the rest of a larger one is read straight into its own memory. Everything that ends the
connection raises `PeerLost`; the owner then closes the connection.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import socket
from collections import deque
from collections.abc import Iterator
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import tailrace
from tailrace.client.errors import AuthenticationFailed, code_name
from tailrace.client.security.security import PLAIN_TEXT, Security
from tailrace.model.errors import ErrorCode
from tailrace.protocol.api_keys import ApiKey, api
from tailrace.protocol.codegen.schema import Versions
from tailrace.protocol.errors import ProtocolError, UnwritableMessage
from tailrace.protocol.headers import RequestHeader, read_response_header, write_request_header
from tailrace.protocol.message import Message
from tailrace.protocol.messages import ApiVersionsRequest, ApiVersionsResponse
from tailrace.protocol.registry import response_class
from tailrace.server.loop.poll import READABLE, WRITABLE
from tailrace.server.peers.peer_streams import open_stream
from tailrace.waiting.outbox import Failure, OutgoingRequest

if TYPE_CHECKING:
    from tailrace.server.peers.peer_login import PeerLogin

IN_FLIGHT_MAX: Final = 5
ANSWER_BYTES_MAX: Final = 268_435_456  # a fetch may exceed its limit by one batch; "HTTP" read as a length is larger
_MAPPED_FROM: Final = 1_048_576
_INT32: Final = Struct(">i")
_UNSUPPORTED_VERSION: Final = ErrorCode.UNSUPPORTED_VERSION.to_bytes(2, "big")
_HEAD: Final = Struct(">ihhi")  # the start of every request: size, API key, version, correlation id


class PeerLost(Exception):
    """The connection cannot be used any more."""


class SentRequest(NamedTuple):
    request: OutgoingRequest
    version: int
    correlation_id: int
    deadline_ms: int


class PeerConnection:
    def __init__(self, made: socket.socket, client_id: str, host: str = "", security: Security = PLAIN_TEXT) -> None:
        self._socket = made
        self._stream = open_stream(made, host, security)
        self._sasl = security.sasl
        self._login: PeerLogin | None = None  # during authentication
        self._is_ready = False
        self.session_ms = 0  # lifetime of the authenticated session, 0: unlimited
        self._client_id = client_id
        self.descriptor = made.fileno()
        self.interest = READABLE | WRITABLE  # the events to wait for
        self.in_flight: deque[SentRequest] = deque()
        self._versions: dict[int, Versions] | None = None  # the versions that the peer supports
        self._is_connected = False
        self._asked_version = api(ApiKey.API_VERSIONS).offered.high
        self._correlation_id = 0
        self._heads: dict[tuple[int, int], bytes] = {}  # (API, version) → bytes of a request after the correlation id
        self._chosen: dict[tuple[int, int, int | None], int | None] = {}  # (API, sender's limits) → version
        self._output: deque[memoryview] = deque()
        self._own: memoryview | None = None  # a large response, of which `_filled` bytes have arrived
        self._filled = 0
        self._rest = b""  # the start of a response's length

    @property
    def is_ready(self) -> bool:
        return self._is_ready

    @property
    def is_open_for_more(self) -> bool:
        return self._is_ready and len(self.in_flight) < IN_FLIGHT_MAX

    @property
    def wants_to_write(self) -> bool:
        if not self._is_connected or self._stream.unsent:
            return True
        return bool(self._output) and self._stream.is_open

    def update_interest(self) -> int:
        """Return the events to wait for now."""
        self.interest = READABLE | (WRITABLE if self.wants_to_write else 0)
        return self.interest

    @property
    def is_at_rest(self) -> bool:
        """True if the connection has nothing to write or negotiate, now or later, until there is another request."""
        return self._is_ready and self.interest == READABLE and not self.session_ms and not self.wants_to_write

    @property
    def has_input(self) -> bool:
        """True if a part of a response has arrived."""
        return self._own is not None or bool(self._rest)

    def is_late(self, now: int) -> bool:
        return bool(self.in_flight) and self.in_flight[0].deadline_ms <= now

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._stream.close()

    # Writing

    def send(self, request: OutgoingRequest, deadline_ms: int) -> Failure | None:
        """Queue a request. Return a failure if the peer does not support it."""
        key = request.body.SCHEMA.api_key
        assert key is not None
        assert self._versions is not None
        bounds = key, request.version_min, request.version_max
        version = self._chosen.get(bounds)
        if version is None:
            version = self._chosen[bounds] = _common_version(key, self._versions.get(key), request)
        if version is None:
            return Failure.UNSUPPORTED
        try:
            correlation_id = self._put(request.body, key, version)
        except UnwritableMessage:
            return Failure.UNSUPPORTED
        self.in_flight.append(SentRequest(request, version, correlation_id, deadline_ms))
        return None

    def _put(self, body: Message, key: int, version: int) -> int:
        correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        head = self._heads.get((key, version))
        if head is None:
            header = RequestHeader(key, version, correlation_id, self._client_id)
            head = self._heads[key, version] = write_request_header(header)[_HEAD.size - _INT32.size :]
        parts: list[Any] = [head]
        body.write(parts, version)
        rest = b"".join(parts)
        self._correlation_id = correlation_id
        self._output.append(
            memoryview(_HEAD.pack(_HEAD.size - _INT32.size + len(rest), key, version, correlation_id) + rest)
        )
        return correlation_id

    def write(self) -> None:
        """Write as much as the socket takes."""
        if not self._is_connected:
            code = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code:
                raise PeerLost(os.strerror(code).lower())
            try:
                self._socket.getpeername()
            except OSError:
                return  # not connected yet
            self._is_connected = True
            self._ask_versions()
        try:
            self._stream.shake_hands()
            self._stream.flush()
            self._write_output()
        except BlockingIOError:
            pass
        except OSError as error:
            raise PeerLost(_reason(error)) from error

    def _write_output(self) -> None:
        output = self._output
        while output:
            count = self._stream.send(output[0])
            if count < len(output[0]):
                output[0] = output[0][count:]
            else:
                output.popleft()

    def _ask_versions(self) -> None:
        request = ApiVersionsRequest(client_software_name="tailrace", client_software_version=tailrace.__version__)
        self._put(request, ApiKey.API_VERSIONS, self._asked_version)

    # Reading

    def read(self, scratch: memoryview) -> Iterator[tuple[OutgoingRequest, Any]]:
        """Yield the received responses, each with its request; None for a response that cannot be decoded. `scratch` is
        memory to read into; nobody else may use it until the last response is taken."""
        for frame in self._receive(scratch):
            if not self._is_ready:
                self._negotiate(frame)
                continue
            if not self.in_flight:
                raise PeerLost("it sent a response without a request")
            sent = self.in_flight[0]
            key = sent.request.body.SCHEMA.api_key
            assert key is not None
            response = None
            try:
                correlation_id, position = read_response_header(key, sent.version, frame)
                if correlation_id != sent.correlation_id:
                    raise PeerLost(f"it responded to request {correlation_id} where {sent.correlation_id} was expected")
                response = (sent.request.read or response_class(key).decode)(frame, sent.version, position)
            except ProtocolError:
                pass  # the caller gets None, and reports it
            self.in_flight.popleft()
            yield sent.request, response

    def _receive(self, scratch: memoryview) -> Iterator[memoryview]:
        """Yield complete frames, until the socket is empty."""
        while True:
            own = self._own
            view = scratch if own is None else own[self._filled :]
            try:
                count = self._stream.recv_into(view)
            except BlockingIOError:
                return
            except OSError as error:
                raise PeerLost(_reason(error)) from error
            if not count:
                raise PeerLost("the peer closed it")
            if own is None:
                yield from self._cut(scratch[:count])
            else:
                self._filled += count
                if self._filled == len(own):
                    self._own = None
                    yield own
            if count < len(view) and not self._stream.may_hold_more:
                return

    def _cut(self, data: memoryview) -> Iterator[memoryview]:
        """Yield complete frames as copies, and keep the start of the next one."""
        if self._rest:
            data = memoryview(self._rest + data)
            self._rest = b""
        position, end = 0, len(data)
        while end - position >= _INT32.size:
            (size,) = _INT32.unpack_from(data, position)
            if not 4 <= size <= ANSWER_BYTES_MAX:
                raise PeerLost(f"a response of {size} bytes: it does not use Kafka's protocol")
            position += _INT32.size
            if size > end - position:
                self._own = own = _memory(size)
                self._filled = end - position
                own[: self._filled] = data[position:]
                return
            yield memoryview(bytes(data[position : position + size]))
            position += size
        self._rest = bytes(data[position:])

    def _negotiate(self, frame: memoryview) -> None:
        """Take the response to ApiVersions or to a SASL request."""
        if self._versions is None:
            self._take_versions(frame)
            if self._versions is None:
                return
        try:
            if self._login is not None:
                step = self._login.take(frame)
            elif self._sasl is not None:
                from tailrace.server.peers.peer_login import PeerLogin

                self._login = PeerLogin(self._sasl, self._versions)
                step = self._login.begin()
            else:
                step = None
        except (AuthenticationFailed, ProtocolError) as error:
            raise PeerLost(str(error)) from error
        if step is not None:
            message, version = step
            assert message.SCHEMA.api_key is not None
            self._put(message, message.SCHEMA.api_key, version)
            return
        self._is_ready = True
        if self._login is not None:
            self.session_ms = self._login.lifetime_ms
            self._login = None

    def _take_versions(self, frame: memoryview) -> None:
        try:
            _, position = read_response_header(ApiKey.API_VERSIONS, self._asked_version, frame)
            is_refused = frame[position : position + 2] == _UNSUPPORTED_VERSION
            answer: Any = ApiVersionsResponse.decode(frame, 0 if is_refused else self._asked_version, position)
        except ProtocolError as error:
            raise PeerLost(f"its ApiVersions response cannot be decoded: {error}") from error
        theirs = {one.api_key: Versions(one.min_version, one.max_version) for one in answer.api_keys}
        if is_refused:
            known = theirs.get(ApiKey.API_VERSIONS)
            version = min(self._asked_version - 1, known.high if known is not None else 0)
            if version < 0:
                raise PeerLost("no version of ApiVersions is supported by both sides")
            self._asked_version = version
            self._ask_versions()
        elif answer.error_code:
            raise PeerLost(f"it refused ApiVersions: {code_name(answer.error_code)}")
        else:
            self._versions = theirs


def _memory(size: int) -> memoryview:
    """Return memory for a response. Of a large one, only the pages to which bytes are written take room and time."""
    return memoryview(bytearray(size) if size < _MAPPED_FROM else mmap.mmap(-1, size))


def _reason(error: OSError) -> str:
    if hasattr(error, "verify_message"):  # the reason why OpenSSL refuses a certificate
        return f"its certificate is not trusted: {error.verify_message}"
    return str(error.strerror or error).lower()


def _common_version(key: int, theirs: Versions | None, request: OutgoingRequest) -> int | None:
    """Return the highest version that both sides support, within the sender's limits, or None."""
    if theirs is None:
        return None
    ours = api(key)
    high = ours.offered.high if request.version_max is None else min(ours.versions.high, request.version_max)
    chosen = min(high, theirs.high)
    return chosen if chosen >= max(ours.versions.low, theirs.low, request.version_min) else None
