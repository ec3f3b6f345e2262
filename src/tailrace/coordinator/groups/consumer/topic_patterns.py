"""Regular expressions of subscriptions, matched with the names of topics (`model/patterns.py` bounds their cost)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from tailrace.coordinator.groups.group import IsVisible
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.patterns import UnusablePattern, compile_pattern

SLICE_TOPICS: Final = 1_000
SLICE_COST: Final = 2_000_000  # instructions times characters, which bounds what RE2 does


def check_pattern(pattern: str) -> None:
    """Raise INVALID_REGULAR_EXPRESSION if RE2 refuses the pattern or it is too expensive."""
    try:
        compile_pattern(pattern)
    except UnusablePattern as error:
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {error}.",
        ) from error


class PatternLookup:
    """A search for the topics that each pattern matches as a whole, done in slices of bounded cost."""

    def __init__(self, patterns: Iterable[str], topics: Iterable[str], is_visible: IsVisible) -> None:
        """`is_visible(topic)` is False for a topic that must not be found."""
        self.found: dict[str, set[str]] = {}
        self._steps = self._match(sorted(patterns), list(topics), is_visible)

    def run_slice(self) -> bool:
        """Match the next slice of topics. Return True once every pattern is done."""
        return next(self._steps, True)

    def _match(self, patterns: list[str], topics: list[str], is_visible: IsVisible) -> Iterator[bool]:
        count = cost = 0
        for pattern in patterns:
            found = self.found[pattern] = set()
            compiled = compile_pattern(pattern)
            for topic in topics:
                if count >= SLICE_TOPICS or cost >= SLICE_COST:
                    yield False
                    count = cost = 0
                if compiled.matches(topic) and is_visible(topic):
                    found.add(topic)
                count += 1
                cost += compiled.cost(topic)
