"""Bugs to plant in the broker's code, to test whether the simulation finds them.

Each one removes or inverts one decision of the real code. Some of them were real bugs: in Kafka, before the KIP that
the docstring names, or in this project.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tailrace.log.directories import log_directory
from tailrace.log.directories.log_directory import LogDirectory
from tailrace.log.directories.sealed_flush import SealedFlush
from tailrace.log.leader_epochs import EpochEnd, LeaderEpochs
from tailrace.log.log_bounds import LogBounds
from tailrace.log.partition_log import PartitionLog
from tailrace.log.producers.producer_state import ProducerState
from tailrace.log.segments.indexes.transaction_index import TransactionIndex
from tailrace.log.watermarks import Isolation, Watermarks
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.replication.fetching.leader_session import LeaderSession
from tailrace.replication.fetching.replica_fetcher import ReplicaFetcher
from tailrace.replication.follower import FollowerRole
from tailrace.replication.follower_progress import FollowerProgress
from tailrace.replication.isr.isr_changes import IsrChanges
from tailrace.replication.isr.isr_proposals import IsrProposals
from tailrace.replication.isr.isr_state import IsrState
from tailrace.replication.leader import LeaderRole
from tailrace.replication.partition import Partition
from tests.support.produced import append_produced

Patch = pytest.MonkeyPatch
Mistake = Callable[[Patch], None]


# ISR and high watermark


def the_leader_alone_counts(patch: Patch) -> None:
    def advance(self: LeaderRole, now_ms: int) -> bool:
        return self._log.advance_high_watermark(self._log.log_end_offset)

    patch.setattr(LeaderRole, "advance_high_watermark", advance)


def a_dropped_replica_stops_counting_before_the_controller_agrees(patch: Patch) -> None:
    def propose(self: IsrState, proposal: Any) -> None:
        self.pending = proposal
        self.maximal = (self.committed | proposal.joining) - proposal.leaving

    patch.setattr(IsrState, "propose", propose)


def a_joining_replica_counts_only_after_the_controller_agreed(patch: Patch) -> None:
    may_join = IsrChanges.may_join

    def propose(self: IsrState, proposal: Any) -> None:
        self.pending = proposal

    patch.setattr(IsrState, "propose", propose)
    patch.setattr(IsrChanges, "may_join", lambda self, one: may_join(self, one) and self.isr.pending is None)


def a_new_isr_member_does_not_count(patch: Patch) -> None:
    def commit(self: IsrState, isr: Any) -> None:
        before, self.committed = self.committed, frozenset(isr)
        self.maximal = self.committed & before or self.committed
        self.pending = None

    patch.setattr(IsrState, "commit", commit)


def a_follower_joins_the_isr_at_any_offset(patch: Patch) -> None:
    _joins_where(patch, lambda leader, offset: True)


def a_follower_joins_the_isr_at_the_high_watermark_alone(patch: Patch) -> None:
    """The follower may lack records at the start of the leader's epoch that an earlier leader has committed."""
    _joins_where(patch, lambda leader, offset: offset >= leader._log.high_watermark)


def a_follower_joins_the_isr_at_the_epoch_start_alone(patch: Patch) -> None:
    _joins_where(patch, lambda leader, offset: offset >= leader._epoch_start_offset)


def _joins_where(patch: Patch, is_far_enough: Callable[[IsrChanges, int], bool]) -> None:
    def propose_to_join(self: IsrChanges, follower: FollowerProgress) -> None:
        is_new = self.isr.pending is None and follower.broker_id not in self.isr.committed
        if is_new and is_far_enough(self, follower.log_end.offset) and self.may_join(follower):
            self._propose(joining=frozenset({follower.broker_id}))

    patch.setattr(IsrChanges, "propose_to_join", propose_to_join)


def a_follower_joins_the_isr_by_a_fetch_of_its_previous_process(patch: Patch) -> None:
    """Ignore the broker epoch of a fetch, as before KIP-903."""
    note_fetch = LeaderRole.note_fetch
    patch.setattr(LeaderRole, "note_fetch", lambda self, *args: note_fetch(self, *args[:4], -1, args[5]))


