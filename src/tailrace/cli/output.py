"""How the command line shows things: aligned tables, sizes and times for people, JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS = ("B", "KB", "MB", "GB", "TB", "PB")
NOTHING = "-"
# Made once: there may be millions of lines.
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def size_text(size: int) -> str:
    """Bytes for people: 532 B, 17.3 KB, 1.0 GB; a KB has 1024 bytes."""
    amount, unit = float(size), 0
    while amount >= 1023.95 and unit < len(_UNITS) - 1:
        amount /= 1024
        unit += 1
    return f"{size} B" if unit == 0 else f"{amount:.1f} {_UNITS[unit]}"


def time_text(timestamp_ms: int) -> str:
    """A Kafka timestamp in UTC, to the millisecond; the number itself where no calendar has it."""
    if timestamp_ms < 0:
        return NOTHING
    try:
        moment = _EPOCH + timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        return str(timestamp_ms)
    return f"{moment:%Y-%m-%d %H:%M:%S}.{timestamp_ms % 1000:03d}"


def count_text(count: int, one: str, many: str | None = None) -> str:
    """1 segment, 2 segments."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def table(heads: Sequence[str], rows: Iterable[Sequence[object]], *, indent: str = "") -> list[str]:
    """Lines of an aligned table. A column of numbers and sizes is set to the right; `<NAME` sets one to the left."""
    names = [head.removeprefix("<") for head in heads]
    cells = [[NOTHING if cell is None else str(cell) for cell in row] for row in rows]
    widths = [max([len(names[n]), *(len(row[n]) for row in cells)]) for n in range(len(names))]
    lines = []
    for row in [names, *cells]:
        parts = [
            text.ljust(width) if head.startswith("<") else text.rjust(width)
            for head, text, width in zip(heads, row, widths, strict=True)
        ]
        lines.append((indent + "  ".join(parts)).rstrip())
    return lines


def json_line(value: Any) -> str:
    return _encode(value)


def json_document(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def say(*lines: str) -> None:
    """Print lines; text that the terminal's encoding lacks is escaped and never an error."""
    text = "".join(f"{line}\n" for line in lines)
    try:
        sys.stdout.write(text)
    except UnicodeEncodeError:
        encoding = sys.stdout.encoding or "ascii"
        sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))


def warn(text: str) -> None:
    sys.stdout.flush()
    print(f"tailrace: {text}", file=sys.stderr)
