"""The alternate screen of a terminal, repainted in place, for commands that refresh their output."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tailrace.cli.output import visible, write_text
from tailrace.cli.terminal.columns import cut, terminal_size

_HOME: Final = "\x1b[H"
_CLEAR_LINE: Final = "\x1b[K"
_CLEAR_BELOW: Final = "\x1b[J"
_OTHER_SCREEN: Final = "\x1b[?1049h\x1b[?25l"
_FIRST_SCREEN: Final = "\x1b[?25h\x1b[?1049l"


def paint(lines: list[str]) -> None:
    """Overwrite the screen without clearing it first, so that it does not flicker.

    Control characters are escaped. What does not fit is left out. The size is that of the moment.
    """
    size = terminal_size(sys.stdout)
    shown = f"{_CLEAR_LINE}\n".join(cut(visible(line), size.columns) for line in lines[: size.lines])
    write_text(f"{_HOME}{shown}{_CLEAR_LINE}{_CLEAR_BELOW}")


@contextmanager
def own_screen() -> Iterator[None]:
    """Switch to the alternate screen, as a pager does, and restore the previous screen at the end."""
    sys.stdout.write(_OTHER_SCREEN)
    try:
        yield
    finally:
        sys.stdout.write(_FIRST_SCREEN)
        sys.stdout.flush()