def an_isr_proposal_has_no_broker_epochs(patch: Patch) -> None:
    patch.setattr(IsrChanges, "_broker_epoch", lambda self, broker_id: -1)


def a_fetch_of_a_previous_process_counts(patch: Patch) -> None:
    def note(self: LeaderRole, follower: Any, end: Any, start: int, leader_end: int, epoch: int, now_ms: int) -> bool:
        before = follower.log_end.offset
        follower.note_fetch(end, start, leader_end, epoch, now_ms)
        self.isr_changes.propose_to_join(follower)
        return end.offset != before and self.advance_high_watermark(now_ms)

    patch.setattr(LeaderRole, "note_fetch", note)


def a_new_leader_keeps_the_old_progress_of_followers(patch: Patch) -> None:
    assign = LeaderRole.assign
    known_before: dict[tuple[Any, int], dict[int, FollowerProgress]] = {}

    def remember(self: LeaderRole, replicas: Any, known: dict[int, FollowerProgress]) -> None:
        place = (self._log, self._settings.broker_id)
        assign(self, replicas, known or known_before.get(place, {}))
        known_before[place] = self.followers

    patch.setattr(LeaderRole, "assign", remember)
    patch.setattr(FollowerProgress, "start_under", lambda self, now_ms, *, in_sync: None)


def the_high_watermark_moves_below_min_insync_replicas(patch: Patch) -> None:
    patch.setattr(LeaderRole, "is_under_min_isr", property(lambda self: False))


# Proposals and metadata


def old_metadata_is_applied(patch: Patch) -> None:
    make_leader = Partition.make_leader

    def make(self: Partition, state: Any, now_ms: int) -> bool:
        self.partition_epoch = -1
        if self.leader is not None:
            self.leader.isr_changes.partition_epoch = -1
        return make_leader(self, state, now_ms)

    patch.setattr(Partition, "make_leader", make)


def repeated_metadata_withdraws_a_proposal(patch: Patch) -> None:
    """Repeat a bug of this project that the simulation has found."""
    make_leader = Partition.make_leader

    def make(self: Partition, state: Any, now_ms: int) -> bool:
        leader = self.leader
        if leader is not None and leader.isr_changes.partition_epoch == state.partition_epoch:
            leader.isr.commit(state.isr)
        return make_leader(self, state, now_ms)

    patch.setattr(Partition, "make_leader", make)


def a_proposal_without_a_response_is_withdrawn(patch: Patch) -> None:
    def failed(self: IsrProposals, sent: Any, failure: Any, now_ms: int) -> None:
        self._has_request = False
        for key, proposal in sent.items():
            leader = self._leader_of(key, proposal)
            if leader is not None:
                leader.isr.withdraw()

    patch.setattr(IsrProposals, "_failed", failed)


def a_proposal_with_an_old_partition_epoch_is_withdrawn(patch: Patch) -> None:
    """The partition epoch may be newer because the controller accepted this very proposal and its response was lost."""
    refused = IsrChanges.refuse

    def withdraw(self: IsrChanges, proposal: Any, error: ErrorCode) -> bool:
        return refused(self, proposal, ErrorCode.INELIGIBLE_REPLICA if error.name.startswith("INVALID") else error)

    patch.setattr(IsrChanges, "refuse", withdraw)


def a_response_to_an_earlier_proposal_is_applied(patch: Patch) -> None:
    def leader_of(self: IsrProposals, key: Any, proposal: Any) -> LeaderRole | None:
        partition = self._partitions.get(key)
        return None if partition is None else partition.leader

    def accepted(self: LeaderRole, proposal: Any, isr: Any, leader_epoch: int, epoch: int, now_ms: int) -> bool:
        self.isr.commit(isr)
        self.isr_changes.partition_epoch = max(self.isr_changes.partition_epoch, epoch)
        return self.advance_high_watermark(now_ms)

    patch.setattr(IsrProposals, "_leader_of", leader_of)
    patch.setattr(LeaderRole, "isr_accepted", accepted)


# Messages between followers and leaders


def a_follower_does_not_truncate_its_log(patch: Patch) -> None:
    patch.setattr(FollowerRole, "last_fetched_epoch", property(lambda self: -1))


