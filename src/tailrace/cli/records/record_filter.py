"""The filters --key, --grep and --header."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable

from tailrace.cli.errors import CommandError
from tailrace.records.record import Record


def record_filter(options: argparse.Namespace) -> Callable[[Record], bool]:
    """Return a function that is True for records that match all given filters."""
    tests: list[Callable[[Record], bool]] = []
    if options.key is not None:
        key = options.key.encode()
        tests.append(lambda record: record.key == key)
    if options.grep is not None:
        try:
            pattern = re.compile(options.grep.encode())
        except re.error as error:
            raise CommandError(f"--grep {options.grep!r} is not a regular expression: {error}") from None
        tests.append(
            lambda record: any(data is not None and pattern.search(data) for data in (record.key, record.value))
        )
    if options.header is not None:
        name, has_value, text = options.header.partition("=")
        value = text.encode()
        tests.append(
            lambda record: any(
                header.key == name and (not has_value or header.value == value) for header in record.headers
            )
        )
    return lambda record: all(test(record) for test in tests)
