"""MetricsEndpoint: a small HTTP server on the loop.

    GET /metrics                                      all metrics, in Prometheus' text format
    GET /healthz                                      200: the loop responds
    GET /readyz                                       200: clients can be served; 503 and the reason if not
    GET /waiting                                      the requests that wait and the fetch sessions, as JSON
    GET /explain/fetch?topic=orders&offset=4711…      carries out a fetch and explains its steps, as JSON

It runs at the end of a pass, and each time generates and sends only what takes a few milliseconds. A scrape of ten
thousand partitions is spread over many passes, with requests of clients in between.

Its resources are bounded: a few connections, of which the one with the longest silence is closed when there are too
many, and requests of a few kilobytes. A request has to be complete 30 seconds after its first byte, and its response
has to be read within 30 seconds as well. Only the head of a request is read; a request with a body is refused.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator
from socket import socket
from typing import Any, Final
from urllib.parse import parse_qsl

from tailrace.metrics.exposition import content_type, pieces
from tailrace.metrics.families import Family
from tailrace.model.errors import KafkaError
from tailrace.model.shortage import SHORTAGE_RETRY_MS, is_shortage
from tailrace.server.broker_interface import Observed
from tailrace.server.connections.listener import Listener
from tailrace.server.loop.poll import READABLE, WRITABLE, Poll, forget

CONNECTIONS_MAX: Final = 8
HEAD_BYTES_MAX: Final = 8_192
TURN_BYTES_MAX: Final = 65_536
TURN_NS_MAX: Final = 2_000_000
STEP_MS_MAX: Final = 30_000  # to send a request, and to read a response
SILENT_MS_MAX: Final = 600_000  # between two requests
_END_OF_HEAD: Final = b"\r\n\r\n"
_PAGE: Final = "Metrics are at /metrics, health at /healthz and /readyz.\n"


class MetricsEndpoint:
    def __init__(
        self,
        listener: Listener | None,
        poll: Poll,
        families: Callable[[], Iterable[Family]],
        broker: Observed,
        clock_ms: Callable[[], int],
    ) -> None:
        """Without a listener the endpoint does nothing."""
        self._listener = listener
        self._poll = poll
        self._families = families
        self._broker = broker
        self._clock_ms = clock_ms
        self._errors = broker.internal_errors
        self._is_draining = False
        self._visitors: dict[int, _Visitor] = {}  # the one with the longest silence first
        self._paused_until_ms: int | None = None  # the listener has left the poll, for lack of descriptors
        self.scrapes = 0

    def start(self) -> None:
        if self._listener is not None:
            self._listener.listen()
            self._poll.register(self._listener.descriptor, READABLE)

    def drain(self) -> None:
        """Respond from now on that the broker is not ready."""
        self._is_draining = True

    def close(self) -> None:
        for visitor in list(self._visitors.values()):
            self._leave(visitor)
        if self._listener is not None:
            forget(self._poll, self._listener.descriptor)
            self._listener.close()
            self._listener = None

    def next_deadline_ms(self) -> int | None:
        deadlines = [visitor.until_ms for visitor in self._visitors.values()]
        if self._paused_until_ms is not None:
            deadlines.append(self._paused_until_ms)
        return min(deadlines, default=None)

    def tick(self, now_ms: int) -> None:
        """Close connections after their timeout, and accept again after a lack of descriptors."""
        for visitor in [one for one in self._visitors.values() if one.until_ms <= now_ms]:
            self._leave(visitor)
        if self._paused_until_ms is not None and self._paused_until_ms <= now_ms and self._listener is not None:
            self._paused_until_ms = None
            self._poll.register(self._listener.descriptor, READABLE)

    def serve(self, descriptor: int, now_ms: int) -> None:
        """Handle an event of a descriptor that is ours, or was closed in this pass."""
        try:
            self._serve(descriptor, now_ms)
        except Exception as error:
            visitor = self._visitors.get(descriptor)
            if visitor is not None:
                self._leave(visitor)
            self._errors.survive("the metrics endpoint", error, now_ms)

    def _serve(self, descriptor: int, now_ms: int) -> None:
        if self._listener is not None and descriptor == self._listener.descriptor:
            self._accept(self._listener, now_ms)
        elif descriptor in self._visitors:
            visitor = self._visitors.pop(descriptor)
            self._visitors[descriptor] = visitor
            if visitor.is_waiting:  # the client has disconnected instead
                self._leave(visitor)
                return
            had_begun = bool(visitor.head) or visitor.is_answered
            try:
                is_done = visitor.send() if visitor.is_answered else self._receive(visitor)
            except BlockingIOError:
                return
            except OSError:
                is_done = True
            if is_done:
                self._leave(visitor)
                return
            if visitor.is_answered or visitor.is_waiting:
                visitor.until_ms = now_ms + STEP_MS_MAX
            elif not visitor.head:
                visitor.until_ms = now_ms + SILENT_MS_MAX
            elif not had_begun:
                visitor.until_ms = now_ms + STEP_MS_MAX
            self._want(visitor)

    def _want(self, visitor: _Visitor) -> None:
        interest = WRITABLE if visitor.is_answered else 0 if visitor.is_waiting else READABLE
        self._poll.modify(visitor.descriptor, interest)

    def _accept(self, listener: Listener, now_ms: int) -> None:
        if len(self._visitors) >= CONNECTIONS_MAX:
            self._leave(next(iter(self._visitors.values())))
        try:
            accepted = listener.accept()
            visitor = _Visitor(accepted.socket, now_ms + STEP_MS_MAX)
            self._poll.register(visitor.descriptor, READABLE)
        except OSError as error:
            if is_shortage(error):
                self._poll.unregister(listener.descriptor)
                self._paused_until_ms = now_ms + SHORTAGE_RETRY_MS
            return  # the connection is already closed
        self._visitors[visitor.descriptor] = visitor

    def _leave(self, visitor: _Visitor) -> None:
        del self._visitors[visitor.descriptor]
        forget(self._poll, visitor.descriptor)
        visitor.socket.close()

    def _receive(self, visitor: _Visitor) -> bool:
        """Read. Return True if the connection was closed."""
        data = visitor.socket.recv(HEAD_BYTES_MAX)
        if not data:
            return True
        visitor.head += data
        end = visitor.head.find(_END_OF_HEAD)
        if end < 0 and len(visitor.head) <= HEAD_BYTES_MAX:
            return False
        head = bytes(visitor.head[: max(end, 0)]).decode("latin-1")
        del visitor.head[: end + len(_END_OF_HEAD)]
        self._answer(visitor, head, is_whole=end >= 0)
        return False

    def _answer(self, visitor: _Visitor, head: str, *, is_whole: bool) -> None:
        request, *lines = head.split("\r\n")
        headers = {name.strip().lower(): text.strip() for name, _, text in (line.partition(":") for line in lines)}
        method, _, rest = request.partition(" ")
        target, _, protocol = rest.partition(" ")
        path = target.partition("?")[0]
        if not is_whole:
            visitor.refuse("431 Request Header Fields Too Large")
        elif protocol not in ("HTTP/1.0", "HTTP/1.1"):
            visitor.refuse("400 Bad Request")
        elif (
            method not in ("GET", "HEAD") or "transfer-encoding" in headers or headers.get("content-length", "0") != "0"
        ):
            visitor.refuse("405 Method Not Allowed", "Allow: GET, HEAD\r\n")
        else:
            is_modern = protocol == "HTTP/1.1"
            keeps = is_modern and headers.get("connection", "").lower() != "close"
            kind, body, status = "text/plain; charset=utf-8", iter((_PAGE,)), "200 OK"
            if path == "/metrics":
                kind = content_type(headers.get("accept", ""))
                body = pieces(self._families(), kind)
                self.scrapes += method == "GET"
            elif path == "/explain/fetch" and method == "GET":
                self._start_explaining(visitor, target.partition("?")[2], is_modern=is_modern, keeps=keeps)
                return
            elif path == "/waiting":
                kind = "application/json"
                body = iter((json.dumps(self._broker.describe_waiting(self._clock_ms())) + "\n",))
            elif path == "/healthz":
                body = iter(("alive\n",))
            elif path == "/readyz":
                reason = "the broker is stopping" if self._is_draining else self._broker.not_ready_reason()
                body = iter((f"{reason or 'ready'}\n",))
                status = status if reason is None else "503 Service Unavailable"
            elif path != "/":
                status = "404 Not Found"
            visitor.answer(status, kind, body, is_head=method == "HEAD", is_chunked=is_modern, keeps=keeps)

    def _start_explaining(self, visitor: _Visitor, query: str, *, is_modern: bool, keeps: bool) -> None:
        def answer(walk: dict[str, Any], status: str = "200 OK") -> None:
            if self._visitors.get(visitor.descriptor) is not visitor:
                return  # the client has disconnected
            visitor.is_waiting = False
            body = iter((json.dumps(walk) + "\n",))
            visitor.answer(status, "application/json", body, is_head=False, is_chunked=is_modern, keeps=keeps)
            self._want(visitor)

        visitor.is_waiting = True
        try:
            self._broker.explain_fetch(dict(parse_qsl(query, keep_blank_values=True)), self._clock_ms(), answer)
        except (ValueError, KafkaError) as error:
            answer({"error": str(error)}, "400 Bad Request")


class _Visitor:
    """A connection: it sends a request, gets a response, and may send another request."""

    __slots__ = ("_body", "_is_chunked", "_keeps", "_unsent", "descriptor", "head", "is_waiting", "socket", "until_ms")

    def __init__(self, client: socket, until_ms: int) -> None:
        self.socket = client
        self.until_ms = until_ms  # when it is closed unless something is sent or received
        self.descriptor = client.fileno()
        self.head = bytearray()
        self.is_waiting = False  # for the broker's response
        self._body: Iterator[str] | None = None
        self._unsent = bytearray()
        self._is_chunked = self._keeps = False

    @property
    def is_answered(self) -> bool:
        return self._body is not None or bool(self._unsent)

    def refuse(self, status: str, more: str = "") -> None:
        self._unsent += f"HTTP/1.1 {status}\r\n{more}Content-Length: 0\r\nConnection: close\r\n\r\n".encode()
        self._keeps = False

    def answer(
        self, status: str, kind: str, body: Iterator[str], *, is_head: bool, is_chunked: bool, keeps: bool
    ) -> None:
        head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n"
        if is_chunked:
            head += "Transfer-Encoding: chunked\r\n"
        if not keeps:
            head += "Connection: close\r\n"
        self._unsent += f"{head}\r\n".encode()
        self._body = None if is_head else body
        self._is_chunked, self._keeps = is_chunked, keeps

    def send(self) -> bool:
        """Generate and send as much as a turn allows. Return True if the connection must be closed."""
        if self._body is not None:
            self._make_more(self._body)
        sent = self.socket.send(self._unsent)
        del self._unsent[:sent]
        return not self._unsent and self._body is None and not self._keeps

    def _make_more(self, body: Iterator[str]) -> None:
        until_ns = time.monotonic_ns() + TURN_NS_MAX
        while len(self._unsent) < TURN_BYTES_MAX and time.monotonic_ns() < until_ns:
            piece = next(body, None)
            if piece is None:
                self._body = None
                if self._is_chunked:
                    self._unsent += b"0\r\n\r\n"
                return
            data = piece.encode()
            self._unsent += b"%x\r\n%b\r\n" % (len(data), data) if self._is_chunked else data
