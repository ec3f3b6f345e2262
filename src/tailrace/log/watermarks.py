"""Watermarks: log start ≤ last stable ≤ high watermark ≤ log end, asserted here.

- log start: the first offset that is served; retention and DeleteRecords move it up.
- last stable: everything before it is decided; read_committed ends here.
- high watermark: everything before it is on all in-sync replicas; consumers end here.
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


# A member of an enum is looked up anew each time that it is named: too slow for what every read does.
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

    def bound(self, isolation: Isolation) -> LogPosition:
        if isolation is _LOG_END:
            return self.log_end
        if isolation is _READ_COMMITTED:
            return self.last_stable
        return self.high_watermark

    def set_first_unstable(self, first: LogPosition | None) -> None:
        """Set where the first undecided transaction begins, within the log; None if there is none."""
        if first is not None and first.offset < self.log_start_offset:
            first = LogPosition(self.log_start_offset)
        self.first_unstable = first

    def place(self, find: Callable[[Offset], LogPosition]) -> Watermarks:
        """These, once what is known by number only has been found."""
        if self.high_watermark.segment_base_offset < 0:
            self.high_watermark = find(self.high_watermark.offset)
        if self.first_unstable is not None and self.first_unstable.is_offset_only:
            self.first_unstable = find(self.first_unstable.offset)
        return self

    def check(self) -> None:
        assert 0 <= self.log_start_offset <= self.last_stable_offset, self
        assert self.last_stable_offset <= self.high_watermark.offset <= self.log_end.offset, self
