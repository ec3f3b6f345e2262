"""InFlightBatch: records of a share group that are in flight, and the delivery state of each.

                     acquire                    accept
    AVAILABLE ─────────────────► ACQUIRED ─────────────────► ACKNOWLEDGED
        ▲                         │   │    reject, a gap, or delivered too often
        └── release, timeout ─────┘   └────────────────────► ARCHIVED

Kafka keeps one state for a whole batch until its records differ, and then one for every offset. Here a batch is first
one run of records, and is cut into shorter runs where the records differ. The states are the same, and changing a run
costs the same for any length. `by_offset` notes that Kafka would look at single offsets.

A change of state that is not yet persisted can be undone. Until then the run has a `rollback`, and no other change is
allowed. A piece that is cut off has the same `rollback`.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from enum import IntEnum
from operator import attrgetter
from typing import NamedTuple

_FIRST = attrgetter("first_offset")

NOBODY = ""  # the member of records that nobody has acquired


class RecordState(IntEnum):
    """The states, with their persisted numbers. Number 3 was reserved for records being archived, and is never used."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVED = 4


_ACKNOWLEDGED, _ARCHIVED = RecordState.ACKNOWLEDGED, RecordState.ARCHIVED


class Rollback(NamedTuple):
    state: RecordState
    member_id: str
    delivery_count_limit: int


@dataclass(slots=True, eq=False)
class RecordRun:
    """Consecutive records with the same state."""

    first_offset: int
    last_offset: int
    state: RecordState
    delivery_count: int
    member_id: str = NOBODY
    deadline_ms: int | None = None  # when the acquisition lock expires
    rollback: Rollback | None = None
    is_final: bool = False  # stays archived even if the pending change fails

    def __len__(self) -> int:
        return self.last_offset - self.first_offset + 1

    @property
    def is_terminal(self) -> bool:
        return self.state is _ACKNOWLEDGED or self.state is _ARCHIVED

    @property
    def is_acquirable(self) -> bool:
        return self.state is RecordState.AVAILABLE and self.rollback is None

    def renew(self, deadline_ms: int) -> None:
        """Extend the acquisition lock."""
        self.deadline_ms = deadline_ms

    def cut(self, offset: int) -> RecordRun:
        """Let this run end before an offset inside it. Return the rest as a new run."""
        rest = RecordRun(
            offset,
            self.last_offset,
            self.state,
            self.delivery_count,
            self.member_id,
            self.deadline_ms,
            self.rollback,
            self.is_final,
        )
        self.last_offset = offset - 1
        return rest

    def acquire(self, member_id: str, deadline_ms: int) -> None:
        assert self.is_acquirable, f"{self} cannot be acquired"
        self.state = RecordState.ACQUIRED
        self.delivery_count += 1
        self.member_id = member_id
        self.deadline_ms = deadline_ms

    def give_up(self, state: RecordState, delivery_count_limit: int) -> None:
        """Release the records from their member. Records that were delivered too often become archived instead."""
        assert self.state is RecordState.ACQUIRED, f"{self} is not acquired"
        assert self.rollback is None, f"{self} has a pending change"
        if state is RecordState.AVAILABLE and self.delivery_count >= delivery_count_limit:
            state = RecordState.ARCHIVED
        self.state = state
        self.member_id = NOBODY

    def expire(self, state: RecordState, delivery_count_limit: int) -> None:
        """Release the records because their lock has expired. This is final."""
        self.give_up(state, delivery_count_limit)
        self.deadline_ms = None

    def begin_giving_up(self, state: RecordState, delivery_count_limit: int) -> None:
        """Like `give_up`, but pending until it is persisted, or until that has failed."""
        before = Rollback(self.state, self.member_id, delivery_count_limit)
        self.give_up(state, delivery_count_limit)
        self.rollback = before

    def complete(self, *, is_committed: bool, now_ms: int) -> None:
        before, self.rollback = self.rollback, None
        if is_committed or self.is_final or before is None:
            self.deadline_ms = None
        elif self.deadline_ms is not None and self.deadline_ms <= now_ms:
            too_often = self.delivery_count >= before.delivery_count_limit
            self.state = RecordState.ARCHIVED if too_often else RecordState.AVAILABLE
            self.member_id = NOBODY
            self.deadline_ms = None
        else:
            self.state = before.state
            self.member_id = before.member_id

    def archive(self) -> None:
        self.is_final = True
        self.state = RecordState.ARCHIVED
        self.member_id = NOBODY
        self.deadline_ms = None


class InFlightBatch:
    __slots__ = ("by_offset", "first_offset", "last_offset", "runs")

    def __init__(self, run: RecordRun) -> None:
        self.first_offset = run.first_offset
        self.last_offset = run.last_offset
        self.runs = [run]
        self.by_offset = False

    def __len__(self) -> int:
        return self.last_offset - self.first_offset + 1

    @property
    def whole(self) -> RecordRun:
        """The only run of a batch whose records do not differ."""
        assert not self.by_offset
        return self.runs[0]

    def differ(self) -> None:
        """Note that Kafka would keep one state for every offset from now on."""
        self.by_offset = True

    def is_within(self, first_offset: int, last_offset: int) -> bool:
        return self.first_offset >= first_offset and self.last_offset <= last_offset

    def run_at(self, offset: int) -> RecordRun | None:
        run = self.runs[bisect_right(self.runs, offset, key=_FIRST) - 1]
        return run if run.first_offset <= offset <= run.last_offset else None

    def between(self, first_offset: int, last_offset: int) -> list[RecordRun]:
        """Return the runs between two offsets, cut at both."""
        if first_offset > self.last_offset or last_offset < self.first_offset or first_offset > last_offset:
            return []
        runs = self.runs
        first = max(bisect_right(runs, first_offset, key=_FIRST) - 1, 0)
        if runs[first].first_offset < first_offset:
            runs.insert(first + 1, runs[first].cut(first_offset))
            first += 1
        last = bisect_right(runs, last_offset, lo=first, key=_FIRST) - 1
        if runs[last].last_offset > last_offset:
            runs.insert(last + 1, runs[last].cut(last_offset + 1))
        return runs[first : last + 1]

    def shorten(self, run: RecordRun, last_offset: int) -> None:
        """Let a run end at an offset; the records after it become a new run."""
        if run.last_offset > last_offset:
            rest = run.cut(last_offset + 1)
            self.runs.insert(bisect_right(self.runs, run.first_offset, key=_FIRST), rest)

    def __repr__(self) -> str:
        return f"InFlightBatch({self.first_offset}–{self.last_offset}, {self.runs})"