def a_follower_truncates_to_its_high_watermark(patch: Patch) -> None:
    """Apply the rule before KIP-101."""
    patch.setattr(FollowerRole, "truncation_offset", lambda self, end: self._log.high_watermark)


def a_follower_truncates_everything(patch: Patch) -> None:
    patch.setattr(FollowerRole, "truncation_offset", lambda self, end: self._log.log_start_offset)


def a_follower_truncates_to_the_leaders_epoch_end(patch: Patch) -> None:
    """Ignore the follower's own leader epochs."""
    patch.setattr(FollowerRole, "truncation_offset", lambda self, end: min(end.end_offset, self._log.log_end_offset))


def a_leader_returns_the_requested_epoch_even_if_it_has_none(patch: Patch) -> None:
    """Apply the rule before KIP-279."""
    end_of = LeaderEpochs.end_of

    def end(self: LeaderEpochs, epoch: int, log_end: int) -> EpochEnd:
        found = end_of(self, epoch, log_end)
        return EpochEnd(epoch, found.end_offset) if found.end_offset >= 0 else found

    patch.setattr(LeaderEpochs, "end_of", end)


def an_epoch_without_records_is_not_recorded(patch: Patch) -> None:
    make_leader = Partition.make_leader

    def make(self: Partition, state: Any, now_ms: int) -> bool:
        entries = list(self.log.epochs.entries)
        news = make_leader(self, state, now_ms)
        if self.log.epochs.entries != entries:
            self.log.epochs.truncate_end(self.log.log_end_offset)
        return news

    patch.setattr(Partition, "make_leader", make)


def epochs_are_not_truncated_with_the_log(patch: Patch) -> None:
    patch.setattr(LeaderEpochs, "truncate_end", lambda self, end_offset: False)


def a_response_to_an_earlier_role_is_applied(patch: Patch) -> None:
    def handle(self: ReplicaFetcher, asked: Any, response: Any, now_ms: int) -> None:
        for topic in response.responses:
            for answer in topic.partitions:
                one = self._followed.get((topic.topic_id, answer.partition_index))
                if one is not None:
                    try:
                        self._handle_partition(one, answer, now_ms)
                    except KafkaError:
                        self._session.renew()
                        self._back_off(one, now_ms)

    patch.setattr(ReplicaFetcher, "_handle_response", handle)


def nobody_is_fenced(patch: Patch) -> None:
    def error(self: Partition, epoch: int, leader_only: bool) -> ErrorCode | None:
        is_wrong = self.leader is None and (leader_only or self.role is None)
        return ErrorCode.NOT_LEADER_OR_FOLLOWER if is_wrong else None

    patch.setattr(Partition, "fencing_error", error)


def a_session_continues_after_a_lost_response(patch: Patch) -> None:
    def renew(self: LeaderSession) -> None:
        if self._epoch:
            self._epoch += 1

    patch.setattr(LeaderSession, "renew", renew)


def a_session_does_not_add_a_forgotten_partition_again(patch: Patch) -> None:
    """The leader was asked to forget the partition, and is not asked for it again when the follower needs it."""
    fill = LeaderSession.fill

    def fill_less(self: LeaderSession, request: Any, wants: Any, limit: int) -> None:
        before = {} if self._epoch == 0 else dict(self._sent)
        fill(self, request, wants, limit)
        self._sent = {**before, **self._sent}

    patch.setattr(LeaderSession, "fill", fill_less)


def the_leaders_log_start_is_ignored(patch: Patch) -> None:
    append = FollowerRole.append
    patch.setattr(
        FollowerRole,
        "append",
        lambda self, records, **reported: append(self, records, **{**reported, "leader_log_start_offset": 0}),
    )


def a_follower_before_the_leaders_log_start_does_not_move(patch: Patch) -> None:
    def restart_at(self: FollowerRole, leader_start: int, leader_end: int, now_ms: int) -> int:
        self._log.truncate_to(min(leader_end, self._log.log_end_offset), now_ms)
        return self._log.log_end_offset

    patch.setattr(FollowerRole, "restart_at", restart_at)


# Responses to clients


