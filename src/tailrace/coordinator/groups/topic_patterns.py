"""Regular expressions that members subscribe with, looked up among the topics.

They come from clients and are matched in the broker, so they are RE2's: its time grows with the text alone, and its
syntax is that of the library in Kafka.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import re2

from tailrace.model.errors import ErrorCode, KafkaError

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False
_OPTIONS.max_mem = 1 << 20


def check_pattern(pattern: str) -> None:
    """A KafkaError for what is no regular expression."""
    try:
        re2.compile(pattern, _OPTIONS)
    except re2.error as error:
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {_description(error)}.",
        ) from error


def _description(error: Exception) -> str:
    reason = error.args[0] if error.args else ""
    return reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)


def matching_topics(patterns: Iterable[str], topics: Collection[str]) -> dict[str, frozenset[str]]:
    """The topics that each pattern matches as a whole."""
    found = {}
    for pattern in patterns:
        matches = re2.compile(pattern, _OPTIONS).fullmatch
        found[pattern] = frozenset(topic for topic in topics if matches(topic))
    return found
