"""SharePartition under random fetches, acknowledgements, timeouts, failures, retention and restarts, against a model
that knows each record by itself.

Invariants: a record is delivered at most as often as allowed, and to one member at a time. A record that was accepted,
rejected or archived is never delivered again. No record is lost. The start offset never moves back. A successor
continues with the persisted state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tailrace.model.errors import KafkaError
from tailrace.shares.acknowledging import Acknowledgement, AcknowledgeType, acknowledge, release
from tailrace.shares.acquiring import AcquiredRecords, AcquireMode, AcquireRequest, acquire
from tailrace.shares.delivery_settings import DeliverySettings
from tailrace.shares.in_flight import NOBODY, RecordState
from tailrace.shares.lock_expiry import expire_locks
from tailrace.shares.share_partition import Change, SharePartition
from tailrace.shares.state.persisted_state import PersistedState, StateBatch, combine

LIMIT = 4
LOCK_MS = 100
SETTINGS = DeliverySettings(record_lock_duration_ms=LOCK_MS, delivery_count_limit=LIMIT, partition_max_record_locks=60)
MEMBERS = ["a", "b", "c"]
TYPES = list(AcknowledgeType)


class Span(NamedTuple):
    base_offset: int
    last_offset: int


@dataclass
class Kept:
    """The state that a coordinator would have on disk."""

    start_offset: int = 0
    batches: tuple[StateBatch, ...] = ()

    def write(self, start_offset: int, batches: Sequence[StateBatch]) -> None:
        self.start_offset = start_offset
        self.batches = combine(self.batches, batches, start_offset)


@dataclass
class Fate:
    """The model's state of a record."""

    deliveries: int = 0
    owner: str = NOBODY
    deadline_ms: int = 0
    is_done: bool = False


@dataclass
class Pending:
    change: Change
    start_offset: int
    fates: dict[int, AcknowledgeType] = field(default_factory=dict)
    fails: bool = False


class SharePartitionMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now_ms = 1_000
        self.log: list[Span] = []
        self.log_start = 0
        self.kept = Kept()
        self.fates: dict[int, Fate] = {}
        self.pending: list[Pending] = []
        self.highest_start = 0

    @initialize()
    def begin(self) -> None:
        self.partition = self._opened()

    def _opened(self) -> SharePartition:
        partition = SharePartition(0)
        start = self.kept.start_offset
        partition.begin(PersistedState(0, 0, 0, start, 0, self.kept.batches), start)
        return partition

    @property
    def end(self) -> int:
        return self.log[-1].last_offset + 1 if self.log else 0

    # What happens

    @rule(sizes=st.lists(st.integers(1, 9), min_size=1, max_size=4), gap=st.integers(0, 2))
    def append(self, sizes: list[int], gap: int) -> None:
        first = self.end + gap  # compaction has taken what lies between
        for size in sizes:
            self.log.append(Span(first, first + size - 1))
            first += size

    @rule(
        member=st.sampled_from(MEMBERS),
        mode=st.sampled_from(AcquireMode),
        batch_size=st.integers(1, 12),
        max_records=st.integers(1, 40),
        read_batches=st.integers(1, 6),
    )
    def fetch(self, member: str, mode: AcquireMode, batch_size: int, max_records: int, read_batches: int) -> None:
        if not self.partition.can_acquire(SETTINGS):
            return
        offset = self.partition.next_fetch_offset()
        if offset < self.log_start:
            self._move_start()
            return
        read = [span for span in self.log if span.last_offset >= offset][:read_batches]
        request = AcquireRequest(member, mode, batch_size, max_records)
        got = acquire(self.partition, request, offset, read, SETTINGS, self.now_ms)
        if mode is AcquireMode.RECORD_LIMIT:
            assert sum(map(_size, got)) <= max_records
        for one in got:
            for number in range(one.first_offset, one.last_offset + 1):
                self._deliver(number, member, one.delivery_count)

    def _deliver(self, number: int, member: str, count: int) -> None:
        fate = self.fates.setdefault(number, Fate())
        assert not fate.is_done, f"{number} was done with"
        assert fate.owner == NOBODY, f"{number} is {fate.owner}'s"
        assert count <= LIMIT, f"{number} is delivered too often"
        fate.deliveries += 1
        fate.owner = member
        fate.deadline_ms = self.now_ms + LOCK_MS

    @rule(data=st.data(), member=st.sampled_from(MEMBERS), single=st.booleans(), fails=st.booleans())
    def acknowledge(self, data: st.DataObject, member: str, single: bool, fails: bool) -> None:
        owned = sorted(number for number, fate in self.fates.items() if fate.owner == member)
        if not owned:
            return
        first = data.draw(st.sampled_from(owned))
        last = first
        while last + 1 in owned and data.draw(st.booleans()):
            last += 1
        count = 1 if single else last - first + 1
        types = data.draw(st.lists(st.sampled_from(TYPES), min_size=count, max_size=count))
        acknowledgement = Acknowledgement(first, last, types)
        try:
            change = acknowledge(self.partition, member, [acknowledgement], SETTINGS, self.now_ms)
        except KafkaError:
            numbers = range(first, last + 1)
            assert any(self._is_unsettled(number) or number < self.highest_start for number in numbers)
            return
        fates = {number: types[0 if single else number - first] for number in range(first, last + 1)}
        pending = Pending(change, self.partition.start_offset, fates)
        for number, kind in fates.items():
            if kind is AcknowledgeType.RENEW:
                self.fates[number].deadline_ms = self.now_ms + LOCK_MS
        self._persist(pending, fails)

    def _is_unsettled(self, number: int) -> bool:
        return any(number in pending.fates for pending in self.pending)

    @rule(member=st.sampled_from(MEMBERS), fails=st.booleans())
    def leave(self, member: str, fails: bool) -> None:
        change = release(self.partition, member, SETTINGS)
        fates = {
            number: AcknowledgeType.RELEASE
            for _, one in change.parts
            for number in range(one.first_offset, one.last_offset + 1)
        }
        self._persist(Pending(change, self.partition.start_offset, fates), fails)

    def _persist(self, pending: Pending, fails: bool) -> None:
        """Begin to persist a change; a later step reports the result."""
        if not pending.change.parts:
            return
        if not fails:
            self.kept.write(pending.start_offset, pending.change.state_batches())
        pending.fates = {number: kind for number, kind in pending.fates.items() if kind is not AcknowledgeType.RENEW}
        pending.fails = fails
        self.pending.append(pending)

    @precondition(lambda self: self.pending)
    @rule()
    def reported_write(self) -> None:
        pending = self.pending.pop(0)
        fails = pending.fails
        self.partition.complete(pending.change, is_committed=not fails, now_ms=self.now_ms)
        for number, kind in pending.fates.items():
            fate = self.fates[number]
            if not fails:
                fate.owner = NOBODY
                fate.is_done = kind is not AcknowledgeType.RELEASE or fate.deliveries >= LIMIT
            elif fate.deadline_ms <= self.now_ms:
                fate.owner = NOBODY
                fate.is_done = fate.deliveries >= LIMIT

    @rule(ms=st.sampled_from([1, LOCK_MS // 2, LOCK_MS]))
    def pass_time(self, ms: int) -> None:
        self.now_ms += ms
        change = expire_locks(self.partition, SETTINGS, self.now_ms)
        if change.parts:
            self.kept.write(self.partition.start_offset, change.state_batches())
            self.partition.advance_start()
        for number, fate in self.fates.items():
            if fate.owner != NOBODY and fate.deadline_ms <= self.now_ms and not self._is_unsettled(number):
                fate.owner = NOBODY
                fate.is_done = fate.deliveries >= LIMIT

    @precondition(lambda self: self.log)
    @rule(data=st.data())
    def retention(self, data: st.DataObject) -> None:
        self.log_start = data.draw(st.integers(self.log_start, self.end))
        if data.draw(st.booleans()):
            self._move_start()

    def _move_start(self) -> None:
        self.partition.move_start(self.log_start)

    @precondition(lambda self: not self.pending)
    @rule()
    def another_leader(self) -> None:
        """Load the state at another leader: acquired records are available, and their deliveries were never
        persisted."""
        self.partition = self._opened()
        self.highest_start = self.partition.start_offset
        known = {number: one for one in self.kept.batches for number in range(one.first_offset, one.last_offset + 1)}
        for number, fate in self.fates.items():
            fate.owner = NOBODY
            one = known.get(number)
            fate.deliveries = one.delivery_count if one is not None else 0
            state = None if one is None else RecordState(one.delivery_state)
            was_done = fate.is_done
            fate.is_done = number < self.kept.start_offset or state in (RecordState.ACKNOWLEDGED, RecordState.ARCHIVED)
            assert fate.is_done or not was_done or number < self.log_start, f"{number} was finished and no longer is"

    # What always holds

    @invariant()
    def the_start_only_moves_up(self) -> None:
        if not hasattr(self, "partition"):
            return
        assert self.partition.start_offset >= self.highest_start
        self.highest_start = self.partition.start_offset

    @invariant()
    def nothing_is_lost(self) -> None:
        """Check that every record below the start is finished or deleted, and that every record in flight is with a
        member."""
        if not hasattr(self, "partition"):
            return
        partition = self.partition
        numbers = [number for span in self.log for number in range(span.base_offset, span.last_offset + 1)]
        in_flight = {}
        last = -1
        for batch in partition.batches:
            assert batch.first_offset > last
            last = batch.first_offset - 1
            for run in batch.runs:
                assert run.first_offset == last + 1, "a batch has no holes"
                assert len(run) > 0
                last = run.last_offset
                in_flight.update(dict.fromkeys(range(run.first_offset, run.last_offset + 1), run))
            assert last == batch.last_offset
        gap = partition.gap_start
        for number in numbers:
            if number < partition.start_offset:
                fate = self.fates.get(number)
                assert number < self.log_start or (fate is not None and fate.is_done), f"{number} is lost"
            elif number in in_flight:
                run, fate = in_flight[number], self.fates.get(number, Fate())
                if run.rollback is None and run.state is RecordState.ACQUIRED:
                    assert run.member_id == fate.owner
                if number >= self.log_start and run.rollback is None:
                    assert run.is_terminal == fate.is_done, f"{number} is {run.state.name}, and {fate}"
            elif number <= partition.end_offset and partition.batches and partition.start_offset <= last:
                assert gap >= 0, f"{number} is nowhere"

    @invariant()
    def what_is_done_in_flight_is_counted(self) -> None:
        if not hasattr(self, "partition"):
            return
        counted = sum(
            self.partition.count_done(run.first_offset, run.last_offset)
            for batch in self.partition.batches
            for run in batch.runs
            if run.is_terminal
        )
        assert self.partition.delivery_complete_count == counted

    def teardown(self) -> None:
        """Let all members leave, and deliver the remaining records until none remains."""
        if not hasattr(self, "partition"):
            return
        while self.pending:
            self.reported_write()
        self._move_start()
        in_vain = 0
        while in_vain < 3:  # one may find out that records are gone, and another that it is full
            self.pass_time(LOCK_MS)
            before = sum(fate.deliveries for fate in self.fates.values())
            self.fetch("a", AcquireMode.BATCH_OPTIMIZED, 500, 500, 1_000)
            in_vain = in_vain + 1 if sum(fate.deliveries for fate in self.fates.values()) == before else 0
        numbers = {number for span in self.log for number in range(span.base_offset, span.last_offset + 1)}
        for number in numbers:
            if number >= self.log_start:
                assert self.fates[number].is_done, f"{number} was never done with: {self.partition.__dict__}"


def _size(one: AcquiredRecords) -> int:
    return one.last_offset - one.first_offset + 1


TestSharePartition = SharePartitionMachine.TestCase
TestSharePartition.settings = settings(max_examples=25, stateful_step_count=40, deadline=None)
