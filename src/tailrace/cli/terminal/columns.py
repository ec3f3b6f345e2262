"""The columns of a terminal: how many it has, and how many a text takes."""

from __future__ import annotations

import os
import shutil
import unicodedata
from typing import Final, TextIO

_WIDE: Final = frozenset("WF")  # East Asian characters that take two columns
_COMBINED: Final = frozenset({"Mn", "Me", "Cf"})  # characters that are drawn over the one before


def can_repaint(stream: TextIO) -> bool:
    """Return True if the stream is a terminal whose cursor can be moved. TERM=dumb names one that cannot."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def terminal_size(stream: TextIO) -> os.terminal_size:
    """Return the present size of the terminal that the stream writes to; of another one if that is unknown."""
    try:
        size = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError):
        return shutil.get_terminal_size()
    return size if size.columns and size.lines else shutil.get_terminal_size()


def columns_of(text: str) -> int:
    """Return the number of columns that a text takes."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def cut(text: str, columns: int) -> str:
    """Return the beginning of a text that fits into this number of columns."""
    if text.isascii():
        return text[:columns]
    taken = 0
    for position, character in enumerate(text):
        taken += _columns(character)
        if taken > columns:
            return text[:position]
    return text


def _columns(character: str) -> int:
    if unicodedata.category(character) in _COMBINED:
        return 0
    return 2 if unicodedata.east_asian_width(character) in _WIDE else 1
