"""Durability: the recovery point, up to which a log is certainly on disk, and the flushes that move it."""

from __future__ import annotations

from tailrace.log.leader_epochs import LeaderEpochs
from tailrace.log.segments.segment_list import SegmentList
from tailrace.log.watermarks import Watermarks
from tailrace.model.ids import Offset


class Durability:
    __slots__ = ("_epochs", "_is_cut", "_marks", "_segments", "last_flush_ms", "recovery_point")

    def __init__(
        self, segments: SegmentList, marks: Watermarks, epochs: LeaderEpochs, recovery_point: Offset, now_ms: int
    ) -> None:
        self._segments = segments
        self._marks = marks
        self._epochs = epochs
        self.recovery_point = recovery_point
        self.last_flush_ms = now_ms
        self._is_cut = False  # True if files were truncated since the last flush

    def flush(self, now_ms: int) -> None:
        """Make everything durable."""
        end = self._marks.log_end.offset
        if self._is_cut or end > self.recovery_point:
            self._flush_segments(end + 1)
            self._is_cut = False
            self.note_flushed(end, now_ms)

    def flush_to(self, offset: Offset, now_ms: int) -> None:
        """Make everything below `offset` durable."""
        offset = min(offset, self._marks.log_end.offset)  # a truncation may have happened meanwhile
        if offset > self.recovery_point:
            self._flush_segments(offset)
            self.note_flushed(offset, now_ms)

    def _flush_segments(self, end: Offset) -> None:
        # Names are durable since the next segment was created, and recovery reads the last segment anyway.
        for segment in self._segments.between(self.recovery_point, end):
            segment.flush()

    def note_flushed(self, offset: Offset, now_ms: int) -> None:
        """Move the recovery point to `offset`, once the epochs are durable too, because recovery does not search for
        them."""
        if offset > self.recovery_point:
            self.last_flush_ms = now_ms
            if self._epochs.make_durable(self._marks.log_end.offset):
                self.recovery_point = offset

    def note_cut(self, end: Offset) -> None:
        """Lower the recovery point to the new end of the log. The next flush makes the cut durable."""
        self._is_cut = True
        self.recovery_point = min(self.recovery_point, end)

    def note_start(self, start: Offset) -> None:
        """Raise the recovery point to the new log start, because the records below are deleted."""
        self.recovery_point = max(self.recovery_point, start)

    def begin_if_due(self, now_ms: int, flush_ms: int) -> bool:
        """Return True if a flush has to begin: there is unflushed data, and the last flush was `flush_ms` ago."""
        is_due = self._marks.log_end.offset > self.recovery_point and now_ms - self.last_flush_ms >= flush_ms
        if is_due:
            self.last_flush_ms = now_ms
        return is_due
