"""Peers: connections to other nodes on the server's loop, for the requests in the outbox
(`tailrace/waiting/outbox.py`).

    send_waiting()                     take the requests in the outbox; connect if there is no connection
    serve(descriptor, mask, now_ms)    handle an event of one of the sockets; new requests are sent at once
    tick(now_ms)                       deadlines, and peers whose back-off is over; `next_deadline_ms` returns when
    end(now_ms), close()               stop, with or without notifying the senders of pending requests

Only `serve` and `tick` call the broker, so that its replies leave with the next round. Times are those of a clock that
cannot be set back; the broker gets its own time.

A connection begins with ApiVersions. A peer that cannot be reached is tried again after a back-off, which doubles up to
a second and ends with a response. A name is resolved on a chore's thread if there is one, since that may take long.
"""

from __future__ import annotations

import errno
import logging
import socket
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tailrace.client.security.security import PLAIN_TEXT
from tailrace.diagnostics.internal_errors import InternalErrors
from tailrace.diagnostics.limited_log import LimitedLog
from tailrace.server.loop.clock import monotonic_ms
from tailrace.server.loop.poll import WRITABLE, Poll
from tailrace.server.peers.peer_connection import PeerConnection, PeerLost
from tailrace.waiting.chore import Chore
from tailrace.waiting.outbox import Failure, Outbox, OutgoingRequest, Peer

if TYPE_CHECKING:
    from tailrace.server.peers.outgoing_security import OutgoingSecurity

BACKOFF_MS: Final = 50
BACKOFF_MS_MAX: Final = 1_000
READ_BYTES: Final = 32_768
CONNECT_MS_MAX: Final = 10_000  # socket.connection.setup.timeout.ms
_LOGGER: Final = logging.getLogger("tailrace.peers")


class _Line:
    """One peer: its queued requests, and its present or future connection."""

    __slots__ = (
        "backoff_ms",
        "connect_until_ms",
        "connection",
        "is_resolving",
        "peer",
        "queue",
        "rest_until_ms",
        "session_until_ms",
    )

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.queue: deque[tuple[OutgoingRequest, int]] = deque()  # each with its deadline
        self.connection: PeerConnection | None = None
        self.is_resolving = False
        self.connect_until_ms = 0
        self.rest_until_ms = 0
        self.session_until_ms = 0  # when another connection has to replace this one; 0: never
        self.backoff_ms = 0


