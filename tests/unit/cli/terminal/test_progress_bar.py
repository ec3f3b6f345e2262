from __future__ import annotations

import io

import pytest

from tailrace.cli.output import use_json_errors
from tailrace.cli.terminal import progress_bar
from tailrace.cli.terminal.progress_bar import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_no_progress_bar_is_drawn_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    stream = io.StringIO()
    with Progress(100, stream) as shown:
        shown.advance(50)
    assert stream.getvalue() == capsys.readouterr().err == ""


def test_a_line_is_written_every_ten_seconds_without_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    moments = iter(range(0, 1000, 4))
    monkeypatch.setattr(progress_bar.time, "monotonic", lambda: float(next(moments)))
    use_json_errors(False)
    with Progress(100_000, io.StringIO()) as shown:
        shown.label("orders-0")
        for _ in range(5):
            shown.advance(10_000)
    assert capsys.readouterr().err == "tailrace: 30% of 97.7 KB, 2.4 KB/s, 28 s left, at orders-0\n"


def test_the_progress_bar_is_erased_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = iter(range(100))
    monkeypatch.setattr(progress_bar.time, "monotonic", lambda: float(next(moments)))
    stream = Terminal()
    with Progress(2048, stream) as shown:
        shown.label("orders-0")
        shown.advance(1024)
        assert " 50%  1.0 KB/s  1 s left  orders-0" in stream.getvalue()
        shown.advance(1024)
        assert "100%" in stream.getvalue()
    assert stream.getvalue().endswith("\r\x1b[K")


def test_the_progress_bar_is_redrawn_at_most_once_per_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_bar.time, "monotonic", lambda: 5.0)
    stream = Terminal()
    with Progress(10_000, stream) as shown:
        for _ in range(1000):
            shown.advance(10)
        assert stream.getvalue() == ""
    assert shown.done == 10_000
