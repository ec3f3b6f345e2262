"""SharedAnswers and SharedStreams: equal questions cost one command, and different rights never share an answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from tailrace.cli.console import shared_answers
from tailrace.cli.console.command_process import CommandRunner, Finished, TooBusy
from tailrace.cli.console.shared_answers import UNREAD_MAX, SharedAnswers, SharedStreams


class FakeRunner(CommandRunner):
    """Counts commands instead of running them."""

    def __init__(self) -> None:
        self.runs: list[tuple[str, ...]] = []
        self.streams = 0
        self.open_streams = 0
        self.lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.status = 0

    async def run(self, words: Sequence[str], text: bytes = b"") -> Finished:
        self.runs.append(tuple(words))
        await asyncio.sleep(0)
        return Finished(self.status, b"answer %d" % len(self.runs), b"")

    async def stream(self, words: Sequence[str]) -> AsyncIterator[bytes]:
        self.streams += 1
        self.open_streams += 1
        try:
            while (line := await self.lines.get()) is not None:
                yield line
        finally:
            self.open_streams -= 1


def test_equal_questions_within_a_moment_cost_one_command() -> None:
    async def act() -> None:
        runner, now = FakeRunner(), [0.0]
        answers = SharedAnswers(runner, lambda: now[0])
        both = await asyncio.gather(answers.run(["topics", "list"]), answers.run(["topics", "list"]))
        assert both[0] is both[1]
        await answers.run(["topics", "list", "-Xsasl.username=other"])
        assert len(runner.runs) == 2
        now[0] = shared_answers.FRESH_S + 1
        assert (await answers.run(["topics", "list"])).out == b"answer 3"

    asyncio.run(act())


def test_a_change_discards_all_answers() -> None:
    async def act() -> None:
        runner = FakeRunner()
        answers = SharedAnswers(runner, lambda: 0.0)
        await answers.run(["topics", "list"])
        answers.forget()
        await answers.run(["topics", "list"])
        assert len(runner.runs) == 2

    asyncio.run(act())


def test_a_failed_command_is_not_kept() -> None:
    async def act() -> None:
        runner = FakeRunner()
        runner.status = 2
        answers = SharedAnswers(runner, lambda: 0.0)
        await answers.run(["topics", "list"])
        await answers.run(["topics", "list"])
        assert len(runner.runs) == 2

    asyncio.run(act())


def test_the_number_of_kept_answers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_answers, "ANSWERS_MAX", 3)

    async def act() -> None:
        answers = SharedAnswers(FakeRunner(), lambda: 0.0)
        for number in range(10):
            await answers.run([str(number)])
        assert len(answers._answers) == 3

    asyncio.run(act())


def test_a_visitor_who_leaves_does_not_end_the_command_of_another() -> None:
    async def act() -> None:
        answers = SharedAnswers(FakeRunner(), lambda: 0.0)
        leaving = asyncio.ensure_future(answers.run(["top"]))
        staying = asyncio.ensure_future(answers.run(["top"]))
        await asyncio.sleep(0)
        leaving.cancel()
        assert (await staying).out == b"answer 1"

    asyncio.run(act())


def test_viewers_of_a_live_command_share_it_and_the_last_one_ends_it() -> None:
    async def act() -> None:
        runner = FakeRunner()
        streams = SharedStreams(runner)
        first, second = streams.lines(["top"]), streams.lines(["top"])
        await runner.lines.put(b"one")
        assert await anext(first) == b"one"
        assert await anext(second) == b"one"  # a viewer who comes later sees the latest line at once
        assert runner.streams == 1
        await first.aclose()  # type: ignore[attr-defined]
        assert runner.open_streams == 1
        await second.aclose()  # type: ignore[attr-defined]
        assert runner.open_streams == 0
        third = streams.lines(["top"])
        await runner.lines.put(b"two")
        assert await anext(third) == b"two"
        await third.aclose()  # type: ignore[attr-defined]
        assert runner.streams == 2

    asyncio.run(act())


def test_a_viewer_who_reads_slowly_misses_lines_and_delays_nobody() -> None:
    async def act() -> None:
        runner = FakeRunner()
        streams = SharedStreams(runner)
        slow, fast = streams.lines(["top"]), streams.lines(["top"])
        await runner.lines.put(b"0")
        assert await anext(slow) == b"0"
        assert await anext(fast) == b"0"
        for number in range(1, 101):
            await runner.lines.put(b"%d" % number)
            assert await anext(fast) == b"%d" % number
        assert [await anext(slow) for _ in range(UNREAD_MAX)] == [b"97", b"98", b"99", b"100"]
        await slow.aclose()  # type: ignore[attr-defined]
        await fast.aclose()  # type: ignore[attr-defined]

    asyncio.run(act())


def test_the_end_and_the_refusal_of_a_live_command_reach_its_viewers() -> None:
    class Refusing(FakeRunner):
        async def stream(self, words: Sequence[str]) -> AsyncIterator[bytes]:
            raise TooBusy("too many")
            yield b""

    async def act() -> None:
        runner = FakeRunner()
        lines = SharedStreams(runner).lines(["top"])
        await runner.lines.put(None)
        assert [line async for line in lines] == []
        with pytest.raises(TooBusy):
            await anext(SharedStreams(Refusing()).lines(["top"]))

    asyncio.run(act())
