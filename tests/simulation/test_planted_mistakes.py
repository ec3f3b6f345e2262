"""The simulation finds mistakes: each of these, planted, fails within a few schedules."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tailrace.log.partition_log import PartitionLog
from tailrace.replication import produce
from tailrace.replication.follower import FollowerRole
from tailrace.replication.isr import IsrState
from tailrace.replication.leader import LeaderRole
from tailrace.replication.leader_session import LeaderSession
from tailrace.replication.partition import Partition
from tailrace.replication.progress import FollowerProgress
from tests.simulation.watched import simulate

SCHEDULES = 60

Patch = pytest.MonkeyPatch


def the_leader_alone_counts(patch: Patch) -> None:
    def advance(self: LeaderRole, now_ms: int) -> bool:
        return self._log.advance_high_watermark(self._log.log_end_offset)

    patch.setattr(LeaderRole, "advance_high_watermark", advance)


def a_dropped_replica_counts_no_more_before_it_is_decided(patch: Patch) -> None:
    def propose(self: IsrState, proposal: Any) -> None:
        self.pending = proposal
        self.maximal = (self.committed | proposal.joining) - proposal.leaving

    patch.setattr(IsrState, "propose", propose)


def a_joining_replica_counts_only_when_it_is_decided(patch: Patch) -> None:
    def propose(self: IsrState, proposal: Any) -> None:
        self.pending = proposal

    patch.setattr(IsrState, "propose", propose)
    patch.setattr(LeaderRole, "_may_join", _joins_late(LeaderRole._may_join))


def _joins_late(original: Callable[..., bool]) -> Callable[..., bool]:
    def may_join(self: LeaderRole, follower: FollowerProgress) -> bool:
        return original(self, follower) and self.isr.pending is None

    return may_join


def one_joins_before_it_has_what_this_epoch_began_with(patch: Patch) -> None:
    def propose_to_join(self: LeaderRole, follower: FollowerProgress) -> None:
        if self.isr.pending is None and follower.broker_id not in self.isr.committed and self._may_join(follower):
            self._propose(joining=frozenset({follower.broker_id}))

    patch.setattr(LeaderRole, "_propose_to_join", propose_to_join)


def a_follower_does_not_cut_its_log(patch: Patch) -> None:
    patch.setattr(FollowerRole, "last_fetched_epoch", property(lambda self: -1))


def a_follower_cuts_to_its_high_watermark(patch: Patch) -> None:
    """As before KIP-101."""
    patch.setattr(FollowerRole, "truncation_offset", lambda self, end: self._log.high_watermark)


def an_epoch_without_records_is_not_noted(patch: Patch) -> None:
    make_leader = Partition.make_leader

    def make(self: Partition, state: Any, now_ms: int) -> bool:
        entries = list(self.log.epochs.entries)
        news = make_leader(self, state, now_ms)
        if self.log.epochs.entries != entries:
            self.log.epochs.truncate_end(self.log.log_end_offset)
        return news

    patch.setattr(Partition, "make_leader", make)


def producers_are_not_read_again_after_a_cut(patch: Patch) -> None:
    patch.setattr(PartitionLog, "_reload_producers", lambda self, end, now_ms: None)


def what_was_sent_twice_is_acknowledged_at_once(patch: Patch) -> None:
    part_of = produce.append_produced

    def append(partitions: Any, key: Any, *args: Any, **fields: Any) -> Any:
        partition = partitions.get(key)
        end = partition.log.log_end_offset if partition else -1
        part = part_of(partitions, key, *args, **fields)
        if part.is_appended and part.required_offset <= end:
            part.required_offset = 0
        return part

    patch.setattr("tests.simulation.producers.append_produced", append)


def a_session_forgets_what_was_answered_in_vain(patch: Patch) -> None:
    """A lost answer moves the session on."""

    def begin_anew(self: LeaderSession) -> None:
        if self._epoch:
            self._epoch += 1

    patch.setattr(LeaderSession, "begin_anew", begin_anew)


def a_log_start_is_taken_beyond_what_is_committed(patch: Patch) -> None:
    def restart_at(self: FollowerRole, leader_start: int, leader_end: int, now_ms: int) -> int:
        self._log.truncate_to(min(leader_end, self._log.log_end_offset), now_ms)
        return self._log.log_end_offset

    patch.setattr(FollowerRole, "restart_at", restart_at)


def a_last_stable_offset_does_not_wait(patch: Patch) -> None:
    patch.setattr(PartitionLog, "_update_first_unstable", lambda self: None)


MISTAKES = [
    the_leader_alone_counts,
    a_dropped_replica_counts_no_more_before_it_is_decided,
    a_joining_replica_counts_only_when_it_is_decided,
    one_joins_before_it_has_what_this_epoch_began_with,
    a_follower_does_not_cut_its_log,
    a_follower_cuts_to_its_high_watermark,
    an_epoch_without_records_is_not_noted,
    producers_are_not_read_again_after_a_cut,
    what_was_sent_twice_is_acknowledged_at_once,
    a_session_forgets_what_was_answered_in_vain,
    a_log_start_is_taken_beyond_what_is_committed,
    a_last_stable_offset_does_not_wait,
]


@pytest.fixture
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def found_by() -> int | None:
    """The first seed whose schedule fails."""
    for seed in range(SCHEDULES):
        try:
            simulate(seed, 6_000)
        except AssertionError:
            return seed
    return None


@pytest.mark.slow
@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.usefixtures("quiet")
def test_a_planted_mistake_is_found(mistake: Callable[[Patch], None], monkeypatch: Patch) -> None:
    mistake(monkeypatch)
    assert found_by() is not None
