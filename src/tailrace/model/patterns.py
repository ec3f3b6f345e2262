"""compile_pattern: a regular expression that a client sent, compiled by RE2 and bounded in cost.

RE2's time grows with the text alone and its syntax is that of the library in Kafka. Two costs are left, and both are
bounded here. Compiling is bounded by the length of a pattern and its repetition counts, because RE2 writes `(abc){900}`
out before it looks at the size. Matching is bounded by the size of the compiled program times the length of the text.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final

LENGTH_MAX: Final = 16_384
EXPANSION_MAX: Final = 100_000  # characters times the largest repetition count: about 20 ms
PROGRAM_SIZE_MAX: Final = 8_192  # instructions
MATCH_COST_MAX: Final = 2_100_000  # instructions times characters: about 10 ms, and any topic name is within it

_COUNTS: Final = re.compile(r"\{\d*,?\d*\}")
_NUMBER: Final = re.compile(r"\d+")


class UnusablePattern(ValueError):
    """RE2 refuses the pattern, or the pattern is too expensive."""


class Pattern:
    """A compiled pattern. `size` is the number of its instructions."""

    __slots__ = ("_compiled", "size")

    def __init__(self, compiled: Any) -> None:
        self._compiled = compiled
        self.size: int = compiled.programsize

    def cost(self, text: str) -> int:
        """Return an upper bound of the work that matching takes."""
        return self.size * len(text)

    def groups(self, text: str) -> tuple[str | None, ...] | None:
        """Return the text and the groups in it if the pattern matches the whole text. The cost is not limited."""
        found = self._compiled.fullmatch(text)
        return None if found is None else (found[0], *found.groups())

    def matches(self, text: str) -> bool:
        """Return True if the pattern matches the whole text. A text that is too expensive to match does not match."""
        return self.cost(text) <= MATCH_COST_MAX and self._compiled.fullmatch(text) is not None


def compile_pattern(pattern: str) -> Pattern:
    """Compile a pattern, or raise UnusablePattern with the reason."""
    if len(pattern) > LENGTH_MAX:
        raise UnusablePattern(f"it has {len(pattern)} characters, the limit is {LENGTH_MAX}")
    if "{" in pattern:
        _check_repetitions(pattern)
    re2, options = _engine()
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as error:
        raise UnusablePattern(_description(error)) from error
    if compiled.programsize > PROGRAM_SIZE_MAX:
        raise UnusablePattern(f"it compiles to {compiled.programsize} instructions, the limit is {PROGRAM_SIZE_MAX}")
    return Pattern(compiled)


@cache
def _engine() -> tuple[Any, Any]:
    """Return RE2 and its options. musl (Alpine) has no wheel of it, so an installation there may lack it."""
    try:
        import re2
    except ModuleNotFoundError:
        raise UnusablePattern("the broker cannot match patterns, because its Python has no google-re2") from None
    options = re2.Options()
    options.log_errors = False
    options.max_mem = 1 << 20
    return re2, options


def _check_repetitions(pattern: str) -> None:
    largest = max((int(number[:9]) for one in _COUNTS.findall(pattern) for number in _NUMBER.findall(one)), default=0)
    if largest <= 1_000 and largest * len(pattern) > EXPANSION_MAX:  # RE2 refuses counts above 1,000 by itself
        raise UnusablePattern(
            f"its largest repetition count is {largest}, the limit for {len(pattern)} characters is "
            f"{EXPANSION_MAX // len(pattern)}"
        )


def _description(error: Exception) -> str:
    reason = error.args[0] if error.args else ""
    return reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
