"""Errors of the source: one exception per situation. The message is one sentence."""

from __future__ import annotations

from typing import Any

from tailrace.model.ids import Offset, TopicPartition


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
