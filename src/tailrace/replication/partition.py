"""Partition: one replica hosted here. It fences epochs, then passes the request to its role.

    make_leader / make_follower (new metadata)  ──►  role: LeaderRole | FollowerRole, a new one with each leader epoch
    append_as_leader, read, end_of_epoch, delete_records     ──►  fence ──► role ──► log

Metadata with an older partition epoch is ignored. A request with a leader epoch is fenced: an older epoch gets
FENCED_LEADER_EPOCH, a newer one UNKNOWN_LEADER_EPOCH (the metadata has not arrived yet). A request that only the leader
may answer gets NOT_LEADER_OR_FOLLOWER from a follower.
"""

from __future__ import annotations

import logging
from typing import Final, NamedTuple

from tailrace.log.append import AppendResult
from tailrace.log.leader_epochs import EpochEnd
from tailrace.log.partition_log import PartitionLog
from tailrace.log.reading.log_read import LogRead, OffsetOutOfRange, read_log
from tailrace.log.reading.small_read import SMALL_READ_BYTES, read_small
from tailrace.log.segments.indexes.transaction_index import AbortedTransaction
from tailrace.log.watermarks import Isolation, Watermarks
from tailrace.metadata.image.partition_registration import PartitionRegistration
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import BrokerId, LeaderEpoch, Offset, TopicPartition
from tailrace.records.batch import Buffer
from tailrace.records.checks.checked_records import CheckedRecords
from tailrace.records.checks.validation import Origin
from tailrace.replication.follower import FollowerRole
from tailrace.replication.follower_progress import FollowerProgress
from tailrace.replication.leader import LeaderRole
from tailrace.replication.moving_copy import MovingCopy
from tailrace.replication.replica_settings import ReplicaSettings
from tailrace.replication.topic_traffic import TopicTraffic

_log = logging.getLogger(__name__)

ALL_ACKS = -1
DELETE_TO_HIGH_WATERMARK = -1
_READ_COMMITTED: Final = Isolation.READ_COMMITTED
_NO_ERROR: Final = ErrorCode.NONE
_new_tuple: Final = tuple.__new__  # makes a NamedTuple in half the time


class LeaderAppend(NamedTuple):
    result: AppendResult
    high_watermark_moved: bool


class ReplicaRead(NamedTuple):
    """A read, with the log's bounds when it began; or the end of the epoch at which the reader diverges."""

    log: LogRead | None
    high_watermark: Offset
    log_start_offset: Offset
    last_stable_offset: Offset
    diverging: EpochEnd | None = None
    data: bytes | None = None  # the bytes of a small read, which the lookup has read; None: send the slice


