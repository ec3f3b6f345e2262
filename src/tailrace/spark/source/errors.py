"""Errors of the source: one exception per situation. The message is one sentence.

Spark's Python workers put their stack before the message of an error. A user who has misspelled an option needs the
message only, so methods that Spark calls are marked with `message_only`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from tailrace.model.ids import Offset, TopicPartition

# Spark's worker reads this variable when it reports an error. After that, the worker ends.
_HIDE_TRACEBACK: Final = "SPARK_HIDE_TRACEBACK"


class SourceError(Exception):
    """The base class of errors of the source. `is_transient` is True if a later try may succeed."""

    is_transient = False

    def __reduce__(self) -> tuple[Any, ...]:
        # Errors are pickled from a task to the driver. The default would call __init__ with the message only.
        return _restored, (type(self), self.args, self.__dict__)


def _restored(kind: type[SourceError], arguments: tuple[Any, ...], state: dict[str, Any]) -> SourceError:
    error = kind.__new__(kind, *arguments)
    error.__dict__.update(state)
    return error


class WrongOption(SourceError):
    """An option that is missing, unknown or invalid."""


class UnknownLog(SourceError):
    """A topic or partition that does not exist."""


class OffsetRangeLost(SourceError):
    """Requested records that are not, or no longer, in the log."""

    def __init__(self, partition: TopicPartition, start: Offset, end: Offset, reason: str) -> None:
        super().__init__(
            f"offsets {start} to {end - 1} of {partition} are missing: {reason}; "
            'set failOnDataLoss to "false" to read the remaining records'
        )
        self.partition = partition


class DamagedLog(SourceError):
    """Bytes in the log that are not a valid batch."""

    def __init__(self, partition: TopicPartition, offset: Offset, where: str, reason: str) -> None:
        super().__init__(f"{partition} is damaged at offset {offset} or after it ({where}): {reason}")
        self.partition = partition


class Unreadable(SourceError):
    """The files, or the cluster, cannot be reached or read."""

    def __init__(self, text: str, *, is_transient: bool = False) -> None:
        super().__init__(text)
        self.is_transient = is_transient


class NotCommitted(SourceError):
    """A consumer group permanently refuses the offsets of a stream."""


@contextmanager
def message_only() -> Iterator[None]:
    """Let Spark's worker report a SourceError without a stack, unless TAILRACE_DEBUG is set. Usable as a decorator."""
    try:
        yield
    except SourceError:
        if _is_in_worker() and not os.environ.get("TAILRACE_DEBUG"):
            os.environ[_HIDE_TRACEBACK] = "1"
        raise


def _is_in_worker() -> bool:
    """Return True in a process that Spark has started, where a later error of the user's own code cannot occur."""
    main = getattr(sys.modules["__main__"], "__spec__", None)
    return main is not None and str(main.name).startswith("pyspark.")
