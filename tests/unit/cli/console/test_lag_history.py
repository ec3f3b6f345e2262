"""LagHistory: rings of points for each group, bounded in number and age."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress

import pytest

from tailrace.cli.console import lag_history
from tailrace.cli.console.command_process import TooBusy
from tailrace.cli.console.lag_history import DAY_MS, LagHistory


def line(time_ms: int, *lags: tuple[str, int, float | None]) -> bytes:
    rows = [{"group": group, "topic": "t", "lag": lag, "lagSeconds": seconds} for group, lag, seconds in lags]
    return json.dumps({"time": time_ms, "lags": rows}).encode()


def test_a_point_sums_the_lag_of_topics_and_takes_their_largest_age() -> None:
    history = LagHistory(30)
    history.note(line(1_000, ("a", 5, 2.5), ("a", 7, None), ("b", 1, None)))
    assert history.points("a") == [{"time": 1_000, "lag": 12, "seconds": 2.5}]
    assert history.points("b") == [{"time": 1_000, "lag": 1, "seconds": None}]
    assert history.points("unknown") == []


def test_a_ring_keeps_the_points_of_one_day() -> None:
    history = LagHistory(8_640)  # ten points in a day
    for number in range(25):
        history.note(line(number, ("a", number, 0.0)))
    assert [point["lag"] for point in history.points("a")] == list(range(15, 25))


def test_a_group_without_points_for_a_day_is_dropped() -> None:
    history = LagHistory(30)
    history.note(line(0, ("old", 1, 0.0)))
    history.note(line(DAY_MS + 1, ("new", 1, 0.0)))
    assert history.points("old") == []
    assert len(history.points("new")) == 1


def test_groups_beyond_the_limit_are_not_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lag_history, "GROUPS_MAX", 2)
    history = LagHistory(30)
    history.note(line(0, ("a", 1, 0.0), ("b", 1, 0.0), ("c", 1, 0.0)))
    assert [len(history.points(name)) for name in "abc"] == [1, 1, 0]


@pytest.mark.parametrize("text", [b"", b"{}", b"[]", b'{"error": {"message": "no broker"}}', b'{"time": 1, "lags": 5}'])
def test_a_line_without_lags_adds_no_point(text: bytes) -> None:
    history = LagHistory(30)
    history.note(text)
    assert history.points("a") == []


class FailingRunner:
    """Fails at first, then prints one line."""

    def __init__(self, failures: list[Exception]) -> None:
        self._failures = failures

    async def stream(self, words: Sequence[str]) -> AsyncIterator[bytes]:
        if self._failures:
            raise self._failures.pop(0)
        yield line(1_000, ("a", 5, None))
        await asyncio.Event().wait()


def test_the_recording_continues_after_a_failure(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(lag_history, "_RETRY_S", 0.0)
    history = LagHistory(30)

    async def record() -> None:
        runner = FailingRunner([OSError(24, "Too many open files"), RuntimeError("a mistake"), TooBusy("busy")])
        recording = asyncio.ensure_future(history.record(runner, []))  # type: ignore[arg-type]
        while not history.points("a"):
            assert not recording.done()
            await asyncio.sleep(0)
        recording.cancel()
        with suppress(asyncio.CancelledError):
            await recording

    asyncio.run(asyncio.wait_for(record(), 20))
    assert "Too many open files" in caplog.text
