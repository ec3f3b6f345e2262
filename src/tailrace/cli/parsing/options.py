"""Options and value types that several commands share."""

from __future__ import annotations

import argparse
from textwrap import dedent
from typing import TypeAlias

Parsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
DEFAULT_BOOTSTRAP = "127.0.0.1:9092"
DEFAULT_METRICS = "127.0.0.1:9404"
ENCODINGS = ("utf8", "base64", "hex")
PROFILE = "cluster in ~/.config/tailrace/profiles.toml"
COMMAND_CONFIG = "properties file of a Kafka client, for a secured listener: security.protocol, ssl.…, sasl.…"
DRY_RUN = "let the broker validate the request, and change nothing"

_UNITS = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3}


def described(parser: argparse.ArgumentParser, description: str, epilog: str = "") -> argparse.ArgumentParser:
    """Give a parser its description and examples, and return it."""
    parser.description = dedent(description).strip()
    parser.epilog = dedent(epilog).strip()
    parser.formatter_class = _Help
    return parser


class _Help(argparse.RawDescriptionHelpFormatter):
    """argparse's help with a wider column for options, and without the line that repeats COMMAND."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=32)

    def _format_action(self, action: argparse.Action) -> str:
        text = super()._format_action(action)
        return text.partition("\n")[2] if isinstance(action, argparse._SubParsersAction) else text


def add_json(parser: argparse._ActionsContainer, help_text: str, *short: str) -> None:
    parser.add_argument(*short, "--json", action="store_true", help=help_text)


def add_yes(parser: argparse.ArgumentParser, help_text: str) -> None:
    """Add the option of a command that without it only shows what it would change."""
    parser.add_argument("--yes", action="store_true", help=f"{help_text} (default: show them, and change nothing)")


def positive(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 65_535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a valid port (0 to 65535)")
    return int(text)


def cluster_id(text: str) -> str:
    """Return an id of 16 bytes in the base64 of URLs, which has 22 characters."""
    from base64 import urlsafe_b64decode

    try:
        is_valid = len(text) == 22 and len(urlsafe_b64decode(f"{text}==")) == 16
    except ValueError:
        is_valid = False
    if not is_valid:
        raise argparse.ArgumentTypeError(f"{text!r} is not a cluster id: 16 bytes as 22 characters of base64")
    return text


def timestamp(text: str) -> int:
    """Return milliseconds since 1970. `text` is that number, or ISO 8601 (UTC if it has no time zone)."""
    from datetime import UTC, datetime

    try:
        if text.removeprefix("-").isdecimal():
            milliseconds = int(text)
        else:
            moment = datetime.fromisoformat(text)
            since = moment.replace(tzinfo=moment.tzinfo or UTC) - datetime(1970, 1, 1, tzinfo=UTC)
            milliseconds = (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a time: give milliseconds since 1970, or ISO 8601 such as 2026-01-31T12:00:00Z"
        ) from None
    if milliseconds < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is before 1970; timestamps of records start there")
    return milliseconds


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """Add the options of every command that connects to a cluster."""
    group = parser.add_argument_group("connection")
    group.add_argument(
        "-b",
        "--bootstrap",
        "--bootstrap-server",
        metavar="HOST:PORT",
        dest="bootstrap",
        help="broker to connect to first, or several separated by commas "
        f"(default: that of --profile, then $TAILRACE_BOOTSTRAP, then {DEFAULT_BOOTSTRAP})",
    )
    group.add_argument("--profile", metavar="NAME", help=PROFILE)
    add_client(group)
    group.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=seconds,
        default=30.0,
        help="time limit of a request with its retries (default: 30)",
    )


def add_client(group: argparse._ActionsContainer) -> None:
    """Add the options with settings of a Kafka client."""
    group.add_argument("--command-config", metavar="FILE", help=COMMAND_CONFIG)
    group.add_argument(
        "-X",
        dest="client_settings",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="a setting of a Kafka client or of kcat; overrides the file (may be repeated)",
    )


def add_partition(parser: argparse.ArgumentParser, *short: str) -> None:
    parser.add_argument(
        *short, "--partition", metavar="N", type=natural, action="append", help="only this partition (may be repeated)"
    )


def add_isolation(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--isolation",
        choices=("read_committed", "read_uncommitted"),
        default="read_uncommitted",
        help="read_committed stops at the first open transaction (default: read_uncommitted)",
    )


def natural(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 0")
    return int(text)


def minutes(text: str) -> float:
    return _duration(text, "minutes", is_zero_allowed=True)


def seconds(text: str) -> float:
    return _duration(text, "seconds", is_zero_allowed=False)


def seconds_or_zero(text: str) -> float:
    return _duration(text, "seconds", is_zero_allowed=True)


def _duration(text: str, unit: str, *, is_zero_allowed: bool) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if 0 < number < 1e6 or (number == 0 and is_zero_allowed):
        return number
    lowest = "at least 0" if is_zero_allowed else "above 0"
    raise argparse.ArgumentTypeError(f"{text!r} is not a number of {unit} ({lowest}, below 1,000,000)")


def size(text: str) -> int:
    """Return a number of bytes, such as 134217728, 128m or 2g."""
    digits, unit = (text[:-1], text[-1:].lower()) if text[-1:].lower() in _UNITS else (text, "")
    if not digits.isascii() or not digits.isdigit() or int(digits) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size such as 134217728, 128m or 2g")
    return int(digits) * _UNITS[unit]


def broker_id(text: str) -> int | str:
    return text if text == "default" else natural(text)
