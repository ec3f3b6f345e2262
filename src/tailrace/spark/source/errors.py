"""What keeps the source from reading: an exception per situation, each one sentence that names the place."""

from __future__ import annotations

from typing import Any

from tailrace.model.ids import Offset, TopicPartition


class SourceError(Exception):
    """Anything that keeps the source from giving what was asked of it."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Errors travel from a task to the driver; the default would call __init__ with the sentence alone.
        return _restored, (type(self), self.args, self.__dict__)


def _restored(kind: type[SourceError], arguments: tuple[Any, ...], state: dict[str, Any]) -> SourceError:
    error = kind.__new__(kind, *arguments)
    error.__dict__.update(state)
    return error


class WrongOption(SourceError):
    """An option that is missing, unknown, or cannot be what it says."""


class UnknownLog(SourceError):
    """A topic or partition that is not there."""


class OffsetRangeLost(SourceError):
    """Records that were asked for and are no longer, or not, in the log."""

    def __init__(self, partition: TopicPartition, start: Offset, end: Offset, why: str) -> None:
        super().__init__(
            f"offsets {start} to {end - 1} of {partition} are not there: {why}; "
            'set failOnDataLoss to "false" to read what there is'
        )
        self.partition = partition


class DamagedLog(SourceError):
    """Bytes in the log that are no valid batch."""

    def __init__(self, partition: TopicPartition, offset: Offset, where: str, reason: str) -> None:
        super().__init__(f"{partition} is damaged at offset {offset} or after it ({where}): {reason}")
        self.partition = partition


class Unreadable(SourceError):
    """The files, or the cluster, cannot be reached or read."""


class NotCommitted(SourceError):
    """A consumer group does not take the offsets of a stream, and never will."""
