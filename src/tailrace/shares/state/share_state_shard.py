"""ShareStateShard: the shard behind a partition of `__share_group_state`.

The progress of a share group in a partition is stored as a snapshot and updates to it:

    initialize ──► snapshot (with a higher state epoch, so that writes of an old leader are fenced)
    write      ──► update: batches of records with their states; regularly a snapshot instead
    read       ──► the whole state, for a new leader of the partition, whose epoch fences the leader before
    delete     ──► tombstone

As in Kafka there are no transactions here, and the topic is not compacted: records before the latest snapshots are
deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace

from tailrace.coordinator.shard import CoordinatorRecord, Part, StateChange
from tailrace.metadata.image.image import MetadataImage
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol.messages import ShareSnapshotKey, ShareSnapshotValue, ShareUpdateKey, ShareUpdateValue
from tailrace.shares.state.persisted_state import (
    UNINITIALIZED_OFFSET,
    UNKNOWN_COUNT,
    PersistedState,
    SharePartitionKey,
    ShareWrite,
    combine,
    state_batches,
)

NO_EPOCH = -1


@dataclass(frozen=True, slots=True)
class ShareStateSettings:
    updates_per_snapshot: int = 500  # share.coordinator.snapshot.update.records.per.snapshot
    cold_snapshot_ms: int = 300_000  # share.coordinator.cold.partition.snapshot.interval.ms


class ShareStateShard:
    family = "share"

    def __init__(self, settings: ShareStateSettings, image: Callable[[], MetadataImage]) -> None:
        self._settings = settings
        self._image = image
        self.states: dict[SharePartitionKey, PersistedState] = {}
        self._leader_epochs: dict[SharePartitionKey, int] = {}
        self._state_epochs: dict[SharePartitionKey, int] = {}
        self._updates: dict[SharePartitionKey, int] = {}  # since the last snapshot
        self._snapshot_offsets: dict[SharePartitionKey, int] = {}
        self._last_snapshot = 0  # the offset of the latest snapshot or tombstone

    # Requests

    def initialize(
        self, key: SharePartitionKey, state_epoch: int, start_offset: int, now_ms: int
    ) -> StateChange[ErrorCode]:
        """Create or reset the state, after the group or an administrator has set the offset."""
        _check_index(key)
        known = self.states.get(key)
        self._check_state_epoch(key, state_epoch)
        self._check_partition(key)
        state = PersistedState(
            snapshot_epoch=0 if known is None else known.snapshot_epoch + 1,
            state_epoch=state_epoch,
            leader_epoch=0,
            start_offset=start_offset,
            delivery_complete_count=UNKNOWN_COUNT if start_offset == UNINITIALIZED_OFFSET else 0,
            created_ms=now_ms,
            written_ms=now_ms,
        )
        return StateChange([_snapshot_record(key, state)], ErrorCode.NONE)

    def write(self, key: SharePartitionKey, write: ShareWrite, now_ms: int) -> StateChange[ErrorCode]:
        state = self._checked(key, write.leader_epoch, "Write")
        self._check_state_epoch(key, write.state_epoch)
        self._check_partition(key)
        return StateChange([self._record(key, state, write, state.leader_epoch, now_ms)], ErrorCode.NONE)

    def read(self, key: SharePartitionKey, leader_epoch: int, now_ms: int) -> StateChange[PersistedState]:
        """Return the state. The epoch of a new leader is stored, and fences the leaders before it."""
        state = self._checked(key, leader_epoch, "Read")
        self._check_partition(key)
        if leader_epoch in (NO_EPOCH, self._leader_epochs.get(key)):
            return StateChange((), state)
        noted = ShareWrite(NO_EPOCH, leader_epoch, state.start_offset, state.delivery_complete_count, ())
        return StateChange([self._record(key, state, noted, leader_epoch, now_ms)], state)

    def summary(self, key: SharePartitionKey) -> PersistedState | None:
        """Return the state, or None if the group has not begun to read the partition."""
        self._check_partition(key)
        return self.states.get(key)

    def delete(self, key: SharePartitionKey) -> StateChange[ErrorCode]:
        self._check_partition(key)
        records = [_tombstone(key)] if key in self.states else []
        return StateChange(records, ErrorCode.NONE)

    def forget_topics(self, topic_ids: Collection[bytes]) -> StateChange[None] | None:
        """Delete the states of deleted topics."""
        records = [_tombstone(key) for key in self.states if key.topic_id in topic_ids]
        return StateChange(records, None, is_atomic=False) if records else None

    def snapshot_cold(self, now_ms: int) -> StateChange[None] | None:
        """Write snapshots of partitions without recent writes, so that old records can be deleted."""
        records = [
            _snapshot_record(key, replace(state, snapshot_epoch=state.snapshot_epoch + 1, written_ms=now_ms))
            for key, state in self.states.items()
            if now_ms - state.written_ms >= self._settings.cold_snapshot_ms
        ]
        are_done = all(state.created_ms != state.written_ms for state in self.states.values())
        return StateChange(records, None, is_atomic=False) if records and not are_done else None

    @property
    def superfluous_offset(self) -> int:
        """Return the offset below which all records of the log are superseded."""
        return min(self._snapshot_offsets.values(), default=self._last_snapshot)

    def _check_partition(self, key: SharePartitionKey) -> None:
        _check_index(key)
        topic = self._image().topics_by_id.get(key.topic_id)
        if topic is None or key.partition not in topic.partitions:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def _checked(self, key: SharePartitionKey, leader_epoch: int, operation: str) -> PersistedState:
        _check_index(key)
        state = self.states.get(key)
        if state is None:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"{operation} operation on uninitialized share partition not allowed."
            )
        if leader_epoch != NO_EPOCH and leader_epoch < self._leader_epochs.get(key, leader_epoch):
            raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
        return state

    def _check_state_epoch(self, key: SharePartitionKey, epoch: int) -> None:
        if epoch != NO_EPOCH and epoch < self._state_epochs.get(key, epoch):
            raise KafkaError(ErrorCode.FENCED_STATE_EPOCH)

    def _record(
        self, key: SharePartitionKey, state: PersistedState, write: ShareWrite, leader_epoch: int, now_ms: int
    ) -> CoordinatorRecord:
        if self._updates.get(key, 0) < self._settings.updates_per_snapshot:
            return _update_record(key, state.snapshot_epoch, write, leader_epoch)
        start_offset = state.start_offset if write.start_offset == UNINITIALIZED_OFFSET else write.start_offset
        return _snapshot_record(
            key,
            PersistedState(
                snapshot_epoch=state.snapshot_epoch + 1,
                state_epoch=state.state_epoch,
                leader_epoch=leader_epoch,
                start_offset=start_offset,
                delivery_complete_count=write.delivery_complete_count,
                batches=combine(state.batches, write.batches, start_offset),
                created_ms=now_ms,
                written_ms=now_ms,
            ),
        )

    # Replay

    def replay(self, record: CoordinatorRecord, producer_id: int, producer_epoch: int) -> None:
        key, value = record.key, record.value
        assert isinstance(key, ShareSnapshotKey | ShareUpdateKey), key
        name = SharePartitionKey(key.group_id, key.topic_id, key.partition)
        if isinstance(value, ShareSnapshotValue):
            self._note_leader(name, value.leader_epoch)
            if self._updates.get(name, 0) >= self._settings.updates_per_snapshot:
                self._updates[name] = 0
            self._snapshot_offsets[name] = self._last_snapshot = record.offset
            self._state_epochs[name] = max(value.state_epoch, self._state_epochs.get(name, value.state_epoch))
            self.states[name] = PersistedState(
                value.snapshot_epoch,
                value.state_epoch,
                value.leader_epoch,
                value.start_offset,
                value.delivery_complete_count,
                state_batches(value.state_batches),
                value.create_timestamp,
                value.write_timestamp,
            )
        elif isinstance(value, ShareUpdateValue):
            self._note_leader(name, value.leader_epoch)
            self._updates[name] = self._updates.get(name, 0) + 1
            self.states[name] = _updated(self.states.get(name), value)
        else:
            self._last_snapshot = record.offset
            for known in (self.states, self._leader_epochs, self._state_epochs, self._updates, self._snapshot_offsets):
                known.pop(name, None)

    def _note_leader(self, key: SharePartitionKey, epoch: int) -> None:
        self._leader_epochs[key] = max(epoch, self._leader_epochs.get(key, epoch))

    def replay_end_transaction(self, producer_id: int, producer_epoch: int, is_committed: bool) -> None:
        raise AssertionError("share state is never written in a transaction")

    def loaded(self, now_ms: int) -> Iterable[Part]:
        """Do nothing: there are no timers to set. The broker calls `snapshot_cold` for all shards."""
        return ()

    def unloaded(self, now_ms: int) -> Iterable[Part]:
        """Do nothing: no request waits here."""
        return ()


def _check_index(key: SharePartitionKey) -> None:
    if key.partition < 0:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "The partition id cannot be a negative number.")


def _updated(state: PersistedState | None, value: ShareUpdateValue) -> PersistedState:
    batches = state_batches(value.state_batches)
    if state is None:  # its snapshot is missing: use what the update contains
        return PersistedState(
            value.snapshot_epoch, 0, value.leader_epoch, value.start_offset, value.delivery_complete_count, batches
        )
    start_offset = state.start_offset if value.start_offset == UNINITIALIZED_OFFSET else value.start_offset
    return replace(
        state,
        leader_epoch=state.leader_epoch if value.leader_epoch == NO_EPOCH else value.leader_epoch,
        start_offset=start_offset,
        delivery_complete_count=value.delivery_complete_count,
        batches=combine(state.batches, batches, start_offset),
    )


# Records


def _snapshot_record(key: SharePartitionKey, state: PersistedState) -> CoordinatorRecord:
    value = ShareSnapshotValue(
        snapshot_epoch=state.snapshot_epoch,
        state_epoch=state.state_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        delivery_complete_count=state.delivery_complete_count,
        create_timestamp=state.created_ms,
        write_timestamp=state.written_ms,
        state_batches=[ShareSnapshotValue.StateBatch(**batch._asdict()) for batch in state.batches],
    )
    return CoordinatorRecord(ShareSnapshotKey(**key._asdict()), value)


def _update_record(
    key: SharePartitionKey, snapshot_epoch: int, write: ShareWrite, leader_epoch: int
) -> CoordinatorRecord:
    value = ShareUpdateValue(
        snapshot_epoch=snapshot_epoch,
        leader_epoch=leader_epoch,
        start_offset=write.start_offset,
        delivery_complete_count=write.delivery_complete_count,
        state_batches=[
            ShareUpdateValue.StateBatch(**batch._asdict()) for batch in combine((), write.batches, write.start_offset)
        ],
    )
    return CoordinatorRecord(ShareUpdateKey(**key._asdict()), value)


def _tombstone(key: SharePartitionKey) -> CoordinatorRecord:
    return CoordinatorRecord(ShareSnapshotKey(**key._asdict()), None)
