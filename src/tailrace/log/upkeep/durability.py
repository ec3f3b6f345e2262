"""Durability: the recovery point, up to which a log is certainly on disk, and the flushes that move it.

The name of a new segment becomes durable with the next flush, like the records in it. Recovery notices a missing
segment between two others, unless offsets may jump there.
"""

from __future__ import annotations

from collections.abc import Callable

from tailrace.log.leader_epochs import LeaderEpochs
from tailrace.log.segments.segment_list import SegmentList
from tailrace.log.watermarks import Watermarks
from tailrace.model.ids import Offset


class Durability:
    __slots__ = (
        "_durable_names", "_epochs", "_is_cut", "_marks", "_segments", "_sync_folder", "last_flush_ms", "names",
        "recovery_point",
    )  # fmt: skip

    def __init__(
        self,
        segments: SegmentList,
        marks: Watermarks,
        epochs: LeaderEpochs,
        recovery_point: Offset,
        now_ms: int,
        sync_folder: Callable[[], None],
    ) -> None:
        self._segments = segments
        self._marks = marks
        self._epochs = epochs
        self._sync_folder = sync_folder
        self.names = self._durable_names = 0  # segments created, and how many of them have a durable name
        self.recovery_point = recovery_point
        self.last_flush_ms = now_ms
        self._is_cut = False  # True if files were truncated since the last flush

    def flush(self, now_ms: int) -> None:
        """Make everything durable."""
        self.sync_names()
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
        for segment in self._segments.between(self.recovery_point, end):
            segment.flush()
        self.sync_names()

    # Names

    @property
    def has_durable_names(self) -> bool:
        return self._durable_names == self.names

    def note_name(self) -> None:
        """Note a new segment whose name is not durable yet."""
        self.names += 1

    def note_names_synced(self, names: int) -> None:
        """Note that the folder was synced when it had had `names` new segments."""
        self._durable_names = max(self._durable_names, names)

    def sync_names(self) -> None:
        if not self.has_durable_names:
            self._sync_folder()
            self.note_names_synced(self.names)

    # The recovery point

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
        """Raise the recovery point to the new log start, because the records below are deleted for good."""
        if self._segments.first.base_offset >= start:  # otherwise the log was emptied and started elsewhere
            self.recovery_point = max(self.recovery_point, start)

    def begin_if_due(self, now_ms: int, flush_ms: int) -> bool:
        """Return True if a flush has to begin: there is unflushed data, and the last flush was `flush_ms` ago."""
        is_due = self._marks.log_end.offset > self.recovery_point and now_ms - self.last_flush_ms >= flush_ms
        if is_due:
            self.last_flush_ms = now_ms
        return is_due
