"""What keeps the sink from writing: an exception per situation, each one sentence that names the place."""

from __future__ import annotations

from tailrace.spark.source.errors import SourceError


class SinkError(SourceError):
    """Anything that keeps rows from being written."""


class UnwritableRows(SinkError):
    """Rows that make no records: a column of the wrong type, no topic, a partition that is not there."""


class NotWritten(SinkError):
    """The cluster did not take what was sent, or cannot be reached."""


class AnotherRun(SinkError):
    """The same query runs elsewhere and has taken over, or this checkpoint is older than what was written."""


class RowsChanged(SinkError):
    """A micro-batch has to be written again in part, and its tasks did not get the same rows again."""
