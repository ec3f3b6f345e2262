"""Do a segment's indexes agree with its log? Checked alongside one walk over the batches.

- Each offset index entry points to where a batch starts, and names that batch's last offset.
- Each time index entry (time, offset) says that nothing up to the offset is later, and something is that late.
- The last time index entry of a sealed segment is its largest timestamp, or lookups by time would pass it over.

Behind damage in the log nothing is known about the batches that are missing; entries there are not judged.
"""

from __future__ import annotations

from collections.abc import Callable

from tailrace.log.inspect.findings import Finding
from tailrace.log.segments.batch_walk import BatchHeader
from tailrace.log.segments.indexes.index_file import CorruptIndex
from tailrace.log.segments.indexes.offset_index import OffsetIndex
from tailrace.log.segments.indexes.time_index import TimeIndex
from tailrace.model.ids import NO_TIMESTAMP, Offset
from tailrace.records.batch import Buffer

Report = Callable[[Finding], None]
_MOST_REPORTED = 3  # of one kind in one file: what is wrong with one entry is mostly wrong with the next


class _Complaints:
    """Reports the first few complaints about a file, then how many there were."""

    def __init__(self, path: str, report: Report) -> None:
        self._path = path
        self._report = report
        self.count = 0

    def add(self, message: str, slot: int, entry_size: int) -> None:
        self.count += 1
        if self.count <= _MOST_REPORTED:
            self._report(Finding(self._path, message, slot * entry_size))

    def finish(self) -> None:
        if self.count > _MOST_REPORTED:
            self._report(Finding(self._path, f"and {self.count - _MOST_REPORTED} more entries are wrong"))


class OffsetIndexCheck:
    def __init__(self, index: OffsetIndex, report: Report) -> None:
        self._index = index
        self._complaints = _Complaints(index.file.path, report)
        self._slot = 0
        self.entries = index.count
        self.is_in_order = True
        self._check_growth()

    @property
    def usable(self) -> OffsetIndex | None:
        """The index, if its entries are in order and can be searched."""
        return self._index if self.is_in_order else None

    def _check_growth(self) -> None:
        try:
            self._index.check()
        except CorruptIndex as error:
            self._complaints.add(str(error).removeprefix(f"{error.path}: "), 0, 8)
            self.is_in_order = False
            self._slot = self.entries  # entries out of order cannot be followed along the log

    def batch(self, header: BatchHeader) -> None:
        while self._slot < self.entries:
            entry = self._index.entry(self._slot)
            if entry.position > header.position:
                return
            if entry.position < header.position:
                self._complain(f"points into the middle of a batch, or before the log: {_told(entry)}")
            elif entry.offset != header.last_offset:
                self._complain(f"{_told(entry)}, but the batch there ends with offset {header.last_offset}")
            self._slot += 1

    def damage(self, position: int, goes_on: int) -> None:
        """The log cannot be read from `position` up to `goes_on`; the entries in between are not judged."""
        self._skip_to(position)
        while self._slot < self.entries and self._index.entry(self._slot).position < goes_on:
            self._slot += 1

    def _skip_to(self, position: int) -> None:
        while self._slot < self.entries and self._index.entry(self._slot).position < position:
            self._complain(f"points into the middle of a batch: {_told(self._index.entry(self._slot))}")
            self._slot += 1

    def finish(self, size: int) -> None:
        while self._slot < self.entries:
            entry = self._index.entry(self._slot)
            past = "past the end of the log" if entry.position >= size else "into the middle of a batch"
            self._complain(f"points {past}: {_told(entry)}")
            self._slot += 1
        self._complaints.finish()

    def _complain(self, message: str) -> None:
        self._complaints.add(f"entry {self._slot} {message}", self._slot, 8)


def _told(entry: tuple[int, int]) -> str:
    return f"offset {entry[0]} at position {entry[1]}"


class TimeIndexCheck:
    def __init__(self, index: TimeIndex, report: Report) -> None:
        self._index = index
        self._complaints = _Complaints(index.file.path, report)
        self._slot = 0
        self.entries = index.count
        self.largest = NO_TIMESTAMP
        self._is_exact = True
        try:
            index.check()
        except CorruptIndex as error:
            self._complaints.add(str(error).removeprefix(f"{error.path}: "), 0, 12)
            self._is_exact = False

    def batch(self, header: BatchHeader) -> None:
        self.largest = max(self.largest, header.max_timestamp)
        while self._is_exact and self._slot < self.entries:
            timestamp, offset = self._index.entry(self._slot)
            if offset > header.last_offset:
                return
            if timestamp != self.largest:
                self._complain(
                    f"says that offsets up to {offset} have times up to {timestamp}, but they go up to {self.largest}"
                )
            self._slot += 1

    def damage(self) -> None:
        self._is_exact = False

    def finish(self, *, is_sealed: bool, end_offset: Offset) -> None:
        if self._is_exact:
            for slot in range(self._slot, self.entries):
                self._slot = slot
                self._complain(f"names offset {self._index.entry(slot).offset}, past the log's last {end_offset - 1}")
            if is_sealed and self._index.last().timestamp < self.largest:
                self._complaints.add(
                    f"ends with time {self._index.last().timestamp}, but the segment goes up to {self.largest}: "
                    "lookups by time pass it over",
                    max(self.entries - 1, 0),
                    12,
                )
        self._complaints.finish()

    def _complain(self, message: str) -> None:
        self._complaints.add(f"entry {self._slot} {message}", self._slot, 12)


def loaded(data: Callable[[], Buffer], report: Report) -> bool:
    """Whether an index's bytes can be used at all."""
    try:
        data()
    except CorruptIndex as error:
        report(Finding(error.path, str(error).removeprefix(f"{error.path}: ")))
        return False
    return True
