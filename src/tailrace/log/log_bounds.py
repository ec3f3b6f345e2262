"""LogBounds: moves the high watermark and the first unstable offset of a log, and finds the positions of the bounds."""

from __future__ import annotations

from typing import Final

from tailrace.log.producers.producer_states import ProducerStates
from tailrace.log.reading.log_read import locate
from tailrace.log.segments.position import LogPosition
from tailrace.log.segments.segment_list import SegmentList
from tailrace.log.watermarks import Isolation, Watermarks
from tailrace.model.ids import Offset

_LOG_END: Final = Isolation.LOG_END  # naming a member through its class is a lookup, too slow for every read


class LogBounds:
    __slots__ = ("_marks", "_producers", "_segments")

    def __init__(self, segments: SegmentList, marks: Watermarks, producers: ProducerStates) -> None:
        self._segments = segments
        self._marks = marks
        self._producers = producers
        self.update_first_unstable()

    def advance_high_watermark(self, offset: Offset) -> bool:
        """Move the high watermark up to `offset`, within the log's bounds. Return True if it moved."""
        marks = self._marks
        known, end = marks.high_watermark.offset, marks.log_end.offset
        if offset < marks.log_start_offset:
            offset = marks.log_start_offset
        if offset > end:
            offset = end
        if offset <= known:
            return False
        self.set_high_watermark(offset)
        return True

    def set_high_watermark(self, offset: Offset) -> None:
        """Move the high watermark, up or down."""
        marks, producers = self._marks, self._producers
        marks.set_high_watermark(marks.log_end if offset >= marks.log_end.offset else LogPosition(offset))
        if producers.ended_transactions:
            producers.high_watermark_moved(offset)
        if marks.first_unstable is not None or producers.open_transactions:
            self.update_first_unstable()

    def update_first_unstable(self) -> None:
        self._marks.set_first_unstable(self._producers.first_unstable)

    def placed_marks(self) -> Watermarks:
        """Return the bounds with their positions, valid until the log changes."""
        marks = self._marks
        if marks.high_watermark.segment_base_offset < 0 or marks.first_unstable is not None:
            marks.place(self._position_of)
        return marks

    def read_bounds(self, isolation: Isolation) -> tuple[Watermarks, LogPosition, Offset]:
        """Return the bounds, the upper bound of a read, and the last stable offset. They are valid until the log
        changes."""
        marks = self._marks
        high_watermark = marks.high_watermark
        if high_watermark.segment_base_offset < 0 or marks.first_unstable is not None:
            marks.place(self._position_of)
            return marks, marks.bound(isolation), marks.last_stable.offset
        # Without open transactions the last stable offset is the high watermark.
        return marks, marks.log_end if isolation is _LOG_END else high_watermark, high_watermark.offset

    def snapshot_marks(self) -> Watermarks:
        """Return a copy of the bounds with their positions, which a later append does not change."""
        marks = self.placed_marks()
        return Watermarks(marks.log_start_offset, marks.log_end, marks.high_watermark, marks.first_unstable)

    def _position_of(self, offset: Offset) -> LogPosition:
        return locate(self._segments, self._marks, offset)._replace(offset=offset)
