"""Errors of the sink: one exception per situation. The message is one sentence."""

from __future__ import annotations

from tailrace.spark.source.errors import SourceError


class SinkError(SourceError):
    """The base class of errors of the sink."""


class UnwritableRows(SinkError):
    """Rows that cannot become records: a column of the wrong type, no topic, a partition that does not exist."""


class NotWritten(SinkError):
    """The cluster refused the records, or cannot be reached."""


class AnotherDriver(SinkError):
    """Another driver of the same query has taken over, or this checkpoint is older than the written data."""


class RowsChanged(SinkError):
    """A part of a micro-batch must be written again, but its tasks got different rows this time."""
