"""LogBounds: the high watermark and the first unstable offset of a log as they move, and the bounds' positions."""

from __future__ import annotations

from tailrace.log.producers.producer_states import ProducerStates
from tailrace.log.reading.log_read import locate
from tailrace.log.segments.position import LogPosition
from tailrace.log.segments.segment_list import SegmentList
from tailrace.log.watermarks import Watermarks
from tailrace.model.ids import Offset


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
        offset = min(max(offset, marks.log_start_offset), marks.log_end.offset)
        if offset <= marks.high_watermark.offset:
            return False
        self.set_high_watermark(offset)
        return True

    def set_high_watermark(self, offset: Offset) -> None:
        """Move the high watermark, up or down."""
        marks, producers = self._marks, self._producers
        marks.high_watermark = marks.log_end if offset >= marks.log_end.offset else LogPosition(offset)
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

    def snapshot_marks(self) -> Watermarks:
        """Return a copy of the bounds with their positions: a later append does not change it."""
        marks = self.placed_marks()
        return Watermarks(marks.log_start_offset, marks.log_end, marks.high_watermark, marks.first_unstable)

    def _position_of(self, offset: Offset) -> LogPosition:
        return locate(self._segments, self._marks, offset)._replace(offset=offset)
