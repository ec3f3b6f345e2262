"""PartitionRegistration: the state of one partition in the metadata log.

A PartitionRecord creates it. Each PartitionChangeRecord changes some fields and raises the partition epoch by one. If
it names a leader, even the present one, it raises the leader epoch as well. Without an ISR there is no leader. But the
eligible leader replicas (ELR) are known to have everything committed, and may lead when they are back online.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from tailrace.metadata.image.features import RecordVersions
from tailrace.metadata.image.registrations import MIGRATING_DIRECTORY, InconsistentMetadata
from tailrace.model.ids import BrokerId, LeaderEpoch
from tailrace.protocol import messages

NO_LEADER: Final = -1
NO_LEADER_CHANGE: Final = -2

RECOVERED: Final = 0
RECOVERING: Final = 1  # the leader was elected although it may have lost records
NO_RECOVERY_CHANGE: Final = -1


# There are few brokers and directories and many partitions. So equal ids are the same object in all partitions, which
# halves the memory of a partition.
_ONE_OF_EACH: Final[dict[Any, Any]] = {}
_one = _ONE_OF_EACH.setdefault


@dataclass(frozen=True, slots=True)
class PartitionRegistration:
    replicas: tuple[BrokerId, ...]
    directories: tuple[bytes, ...]  # of each replica
    isr: tuple[BrokerId, ...]
    leader: BrokerId
    leader_epoch: LeaderEpoch = 0
    partition_epoch: int = 0
    leader_recovery_state: int = RECOVERED
    removing_replicas: tuple[BrokerId, ...] = ()
    adding_replicas: tuple[BrokerId, ...] = ()
    elr: tuple[BrokerId, ...] = ()
    last_known_elr: tuple[BrokerId, ...] = ()

    @classmethod
    def from_record(cls, record: messages.PartitionRecord) -> PartitionRegistration:
        replicas = _shared(record.replicas)
        return cls(
            replicas,
            _directories(record.directories, len(replicas)),
            replicas if record.isr == record.replicas else _shared(record.isr),
            _one(record.leader, record.leader),
            record.leader_epoch,
            record.partition_epoch,
            record.leader_recovery_state,
            tuple(record.removing_replicas),
            tuple(record.adding_replicas),
            tuple(record.eligible_leader_replicas or ()),
            tuple(record.last_known_elr or ()),
        )

    def merge(self, change: messages.PartitionChangeRecord) -> PartitionRegistration:
        replicas = _changed(self.replicas, change.replicas)
        directories = self.directories
        if change.replicas is not None or change.directories is not None:
            directories = _directories(directories if change.directories is None else change.directories, len(replicas))
        leads_on = change.leader == NO_LEADER_CHANGE
        recovery = change.leader_recovery_state
        return PartitionRegistration(
            replicas,
            directories,
            _changed(self.isr, change.isr),
            self.leader if leads_on else _one(change.leader, change.leader),
            self.leader_epoch if leads_on else self.leader_epoch + 1,
            self.partition_epoch + 1,
            self.leader_recovery_state if recovery == NO_RECOVERY_CHANGE else recovery,
            _changed(self.removing_replicas, change.removing_replicas),
            _changed(self.adding_replicas, change.adding_replicas),
            _changed(self.elr, change.eligible_leader_replicas),
            _changed(self.last_known_elr, change.last_known_elr),
        )

    def to_record(
        self, topic_id: bytes, partition: int, versions: RecordVersions, *, elr_enabled: bool
    ) -> messages.PartitionRecord:
        record = messages.PartitionRecord(
            partition_id=partition,
            topic_id=topic_id,
            replicas=list(self.replicas),
            isr=list(self.isr),
            removing_replicas=list(self.removing_replicas),
            adding_replicas=list(self.adding_replicas),
            leader=self.leader,
            leader_recovery_state=self.leader_recovery_state,
            leader_epoch=self.leader_epoch,
            partition_epoch=self.partition_epoch,
        )
        if versions.has_directories:
            record.directories = list(self.directories)
        if elr_enabled:
            record.eligible_leader_replicas = list(self.elr) or None
            record.last_known_elr = list(self.last_known_elr) or None
        return record

    @property
    def preferred_leader(self) -> BrokerId:
        return self.replicas[0] if self.replicas else NO_LEADER

    @property
    def is_reassigning(self) -> bool:
        return bool(self.adding_replicas or self.removing_replicas)

    def directory_of(self, replica: BrokerId) -> bytes:
        """Return the log directory of a replica. Raise ValueError if the broker has none."""
        return self.directories[self.replicas.index(replica)]


def _shared(ids: Sequence[int]) -> tuple[int, ...]:
    return tuple(map(_one, ids, ids))


def _changed(before: tuple[int, ...], after: Sequence[int] | None) -> tuple[int, ...]:
    return before if after is None else _shared(after)


def _directories(ids: Sequence[bytes], replicas: int) -> tuple[bytes, ...]:
    if ids.count(MIGRATING_DIRECTORY) == len(ids):
        return (MIGRATING_DIRECTORY,) * replicas  # written before partitions knew their directories
    if len(ids) != replicas:
        raise InconsistentMetadata(f"a partition record has {len(ids)} directories for {replicas} replicas")
    return tuple(map(_one, ids, ids))
