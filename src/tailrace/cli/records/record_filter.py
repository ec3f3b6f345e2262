"""The filters --key, --grep, --header and --where."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable

from tailrace.cli.errors import CommandError
from tailrace.cli.records.record_expression import Decode, record_condition
from tailrace.model.ids import TopicPartition
from tailrace.records.record import Record


def record_filter(
    options: argparse.Namespace, decode: Decode | None = None
) -> Callable[[TopicPartition, Record], bool]:
    """Return a function that is True for records that match all given filters.

    `decode` returns the value that --where sees, if it is not JSON or text.
    """
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
    if options.where is None:
        return lambda partition, record: all(test(record) for test in tests)
    holds = record_condition(options.where)
    return lambda partition, record: all(test(record) for test in tests) and holds(partition, record, decode)
