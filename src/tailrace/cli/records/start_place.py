"""Values of --from: `beginning`, `latest`, an offset, a number of offsets before the end, or a time."""

from __future__ import annotations

import argparse
from enum import Enum
from typing import NamedTuple

from tailrace.cli.parsing.options import timestamp


class Start(Enum):
    BEGINNING = "beginning"
    LATEST = "latest"
    OFFSET = "offset"
    BEFORE_END = "before the end"
    TIME = "time"


class StartPlace(NamedTuple):
    start: Start
    number: int = 0  # the offset, the number of offsets before the end, or milliseconds since 1970


def start_place(text: str) -> StartPlace:
    if text in ("beginning", "earliest"):
        return StartPlace(Start.BEGINNING)
    if text in ("latest", "end"):
        return StartPlace(Start.LATEST)
    digits = text.removeprefix("-")
    if digits.isascii() and digits.isdigit():
        return StartPlace(Start.BEFORE_END if text.startswith("-") else Start.OFFSET, int(digits))
    try:
        return StartPlace(Start.TIME, timestamp(text.removeprefix("s@").removeprefix("@")))
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a start: give beginning, latest, an offset, -N for the last N offsets, "
            "@milliseconds since 1970, or a time such as 2026-01-31T12:00:00Z"
        ) from None
