"""HttpServer: HTTP/1.1 on asyncio, with h11 as its parser.

Everything that a client can make the server hold is bounded: the number of connections, the size of a request's head
and body, and the bytes that wait to be sent. A request has to arrive in time, and a client has to take each piece of a
response in time. When there are too many connections, the one that has waited longest for a request is closed. If all
have requests, the new one is refused with status 503.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

import h11

from tailrace.cli.console.http_message import Request, Response

CONNECTIONS_MAX: Final = 64
HEAD_BYTES_MAX: Final = 16_384
BODY_BYTES_MAX: Final = 1_048_576
ARRIVAL_S_MAX: Final = 10.0  # from the first byte of a request to its last
IDLE_S_MAX: Final = 60.0  # between two requests
SENDING_S_MAX: Final = 30.0  # until a client has taken a piece of a response
LINGER_S_MAX: Final = 1.0  # after a refusal
UNSENT_BYTES_MAX: Final = 262_144
_READ_BYTES: Final = 65_536
_LOGGER = logging.getLogger("tailrace.console")

Handler = Callable[[Request], Awaitable[Response]]


class HttpServer:
    def __init__(self, handler: Handler, tls: ssl.SSLContext | None = None) -> None:
        self._handler = handler
        self._tls = tls
        self._connections = 0
        self._idle: dict[_Connection, None] = {}  # without a whole request, the one with the longest wait first
        self._server: asyncio.Server | None = None

    async def listen(self, host: str, port: int) -> int:
        """Begin to accept connections, and return the port."""
        handshake_s = None if self._tls is None else ARRIVAL_S_MAX
        self._server = await asyncio.start_server(
            self._serve, host, port, ssl=self._tls, backlog=64, ssl_handshake_timeout=handshake_s
        )
        return int(self._server.sockets[0].getsockname()[1])

    async def run(self) -> None:
        """Serve until the task is cancelled."""
        assert self._server is not None
        async with self._server:
            await self._server.serve_forever()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        try:
            connection = _Connection(reader, writer)
            if self._connections > CONNECTIONS_MAX:
                if not self._idle:
                    await connection.refuse(503, "too many connections")
                    return
                next(iter(self._idle)).abort()
            while await self._serve_one(connection):
                pass
        except (OSError, TimeoutError, h11.RemoteProtocolError, asyncio.IncompleteReadError):
            pass  # the client has gone, is too slow, or does not speak HTTP
        except asyncio.CancelledError:
            pass  # the console stops
        except Exception:
            _LOGGER.exception("internal error; please report it")
        finally:
            self._connections -= 1
            writer.transport.abort()

    async def _serve_one(self, connection: _Connection) -> bool:
        """Answer one request. Return False if the connection is to be closed."""
        self._idle[connection] = None
        try:
            request = await connection.receive()
        except h11.RemoteProtocolError as error:
            if connection.can_respond:
                await connection.refuse(error.error_status_hint, str(error))
            return False
        finally:
            del self._idle[connection]
        if request is None:
            return False
        await connection.send(await self._handler(request), is_head=request.method == "HEAD")
        return connection.next_request()


class _Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._state = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES_MAX)
        writer.transport.set_write_buffer_limits(high=UNSENT_BYTES_MAX)

    def abort(self) -> None:
        self._writer.transport.abort()

    @property
    def can_respond(self) -> bool:
        return self._state.our_state in (h11.IDLE, h11.SEND_RESPONSE)

    def next_request(self) -> bool:
        """Return True if another request may follow on this connection."""
        if self._state.our_state is not h11.DONE or self._state.their_state is not h11.DONE:
            return False
        self._state.start_next_cycle()
        return True

    async def receive(self) -> Request | None:
        """Return the next request, or None at the end of the connection."""
        if not self._state.trailing_data[0]:
            async with asyncio.timeout(IDLE_S_MAX):
                data = await self._reader.read(_READ_BYTES)
            if not data:
                return None
            self._state.receive_data(data)
        async with asyncio.timeout(ARRIVAL_S_MAX):
            head = await self._event()
            if not isinstance(head, h11.Request):
                return None
            body = bytearray()
            while isinstance(event := await self._event(), h11.Data):
                body += event.data
                if len(body) > BODY_BYTES_MAX:
                    raise h11.RemoteProtocolError(f"a body of more than {BODY_BYTES_MAX} bytes", 413)
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers}
        peer = self._writer.get_extra_info("peername")
        address = str(peer[0]) if peer else ""
        request = Request(head.method.decode("ascii"), head.target.decode("latin-1"), headers, bytes(body), address)
        if not request.has_valid_target:
            raise h11.RemoteProtocolError("the address of the request is malformed, or has more than 50 parameters")
        return request

    async def _event(self) -> Any:
        while (event := self._state.next_event()) is h11.NEED_DATA:
            self._state.receive_data(await self._reader.read(_READ_BYTES))
        return event

    async def send(self, response: Response, *, is_head: bool = False, is_last: bool = False) -> None:
        headers = [("content-type", response.kind), *response.headers.items()]
        if isinstance(response.body, bytes):
            headers.append(("content-length", str(len(response.body))))
        if is_last or not isinstance(response.body, bytes):
            headers.append(("connection", "close"))
        await self._write(h11.Response(status_code=response.status, headers=headers))
        if isinstance(response.body, bytes):
            if response.body and not is_head:
                await self._write(h11.Data(data=response.body))
        else:
            await self._send_pieces(response.body, is_head=is_head)
        await self._write(h11.EndOfMessage())

    async def refuse(self, status: int, message: str) -> None:
        """Send an error, then read for a moment. Otherwise a reset of the connection could arrive before the error."""
        await self.send(Response.of_error(status, message), is_last=True)
        if self._writer.can_write_eof():
            self._writer.write_eof()
        left = BODY_BYTES_MAX
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LINGER_S_MAX):
                while left > 0 and (data := await self._reader.read(_READ_BYTES)):
                    left -= len(data)

    async def _send_pieces(self, pieces: AsyncIterator[bytes], *, is_head: bool) -> None:
        """Send pieces as they come. When the client has gone, close the iterator, so that it can stop its command."""
        gone = asyncio.ensure_future(self._reader.read(1))
        try:
            while not is_head:
                following = asyncio.ensure_future(anext(pieces, None))
                await asyncio.wait({gone, following}, return_when=asyncio.FIRST_COMPLETED)
                if not following.done():
                    following.cancel()
                    with contextlib.suppress(asyncio.CancelledError):
                        await following
                    raise ConnectionResetError("the client has closed the connection")
                piece = following.result()
                if piece is None:
                    return
                await self._write(h11.Data(data=piece))
        finally:
            gone.cancel()
            await pieces.aclose()  # type: ignore[attr-defined]

    async def _write(self, event: Any) -> None:
        data = self._state.send(event)
        if data:
            self._writer.write(data)
            async with asyncio.timeout(SENDING_S_MAX):
                await self._writer.drain()
