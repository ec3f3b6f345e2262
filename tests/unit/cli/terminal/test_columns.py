"""The output of commands on a terminal, read at the other end of a pseudo-terminal: width, resizing, and TERM=dumb."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import sys
import termios
from collections.abc import Iterator

import pytest

from tailrace.cli.output import table
from tailrace.cli.terminal import progress_bar
from tailrace.cli.terminal.columns import can_repaint, columns_of, cut
from tailrace.cli.terminal.progress_bar import Progress
from tailrace.cli.terminal.screen import paint


class Terminal:
    """A terminal of some size; `read` returns what was written to it."""

    def __init__(self) -> None:
        self._reader, writer = pty.openpty()
        self.stream = os.fdopen(writer, "w", encoding="utf-8")
        self.resize(24, 40)

    def resize(self, lines: int, columns: int) -> None:
        fcntl.ioctl(self._reader, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def read(self) -> str:
        self.stream.write("\x04")
        self.stream.flush()
        data = b""
        while not data.endswith(b"\x04"):
            data += os.read(self._reader, 65_536)
        return data[:-1].decode().replace("\r\n", "\n")

    def close(self) -> None:
        self.stream.close()
        os.close(self._reader)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    yield terminal
    terminal.close()


def painted(terminal: Terminal, lines: list[str], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", terminal.stream)
        paint(lines)
    text = terminal.read().removeprefix("\x1b[H").removesuffix("\x1b[K\x1b[J")
    return text.split("\x1b[K\n")


def test_lines_are_cut_at_the_width_and_height_of_the_moment(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = ["x" * 100] * 30
    assert painted(terminal, lines, monkeypatch) == ["x" * 40] * 24
    terminal.resize(3, 7)
    assert painted(terminal, lines, monkeypatch) == ["x" * 7] * 3


def test_wide_and_combining_characters_are_cut_by_columns(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal.resize(5, 5)
    assert painted(terminal, ["注文注文", "e\u0301" * 9, "a注文"], monkeypatch) == ["注文", "e\u0301" * 5, "a注文"]


def test_the_progress_bar_fits_into_one_line_of_its_terminal(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress_bar.time, "monotonic", iter(map(float, range(9))).__next__)
    for columns in (60, 50):
        terminal.resize(24, columns)
        with Progress(1024, terminal.stream) as shown:
            shown.label("注文" * 30)
            shown.advance(512)
        line = terminal.read().removeprefix("\r\x1b[K").removesuffix("\r\x1b[K")
        assert line.startswith("█" * 14)
        assert columns - 2 <= columns_of(line) <= columns - 1


def test_a_dumb_terminal_gets_no_control_sequences(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    assert can_repaint(terminal.stream)
    monkeypatch.setenv("TERM", "dumb")
    assert not can_repaint(terminal.stream)
    monkeypatch.setattr(progress_bar.time, "monotonic", iter(map(float, range(9))).__next__)
    with Progress(1024, terminal.stream) as shown:
        shown.advance(512)
    assert terminal.read() == ""


@pytest.mark.parametrize(("columns", "part"), [(0, ""), (1, "a"), (2, "a"), (3, "a注"), (9, "a注b")])
def test_a_text_is_cut_before_the_character_that_does_not_fit(columns: int, part: str) -> None:
    assert cut("a注b", columns) == part


def test_columns_of_a_table_are_aligned_with_wide_characters() -> None:
    assert table(["<GROUP", "LAG"], [["注文", 1], ["orders", 20]]) == ["GROUP   LAG", "注文      1", "orders   20"]
