"""Regular expressions of subscriptions, matched with the names of topics.

Clients send them and the broker matches them, so they are RE2 patterns: the time is linear in the text, and the syntax
is that of Kafka's library.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import re2

from tailrace.coordinator.groups.consumer.consumer_heartbeat import Sees
from tailrace.model.errors import ErrorCode, KafkaError

PROGRAM_SIZE_MAX: Final = 8_192  # instructions: the longest topic name takes about 10 ms at worst
SLICE_TOPICS: Final = 1_000
SLICE_COST: Final = 2_000_000  # instructions times characters, which bounds what RE2 does

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False
_OPTIONS.max_mem = 1 << 20


def check_pattern(pattern: str) -> None:
    """Raise INVALID_REGULAR_EXPRESSION if RE2 refuses the pattern or its program is too large."""
    try:
        size = re2.compile(pattern, _OPTIONS).programsize
    except re2.error as error:
        raise _invalid(pattern, _description(error)) from error
    if size > PROGRAM_SIZE_MAX:
        raise _invalid(pattern, f"it compiles to {size} instructions, the limit is {PROGRAM_SIZE_MAX}")


def _invalid(pattern: str, reason: str) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_REGULAR_EXPRESSION,
        f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {reason}.",
    )


def _description(error: Exception) -> str:
    reason = error.args[0] if error.args else ""
    return reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)


class PatternLookup:
    """A search for the topics that each pattern matches as a whole, done in slices of bounded cost."""

    def __init__(self, patterns: Iterable[str], topics: Iterable[str], sees: Sees) -> None:
        """`sees(topic)` is False for a topic that must not be found."""
        self.found: dict[str, set[str]] = {}
        self._steps = self._match(sorted(patterns), list(topics), sees)

    def run_slice(self) -> bool:
        """Match the next slice of topics. Return True once every pattern is done."""
        return next(self._steps, True)

    def _match(self, patterns: list[str], topics: list[str], sees: Sees) -> Iterator[bool]:
        count = cost = 0
        for pattern in patterns:
            found = self.found[pattern] = set()
            compiled = re2.compile(pattern, _OPTIONS)
            for topic in topics:
                if count >= SLICE_TOPICS or cost >= SLICE_COST:
                    yield False
                    count = cost = 0
                if compiled.fullmatch(topic) and sees(topic):
                    found.add(topic)
                count += 1
                cost += compiled.programsize * len(topic)
