"""PeerConnection: one non-blocking connection to another node, as its client.

    connecting ──► (TLS) ──► agreeing (ApiVersions) ──► (SASL) ──► ready: requests go out, answers come in their order

Bytes are written as the socket takes them, and an answer is read straight into memory of its own size. `PeerLost` is
raised for whatever ends the connection; whoever owns it closes it then.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections import deque
from collections.abc import Iterator
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import tailrace
from tailrace.client.errors import AuthenticationFailed
from tailrace.client.security import PLAIN_TEXT, Security
from tailrace.model.errors import ErrorCode
from tailrace.outgoing import Failure, OutgoingRequest
from tailrace.protocol.api_keys import ApiKey, api
from tailrace.protocol.errors import ProtocolError, UnwritableMessage
from tailrace.protocol.framing import frame_length
from tailrace.protocol.headers import RequestHeader, read_response_header, write_request_header
from tailrace.protocol.message import Message
from tailrace.protocol.messages import ApiVersionsRequest, ApiVersionsResponse
from tailrace.protocol.registry import response_class
from tailrace.protocol.schema import Versions
from tailrace.server.peer_streams import open_stream

if TYPE_CHECKING:
    from tailrace.server.peer_login import PeerLogin

IN_FLIGHT_MAX: Final = 5
ANSWER_BYTES_MAX: Final = 268_435_456  # a fetch may exceed its limit by one batch; "HTTP" read as a length is beyond it
_INT32: Final = Struct(">i")
_INT16: Final = Struct(">h")


class PeerLost(Exception):
    """The connection is of no use any more."""


class Sent(NamedTuple):
    request: OutgoingRequest
    version: int
    correlation_id: int
    deadline_ms: int


class PeerConnection:
    def __init__(self, made: socket.socket, client_id: str, host: str = "", security: Security = PLAIN_TEXT) -> None:
        self._socket = made
        self._stream = open_stream(made, host, security)
        self._sasl = security.sasl
        self._login: PeerLogin | None = None  # while we say who we are
        self._is_ready = False
        self.session_ms = 0  # for how long that counts, 0 for ever
        self._client_id = client_id
        self.descriptor = made.fileno()
        self.interest = 0
        self.in_flight: deque[Sent] = deque()
        self._versions: dict[int, Versions] | None = None  # what the peer speaks
        self._is_connected = False
        self._asked_version = api(ApiKey.API_VERSIONS).offered.high
        self._correlation_id = 0
        self._output: deque[memoryview] = deque()
        self._input = memoryview(bytearray(4))  # the length of the next answer, or the answer
        self._filled = 0
        self._is_length = True

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

    @property
    def has_input(self) -> bool:
        """Part of an answer was read."""
        return self._filled > 0

    def is_late(self, now: int) -> bool:
        return bool(self.in_flight) and self.in_flight[0].deadline_ms <= now

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._stream.close()

    # Writing

    def send(self, request: OutgoingRequest, deadline_ms: int) -> Failure | None:
        """Queue a request to be written; says why not, if the peer cannot be asked that."""
        key = request.body.SCHEMA.api_key
        assert key is not None
        assert self._versions is not None
        version = _common_version(key, self._versions.get(key), request)
        if version is None:
            return Failure.UNSUPPORTED
        try:
            correlation_id = self._put(request.body, key, version)
        except UnwritableMessage:
            return Failure.UNSUPPORTED
        self.in_flight.append(Sent(request, version, correlation_id, deadline_ms))
        return None

    def _put(self, body: Message, key: int, version: int) -> int:
        correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        header = RequestHeader(key, version, correlation_id, self._client_id)
        parts: list[Any] = [write_request_header(header)]
        body.write(parts, version)
        self._correlation_id = correlation_id
        self._output.append(memoryview(b"".join([frame_length(parts), *parts])))
        return correlation_id

    def write(self) -> None:
        """Write what the socket takes."""
        if not self._is_connected:
            code = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code:
                raise PeerLost(os.strerror(code).lower())
            try:
                self._socket.getpeername()
            except OSError:
                return  # not yet
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

    def read(self) -> Iterator[tuple[OutgoingRequest, Any]]:
        """The answers that have come, each with what was asked; None for one that cannot be read."""
        while (frame := self._receive()) is not None:
            if not self._is_ready:
                self._go_on(frame)
                continue
            if not self.in_flight:
                raise PeerLost("it answers what was not asked")
            sent = self.in_flight[0]
            key = sent.request.body.SCHEMA.api_key
            assert key is not None
            response = None
            try:
                correlation_id, position = read_response_header(key, sent.version, frame)
                if correlation_id != sent.correlation_id:
                    raise PeerLost(f"it answers request {correlation_id} where {sent.correlation_id} was due")
                response = response_class(key).decode(frame, sent.version, position)
            except ProtocolError:
                pass  # the caller tells whoever asked
            self.in_flight.popleft()
            yield sent.request, response

    def _receive(self) -> memoryview | None:
        """The next whole frame, or None until more has come."""
        while True:
            while self._filled < len(self._input):
                try:
                    count = self._stream.recv_into(self._input[self._filled :])
                except BlockingIOError:
                    return None
                except OSError as error:
                    raise PeerLost(_reason(error)) from error
                if not count:
                    raise PeerLost("the peer closed it")
                self._filled += count
            done, self._filled = self._input, 0
            if not self._is_length:
                self._input, self._is_length = memoryview(bytearray(4)), True
                return done
            (size,) = _INT32.unpack(done)
            if not 4 <= size <= ANSWER_BYTES_MAX:
                raise PeerLost(f"an answer of {size} bytes: it does not speak Kafka's protocol")
            self._input, self._is_length = memoryview(bytearray(size)), False

    def _go_on(self, frame: memoryview) -> None:
        """The answer to what comes before requests."""
        if self._versions is None:
            self._take_versions(frame)
            if self._versions is None:
                return
        try:
            if self._login is not None:
                step = self._login.take(frame)
            elif self._sasl is not None:
                from tailrace.server.peer_login import PeerLogin

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
            is_refused = _INT16.unpack_from(frame, position)[0] == ErrorCode.UNSUPPORTED_VERSION
            answer: Any = ApiVersionsResponse.decode(frame, 0 if is_refused else self._asked_version, position)
        except ProtocolError as error:
            raise PeerLost(f"its ApiVersions cannot be read: {error}") from error
        theirs = {one.api_key: Versions(one.min_version, one.max_version) for one in answer.api_keys}
        if is_refused:
            known = theirs.get(ApiKey.API_VERSIONS)
            version = min(self._asked_version - 1, known.high if known is not None else 0)
            if version < 0:
                raise PeerLost("there is no version of ApiVersions in common")
            self._asked_version = version
            self._ask_versions()
        elif answer.error_code:
            raise PeerLost(f"it refuses to say what it speaks: {ErrorCode(answer.error_code).name}")
        else:
            self._versions = theirs


def _reason(error: OSError) -> str:
    if hasattr(error, "verify_message"):  # what OpenSSL says of a certificate
        return f"its certificate is not believed: {error.verify_message}"
    return str(error.strerror or error).lower()


def _common_version(key: int, theirs: Versions | None, request: OutgoingRequest) -> int | None:
    """The highest version that both sides have, within the bounds that the sender sets."""
    if theirs is None:
        return None
    ours = api(key)
    high = ours.offered.high if request.at_most is None else min(ours.versions.high, request.at_most)
    chosen = min(high, theirs.high)
    return chosen if chosen >= max(ours.versions.low, theirs.low, request.at_least) else None
