"""SharePartitions: the share partitions of groups that fetch from here, and what is persisted of them.

One comes into being with the first fetch, when its state is read, and goes when somebody newer has written that state,
when the partition is not led here any more, or when no member of the group is connected. The next fetch reads the state
anew: whatever was acquired by then is available again.

With one thread that changes anything, a fetch holds a partition from looking for records to acquiring them; Kafka needs
a lock for that.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, Protocol
from uuid import UUID

from tailrace.diagnostics.limited_log import LimitedLog
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import Offset, TopicId, TopicPartition
from tailrace.replication.hosted_partitions import HostedPartitions
from tailrace.replication.partition import Partition
from tailrace.shares.acknowledging import Acknowledgement, acknowledge, release
from tailrace.shares.delivery_settings import ShareSettings
from tailrace.shares.share_partition import (
    NO_OFFSET,
    Activity,
    Change,
    PersistedState,
    SharePartition,
    StateBatch,
)
from tailrace.shares.start_offset import RunBeside, StartOffsets
from tailrace.waiting.purgatory import Purgatory

_log = logging.getLogger(__name__)

Done = Callable[[KafkaError | None, int], None]  # called once, with what went wrong, if anything, and the time

_LATER = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
_FENCED = (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.FENCED_STATE_EPOCH)
_TOLD = (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
_ENDS = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_STATE_EPOCH,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)


class ShareKey(NamedTuple):
    """A group's partition. Fetches that want more of its records wait under this key."""

    group_id: str
    topic_id: bytes
    partition: int

    def __str__(self) -> str:
        return f"{self.group_id}:{TopicId(UUID(bytes=self.topic_id))}:{self.partition}"


class Persister(Protocol):
    """Where states are kept; it answers once, now or later."""

    def read(
        self,
        key: ShareKey,
        leader_epoch: int,
        answer: Callable[[PersistedState, int], None],
        refuse: Callable[[KafkaError, int], None],
        now_ms: int,
    ) -> None: ...

    def write(
        self, key: ShareKey, partition: SharePartition, batches: Sequence[StateBatch], done: Done, now_ms: int
    ) -> None:
        """What has become of records, with the partition's epochs, its start offset and its count as they are now."""


class HostedShare:
    """A share partition, and the replica whose records it hands out."""

    __slots__ = ("key", "replica", "share")

    def __init__(self, key: ShareKey, replica: Partition) -> None:
        self.key = key
        self.replica = replica
        self.share = SharePartition(replica.leader_epoch)


