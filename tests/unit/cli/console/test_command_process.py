"""CommandRunner: commands in processes of their own, ended when they take too long or nobody wants them."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tailrace.cli.console import command_process
from tailrace.cli.console.command_process import CommandRunner, TooBusy, TooLong
from tests.support.command import write_directory

pytestmark = pytest.mark.long


def run(act: Callable[[CommandRunner], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(60):
            await act(CommandRunner())

    asyncio.run(main())


def test_output_errors_and_status_are_those_of_the_command(tmp_path: Path) -> None:
    data = write_directory(tmp_path / "data", "plain")

    async def act(runner: CommandRunner) -> None:
        finished = await runner.run(["log", "ls", "--json", "--", str(data)])
        assert (finished.status, finished.err) == (0, b"")
        assert b'"partitions"' in finished.out
        refused = await runner.run(["log", "ls", "--json", "--", str(data / "nothing")])
        assert (refused.status, refused.out) == (2, b"")
        assert refused.err.startswith(b'{"error"')
        wrong = await runner.run(["no-such-command"])
        assert wrong.status == 2

    run(act)


def test_a_command_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_process, "DEADLINE_S", 1.0)

    async def act(runner: CommandRunner) -> None:
        began = time.monotonic()
        silent = socket.create_server(("127.0.0.1", 0))  # nothing answers behind it
        with pytest.raises(TooLong, match="1 s"):
            await runner.run(["topics", "list", f"--bootstrap=127.0.0.1:{silent.getsockname()[1]}", "--timeout=600"])
        assert time.monotonic() - began < 20
        silent.close()

    run(act)


def test_output_beyond_the_limit_ends_the_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(command_process, "OUTPUT_BYTES_MAX", 100)
    data = write_directory(tmp_path / "data", "plain")

    async def act(runner: CommandRunner) -> None:
        with pytest.raises(TooLong, match="printed more"):
            await runner.run(["log", "ls", "--json", "--", str(data)])

    run(act)


def test_a_stream_yields_lines_and_ends_its_process_when_closed(tmp_path: Path) -> None:
    data = write_directory(tmp_path / "data", "plain")

    async def act(runner: CommandRunner) -> None:
        lines = runner.stream(["log", "dump", "--json", "--only=log", "--", str(data)])
        assert (await anext(lines)).startswith(b'{"file"')
        await lines.aclose()  # type: ignore[attr-defined]
        refused = [line async for line in runner.stream(["log", "ls", "--json", "--", str(data / "nothing")])]
        assert len(refused) == 1
        assert refused[0].startswith(b'{"error"')

    run(act)


def test_a_line_beyond_the_limit_ends_the_stream(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(command_process, "LINE_BYTES_MAX", 20)
    data = write_directory(tmp_path / "data", "plain")

    async def act(runner: CommandRunner) -> None:
        with pytest.raises(TooLong, match="a line has more than"):
            async for _ in runner.stream(["log", "dump", "--json", "--only=log", "--", str(data)]):
                pass

    run(act)


def test_streams_and_waiting_commands_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_process, "STREAMS_MAX", 0)
    monkeypatch.setattr(command_process, "WAITING_MAX", 0)

    async def act(runner: CommandRunner) -> None:
        with pytest.raises(TooBusy):
            await anext(runner.stream(["topics", "list"]))
        with pytest.raises(TooBusy):
            await runner.run(["topics", "list"])

    run(act)
