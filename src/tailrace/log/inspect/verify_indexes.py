"""Checks that a segment's indexes agree with its log, during one walk over the batches.

- Each offset index entry points to the start of a batch, and has that batch's last offset.
- For each time index entry (time, offset), no record up to the offset is later, and one has that time.
- The last time index entry of a sealed segment has its largest timestamp. Otherwise lookups by time would skip the
  segment.

After damage in the log the missing batches are unknown, so entries there are not checked.
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
_REPORTED_MAX = 3  # per kind and file, because consecutive entries usually have the same problem


class _Problems:
    """Reports the first few problems of a file, then their number."""

    def __init__(self, path: str, report: Report) -> None:
        self._path = path
        self._report = report
        self.count = 0

    def add(self, message: str, slot: int, entry_size: int) -> None:
        self.count += 1
        if self.count <= _REPORTED_MAX:
            self._report(Finding(self._path, message, slot * entry_size))

    def finish(self) -> None:
        if self.count > _REPORTED_MAX:
            self._report(Finding(self._path, f"and {self.count - _REPORTED_MAX} more entries are wrong"))


class OffsetIndexCheck:
    def __init__(self, index: OffsetIndex, report: Report) -> None:
        self._index = index
        self._problems = _Problems(index.file.path, report)
        self._slot = 0
        self.entries = index.count
        self.is_in_order = True
        self._check_growth()

    @property
    def usable(self) -> OffsetIndex | None:
        """Return the index if its entries are in order and can be searched."""
        return self._index if self.is_in_order else None

    def _check_growth(self) -> None:
        try:
            self._index.check()
        except CorruptIndex as error:
            self._problems.add(str(error).removeprefix(f"{error.path}: "), 0, 8)
            self.is_in_order = False
            self._slot = self.entries  # entries out of order cannot be compared with the log

    def batch(self, header: BatchHeader) -> None:
        while self._slot < self.entries:
            entry = self._index.entry(self._slot)
            if entry.position > header.position:
                return
            if entry.position < header.position:
                self._add_problem(f"points into the middle of a batch, or before the log: {_described(entry)}")
            elif entry.offset != header.last_offset:
                self._add_problem(f"{_described(entry)}, but the batch there ends with offset {header.last_offset}")
            self._slot += 1

    def damage(self, position: int, resume_at: int) -> None:
        """Skip the entries between `position` and `resume_at`, where the log cannot be read."""
        self._skip_to(position)
        while self._slot < self.entries and self._index.entry(self._slot).position < resume_at:
            self._slot += 1

    def _skip_to(self, position: int) -> None:
        while self._slot < self.entries and self._index.entry(self._slot).position < position:
            self._add_problem(f"points into the middle of a batch: {_described(self._index.entry(self._slot))}")
            self._slot += 1

    def finish(self, size: int) -> None:
        while self._slot < self.entries:
            entry = self._index.entry(self._slot)
            past = "beyond the end of the log" if entry.position >= size else "into the middle of a batch"
            self._add_problem(f"points {past}: {_described(entry)}")
            self._slot += 1
        self._problems.finish()

    def _add_problem(self, message: str) -> None:
        self._problems.add(f"entry {self._slot} {message}", self._slot, 8)


def _described(entry: tuple[int, int]) -> str:
    return f"offset {entry[0]} at position {entry[1]}"


class TimeIndexCheck:
    def __init__(self, index: TimeIndex, report: Report) -> None:
        self._index = index
        self._problems = _Problems(index.file.path, report)
        self._slot = 0
        self.entries = index.count
        self.largest = NO_TIMESTAMP
        self._is_exact = True
        try:
            index.check()
        except CorruptIndex as error:
            self._problems.add(str(error).removeprefix(f"{error.path}: "), 0, 12)
            self._is_exact = False

    def batch(self, header: BatchHeader) -> None:
        self.largest = max(self.largest, header.max_timestamp)
        while self._is_exact and self._slot < self.entries:
            timestamp, offset = self._index.entry(self._slot)
            if offset > header.last_offset:
                return
            if timestamp != self.largest:
                self._add_problem(f"has time {timestamp} for offsets up to {offset}, but the largest is {self.largest}")
            self._slot += 1

    def damage(self) -> None:
        self._is_exact = False

    def finish(self, *, is_sealed: bool, end_offset: Offset) -> None:
        if self._is_exact:
            for slot in range(self._slot, self.entries):
                self._slot = slot
                self._add_problem(
                    f"has offset {self._index.entry(slot).offset}, but the log's last is {end_offset - 1}"
                )
            if is_sealed and self._index.last().timestamp < self.largest:
                self._problems.add(
                    f"ends with time {self._index.last().timestamp}, but the segment's largest time is {self.largest}: "
                    "lookups by time skip the segment",
                    max(self.entries - 1, 0),
                    12,
                )
        self._problems.finish()

    def _add_problem(self, message: str) -> None:
        self._problems.add(f"entry {self._slot} {message}", self._slot, 12)


def loaded(data: Callable[[], Buffer], report: Report) -> bool:
    """Return True if an index's bytes can be used."""
    try:
        data()
    except CorruptIndex as error:
        report(Finding(error.path, str(error).removeprefix(f"{error.path}: ")))
        return False
    return True