class SharePartitions:
    def __init__(
        self,
        partitions: HostedPartitions,
        persister: Persister,
        purgatory: Purgatory,
        settings: Callable[[str], ShareSettings],
        run_beside: RunBeside,
    ) -> None:
        self.partitions = partitions
        self._start_offsets = StartOffsets(run_beside)
        self.purgatory = purgatory
        self.settings = settings
        self._persister = persister
        self._hosted: dict[ShareKey, HostedShare] = {}
        self._limited_log = LimitedLog(_log)
        self._deadline_ms: int | None = None  # no record has to be given up before
        self.acquired_records = 0
        self.acknowledged_records = [0] * 5  # by type
        self.lock_timeouts = 0  # records that were given up because nobody answered in time

    def __len__(self) -> int:
        return len(self._hosted)

    def shares(self) -> Sequence[HostedShare]:
        return tuple(self._hosted.values())

    # Which there are

    def host(self, key: ShareKey, topic: str) -> HostedShare:
        """The share partition, a new one if need be; KafkaError if its partition is not led here."""
        found = self.get(key)
        if found is None:
            replica = self.partitions.find(TopicPartition(topic, key.partition))
            if replica.leader is None or replica.topic_id != key.topic_id:
                raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{replica.key} is not led here")
            found = self._hosted[key] = HostedShare(key, replica)
        return found

    def get(self, key: ShareKey) -> HostedShare | None:
        found = self._hosted.get(key)
        if found is not None and not self.is_current(found):
            self._forget(found)
            return None
        return found

    def is_current(self, hosted: HostedShare) -> bool:
        """Whether its partition is still the one that is led here, and nobody can have led it in between."""
        replica = hosted.replica
        return (
            replica.leader is not None
            and replica.leader_epoch == hosted.share.leader_epoch
            and self.partitions.of_topic(hosted.key.topic_id, hosted.key.partition) is replica
        )

    def _forget(self, hosted: HostedShare) -> None:
        hosted.share.fence()
        if self._hosted.get(hosted.key) is hosted:
            del self._hosted[hosted.key]

    def forget_group(self, group_id: str) -> None:
        """No member is left here: whoever comes reads what is persisted."""
        for hosted in self.shares():
            if hosted.key.group_id == group_id:
                self._forget(hosted)

    def fence_if(self, hosted: HostedShare, error: KafkaError) -> None:
        """Some errors say that this one's time is over."""
        if error.code in _ENDS:
            _log.info("share partition %s is fenced: %s", hosted.key, error)
            self._forget(hosted)

    def _warn(self, message: str, hosted: HostedShare, error: KafkaError, now_ms: int) -> None:
        """Log a failure that fetches repeat until it is mended."""
        self._limited_log.write(
            logging.WARNING, message, now_ms, message, share_partition=str(hosted.key), error=str(error)
        )

    # Its state, read at first

    def initialize(self, hosted: HostedShare, failed: Callable[[KafkaError], None], now_ms: int) -> None:
        """Have its state read if nobody has yet; `failed` says why that was of no avail, now or later."""
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
            self._forget(hosted)
            failed(error)
            self.purgatory.check(hosted.key, now_ms)

        self._persister.read(
            hosted.key, share.leader_epoch, answer, lambda error, now_ms: refuse(_as_told(error), now_ms), now_ms
        )

    # What members say

    def acknowledge(
        self, key: ShareKey, member_id: str, acknowledgements: Sequence[Acknowledgement], done: Done, now_ms: int
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

    def release(self, key: ShareKey, member_id: str, done: Done, now_ms: int) -> None:
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
                error = _as_told(error)
                self.fence_if(hosted, error)
            done(error, now_ms)
            self.purgatory.check(hosted.key, now_ms)

        self._persister.write(hosted.key, hosted.share, change.state_batches(), persisted, now_ms)

    # Time

    def note_deadline(self, share: SharePartition) -> None:
        deadline_ms = share.deadline_ms
        if deadline_ms is not None and (self._deadline_ms is None or deadline_ms < self._deadline_ms):
            self._deadline_ms = deadline_ms

    def next_deadline_ms(self) -> int | None:
        return self._deadline_ms

    def tick(self, now_ms: int) -> None:
        """Give up what was acquired for too long."""
        if self._deadline_ms is None or self._deadline_ms > now_ms:
            return
        self._deadline_ms = None
        for hosted in self.shares():
            change = hosted.share.expire(self.settings(hosted.key.group_id), now_ms)
            self.note_deadline(hosted.share)
            if change.parts:
                self._persist_expired(hosted, change, now_ms)

    def _persist_expired(self, hosted: HostedShare, change: Change, now_ms: int) -> None:
        batches = change.state_batches()
        self.lock_timeouts += sum(batch.last_offset - batch.first_offset + 1 for batch in batches)

        def persisted(error: KafkaError | None, now_ms: int) -> None:
            if error is not None:
                self._warn("the timeout of acquired records was not written", hosted, error, now_ms)
            hosted.share.advance_start()

        self._persister.write(hosted.key, hosted.share, batches, persisted, now_ms)
        self.purgatory.check(hosted.key, now_ms)


def _as_told(error: KafkaError) -> KafkaError:
    """What a client is told when its group's state cannot be read or written."""
    if error.code in _LATER:
        code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    elif error.code in _FENCED:
        code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    elif error.code in _TOLD:
        return error
    else:
        code = ErrorCode.UNKNOWN_SERVER_ERROR
    return KafkaError(code, *error.args)
