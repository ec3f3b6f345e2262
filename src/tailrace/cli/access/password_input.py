"""Reads a password from a file, from standard input or from a prompt. It is never an argument of a command.

An argument is visible to all users of a machine while the command runs, and stays in the history of the shell.
"""

from __future__ import annotations

import getpass
import sys
from pathlib import Path
from typing import Final

from tailrace.cli.errors import CommandError

_BYTES_MAX: Final = 65_536


def read_password(path: str | None, user: str) -> str:
    """Return a password. `path` is a file, or - for standard input; None asks at a terminal, else reads standard input.

    The end of the line is not part of the password.
    """
    if path is not None and path != "-":
        data = _bytes_of(Path(path))
        return _checked(data, path)
    if path is None and sys.stdin.isatty():
        password = getpass.getpass(f"password of {user}: ")
        if password != getpass.getpass("again: "):
            raise CommandError("the two passwords differ; nothing was changed")
        return _checked(password.encode(), "the password")
    return _checked(sys.stdin.buffer.read(_BYTES_MAX + 1), "standard input")


def _bytes_of(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_BYTES_MAX + 1)


def _checked(data: bytes, where: str) -> str:
    if len(data) > _BYTES_MAX:
        raise CommandError(f"{where} has more than {_BYTES_MAX:,} bytes: it is not a password")
    try:
        password = data.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise CommandError(f"{where} is not UTF-8 text") from None
    if not password:
        raise CommandError(f"{where} is empty: give a password")
    if "\n" in password:
        raise CommandError(f"{where} has several lines: give one line with the password")
    return password
