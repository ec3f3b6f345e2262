"""A terminal's second screen, painted over and over: for commands that show how something goes on."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tailrace.cli.output import say

_HOME: Final = "\x1b[H"
_CLEAR_LINE: Final = "\x1b[K"
_CLEAR_BELOW: Final = "\x1b[J"
_OTHER_SCREEN: Final = "\x1b[?1049h\x1b[?25l"
_FIRST_SCREEN: Final = "\x1b[?25h\x1b[?1049l"


def paint(lines: list[str]) -> None:
    """Over what is there, without clearing it first: so it does not flicker."""
    width = shutil.get_terminal_size().columns
    say(_HOME + f"{_CLEAR_LINE}\n".join(line[:width] for line in lines) + _CLEAR_LINE + _CLEAR_BELOW)


@contextmanager
def own_screen() -> Iterator[None]:
    """As a pager does: what was on the terminal before is there again afterwards."""
    sys.stdout.write(_OTHER_SCREEN)
    try:
        yield
    finally:
        sys.stdout.write(_FIRST_SCREEN)
        sys.stdout.flush()
