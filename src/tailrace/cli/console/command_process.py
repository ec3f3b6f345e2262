"""CommandRunner: runs a `tailrace` command in a process of its own.

The processes are forked from one that has imported the commands already, so a start takes milliseconds. A command that
takes too long is ended, and so is one whose visitor has gone. Its memory is limited. As many commands run at the same
time as there are slots; others wait, up to a limit.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from multiprocessing.connection import Connection
from typing import Any, Final, NamedTuple

SLOTS: Final = 4
WAITING_MAX: Final = 32
STREAMS_MAX: Final = 16
DEADLINE_S: Final = 60.0
OUTPUT_BYTES_MAX: Final = 33_554_432
LINE_BYTES_MAX: Final = 8_388_608
MEMORY_BYTES_MAX: Final = 2_147_483_648
_READ_BYTES: Final = 262_144
_ENDED_S: Final = 5.0
_PRELOADED: Final = (
    "tailrace.cli.main",
    "tailrace.cli.parsing.parser",
    "tailrace.cli.admin.topics",
    "tailrace.cli.admin.groups",
    "tailrace.cli.admin.offsets",
    "tailrace.cli.cluster.cluster_status",
    "tailrace.cli.records.consume",
    "tailrace.cli.log.ls",
    "tailrace.cli.log.explain",
)


class Finished(NamedTuple):
    status: int
    out: bytes
    err: bytes


class TooBusy(Exception):
    """So many commands are running or waiting that no further one is accepted."""


class TooLong(Exception):
    """A command took longer, or printed more, than allowed."""


class CommandRunner:
    def __init__(self) -> None:
        methods = multiprocessing.get_all_start_methods()
        self._context: Any = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
        if "forkserver" in methods:
            self._context.set_forkserver_preload(list(_PRELOADED))
        self._slots = asyncio.Semaphore(SLOTS)
        self._waiting = 0
        self._streams = 0

    async def run(self, words: Sequence[str], text: bytes = b"") -> Finished:
        """Run a command to its end, with `text` as its standard input. Raise TooBusy or TooLong."""
        if self._waiting >= WAITING_MAX:
            raise TooBusy(f"{WAITING_MAX} commands are waiting already: try again later")
        self._waiting += 1
        try:
            await self._slots.acquire()
        finally:
            self._waiting -= 1
        try:
            async with asyncio.timeout(DEADLINE_S), self._started(words, text) as command:
                out, err = await asyncio.gather(command.read(command.out), command.read(command.err))
                return Finished(await command.status(), out, err)
        except TimeoutError as error:
            raise TooLong(f"the command did not end within {DEADLINE_S:g} s and was stopped") from error
        finally:
            self._slots.release()

    async def stream(self, words: Sequence[str]) -> AsyncIterator[bytes]:
        """Run a command and yield its lines as they come, until it ends or the iterator is closed.

        Raise TooBusy, or TooLong if a line is too long.
        """
        if self._streams >= STREAMS_MAX:
            raise TooBusy(f"{STREAMS_MAX} live views are open already: close one of them")
        self._streams += 1
        try:
            async with self._started(words, b"") as command:
                while line := await command.line():
                    yield line.rstrip(b"\n")
                if error := await command.read(command.err):
                    yield error.splitlines()[-1]
        finally:
            self._streams -= 1

    @asynccontextmanager
    async def _started(self, words: Sequence[str], text: bytes) -> AsyncIterator[_Command]:
        """Yield a running command, and end it afterwards if it has not ended."""
        ends = [self._context.Pipe(duplex=False) for _ in range(2)]
        process: Any = self._context.Process(target=_run, args=(list(words), text, *(end[1] for end in ends)))
        await asyncio.to_thread(process.start)
        readers = []
        for received, sent in ends:
            sent.close()
            readers.append(await _reader(received))
        try:
            yield _Command(process, readers[0][0], readers[1][0])
        finally:
            for _, close in readers:
                close()
            process.terminate()
            await asyncio.shield(asyncio.to_thread(_end, process))


class _Command:
    def __init__(self, process: Any, out: asyncio.StreamReader, err: asyncio.StreamReader) -> None:
        self._process = process
        self.out = out
        self.err = err

    async def read(self, stream: asyncio.StreamReader) -> bytes:
        """Return everything that the command prints to a stream. Raise TooLong."""
        data = bytearray()
        while piece := await stream.read(_READ_BYTES):
            data += piece
            if len(data) > OUTPUT_BYTES_MAX:
                raise TooLong(f"the command printed more than {OUTPUT_BYTES_MAX >> 20} MB: ask for less")
        return bytes(data)

    async def line(self) -> bytes:
        """Return the next line that the command prints. Raise TooLong."""
        try:
            return await self.out.readline()
        except ValueError as error:
            raise TooLong(f"a line has more than {LINE_BYTES_MAX >> 20} MB: run the command in a terminal") from error

    async def status(self) -> int:
        await asyncio.to_thread(self._process.join, _ENDED_S)
        return 3 if self._process.exitcode is None else int(self._process.exitcode)


async def _reader(received: Connection) -> tuple[asyncio.StreamReader, Callable[[], None]]:
    """Return a reader of a pipe, and the function that closes it."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=LINE_BYTES_MAX)
    pipe = os.fdopen(os.dup(received.fileno()), "rb", 0)
    received.close()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    return reader, transport.close


def _end(process: Any) -> None:
    process.join(_ENDED_S)
    if process.exitcode is None:
        process.kill()
        process.join()
    process.close()


def _run(words: list[str], text: bytes, out: Connection, err: Connection) -> None:
    """Run a command in this process, which was made for it."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
    os.dup2(out.fileno(), 1)
    os.dup2(err.fileno(), 2)
    out.close()
    err.close()
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False, buffering=1)  # noqa: SIM115
    received, sent = os.pipe()
    sys.stdin = open(received, encoding="utf-8", errors="surrogateescape")  # noqa: SIM115
    _feed(sent, text)

    from tailrace.cli.main import main

    status = main(words)
    sys.stdout.flush()
    sys.exit(status)


def _feed(sent: int, text: bytes) -> None:
    """Write to a pipe from a thread, because a command may read slowly or not at all."""
    import threading

    def write() -> None:
        with suppress(BrokenPipeError), os.fdopen(sent, "wb") as stream:
            stream.write(text)

    threading.Thread(target=write, daemon=True).start()
