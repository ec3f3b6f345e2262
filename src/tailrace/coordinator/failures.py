"""Failures: errors of one coordinator that do not stop the broker, counted and logged at a limited rate.

A fatal error (`tailrace/diagnostics/internal_errors.py`) is raised again, and stops the broker.

operations   requests and timers that failed unexpectedly, or whose records could not be encoded
skipped      records that a load could not read or replay
reloads      shards loaded again, because an appended record could not be replayed
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from tailrace.diagnostics.internal_errors import raise_fatal
from tailrace.diagnostics.limited_log import LimitedLog
from tailrace.model.ids import Offset, TopicPartition
from tailrace.protocol.errors import ProtocolError

_log = logging.getLogger(__name__)
_TEXT_MAX = 300  # characters of an error: it may quote a client's string


class Failures:
    def __init__(self) -> None:
        self.operations = 0
        self.skipped = 0
        self.reloads = 0
        self._limited_log = LimitedLog(_log)

    def run(self, operation: str, key: TopicPartition, call: Callable[[int], object], now_ms: int) -> bool:
        """Call a callback. Return False, with the failure logged, if it raised."""
        try:
            call(now_ms)
        except Exception as error:
            self.note_operation(operation, key, error, now_ms)
            return False
        return True

    def note_operation(self, operation: str, key: TopicPartition, error: Exception, now_ms: int) -> None:
        """Count an operation that failed. `operation` is a fixed phrase that names it. Values that do not fit a
        record are a client's fault; any other error is a bug, so its traceback is logged."""
        raise_fatal(error)
        self.operations += 1
        bug = None if isinstance(error, ProtocolError) else error
        self._limited_log.write(
            logging.WARNING if bug is None else logging.ERROR,
            operation,
            now_ms,
            f"coordinator: {operation} failed; only this operation is affected",
            trace=bug,
            partition=str(key),
            error=_text(error),
        )

    def note_refused(self, key: TopicPartition, records: int, error: Exception, now_ms: int) -> None:
        """Log records that the partition's log refused."""
        self._limited_log.write(
            logging.WARNING,
            "append",
            now_ms,
            "coordinator: records were not written",
            partition=str(key),
            records=records,
            error=_text(error),
        )

    def note_skipped(self, key: TopicPartition, offset: Offset, error: Exception, now_ms: int) -> None:
        """Count a record that a load skips."""
        raise_fatal(error)
        self.skipped += 1
        self._limited_log.write(
            logging.WARNING,
            "skipped",
            now_ms,
            "coordinator: a record was skipped while loading",
            partition=str(key),
            offset=offset,
            error=_text(error),
        )

    def note_reload(self, key: TopicPartition, error: Exception, now_ms: int) -> None:
        """Count a shard that is loaded again."""
        raise_fatal(error)
        self.reloads += 1
        self._limited_log.write(
            logging.ERROR,
            "reload",
            now_ms,
            "coordinator: an appended record could not be replayed; the partition is loaded again",
            trace=error,
            partition=str(key),
            error=_text(error),
        )


def _text(error: Exception) -> str:
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return text if len(text) <= _TEXT_MAX else f"{text[:_TEXT_MAX]}…"
