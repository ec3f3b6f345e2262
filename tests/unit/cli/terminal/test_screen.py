"""The live views: what moves the cursor is of this program, not of a cluster."""

from __future__ import annotations

import pytest

from tailrace.cli.terminal.screen import own_screen, paint


def test_lines_are_painted_in_place_and_their_control_characters_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    with own_screen():
        paint(["orders", "a\x1b[2Jb\rc"])
    assert capsys.readouterr().out == (
        "\x1b[?1049h\x1b[?25l\x1b[Horders\x1b[K\na\\x1b[2Jb\\x0dc\x1b[K\x1b[J\x1b[?25h\x1b[?1049l"
    )
