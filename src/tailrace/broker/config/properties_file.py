"""Java's properties files, such as server.properties: a parser, and the lines to write.

A line is `key=value`. A `:` or blanks may replace the `=`. Lines that begin with `#` or `!` are comments. A backslash
at the end of a line continues it on the next line. Elsewhere a backslash begins an escape: `\\t`, `\\n`, `\\r`, `\\f`
or `\\uXXXX`. Before any other character it is dropped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_BLANKS = " \t\f"
_HEX = re.compile("[0-9a-fA-F]{4}")
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_WRITTEN_ESCAPES = {"\\": "\\\\"} | {letter: f"\\{name}" for name, letter in _ESCAPES.items()}


class MalformedProperties(ValueError):
    """A file that is not a properties file. The message names the line."""


def parse_properties(text: str) -> dict[str, str]:
    """Return keys and values. If a key is repeated, its last value is returned."""
    return dict(_pair(line, number) for number, line in _logical_lines(text))


def property_line(key: str, value: str) -> str:
    """Return the line of a property. Java reads these files as ISO-8859-1, so the line is ASCII."""
    escaped = "".join(map(_escaped, value))
    return f"{key}=\\{escaped}\n" if value[:1] == " " else f"{key}={escaped}\n"


def _escaped(letter: str) -> str:
    if letter in _WRITTEN_ESCAPES:
        return _WRITTEN_ESCAPES[letter]
    if " " <= letter <= "~":
        return letter
    units = letter.encode("utf-16-be")
    return "".join(f"\\u{units[place]:02x}{units[place + 1]:02x}" for place in range(0, len(units), 2))


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    joined, first = "", 0
    # Only these characters end a line in Java; `splitlines` would split at more.
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
                raise MalformedProperties(
                    f"line {number}: \\u{digits} is not a character; write four hexadecimal digits"
                )
            out.append(chr(int(digits, 16)))
            place += 4
        else:
            out.append(_ESCAPES.get(letter, letter))
    # Two escapes make one character above U+FFFF.
    return "".join(out).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
