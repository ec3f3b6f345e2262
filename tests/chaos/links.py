"""Links: a TCP proxy in front of every listener, through which all traffic of nodes and clients passes.

    links = Links(opened_by)                       # finds the process that opened a connection, by its two ports
    port = links.lead_to("2", 29092)               # connections to `port` are forwarded to node 2 at 29092
    links.set("1", "2", Weather(forward=HELD))     # bytes from 1 on connections that 1 opened to 2 are held
    links.set("1", "2", CLEAR)                     # and now the held bytes arrive

A link goes from the node that opened a connection to the node that accepted it. Held bytes are not lost: they arrive
when the link is clear again, as after a TCP retransmission, even if the sender has already timed out. A link that is
cut loses its connections with all bytes in transit, and accepts no new connections.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import defaultdict
from collections.abc import Callable, Coroutine
from typing import Any, Final, NamedTuple, TypeVar

from tests.support.kafka_broker import free_port

T = TypeVar("T")
_PIECE: Final = 65_536
HELD: Final = -1.0


class Weather(NamedTuple):
    """State of a link: the delay in seconds, or HELD, of each direction."""

    forward: float = 0.0
    backward: float = 0.0
    is_cut: bool = False


CLEAR: Final = Weather()
CUT: Final = Weather(is_cut=True)


class _Link:
    def __init__(self) -> None:
        self.weather = CLEAR
        self.changed = asyncio.Event()
        self.transports: set[asyncio.StreamWriter] = set()

    def set(self, weather: Weather) -> None:
        self.weather = weather
        self.changed.set()
        self.changed = asyncio.Event()
        if weather.is_cut:
            for one in list(self.transports):
                one.transport.abort()

    async def pass_on(self, *, is_forward: bool) -> None:
        """Wait for the delay that the link has now."""
        while True:
            delay = self.weather.forward if is_forward else self.weather.backward
            if delay == 0:
                return
            if delay == HELD:
                await self.changed.wait()
                continue
            await asyncio.sleep(delay)
            return


class Links:
    def __init__(self, opened_by: Callable[[int, int], str]) -> None:
        """`opened_by`: returns the process that opened the connection between two ports."""
        self._opened_by = opened_by
        self._links: dict[tuple[str, str], _Link] = defaultdict(_Link)
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="links", daemon=True)
        self._thread.start()

    def _run(self, what: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(what, self._loop).result(30)

    def lead_to(self, node: str, port: int, *, source: str | None = None) -> int:
        """Return a port that leads to a node's port. `source`: the only user of the port, if known."""

        async def open_server() -> int:
            outside = free_port()
            self._servers.append(
                await asyncio.start_server(
                    lambda *ends: self._accepted(source, node, port, *ends), "127.0.0.1", outside
                )
            )
            return outside

        return self._run(open_server())

    def set(self, source: str, target: str, weather: Weather) -> None:
        async def change() -> None:
            self._links[source, target].set(weather)

        self._run(change())

    def close(self) -> None:
        async def end() -> None:
            for server in self._servers:
                server.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

        self._run(end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)
        self._loop.close()

    async def _accepted(
        self, source: str | None, node: str, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            if source is None:
                source = self._opened_by(_port(writer, "peername"), _port(writer, "sockname"))
            link = self._links[source, node]
            if link.weather.is_cut:
                return
            with contextlib.suppress(OSError):
                await self._join(link, port, reader, writer)
        except asyncio.CancelledError:
            pass  # the links are closed
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def _join(self, link: _Link, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
        link.transports |= {writer, far_writer}
        pumps = [
            asyncio.ensure_future(_pump(link, reader, far_writer, is_forward=True)),
            asyncio.ensure_future(_pump(link, far_reader, writer, is_forward=False)),
        ]
        try:
            await asyncio.gather(*pumps)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            link.transports -= {writer, far_writer}
            far_writer.transport.abort()


async def _pump(link: _Link, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_forward: bool) -> None:
    """Copy bytes until the reader's side closes. All bytes sent before that arrive, and then the close itself."""
    while piece := await reader.read(_PIECE):
        await link.pass_on(is_forward=is_forward)
        writer.write(piece)
        await writer.drain()
    await link.pass_on(is_forward=is_forward)
    with contextlib.suppress(OSError, RuntimeError):
        writer.write_eof()


def _port(writer: asyncio.StreamWriter, which: str) -> int:
    return int(writer.get_extra_info(which)[1])
