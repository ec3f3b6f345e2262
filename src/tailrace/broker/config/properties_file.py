"""Java's properties files, as server.properties is one.

A line is `key=value`; `:` or blanks will do instead of `=`. Lines that begin with `#` or `!` are comments. A backslash
at the end joins the next line, and elsewhere escapes: `\\t`, `\\n`, `\\r`, `\\f`, `\\uXXXX`, or any character as
itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_BLANKS = " \t\f"
_HEX = re.compile("[0-9a-fA-F]{4}")
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class MalformedProperties(ValueError):
    """A file that is no properties file; names the line."""


def parse_properties(text: str) -> dict[str, str]:
    """Keys and values; of a key that is there twice, the last one counts."""
    return dict(_pair(line, number) for number, line in _logical_lines(text))


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    joined, first = "", 0
    # Only these end a line; Python knows more.
    for number, raw in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), 1):
        line = raw.lstrip(_BLANKS)
        if not joined:
            if not line or line[0] in "#!":
                continue
            first = number
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            joined += line[:-1]
            continue
        yield first, joined + line
        joined = ""
    if joined:
        yield first, joined


def _pair(line: str, number: int) -> tuple[str, str]:
    end = 0
    while end < len(line) and line[end] not in f"=:{_BLANKS}":
        end += 2 if line[end] == "\\" else 1
    rest = line[end:].lstrip(_BLANKS)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANKS)
    return _unescaped(line[:end], number), _unescaped(rest, number)


def _unescaped(text: str, number: int) -> str:
    if "\\" not in text:
        return text
    out = []
    place = 0
    while place < len(text):
        letter = text[place]
        place += 1
        if letter != "\\" or place == len(text):
            out.append(letter if letter != "\\" else "")
            continue
        letter = text[place]
        place += 1
        if letter == "u":
            digits = text[place : place + 4]
            if not _HEX.fullmatch(digits):
                raise MalformedProperties(f"line {number}: \\u{digits} is no character")
            out.append(chr(int(digits, 16)))
            place += 4
        else:
            out.append(_ESCAPES.get(letter, letter))
    return "".join(out)
