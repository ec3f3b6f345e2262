"""The next state of a partition, as the record that leads to it: leader elections, ISR changes, reassignments.

Who may lead
    a replica in the ISR; without an ISR, an eligible leader replica (ELR), which has everything committed;
    without either, the last known leader, uncleanly; and if the election may be unclean, any replica.
    In each case only a broker that is acceptable: unfenced, its log directory online.
Who is in the ELR
    With fewer than min.insync.replicas in the ISR nothing new is committed. So a replica that leaves the ISR then
    still has everything. A broker that stopped uncleanly may have lost records and is removed.
When a reassignment is complete
    All added replicas are in the ISR. Then the replicas to remove are removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from tailrace.metadata.image.features import RecordVersions
from tailrace.metadata.image.partition_registration import (
    NO_LEADER,
    NO_LEADER_CHANGE,
    NO_RECOVERY_CHANGE,
    RECOVERING,
    PartitionRegistration,
)
from tailrace.model.ids import BrokerId
from tailrace.protocol import messages


class Election(Enum):
    ONLINE = "online"  # keep the leader if eligible, else elect another eligible replica
    PREFERRED = "preferred"  # elect the first replica, if eligible
    UNCLEAN = "unclean"  # like ONLINE; if no replica is eligible, elect any that is online


class ElectedLeader(NamedTuple):
    leader: BrokerId
    unclean: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionChange:
    """Wanted changes of a partition; `build` computes the rest. Fields with their default keep the present value."""

    partition: PartitionRegistration
    topic_id: bytes
    number: int
    is_acceptable: Callable[[BrokerId], bool]  # as a leader
    default_directory: Callable[[BrokerId], bytes]  # of a new replica
    versions: RecordVersions
    min_isr: int
    elr_enabled: bool
    election: Election = Election.ONLINE
    isr: list[BrokerId] | None = None
    replicas: list[BrokerId] | None = None
    removing: list[BrokerId] | None = None
    adding: list[BrokerId] | None = None
    directories: Mapping[BrokerId, bytes] = field(default_factory=dict)  # of replicas that moved
    recovery: int | None = None  # the recovery state that the leader reports
    stopped_uncleanly: Iterable[BrokerId] = ()

    def build(self) -> messages.PartitionChangeRecord | None:
        """Return the record, or None if nothing changes."""
        work = _PartitionUpdate(self)
        work.complete_reassignment()
        work.find_elr()
        work.elect()
        work.set_elr_and_isr()
        work.set_last_known_leader()
        work.set_assignment()
        work.set_recovery()
        record = work.record
        return None if _is_unchanged(record) else record


class _PartitionUpdate:
    """The new state while it is computed, and the record."""

    def __init__(self, change: PartitionChange) -> None:
        partition = change.partition
        self.change = change
        self.before = partition
        self.isr = list(partition.isr if change.isr is None else change.isr)
        self.replicas = list(partition.replicas if change.replicas is None else change.replicas)
        self.removing = list(partition.removing_replicas if change.removing is None else change.removing)
        self.adding = list(partition.adding_replicas if change.adding is None else change.adding)
        self.elr = list(partition.elr)
        self.record = messages.PartitionChangeRecord(topic_id=change.topic_id, partition_id=change.number)

    def complete_reassignment(self) -> None:
        if not self.removing and not self.adding:
            return
        isr = [one for one in self.isr if one not in self.removing]
        replicas = [one for one in self.replicas if one not in self.removing]
        if not set(self.adding) <= set(isr) or (self.removing and not (isr and replicas)):
            return
        if len(self.adding) < len(self.removing) and not set(replicas) <= set(isr):
            return  # a smaller target is complete only when all its replicas are in sync
        self.isr, self.replicas, self.removing, self.adding = isr, replicas, [], []

    def find_elr(self) -> None:
        if not self.change.elr_enabled:
            return
        if len(self.isr) >= self.change.min_isr:
            self.elr = []
            return
        lost = set(self.change.stopped_uncleanly)
        self.elr = sorted({*self.elr, *self.before.isr} - set(self.isr) - lost)

    # Elections

    def elect(self) -> None:
        found = self._elected()
        record = self.record
        if found.leader != self.before.leader:
            if found.leader in self.elr:
                self.isr = [found.leader]
                self.elr.remove(found.leader)
            record.leader = found.leader
            if found.unclean:
                record.isr = [found.leader]
                if self.before.leader_recovery_state != RECOVERING:
                    record.leader_recovery_state = RECOVERING
        elif not set(self.before.replicas) <= set(self.replicas):
            record.leader = self.before.leader  # a new leader epoch fences removed replicas

    def _elected(self) -> ElectedLeader:
        first, others = self.replicas[:1], self.replicas[1:]
        preferred = self.change.election is Election.PREFERRED
        candidates = [*first, self.before.leader, *others] if preferred else [self.before.leader, *self.replicas]
        for one in candidates:
            if self._may_lead(one):
                return ElectedLeader(one)
        last_known = self.before.last_known_elr
        nobody_left = self.change.elr_enabled and not self.elr and not self.isr
        if nobody_left and len(last_known) == 1 and self.change.is_acceptable(last_known[0]):
            return ElectedLeader(last_known[0], unclean=True)
        if self.change.election is Election.UNCLEAN:
            for one in self.replicas:
                if self.change.is_acceptable(one):
                    return ElectedLeader(one, unclean=True)
        return ElectedLeader(NO_LEADER)

    def _may_lead(self, replica: BrokerId) -> bool:
        has_everything = replica in self.isr or (not self.isr and replica in self.elr)
        return has_everything and self.change.is_acceptable(replica)

    # The record

    def set_elr_and_isr(self) -> None:
        record = self.record
        if record.isr is not None or not self.change.elr_enabled:
            self.elr = []
        if self.elr != list(self.before.elr):
            record.eligible_leader_replicas = self.elr
        if record.isr is None and (self.isr or self.change.elr_enabled) and self.isr != list(self.before.isr):
            record.isr = self.isr
        if (
            self.change.versions.bumps_epoch_when_isr_shrinks
            and record.leader == NO_LEADER_CHANGE
            and record.isr is not None
            and not set(self.before.isr) <= set(record.isr)
        ):
            record.leader = self.before.leader

    def set_last_known_leader(self) -> None:
        if not self.change.elr_enabled:
            return
        if self.record.leader == NO_LEADER and not self.before.last_known_elr:
            self.record.last_known_elr = [self.before.leader]
        elif self.record.leader >= 0 and self.before.last_known_elr:
            self.record.last_known_elr = []

    def set_assignment(self) -> None:
        record, before = self.record, self.before
        if self.replicas:
            if self.change.versions.has_directories:
                known = {**dict(zip(before.replicas, before.directories, strict=True)), **self.change.directories}
                directories = [
                    known[one] if one in known else self.change.default_directory(one) for one in self.replicas
                ]
                if directories != list(before.directories):
                    record.directories = directories
            if self.replicas != list(before.replicas):
                record.replicas = self.replicas
        if self.removing != list(before.removing_replicas):
            record.removing_replicas = self.removing
        if self.adding != list(before.adding_replicas):
            record.adding_replicas = self.adding

    def set_recovery(self) -> None:
        if self.change.recovery not in (None, self.before.leader_recovery_state):
            self.record.leader_recovery_state = self.change.recovery


def _is_unchanged(record: messages.PartitionChangeRecord) -> bool:
    return (
        record.leader == NO_LEADER_CHANGE
        and record.leader_recovery_state == NO_RECOVERY_CHANGE
        and all(
            part is None
            for part in (
                record.isr,
                record.replicas,
                record.removing_replicas,
                record.adding_replicas,
                record.directories,
                record.eligible_leader_replicas,
                record.last_known_elr,
            )
        )
    )