class Peers:
    def __init__(
        self,
        poll: Poll,
        outbox: Outbox,
        *,
        client_id: str = "tailrace",
        submit: Callable[[Chore], None] | None = None,
        timer_ms: Callable[[], int] = monotonic_ms,
        security: OutgoingSecurity | None = None,
        errors: InternalErrors | None = None,
    ) -> None:
        self._poll = poll
        self._security = security
        self._outbox = outbox
        self._client_id = client_id
        self._submit = submit
        self._timer_ms = timer_ms
        self._lines: dict[Peer, _Line] = {}
        self._by_descriptor: dict[int, _Line] = {}
        self._ended: list[tuple[OutgoingRequest, Failure]] = []  # failed requests whose senders are not notified yet
        self._scratch = memoryview(bytearray(READ_BYTES))
        self._due_ms: int | None = None  # nothing is due before
        self._log = LimitedLog(_LOGGER)
        self._errors = errors or InternalErrors(_LOGGER)
        outbox.on_flush(self.send_waiting)

    # Called by the loop

    def send_waiting(self) -> bool:
        """Send the requests in the outbox. Return True if there were any."""
        if not self._outbox.waiting and not self._outbox.unneeded:
            return False
        for peer in self._outbox.take_unneeded():
            line = self._lines.pop(peer, None)
            if line is not None:
                self._disconnect(line, Failure.LOST)
                self._give_up(line, Failure.LOST)
        self._send(self._outbox.take_requests())
        return True

    def _send(self, requests: Iterable[OutgoingRequest]) -> None:
        now = self._timer_ms()
        touched = {}
        for request in requests:
            line = self._lines.get(request.peer)
            if line is None:
                line = self._lines[request.peer] = _Line(request.peer)
            line.queue.append((request, now + request.timeout_ms))
            self._note_deadline(now + request.timeout_ms)
            touched[request.peer] = line
        for line in touched.values():
            self._progress(line, now)

    def serve(self, descriptor: int, mask: int, now_ms: int) -> bool:
        """Handle an event of one of the sockets. Return False if the descriptor belongs to none."""
        line = self._by_descriptor.get(descriptor)
        if line is None:
            return False
        connection = line.connection
        assert connection is not None
        try:
            if mask & WRITABLE:
                connection.write()
            if mask & ~WRITABLE or connection.has_input:
                for request, response in connection.read(self._scratch):
                    line.backoff_ms = 0
                    if response is None:
                        self._notify(request, partial(request.failed, Failure.UNREADABLE, now_ms), now_ms)
                    else:
                        self._notify(request, partial(request.answered, response, now_ms), now_ms)
        except Exception as error:
            self._failed(line, connection, error, now_ms)
        if self._outbox.waiting:
            self.send_waiting()
        if line.queue or line.connection is not connection or not connection.is_at_rest:
            self._progress(line, self._timer_ms())
        if self._ended:
            self._notify_ended(now_ms)
        return True

    def tick(self, now_ms: int) -> None:
        now = self._timer_ms()
        for line in list(self._lines.values()):
            connection = line.connection
            if connection is not None:
                if not connection.is_ready and now >= line.connect_until_ms:
                    self._lost(line, "no connection in time")
                elif connection.is_late(now):
                    # The response may still arrive, and later ones wait for it. So a new connection is better.
                    self._disconnect(line, Failure.TIMED_OUT)
            while line.queue and line.queue[0][1] <= now:
                self._ended.append((line.queue.popleft()[0], Failure.TIMED_OUT))
            self._progress(line, now)
        self._due_ms = self._first_deadline_ms()
        self._notify_ended(now_ms)

    def next_deadline_ms(self) -> int | None:
        """Return when to tick next, by the clock that cannot be set back. The loop asks before every wait, so this does
        not search all peers."""
        return 0 if self._ended else self._due_ms

    def _note_deadline(self, due_ms: int) -> None:
        if self._due_ms is None or due_ms < self._due_ms:
            self._due_ms = due_ms

    def _first_deadline_ms(self) -> int | None:
        due: list[int] = []
        for line in self._lines.values():
            if line.queue:
                due.append(line.queue[0][1])
            if line.connection is None:
                if line.queue and not line.is_resolving:
                    due.append(line.rest_until_ms)
            elif not line.connection.is_ready:
                due.append(line.connect_until_ms)
            elif line.connection.in_flight:
                due.append(line.connection.in_flight[0].deadline_ms)
        return min(due, default=None)

    def end(self, now_ms: int) -> None:
        """Close every connection; senders are notified that their unanswered requests have failed."""
        for line in self._lines.values():
            self._disconnect(line, Failure.LOST)
            self._give_up(line, Failure.LOST)
        self._lines.clear()
        self._notify_ended(now_ms)

    def close(self) -> None:
        for line in self._lines.values():
            if line.connection is not None:
                line.connection.close()
        self._lines.clear()
        self._by_descriptor.clear()

    # Connections

    def _progress(self, line: _Line, now: int) -> None:
        """Connect if needed and allowed now; send as much as the connection takes."""
        connection = line.connection
        if connection is None:
            if line.queue and not line.is_resolving:
                if now >= line.rest_until_ms:
                    self._resolve(line)
                else:
                    self._note_deadline(line.rest_until_ms)
            return
        if connection.session_ms and not line.session_until_ms:
            line.session_until_ms = now + connection.session_ms
        if 0 < line.session_until_ms <= now and not connection.in_flight:
            self._disconnect(line, Failure.LOST)
            self._progress(line, now)
            return
        while line.queue and connection.is_open_for_more and not 0 < line.session_until_ms <= now:
            request, deadline_ms = line.queue.popleft()
            failure = connection.send(request, deadline_ms)
            if failure is not None:
                self._ended.append((request, failure))
        try:
            connection.write()
        except PeerLost as lost:
            self._lost(line, str(lost))
            return
        self._want(connection)

    def _failed(self, line: _Line, connection: PeerConnection, error: Exception, now_ms: int) -> None:
        """Close a connection after an exception, which affects this connection only."""
        if not isinstance(error, PeerLost):
            self._errors.survive("a connection to another node", error, now_ms, peer=str(line.peer))
        if line.connection is connection:
            self._lost(line, str(error))

    def _want(self, connection: PeerConnection) -> None:
        before, wanted = connection.interest, connection.update_interest()
        if wanted != before:
            self._poll.modify(connection.descriptor, wanted)

    def _resolve(self, line: _Line) -> None:
        host, port = line.peer.host, line.peer.port
        try:
            self._connect(line, _addresses(host, port, socket.AI_NUMERICHOST))
            return
        except (socket.gaierror, UnicodeError):
            pass  # not an address but a name, or not even that
        if self._submit is None:
            try:
                self._connect(line, _addresses(host, port))
            except (OSError, UnicodeError) as error:
                self._lost(line, f"the name {host} cannot be resolved: {error}")
            return
        line.is_resolving = True
        self._submit(_Lookup(self, line))

    def found(self, line: _Line, addresses: list[Any], now_ms: int) -> None:
        """Connect, now that the addresses of a peer's name are resolved."""
        line.is_resolving = False
        if self._lines.get(line.peer) is line and line.connection is None:
            self._connect(line, addresses)
            self._notify_ended(now_ms)

    def not_found(self, line: _Line, error: BaseException, now_ms: int) -> None:
        line.is_resolving = False
        if self._lines.get(line.peer) is line:
            self._lost(line, f"the name {line.peer.host} cannot be resolved: {error}")
            self._notify_ended(now_ms)

    def _connect(self, line: _Line, addresses: list[Any]) -> None:
        family, kind, protocol, _, address = addresses[0]
        try:
            made = socket.socket(family, kind, protocol)
        except OSError as error:  # most likely no free descriptors
            self._lost(line, str(error))
            return
        made.setblocking(False)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        code = made.connect_ex(address)
        if code not in (0, errno.EINPROGRESS):
            made.close()
            self._lost(line, errno.errorcode.get(code, str(code)))
            return
        line.connect_until_ms = self._timer_ms() + CONNECT_MS_MAX
        self._note_deadline(line.connect_until_ms)
        line.session_until_ms = 0
        security = PLAIN_TEXT if self._security is None else self._security.of(line.peer)
        connection = line.connection = PeerConnection(made, self._client_id, line.peer.host, security)
        self._by_descriptor[connection.descriptor] = line
        self._poll.register(connection.descriptor, connection.interest)

    def _lost(self, line: _Line, reason: str) -> None:
        """Note that a peer cannot be reached. Queued requests fail too, since their sender may know another node."""
        was_ready = line.connection is not None and line.connection.is_ready
        self._disconnect(line, Failure.LOST)
        now = self._timer_ms()
        line.backoff_ms = min(max(2 * line.backoff_ms, BACKOFF_MS), BACKOFF_MS_MAX)
        line.rest_until_ms = now + line.backoff_ms
        level, kind = (logging.INFO, "peer lost") if was_ready else (logging.WARNING, "peer cannot be reached")
        self._log.write(level, kind, now, kind, peer=str(line.peer), error=reason)
        self._give_up(line, Failure.UNREACHABLE)

    def _disconnect(self, line: _Line, failure: Failure) -> None:
        connection, line.connection = line.connection, None
        if connection is None:
            return
        del self._by_descriptor[connection.descriptor]
        self._poll.unregister(connection.descriptor)
        connection.close()
        self._ended.extend((sent.request, failure) for sent in connection.in_flight)

    def _give_up(self, line: _Line, failure: Failure) -> None:
        self._ended.extend((request, failure) for request, _ in line.queue)
        line.queue.clear()

    def _notify_ended(self, now_ms: int) -> None:
        ended, self._ended = self._ended, []
        for request, failure in ended:
            self._notify(request, partial(request.failed, failure, now_ms), now_ms)

    def _notify(self, request: OutgoingRequest, callback: Callable[[], None], now_ms: int) -> None:
        """Call the sender of a request back. An exception affects this request only."""
        try:
            callback()
        except Exception as error:
            self._errors.survive("an answer of another node", error, now_ms, request=repr(request))


def _addresses(host: str, port: int, flags: int = 0) -> list[Any]:
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)


class _Lookup:
    """A chore that resolves a peer's name."""

    def __init__(self, peers: Peers, line: _Line) -> None:
        self._peers = peers
        self._line = line

    def run(self) -> Any:
        return _addresses(self._line.peer.host, self._line.peer.port)

    def apply(self, result: Any, now_ms: int) -> None:
        self._peers.found(self._line, result, now_ms)

    def failed(self, error: BaseException, now_ms: int) -> None:
        self._peers.not_found(self._line, error, now_ms)
