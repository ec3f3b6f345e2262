"""Watermarks: log start ≤ last stable ≤ high watermark ≤ log end, asserted here.

- log start: the first offset that is served; retention and DeleteRecords raise it.
- last stable: all transactions before it have ended; read_committed reads up to here.
- high watermark: all in-sync replicas have everything before it; consumers read up to here.
- log end: the next offset to be written; followers read up to here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from tailrace.log.segments.position import LogPosition
from tailrace.model.ids import Offset


class Isolation(Enum):
    """The bound of a read."""

    LOG_END = "log_end"
    READ_UNCOMMITTED = "read_uncommitted"
    READ_COMMITTED = "read_committed"


# Enum members as constants: access through the class costs a lookup, which is too slow for every read.
_LOG_END: Final = Isolation.LOG_END
_READ_COMMITTED: Final = Isolation.READ_COMMITTED


@dataclass(slots=True)
class Watermarks:
    log_start_offset: Offset
    log_end: LogPosition
    high_watermark: LogPosition
    first_unstable: LogPosition | None = None

    @property
    def log_end_offset(self) -> Offset:
        return self.log_end.offset

    @property
    def high_watermark_offset(self) -> Offset:
        return self.high_watermark.offset

    @property
    def last_stable(self) -> LogPosition:
        if self.first_unstable is not None and self.first_unstable.offset < self.high_watermark.offset:
            return self.first_unstable
        return self.high_watermark

    @property
    def last_stable_offset(self) -> Offset:
        return self.last_stable.offset

    def set_log_end(self, position: LogPosition) -> None:
        self.log_end = position

    def set_log_start(self, offset: Offset) -> None:
        self.log_start_offset = offset

    def set_high_watermark(self, position: LogPosition) -> None:
        self.high_watermark = position

    def bound(self, isolation: Isolation) -> LogPosition:
        if isolation is _LOG_END:
            return self.log_end
        if isolation is _READ_COMMITTED:
            return self.last_stable
        return self.high_watermark

    def set_first_unstable(self, first: LogPosition | None) -> None:
        """Set the start of the first open transaction, within the log; None if there is none."""
        if first is not None and first.offset < self.log_start_offset:
            first = LogPosition(self.log_start_offset)
        self.first_unstable = first

    def place(self, find: Callable[[Offset], LogPosition]) -> Watermarks:
        """Return the watermarks with the positions of offsets that have none yet."""
        if self.high_watermark.segment_base_offset < 0:
            self.high_watermark = find(self.high_watermark.offset)
        if self.first_unstable is not None and self.first_unstable.is_offset_only:
            self.first_unstable = find(self.first_unstable.offset)
        return self

    def check(self) -> None:
        assert 0 <= self.log_start_offset <= self.last_stable_offset, self
        assert self.last_stable_offset <= self.high_watermark.offset <= self.log_end.offset, self
