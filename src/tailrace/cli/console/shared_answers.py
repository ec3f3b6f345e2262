"""SharedAnswers and SharedStreams: several pages that ask the same, with the same rights, cost one command.

The key is the whole command line with the visitor's credentials, so nobody gets an answer that was made for another
user. An answer is kept for a moment; a change by any visitor discards all answers. The lines of a live command go to
all of its viewers. They are readings of which the latest counts, so a viewer who reads slowly misses some.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from typing import Final

from tailrace.cli.console.command_process import CommandRunner, Finished

FRESH_S: Final = 2.0
ANSWERS_MAX: Final = 64
ANSWER_BYTES_MAX: Final = 1_048_576
UNREAD_MAX: Final = 4  # lines that wait for a viewer

_Key = tuple[str, ...]


class SharedAnswers:
    def __init__(self, runner: CommandRunner, clock_s: Callable[[], float]) -> None:
        self._runner = runner
        self._clock_s = clock_s
        self._answers: dict[_Key, tuple[float, asyncio.Task[Finished]]] = {}

    async def run(self, words: Sequence[str]) -> Finished:
        """Run a command, or return the answer of one that began a moment ago. Raise TooBusy or TooLong."""
        key, now_s = tuple(words), self._clock_s()
        for old in [one for one, (began_s, task) in self._answers.items() if task.done() and now_s - began_s > FRESH_S]:
            del self._answers[old]
        found = self._answers.get(key)
        if found is None:
            found = now_s, asyncio.create_task(self._run(key))
            if len(self._answers) < ANSWERS_MAX:
                self._answers[key] = found
        # A visitor who leaves does not end the command of the others.
        return await asyncio.shield(found[1])

    async def _run(self, key: _Key) -> Finished:
        try:
            finished = await self._runner.run(key)
        except BaseException:
            self._answers.pop(key, None)
            raise
        if finished.status > 1 or len(finished.out) > ANSWER_BYTES_MAX:
            self._answers.pop(key, None)
        return finished

    def forget(self) -> None:
        """Discard all answers, because something has changed."""
        self._answers.clear()


class SharedStreams:
    def __init__(self, runner: CommandRunner) -> None:
        self._runner = runner
        self._streams: dict[_Key, _Stream] = {}

    async def lines(self, words: Sequence[str]) -> AsyncIterator[bytes]:
        """Yield the lines of a command that other viewers may be watching. Raise TooBusy or TooLong."""
        key = tuple(words)
        stream = self._streams.get(key)
        if stream is None or stream.has_ended:
            stream = self._streams[key] = _Stream(self._runner, key)
        viewer = stream.join()
        try:
            while (line := await viewer.get()) is not None:
                if isinstance(line, Exception):
                    raise line
                yield line
        finally:
            if await stream.leave(viewer) and self._streams.get(key) is stream:
                del self._streams[key]


class _Stream:
    """A running command and its viewers. It ends with the last of them."""

    def __init__(self, runner: CommandRunner, words: _Key) -> None:
        self._viewers: set[asyncio.Queue[bytes | Exception | None]] = set()
        self._latest: bytes | None = None
        self._task = asyncio.create_task(self._run(runner, words))

    @property
    def has_ended(self) -> bool:
        return self._task.done()

    def join(self) -> asyncio.Queue[bytes | Exception | None]:
        viewer: asyncio.Queue[bytes | Exception | None] = asyncio.Queue(UNREAD_MAX)
        if self._latest is not None:
            viewer.put_nowait(self._latest)
        self._viewers.add(viewer)
        return viewer

    async def leave(self, viewer: asyncio.Queue[bytes | Exception | None]) -> bool:
        """Remove a viewer. Return True if it was the last one; then the command is ended."""
        self._viewers.discard(viewer)
        if self._viewers:
            return False
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.shield(asyncio.wait({self._task}))
        return True

    async def _run(self, runner: CommandRunner, words: _Key) -> None:
        end: Exception | None = None
        lines = runner.stream(words)
        try:
            async for line in lines:
                self._latest = line
                self._send(line)
        except Exception as error:
            end = error
        finally:
            await lines.aclose()  # type: ignore[attr-defined]
        self._send(end)

    def _send(self, line: bytes | Exception | None) -> None:
        for viewer in self._viewers:
            if viewer.full():
                viewer.get_nowait()
            viewer.put_nowait(line)