class Partition:
    __slots__ = (
        "_settings",
        "adding",
        "key",
        "leader",
        "leader_epoch",
        "leader_id",
        "log",
        "move",
        "partition_epoch",
        "removing",
        "replicas",
        "role",
        "topic_id",
        "traffic",
    )

    def __init__(self, log: PartitionLog, settings: ReplicaSettings, topic_id: bytes) -> None:
        self._settings = settings
        self.key: TopicPartition = log.partition
        self.log = log
        self.topic_id = topic_id
        self.leader_id: BrokerId | None = None
        self.leader_epoch: LeaderEpoch = -1
        self.partition_epoch = 0
        self.replicas: tuple[BrokerId, ...] = ()
        self.adding: tuple[BrokerId, ...] = ()
        self.removing: tuple[BrokerId, ...] = ()
        self.move: MovingCopy | None = None  # a move to another log directory
        self.traffic = TopicTraffic()  # replaced by the topic's counters when it is hosted
        self.role: LeaderRole | FollowerRole | None = None
        self.leader: LeaderRole | None = None  # `role` if this replica leads, else None

    @property
    def is_leader(self) -> bool:
        return self.leader is not None

    # Roles

    def make_leader(self, state: PartitionRegistration, now_ms: int) -> bool:
        """Become or stay the leader in this state. Return True if this replica was not the leader, or not in this
        epoch. May move the high watermark."""
        if state.partition_epoch < self._known_partition_epoch():
            _log.info("%s: ignored old metadata %s", self.key, state)
            return False
        was_leader = self.leader
        is_new_epoch = state.leader_epoch > self.leader_epoch
        self._assign(state)
        if is_new_epoch or was_leader is None:
            leader = LeaderRole(self.log, self._settings, state)
        else:
            leader = was_leader
            leader.isr_changes.apply(state)
        leader.assign(state.replicas, was_leader.followers if was_leader else {})
        if is_new_epoch:
            # An epoch without records is noted too: a follower may have records of an epoch between that and ours.
            self.log.epochs.assign(state.leader_epoch, self.log.log_end_offset)
            leader.start_followers(now_ms, is_new_leader=was_leader is None)
            self.leader_epoch = state.leader_epoch
            _log.info(
                "%s: leads in epoch %d from offset %d, ISR %s",
                self.key,
                state.leader_epoch,
                leader.epoch_start_offset,
                state.isr,
            )
        self.role = self.leader = leader
        self.leader_id = self._settings.broker_id
        leader.advance_high_watermark(now_ms)
        return was_leader is None or is_new_epoch

    def make_follower(self, state: PartitionRegistration) -> bool:
        """Become or stay a follower in this state. Return True if fetching must restart, as in any new leader epoch."""
        if state.partition_epoch < self._known_partition_epoch():
            _log.info("%s: ignored old metadata %s", self.key, state)
            return False
        is_new_epoch = state.leader_epoch > self.leader_epoch
        self._assign(state)
        if is_new_epoch or not isinstance(self.role, FollowerRole) or self.leader_id != state.leader:
            self.role = FollowerRole(self.log, state.leader, state.leader_epoch)
        self.leader = None
        self.leader_id = state.leader
        self.leader_epoch = state.leader_epoch
        if is_new_epoch:
            _log.info("%s: follows %d in epoch %d", self.key, state.leader, state.leader_epoch)
        return is_new_epoch

    def _known_partition_epoch(self) -> int:
        # A leader may know a newer partition epoch from the controller's response than from the metadata.
        return (
            max(self.partition_epoch, self.leader.isr_changes.partition_epoch) if self.leader else self.partition_epoch
        )

    def _assign(self, state: PartitionRegistration) -> None:
        self.partition_epoch = state.partition_epoch
        self.replicas = state.replicas
        self.adding = state.adding_replicas
        self.removing = state.removing_replicas

    # Fencing

    def fencing_error(self, current_leader_epoch: LeaderEpoch, leader_only: bool) -> ErrorCode | None:
        """Return why a request must be refused, or None. An epoch of -1 is not checked."""
        if 0 <= current_leader_epoch != self.leader_epoch:
            is_old = current_leader_epoch < self.leader_epoch
            return ErrorCode.FENCED_LEADER_EPOCH if is_old else ErrorCode.UNKNOWN_LEADER_EPOCH
        if self.leader is None and (leader_only or self.role is None):
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return None

    def fence(self, current_leader_epoch: LeaderEpoch, *, leader_only: bool) -> None:
        error = self.fencing_error(current_leader_epoch, leader_only)
        if error is not None:
            raise KafkaError(
                error,
                f"{self.key}: the request has leader epoch {current_leader_epoch}; the leader is broker "
                f"{self.leader_id} in epoch {self.leader_epoch}",
            )

    def _leader(self) -> LeaderRole:
        if self.leader is None:
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{self.key} is led by broker {self.leader_id}, not by this broker"
            )
        return self.leader

    # Append

    def place(
        self,
        records: Buffer | CheckedRecords,
        required_acks: int,
        now_ms: int,
        origin: Origin = Origin.CLIENT,
        transaction_version: int = 0,
    ) -> AppendResult:
        """Place records of a client or coordinator after those placed already; `write_placed` writes them."""
        leader = self.leader or self._leader()
        if required_acks == ALL_ACKS and leader.is_under_min_isr:
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{self.key}: {len(leader.isr.committed)} replica(s) in sync, min.insync.replicas is {leader.min_isr}",
            )
        return self.log.place(records, self.leader_epoch, now_ms, origin, transaction_version)

    def write_placed(self, now_ms: int) -> bool:
        """Write placed records. Return True if the high watermark moved, as it does for a replica alone in sync."""
        self.log.write_placed(now_ms)
        leader = self.leader
        return leader is not None and leader.advance_high_watermark(now_ms)

    def append_as_leader(
        self,
        records: Buffer | CheckedRecords,
        *,
        required_acks: int,
        now_ms: int,
        origin: Origin = Origin.CLIENT,
        transaction_version: int = 0,
    ) -> LeaderAppend:
        """Place and write records of a client or coordinator."""
        result = self.place(records, required_acks, now_ms, origin, transaction_version)
        return LeaderAppend(result, self.write_placed(now_ms))

    def acks_error(self, required_offset: Offset) -> ErrorCode | None:
        """Return `ErrorCode.NONE` if all in-sync replicas have the records, an error if they never will. Return None
        if the answer is not known yet."""
        leader = self.leader
        if leader is None:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if self.log.marks.high_watermark.offset < required_offset:
            return None
        if len(leader.isr.maximal) < (leader.min_isr if leader.followers else 1):
            # The ISR was large enough at the append, and has shrunk since.
            return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        return _NO_ERROR

    # Read

    def read(
        self,
        offset: Offset,
        max_bytes: int,
        isolation: Isolation,
        at_least_one: bool,
        last_fetched_epoch: LeaderEpoch = -1,
        takes_data: bool = False,
    ) -> ReplicaRead:
        """Read from the local log after fencing. A reader that sends its last epoch gets the point of divergence."""
        log = self.log
        marks, bound, last_stable_offset = log.read_bounds(isolation)
        data = diverging = None
        log_start_offset, end = marks.log_start_offset, bound.offset
        found: LogRead | None
        if last_fetched_epoch >= 0 and (diverging := self._diverging(last_fetched_epoch, offset, marks)) is not None:
            found = None
        elif offset == end:  # nothing to read
            aborted: list[AbortedTransaction] | None = [] if isolation is _READ_COMMITTED else None
            found = _new_tuple(LogRead, (bound, None, False, aborted))
        elif (
            takes_data
            and isolation is not _READ_COMMITTED
            and log_start_offset <= offset < end
            and (max_bytes >= SMALL_READ_BYTES or (at_least_one and max_bytes >= 0))
            and (small := read_small(log.segments, offset, max_bytes, bound, marks.log_end.offset)) is not None
        ):
            position, data = small
            found = _new_tuple(LogRead, (position, None, False, None))
        else:
            found = read_log(self.key, log.segments, marks, offset, max(max_bytes, 0), isolation, at_least_one)
            if max_bytes < 0 and offset < end:
                raise KafkaError(
                    ErrorCode.UNKNOWN_SERVER_ERROR,
                    f"{self.key}: a read of {max_bytes} bytes was requested; it must be 0 or more",
                )
        high_watermark = marks.high_watermark.offset
        return _new_tuple(ReplicaRead, (found, high_watermark, log_start_offset, last_stable_offset, diverging, data))

    def _diverging(self, last_fetched_epoch: LeaderEpoch, offset: Offset, marks: Watermarks) -> EpochEnd | None:
        end = self.log.end_of_epoch(last_fetched_epoch)
        # Below the log start, truncation is impossible: the reader has to restart, whatever the epochs are.
        if end.end_offset < 0 or end.epoch < 0 or offset < marks.log_start_offset:
            raise OffsetOutOfRange(self.key, offset, marks.log_start_offset, marks.log_end.offset)
        return end if end.epoch < last_fetched_epoch or end.end_offset < offset else None

    def follower(self, replica_id: BrokerId, current_leader_epoch: LeaderEpoch) -> FollowerProgress:
        """Return the progress of an assigned replica. Raise KafkaError unless this broker leads."""
        found = self._leader().followers.get(replica_id)
        if found is None:
            # If the epoch matches ours, newer metadata that has not arrived yet may have added the replica.
            code = ErrorCode.UNKNOWN_LEADER_EPOCH if current_leader_epoch >= 0 else ErrorCode.NOT_LEADER_OR_FOLLOWER
            raise KafkaError(
                code, f"broker {replica_id} is not a replica of {self.key}; the replicas are {self.replicas}"
            )
        return found

    def end_of_epoch(
        self, epoch: LeaderEpoch, *, current_leader_epoch: LeaderEpoch = -1, leader_only: bool = True
    ) -> EpochEnd:
        """Return the end of an epoch in this log, for OffsetForLeaderEpoch."""
        self.fence(current_leader_epoch, leader_only=leader_only)
        return self.log.end_of_epoch(epoch)

    # Moving the start

    def delete_records(self, offset: Offset, now_ms: int) -> Offset:
        """Move the log start up to an offset, or to the high watermark with -1; return the offset."""
        self._leader()
        config = self.log.config
        if config.is_compacted and not config.is_deleted_by_retention:
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION, f"records of {self.key} cannot be deleted: its cleanup.policy has no delete"
            )
        target = self.log.high_watermark if offset == DELETE_TO_HIGH_WATERMARK else offset
        if target < 0:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {offset} of {self.key} is out of range: it must be -1 (the high watermark) or at least 0",
            )
        self.log.delete_records(target, now_ms)
        return target

    def low_watermark(self) -> Offset:
        low = self._leader().low_watermark()
        return low if self.move is None else min(low, self.move.log_start_offset)

    # Another log directory

    def start_move(self, move: MovingCopy) -> None:
        """Note the copy that will replace the log."""
        self.move = move

    def end_move(self) -> None:
        """Drop the copy: it has replaced the log, or the move was cancelled."""
        self.move = None

    def replace_log(self, log: PartitionLog) -> None:
        """Use another log with the same records."""
        assert log.log_end_offset == self.log.log_end_offset, f"{self.key}: {log} is not a copy of {self.log}"
        self.log = log
        if self.role is not None:
            self.role.replace_log(log)

    def __repr__(self) -> str:
        return f"Partition({self.key}, {type(self.role).__name__}, leader {self.leader_id}, epoch {self.leader_epoch})"
