"""HttpServer: requests in all pieces, and the bounds of what clients can make it hold."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress

import pytest

from tailrace.cli.console import http_server
from tailrace.cli.console.http_message import Request, Response
from tailrace.cli.console.http_server import BODY_BYTES_MAX, CONNECTIONS_MAX, HttpServer

Act = Callable[[int], Awaitable[None]]


async def echo(request: Request) -> Response:
    if request.path == "/fail":
        raise RuntimeError("a mistake")
    return Response.of_json({"path": request.path, "query": request.query, "body": request.body.decode()})


def served(act: Act, handler: Callable[[Request], Awaitable[Response]] = echo) -> None:
    """Run `act` with the port of a server."""

    async def run() -> None:
        server = HttpServer(handler)
        port = await server.listen("127.0.0.1", 0)
        serving = asyncio.ensure_future(server.run())
        try:
            async with asyncio.timeout(30):
                await act(port)
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)

    asyncio.run(run())


async def exchange(port: int, data: bytes) -> bytes:
    """Send bytes, and return all that comes until the server closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


CLOSE = b"Host: x\r\nConnection: close\r\n\r\n"


def test_a_request_that_arrives_in_pieces_gets_a_response() -> None:
    async def act(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for byte in b"POST /a%20b?x=1 HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\n" + CLOSE:
            writer.write(bytes([byte]))
            await writer.drain()
        text = (await reader.read()).decode()
        assert '{"path": "/a b", "query": [["x", "1"]], "body": "abc"}' in text
        assert text.count("HTTP/1.1 200") == 2
        writer.close()

    served(act)


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"GET / HTTP/1.1\r\n" + b"X: " + b"y" * 150_000 + b"\r\n\r\n", b"431"),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9000000\r\n\r\n" + b"z" * (BODY_BYTES_MAX + 70_000), b"413"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\n\r\n", b"400"),
        (
            b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            b"400",
        ),
        (b"nonsense\r\n\r\n", b"400"),
        (b"GET //[ HTTP/1.1\r\n" + CLOSE, b"400"),
        (b"GET /?" + b"&".join([b"x=1"] * 51) + b" HTTP/1.1\r\n" + CLOSE, b"400"),
    ],
)
def test_an_invalid_or_large_request_is_refused_and_the_connection_closed(data: bytes, status: bytes) -> None:
    async def act(port: int) -> None:
        answer = await exchange(port, data)
        assert b" " + status + b" " in answer.split(b"\r\n")[0]

    served(act)


def test_a_request_that_does_not_arrive_in_time_closes_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "ARRIVAL_S_MAX", 0.05)

    async def act(port: int) -> None:
        assert await exchange(port, b"GET / HTTP/1.1\r\nHost:") == b""

    served(act)


def test_an_idle_connection_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "IDLE_S_MAX", 0.05)

    async def act(port: int) -> None:
        assert await exchange(port, b"") == b""

    served(act)


def test_a_client_that_does_not_read_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "SENDING_S_MAX", 0.1)
    ended = asyncio.Event()

    async def endless() -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"x" * 1_000_000
        finally:
            ended.set()

    async def handler(request: Request) -> Response:
        return Response(200, endless())

    async def act(port: int) -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await ended.wait()
        writer.close()

    served(act, handler)


def test_a_stream_ends_when_its_client_disconnects() -> None:
    ended = asyncio.Event()

    async def silent() -> AsyncIterator[bytes]:
        try:
            yield b"first"
            await asyncio.sleep(3_600)
        finally:
            ended.set()

    async def handler(request: Request) -> Response:
        return Response(200, silent())

    async def act(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"200" in await reader.readuntil(b"first")
        writer.close()
        await ended.wait()

    served(act, handler)


def test_a_connection_beyond_the_limit_is_refused() -> None:
    done = asyncio.Event()

    async def handler(request: Request) -> Response:
        await done.wait()
        return Response(200)

    async def act(port: int) -> None:
        held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(CONNECTIONS_MAX)]
        for _, writer in held:
            writer.write(b"GET / HTTP/1.1\r\n" + CLOSE)
        await asyncio.sleep(0.1)
        assert b" 503 " in await exchange(port, b"GET / HTTP/1.1\r\n" + CLOSE)
        done.set()
        for reader, writer in held:
            assert b" 200 " in await reader.read()
            writer.close()
        while b" 200 " not in await exchange(port, b"GET / HTTP/1.1\r\n" + CLOSE):
            await asyncio.sleep(0.01)

    served(act, handler)


def test_a_new_connection_takes_the_place_of_the_one_with_the_longest_wait_for_a_request() -> None:
    async def act(port: int) -> None:
        held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(CONNECTIONS_MAX)]
        for _, writer in held[1:]:
            writer.write(b"GET / HTTP/1.1\r\nHost:")
        await asyncio.sleep(0.1)
        assert b" 200 " in await exchange(port, b"GET / HTTP/1.1\r\n" + CLOSE)
        with suppress(ConnectionResetError):
            assert await held[0][0].read() == b""
        assert not held[1][0].at_eof()
        for _, writer in held:
            writer.close()

    served(act)


def test_an_exception_in_a_handler_closes_only_its_connection(caplog: pytest.LogCaptureFixture) -> None:
    async def act(port: int) -> None:
        assert await exchange(port, b"GET /fail HTTP/1.1\r\n" + CLOSE) == b""
        assert b" 200 " in await exchange(port, b"GET / HTTP/1.1\r\n" + CLOSE)

    served(act)
    assert "internal error" in caplog.text


def test_the_response_to_head_has_no_body() -> None:
    async def act(port: int) -> None:
        answer = await exchange(port, b"HEAD / HTTP/1.1\r\n" + CLOSE)
        assert answer.endswith(b"\r\n\r\n")
        assert b"content-length: " in answer

    served(act)
