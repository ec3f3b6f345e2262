"""Output of the command line: aligned tables, sizes and times for people, JSON for programs."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from tailrace.cli.terminal.columns import columns_of

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS = ("B", "KB", "MB", "GB", "TB", "PB")
NOTHING = "-"
_has_json_errors = False
# Built once, because there may be millions of lines.
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


# Characters that move a terminal's cursor or reverse its text. Tabs and line ends are allowed.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x20 else f"\\u{code:04x}"  # \uXXXX is valid JSON, too


def visible(name: str) -> str:
    """Return a name from a file or another node with its control characters, line ends and tabs escaped."""
    return _CONTROL.sub(_escape, name).replace("\n", "\\n").replace("\t", "\\t")


def size_text(size: int) -> str:
    """Return a size for people: 532 B, 17.3 KB, 1.0 GB. One KB is 1024 bytes."""
    amount, unit = float(size), 0
    while amount >= 1023.95 and unit < len(_UNITS) - 1:
        amount /= 1024
        unit += 1
    return f"{size} B" if unit == 0 else f"{amount:.1f} {_UNITS[unit]}"


def time_text(timestamp_ms: int) -> str:
    """Return a Kafka timestamp in UTC with milliseconds. A timestamp after the year 9999 is returned as a number."""
    if timestamp_ms < 0:
        return NOTHING
    try:
        moment = _EPOCH + timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        return str(timestamp_ms)
    return f"{moment:%Y-%m-%d %H:%M:%S}.{timestamp_ms % 1000:03d}"


def count_text(count: int, one: str, many: str | None = None) -> str:
    """Return a count with its noun: "1 segment", "2 segments"."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def table(heads: Sequence[str], rows: Iterable[Sequence[object]], *, indent: str = "") -> list[str]:
    """Return the lines of an aligned table. Columns are right-aligned; a head `<NAME` makes its column left-aligned."""
    names = [head.removeprefix("<") for head in heads]
    cells = [[NOTHING if cell is None else visible(str(cell)) for cell in row] for row in rows]
    widths = [max([len(names[n]), *(columns_of(row[n]) for row in cells)]) for n in range(len(names))]
    lines = []
    for row in [names, *cells]:
        parts = [
            text + " " * (width - columns_of(text)) if head.startswith("<") else " " * (width - columns_of(text)) + text
            for head, text, width in zip(heads, row, widths, strict=True)
        ]
        lines.append((indent + "  ".join(parts)).rstrip())
    return lines


def json_line(value: Any) -> str:
    return _encode(value)


def json_document(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def print_lines(*lines: str) -> None:
    """Print lines to standard output. Control characters and unencodable characters are escaped."""
    write_text(escaped("".join(f"{line}\n" for line in lines)))


def escaped(text: str) -> str:
    """Return a text with its control characters escaped, except tabs and line ends."""
    return _CONTROL.sub(_escape, text)


def write_text(text: str) -> None:
    """Write a text to standard output as it is. Unencodable characters are escaped."""
    try:
        sys.stdout.write(text)
    except UnicodeEncodeError:
        encoding = sys.stdout.encoding or "ascii"
        sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))


def use_json_errors(is_json: bool) -> None:
    """Choose the form of later errors and warnings: one JSON object per line, or sentences."""
    global _has_json_errors
    _has_json_errors = is_json


def warn(text: str) -> None:
    """Print a message to standard error, with control characters escaped."""
    _print_error(f"tailrace: {text}", {"warning": {"message": text}})


def report_progress(text: str) -> None:
    """Print a line about running work to standard error, for a log file."""
    _print_error(f"tailrace: {text}", {"progress": {"message": text}})


def report_error(text: str, status: int, *, code: str | None = None, command: str = "tailrace") -> None:
    """Print an error to standard error. `status` is the exit status, `code` the name of a broker's error code."""
    fields: dict[str, Any] = {"message": text, "status": status}
    _print_error(f"{command}: {text}", {"error": fields if code is None else {**fields, "code": code}})


def _print_error(text: str, document: dict[str, Any]) -> None:
    sys.stdout.flush()
    print(_CONTROL.sub(_escape, json_line(document) if _has_json_errors else text), file=sys.stderr)
