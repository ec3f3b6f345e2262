"""The parts of a start that one broker and the parent of several share."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from tailrace.cli.errors import CommandError

SHARDS_KEY: Final = "tailrace.shards"


def print_ready(
    listeners: Iterable[object], metrics: str | None, log_dirs: str, how: str, ready_line: str | None
) -> None:
    """Print the addresses, and the line for programs that wait."""
    places = ", ".join(map(str, listeners))
    if metrics is not None:
        places += f", metrics on {metrics},"
    print(f"tailrace serves {places} from {log_dirs} ({how})", flush=True)
    if ready_line is not None:
        print(ready_line, flush=True)


def read_credentials(sources: Sequence[str]) -> list[str]:
    """Return the lines of files (@FILE) and of standard input (-)."""
    lines: list[str] = []
    for source in sources:
        if source == "-":
            text = sys.stdin.read()
        elif source.startswith("@"):
            text = Path(source[1:]).read_text(encoding="utf-8")
        else:
            raise CommandError(
                "--add-scram: a password in an argument is visible to every user of this machine while the broker runs."
                " Write the line into a file and give --add-scram @FILE, or give --add-scram - and write it to standard"
                " input"
            )
        lines += [line for line in text.splitlines() if line.strip()]
    return lines
