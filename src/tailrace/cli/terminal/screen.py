"""The alternate screen of a terminal, repainted in place, for commands that refresh their output."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tailrace.cli.output import print_lines

_HOME: Final = "\x1b[H"
_CLEAR_LINE: Final = "\x1b[K"
_CLEAR_BELOW: Final = "\x1b[J"
_OTHER_SCREEN: Final = "\x1b[?1049h\x1b[?25l"
_FIRST_SCREEN: Final = "\x1b[?25h\x1b[?1049l"


def paint(lines: list[str]) -> None:
    """Overwrite the screen without clearing it first, so that it does not flicker."""
    width = shutil.get_terminal_size().columns
    print_lines(_HOME + f"{_CLEAR_LINE}\n".join(line[:width] for line in lines) + _CLEAR_LINE + _CLEAR_BELOW)


@contextmanager
def own_screen() -> Iterator[None]:
    """Switch to the alternate screen, as a pager does, and restore the previous screen at the end."""
    sys.stdout.write(_OTHER_SCREEN)
    try:
        yield
    finally:
        sys.stdout.write(_FIRST_SCREEN)
        sys.stdout.flush()
