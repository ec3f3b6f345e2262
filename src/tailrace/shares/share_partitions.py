"""SharePartitions: the share partitions of this broker, and their persisted state.

The first fetch creates a share partition and reads its state. It is removed when a newer leader has written that state,
when the partition is no longer led here, or when no member of the group is connected. The next fetch reads the state
again: records that were acquired are then available again.

Only one thread changes anything. So a fetch has a partition for itself between looking for records and acquiring them;
Kafka needs a lock for that.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol, TypeAlias

from tailrace.diagnostics.limited_log import LimitedLog
from tailrace.log.reading.log_read import LogRead
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import Offset, TopicPartition
from tailrace.replication.hosted_partitions import HostedPartitions
from tailrace.replication.partition import Partition
from tailrace.shares.acknowledging import Acknowledgement, acknowledge, release
from tailrace.shares.delivery_settings import DeliverySettings
from tailrace.shares.lock_expiry import expire_locks
from tailrace.shares.share_partition import NO_OFFSET, Activity, Change, SharePartition
from tailrace.shares.start_offset import RunOnWorker, StartOffsets
from tailrace.shares.state.persisted_state import PersistedState, SharePartitionKey, ShareWrite
from tailrace.waiting.purgatory import Purgatory

_log = logging.getLogger(__name__)

Done = Callable[[KafkaError | None, int], None]  # (error or None, now_ms), called once
RemoteRead: TypeAlias = Callable[[TopicPartition, Offset, int, bool, int], LogRead | ErrorCode | None]

_RETRIABLE = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
_FENCED = (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.FENCED_STATE_EPOCH)
_PASSED_ON = (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
_ENDS = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_STATE_EPOCH,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)


class Persister(Protocol):
    """The store of states. It calls `answer` or `refuse` once, now or later."""

    def read(
        self,
        key: SharePartitionKey,
        leader_epoch: int,
        answer: Callable[[PersistedState, int], None],
        refuse: Callable[[KafkaError, int], None],
        now_ms: int,
    ) -> None: ...

    def write(
        self,
        key: SharePartitionKey,
        write: ShareWrite,
        answer: Callable[[ErrorCode, int], None],
        refuse: Callable[[KafkaError, int], None],
        now_ms: int,
    ) -> None: ...


class HostedShare:
    """A share partition, and the replica whose records it delivers."""

    __slots__ = ("key", "replica", "share")

    def __init__(self, key: SharePartitionKey, replica: Partition) -> None:
        self.key = key
        self.replica = replica
        self.share = SharePartition(replica.leader_epoch)


class SharePartitions:
    def __init__(
        self,
        partitions: HostedPartitions,
        persister: Persister,
        purgatory: Purgatory,
        settings: Callable[[str], DeliverySettings],
        run_on_worker: RunOnWorker,
        remote_read: RemoteRead,
    ) -> None:
        """`remote_read(partition, offset, max_bytes, wants_aborted, now_ms)` returns records from the remote store, an
        error, or None while it reads."""
        self.partitions = partitions
        self.remote_read = remote_read
        self._start_offsets = StartOffsets(run_on_worker)
        self.purgatory = purgatory
        self.settings = settings
        self._persister = persister
        self._hosted: dict[SharePartitionKey, HostedShare] = {}
        self._limited_log = LimitedLog(_log)
        self._deadline_ms: int | None = None  # no lock expires before
        self.acquired_records = 0
        self.acknowledged_records = [0] * 5  # by type
        self.lock_timeouts = 0  # records whose lock has expired

    def count_acquired(self, count: int) -> None:
        """Count records for the metrics."""
        self.acquired_records += count

    def __len__(self) -> int:
        return len(self._hosted)

    def shares(self) -> Sequence[HostedShare]:
        return tuple(self._hosted.values())

    # Which exist

    def host(self, key: SharePartitionKey, topic: str) -> HostedShare:
        """Return the share partition, created if needed. Raise KafkaError if its partition is not led here."""
        found = self.get(key)
        if found is None:
            replica = self.partitions.find(TopicPartition(topic, key.partition))
            if replica.leader is None or replica.topic_id != key.topic_id:
                raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"this broker does not lead {replica.key}")
            found = self._hosted[key] = HostedShare(key, replica)
        return found

    def get(self, key: SharePartitionKey) -> HostedShare | None:
        found = self._hosted.get(key)
        if found is not None and not self.is_current(found):
            self._remove_hosted(found)
            return None
        return found

    def is_current(self, hosted: HostedShare) -> bool:
        """Return True if the replica is still the leader, and no other broker can have led it in between."""
        replica = hosted.replica
        return (
            replica.leader is not None
            and replica.leader_epoch == hosted.share.leader_epoch
            and self.partitions.of_topic(hosted.key.topic_id, hosted.key.partition) is replica
        )

    def _remove_hosted(self, hosted: HostedShare) -> None:
        hosted.share.fence()
        if self._hosted.get(hosted.key) is hosted:
            del self._hosted[hosted.key]

    def forget_group(self, group_id: str) -> None:
        """Remove a group without members here. The next fetch reads its persisted state."""
        for hosted in self.shares():
            if hosted.key.group_id == group_id:
                self._remove_hosted(hosted)

    def fence_if(self, hosted: HostedShare, error: KafkaError) -> None:
        """Remove a share partition if the error means that it is outdated."""
        if error.code in _ENDS:
            _log.info("share partition %s is fenced: %s", hosted.key, error)
            self._remove_hosted(hosted)

    def _warn(self, message: str, hosted: HostedShare, error: KafkaError, now_ms: int) -> None:
        """Log a failure that occurs again with each fetch, until its cause is gone."""
        self._limited_log.write(
            logging.WARNING, message, now_ms, message, share_partition=str(hosted.key), error=str(error)
        )

    # Initial state

    def initialize(self, hosted: HostedShare, failed: Callable[[KafkaError], None], now_ms: int) -> None:
        """Read the state unless it was read already. `failed` is called if that failed, now or later."""
        share = hosted.share
        if share.activity is not Activity.EMPTY:
            return
        share.begin_initializing()

        def answer(state: PersistedState, now_ms: int) -> None:
            if state.start_offset != NO_OFFSET:
                begin(state, state.start_offset, now_ms)
                return
            reset = self.settings(hosted.key.group_id).auto_offset_reset
            self._start_offsets.find(hosted.replica, reset, partial(begin, state), refuse, now_ms)

        def begin(state: PersistedState, start_offset: Offset, now_ms: int) -> None:
            try:
                share.begin(state, start_offset)
            except KafkaError as error:
                refuse(error, now_ms)
                return
            self.purgatory.check(hosted.key, now_ms)

        def refuse(error: KafkaError, now_ms: int) -> None:
            self._warn("the state of a share partition cannot be read", hosted, error, now_ms)
            self._remove_hosted(hosted)
            failed(error)
            self.purgatory.check(hosted.key, now_ms)

        self._persister.read(
            hosted.key, share.leader_epoch, answer, lambda error, now_ms: refuse(_client_error(error), now_ms), now_ms
        )

    # Requests of members

    def acknowledge(
        self,
        key: SharePartitionKey,
        member_id: str,
        acknowledgements: Sequence[Acknowledgement],
        done: Done,
        now_ms: int,
    ) -> None:
        hosted = self.get(key)
        if hosted is None:
            done(KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), now_ms)
            return
        try:
            change = acknowledge(hosted.share, member_id, acknowledgements, self.settings(key.group_id), now_ms)
        except KafkaError as error:
            done(error, now_ms)
            return

        def count(error: KafkaError | None, now_ms: int) -> None:
            if error is None:
                for one in acknowledgements:
                    size = one.last_offset - one.first_offset + 1 if len(one.types) == 1 else 1
                    for kind in one.types:
                        self.acknowledged_records[kind] += size
            done(error, now_ms)

        self._persist(hosted, change, count, now_ms)

    def release(self, key: SharePartitionKey, member_id: str, done: Done, now_ms: int) -> None:
        """Give back what a member has acquired."""
        hosted = self.get(key)
        if hosted is None:
            done(KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), now_ms)
            return
        change = release(hosted.share, member_id, self.settings(key.group_id))
        self._persist(hosted, change, done, now_ms)

    def _persist(self, hosted: HostedShare, change: Change, done: Done, now_ms: int) -> None:
        self.note_deadline(hosted.share)
        if not change.parts:
            done(None, now_ms)
            return

        def persisted(error: KafkaError | None, now_ms: int) -> None:
            hosted.share.complete(change, is_committed=error is None, now_ms=now_ms)
            self.note_deadline(hosted.share)
            if error is not None:
                error = _client_error(error)
                self.fence_if(hosted, error)
            done(error, now_ms)
            self.purgatory.check(hosted.key, now_ms)

        self._write(hosted, change, persisted, now_ms)

    def _write(self, hosted: HostedShare, change: Change, persisted: Done, now_ms: int) -> None:
        self._persister.write(
            hosted.key,
            hosted.share.write_of(change),
            lambda _, now_ms: persisted(None, now_ms),
            persisted,
            now_ms,
        )

    # Timeouts

    def note_deadline(self, share: SharePartition) -> None:
        deadline_ms = share.deadline_ms
        if deadline_ms is not None and (self._deadline_ms is None or deadline_ms < self._deadline_ms):
            self._deadline_ms = deadline_ms

    def next_deadline_ms(self) -> int | None:
        return self._deadline_ms

    def tick(self, now_ms: int) -> None:
        """Release records whose lock has expired."""
        if self._deadline_ms is None or self._deadline_ms > now_ms:
            return
        self._deadline_ms = None
        for hosted in self.shares():
            change = expire_locks(hosted.share, self.settings(hosted.key.group_id), now_ms)
            self.note_deadline(hosted.share)
            if change.parts:
                self._persist_expired(hosted, change, now_ms)

    def _persist_expired(self, hosted: HostedShare, change: Change, now_ms: int) -> None:
        self.lock_timeouts += sum(batch.last_offset - batch.first_offset + 1 for batch in change.state_batches())

        def persisted(error: KafkaError | None, now_ms: int) -> None:
            if error is not None:
                self._warn("the expiry of acquisition locks could not be written", hosted, error, now_ms)
            hosted.share.advance_start()

        self._write(hosted, change, persisted, now_ms)
        self.purgatory.check(hosted.key, now_ms)


def _client_error(error: KafkaError) -> KafkaError:
    """Return the error for a client when its group's state cannot be read or written."""
    if error.code in _RETRIABLE:
        code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    elif error.code in _FENCED:
        code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    elif error.code in _PASSED_ON:
        return error
    else:
        code = ErrorCode.UNKNOWN_SERVER_ERROR
    return KafkaError(code, *error.args)
