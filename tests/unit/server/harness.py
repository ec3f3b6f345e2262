"""A loop whose passes a test runs one by one, with clocks that do not advance, and clients on real sockets."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from struct import Struct
from types import TracebackType

from tailrace.server.connections.endpoints import Endpoint
from tailrace.server.connections.listener import Listener
from tailrace.server.loop.chores import Chores
from tailrace.server.loop.loop import Loop
from tailrace.server.loop.thread_calls import ThreadCalls
from tailrace.server.loop.turn import Turn
from tailrace.server.loop.wakeup import WakeUp
from tailrace.server.settings import ServerSettings
from tests.unit.server.fake_broker import FakeBroker

SIZE = Struct(">i")
PATIENCE_S = 20  # a bound for what should take no time; nothing waits for it to pass
LOOPBACK = (Endpoint("PLAINTEXT", "127.0.0.1", 0),)


def framed(*requests: bytes) -> bytes:
    return b"".join(SIZE.pack(len(request)) + request for request in requests)


class Client:
    """A blocking socket that speaks frames."""

    def __init__(self, port: int, host: str = "127.0.0.1", receive_buffer_bytes: int | None = None) -> None:
        self.socket = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        if receive_buffer_bytes is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        self.socket.settimeout(PATIENCE_S)
        self.socket.connect((host, port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._held = bytearray()

    def send(self, *requests: bytes) -> None:
        self.socket.sendall(framed(*requests))

    def receive(self) -> bytes:
        """Return the next reply. Raise EOFError if the server has closed the connection."""
        return bytes(self._take(SIZE.unpack(self._take(SIZE.size))[0]))

    def ask(self, request: bytes) -> bytes:
        self.send(request)
        return self.receive()

    def replies_so_far(self) -> list[bytes]:
        """Return the complete replies that have arrived, without waiting."""
        self.socket.setblocking(False)
        try:
            while data := self.socket.recv(1 << 20):
                self._held += data
        except (BlockingIOError, ConnectionResetError):
            pass
        self.socket.settimeout(PATIENCE_S)
        replies = []
        while len(self._held) >= 4 and len(self._held) >= 4 + SIZE.unpack_from(self._held)[0]:
            replies.append(bytes(self._take(SIZE.unpack(self._take(4))[0])))
        return replies

    def is_closed(self) -> bool:
        """Return True if the server has closed the connection. All replies must have been received."""
        self.socket.setblocking(False)
        try:
            return self.socket.recv(1, socket.MSG_PEEK) == b""
        except BlockingIOError:
            return False
        except ConnectionError:
            return True
        finally:
            self.socket.settimeout(PATIENCE_S)

    def reset(self) -> None:
        """Go without a word: the server sees a reset."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, Struct("ii").pack(1, 0))
        self.socket.close()

    def close(self) -> None:
        self.socket.close()

    def _take(self, count: int) -> bytearray:
        while len(self._held) < count:
            data = self.socket.recv(1 << 20)
            if not data:
                raise EOFError
            self._held += data
        taken, self._held = self._held[:count], self._held[count:]
        return taken


class Harness:
    def __init__(self, broker: FakeBroker | None = None, settings: ServerSettings | None = None) -> None:
        self.broker = broker or FakeBroker()
        settings = settings or ServerSettings(listeners=LOOPBACK)
        self.clock_ms = 1_000_000
        self.timer_ms = 0
        self.wakeup = WakeUp()
        self.chores = Chores(settings.chore_threads, self.wakeup.set)
        self.listeners = [Listener(endpoint, settings) for endpoint in settings.listeners]
        self.metrics = None if settings.metrics is None else Listener(settings.metrics, settings)
        self.loop = Loop(
            self.broker,
            self.listeners,
            settings,
            ThreadCalls(self.chores, self.wakeup, self.broker.internal_errors),
            Turn(),
            clock_ms=lambda: self.clock_ms,
            timer_ms=lambda: self.timer_ms,
            metrics=self.metrics,
        )
        self.loop.listen()
        self.clients: list[Client] = []

    def __enter__(self) -> Harness:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for client in self.clients:
            client.close()
        self.loop.close()
        self.chores.close()
        self.wakeup.close()

    @property
    def port(self) -> int:
        return self.listeners[0].endpoint.port

    def client(self, receive_buffer_bytes: int | None = None) -> Client:
        """Return a client whose connection has been accepted."""
        accepted = self.loop.statistics().accepted
        client = self.knock(receive_buffer_bytes)
        self.until(lambda: self.loop.statistics().accepted > accepted)
        return client

    def knock(self, receive_buffer_bytes: int | None = None) -> Client:
        """Return a client whose connection is not accepted yet."""
        self.clients.append(Client(self.port, receive_buffer_bytes=receive_buffer_bytes))
        return self.clients[-1]

    def turn(self, passes: int = 1) -> None:
        """Run passes, none of which waits."""
        for _ in range(passes):
            self.wakeup.set()
            self.loop.run_pass()

    def until(self, condition: Callable[[], bool]) -> None:
        """Run passes until something is so; fails if it never is."""
        give_up = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < give_up, "it never came to that"
            self.turn()

    def receive(self, client: Client, count: int) -> list[bytes]:
        """Run passes until a client has this number of replies, and return them."""
        replies: list[bytes] = []

        def have_come() -> bool:
            replies.extend(client.replies_so_far())
            return len(replies) >= count

        self.until(have_come)
        return replies

    def ask(self, client: Client, request: bytes) -> bytes:
        client.send(request)
        return self.receive(client, 1)[0]