def acks_all_does_not_wait_for_the_high_watermark(patch: Patch) -> None:
    def error(self: Partition, required_offset: int) -> ErrorCode | None:
        return ErrorCode.NONE if self.leader is not None else ErrorCode.NOT_LEADER_OR_FOLLOWER

    patch.setattr(Partition, "acks_error", error)


def a_deposed_leader_acknowledges(patch: Patch) -> None:
    acks_error = Partition.acks_error

    def error(self: Partition, required_offset: int) -> ErrorCode | None:
        return ErrorCode.NONE if self.leader is None else acks_error(self, required_offset)

    patch.setattr(Partition, "acks_error", error)


def a_duplicate_batch_is_acknowledged_at_once(patch: Patch) -> None:
    part_of = append_produced

    def append(partitions: Any, key: Any, *args: Any, **fields: Any) -> Any:
        partition = partitions.get(key)
        end = partition.log.log_end_offset if partition else -1
        part = part_of(partitions, key, *args, **fields)
        if part.is_appended and part.required_offset <= end:
            part.required_offset = 0
        return part

    patch.setattr("tests.simulation.producers.append_produced", append)


def consumers_read_up_to_the_log_end(patch: Patch) -> None:
    bound = Watermarks.bound

    def bound_of(self: Watermarks, isolation: Isolation) -> Any:
        return self.log_end if isolation is Isolation.READ_UNCOMMITTED else bound(self, isolation)

    patch.setattr(Watermarks, "bound", bound_of)


def a_last_stable_offset_does_not_wait(patch: Patch) -> None:
    patch.setattr(Watermarks, "set_first_unstable", lambda self, first: None)


# Logs


def the_high_watermark_passes_the_log_end(patch: Patch) -> None:
    def advance(self: LogBounds, offset: int) -> bool:
        if offset <= self._marks.high_watermark.offset:
            return False
        self._marks.high_watermark = self._marks.log_end._replace(offset=offset)
        return True

    patch.setattr(LogBounds, "advance_high_watermark", advance)


def a_start_sets_the_high_watermark_to_the_log_end(patch: Patch) -> None:
    add = LogDirectory.add

    def add_log(self: LogDirectory, log: PartitionLog) -> None:
        add(self, log)
        log.advance_high_watermark(log.log_end_offset)

    patch.setattr(LogDirectory, "add", add_log)


def producer_states_are_not_reloaded_after_a_truncation(patch: Patch) -> None:
    patch.setattr(PartitionLog, "_reload_producers", lambda self, end, now_ms: None)


def open_transactions_are_lost_at_a_start(patch: Patch) -> None:
    from_snapshot = ProducerState.from_snapshot
    patch.setattr(
        ProducerState, "from_snapshot", lambda entry: replace(from_snapshot(entry), transaction_first_offset=None)
    )


def aborted_transactions_are_not_truncated_with_the_log(patch: Patch) -> None:
    patch.setattr(TransactionIndex, "truncate_to", lambda self, offset: None)


def a_gap_after_a_crash_is_taken_for_compaction(patch: Patch) -> None:
    open_log = log_directory.open_log
    patch.setattr(
        log_directory, "open_log", lambda *args, **fields: open_log(*args, **{**fields, "may_have_gaps": True})
    )


def sealed_segments_are_not_synced(patch: Patch) -> None:
    patch.setattr(SealedFlush, "run", lambda self: None)


def a_sync_counts_after_the_log_was_truncated(patch: Patch) -> None:
    def apply(self: SealedFlush, result: None, now_ms: int) -> None:
        self._log.durability.note_flushed(self._following.base_offset, now_ms)

    patch.setattr(SealedFlush, "apply", apply)


def checkpoints_stay_past_a_truncation(patch: Patch) -> None:
    patch.setattr(PartitionLog, "_write_lowered", lambda self, before: None)


MISTAKES: dict[str, Mistake] = {
    name: found
    for name, found in list(globals().items())
    if not name.startswith("_") and callable(found) and getattr(found, "__module__", "") == __name__
}

# A hundred schedules did not find it: the power has to fail between two syncs of segments that grew again after a
# truncation. test_recovery_points.py plays that sequence.
RARE = {"a_sync_counts_after_the_log_was_truncated"}
