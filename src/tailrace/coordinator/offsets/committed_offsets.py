"""CommittedOffsets: how far each group has read each partition: commit, fetch, delete, expire.

An offset committed in a transaction is pending until the transaction ends: `end_transaction`. Of two commits the one
further on in the log counts, whichever was in a transaction, so that compaction, which keeps the last record, cannot
change what counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

from tailrace.coordinator.groups.group import CommittedOffset, Group, TopicCommit
from tailrace.coordinator.offsets.offset_kernels import OffsetReplay
from tailrace.coordinator.offsets.offset_records import NO_EXPIRY, OffsetRecords, offset_tombstone
from tailrace.coordinator.shard import CoordinatorRecord
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import NO_PRODUCER_ID
from tailrace.model.java.java_hash import java_length
from tailrace.records.record import wrapped

DEFAULT_RETENTION = -1

Offsets = dict[str, dict[int, CommittedOffset]]  # topic → partition → offset
Verdict: TypeAlias = ErrorCode | list[ErrorCode]  # on the partitions of a topic: one for all, or one for each


class FetchedOffset(NamedTuple):
    partition: int
    offset: int = -1
    leader_epoch: int = -1
    metadata: str = ""
    error: ErrorCode = ErrorCode.NONE


class CommittedOffsets:
    def __init__(self, ensure_group: Callable[[str], object], *, metadata_size_max: int, retention_ms: int) -> None:
        """`ensure_group(group_id)` makes the group that an offset is replayed for, if it does not exist."""
        self._ensure_group = ensure_group
        self._metadata_size_max = metadata_size_max
        self._retention_ms = retention_ms
        self._offsets: dict[str, Offsets] = {}  # by group
        self._pending: dict[int, dict[str, Offsets]] = {}  # by producer id, then by group
        self._open: dict[str, set[int]] = {}  # group → producers with a transaction in it

    # Commit

    def plan_commit(
        self,
        group_id: str,
        topics: Sequence[TopicCommit],
        now_ms: int,
        *,
        retention_ms: int = DEFAULT_RETENTION,
        producer_id: int = NO_PRODUCER_ID,
    ) -> tuple[OffsetRecords, list[Verdict]]:
        """Return the records of a commit, and the verdict on each topic."""
        expire_ms = NO_EXPIRY if retention_ms == DEFAULT_RETENTION else wrapped(now_ms + retention_ms)  # as Java adds
        records = OffsetRecords(group_id, now_ms, expire_ms, self.replay(producer_id))
        verdicts: list[Verdict] = []
        limit = self._metadata_size_max
        for topic in topics:
            if not [None for one in topic.partitions if len(one[3]) > limit]:
                verdicts.append(ErrorCode.NONE)
                records.add(topic)
                continue
            codes = self._metadata_errors(topic)
            kept = [one for one, code in zip(topic.partitions, codes, strict=True) if code is ErrorCode.NONE]
            verdicts.append(codes)
            records.add(topic._replace(partitions=kept))
        return records, verdicts

    def _metadata_errors(self, topic: TopicCommit) -> list[ErrorCode]:
        """Refuse partitions with more metadata than allowed, which Kafka counts in characters of Java."""
        limit = self._metadata_size_max
        return [
            ErrorCode.OFFSET_METADATA_TOO_LARGE
            if len(metadata) > limit and java_length(metadata.decode()) > limit
            else ErrorCode.NONE
            for _, _, _, metadata, _ in topic.partitions
        ]

    # Fetch

    def fetch(
        self, group_id: str, topics: Sequence[tuple[str, Sequence[int]]] | None, *, require_stable: bool
    ) -> list[tuple[str, list[FetchedOffset]]]:
        """The offsets of the partitions asked for, or all there are."""
        known = self._offsets.get(group_id, {})
        if topics is None:
            topics = [(topic, list(partitions)) for topic, partitions in known.items()]
        found = []
        for topic, partitions in topics:
            committed = known.get(topic, {})
            told = []
            for partition in partitions:
                one = committed.get(partition)
                if require_stable and self.is_pending(group_id, topic, partition):
                    told.append(FetchedOffset(partition, error=ErrorCode.UNSTABLE_OFFSET_COMMIT))
                elif one is None:
                    told.append(FetchedOffset(partition))
                else:
                    told.append(FetchedOffset(partition, one.offset, one.leader_epoch, one.metadata))
            found.append((topic, told))
        return found

    def get(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        return self._offsets.get(group_id, {}).get(topic, {}).get(partition)

    def knows(self, group_id: str) -> bool:
        """Return True if the group has committed anything, also in a transaction that has not ended."""
        return group_id in self._offsets or group_id in self._open

    def is_pending(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether a transaction that has not ended commits this partition's offset."""
        return any(
            partition in self._pending[producer_id].get(group_id, {}).get(topic, {})
            for producer_id in self._open.get(group_id, ())
        )

    # Delete

    def plan_delete(self, group_id: str, topic: str, partition: int) -> CoordinatorRecord | None:
        if self.get(group_id, topic, partition) is None and not self.is_pending(group_id, topic, partition):
            return None
        return offset_tombstone(group_id, topic, partition)

    def plan_delete_all(self, group_id: str) -> list[CoordinatorRecord]:
        """Tombstones for everything that a group has committed, also in transactions that have not ended."""
        return [offset_tombstone(group_id, *key) for key in self._known_partitions(group_id)]

    def _known_partitions(self, group_id: str) -> dict[tuple[str, int], None]:
        known = dict.fromkeys(_partitions(self._offsets.get(group_id, {})))
        for producer_id in self._open.get(group_id, ()):
            known.update(dict.fromkeys(_partitions(self._pending[producer_id].get(group_id, {}))))
        return known

    def plan_forget_topics(self, is_gone: Callable[[str], bool]) -> list[CoordinatorRecord]:
        """Tombstones for all groups' offsets of topics that are no more."""
        groups = {**dict.fromkeys(self._offsets), **dict.fromkeys(self._open)}
        return [
            offset_tombstone(group_id, topic, partition)
            for group_id in groups
            for topic, partition in self._known_partitions(group_id)
            if is_gone(topic)
        ]

    # Expire

    def plan_expire(self, group: Group, now_ms: int) -> tuple[list[CoordinatorRecord], bool]:
        """Tombstones for a group's offsets that have been kept long enough, and whether that leaves it without any."""
        offsets = self._offsets.get(group.group_id)
        if offsets is None:
            return [], group.group_id not in self._open
        idle_since = group.offsets_idle_since()
        if idle_since is None:
            return [], False
        records = []
        is_all = True
        for topic, partitions in offsets.items():
            if group.is_subscribed_to(topic):
                is_all = False
                continue
            for partition, committed in partitions.items():
                if committed.expire_timestamp_ms != -1:
                    is_expired = now_ms >= committed.expire_timestamp_ms
                else:
                    is_expired = now_ms - idle_since(committed) >= self._retention_ms
                if is_expired and not self.is_pending(group.group_id, topic, partition):
                    records.append(offset_tombstone(group.group_id, topic, partition))
                else:
                    is_all = False
        return records, is_all and group.group_id not in self._open

    # Replay

    def replay(self, producer_id: int) -> OffsetReplay:
        """Return what replays the committed offsets of a batch, written just now or read from the log. Those of a
        transaction, which have a producer id, are pending until it ends."""
        return OffsetReplay(CommittedOffset, partial(self._known_of, producer_id), self.remove)

    def _known_of(self, producer_id: int, group_id: str, topic: str) -> dict[int, CommittedOffset]:
        """Return the offsets of a group and topic, to which a commit is added."""
        self._ensure_group(group_id)
        if producer_id < 0:
            return self._committed_of(group_id, topic)
        self._open.setdefault(group_id, set()).add(producer_id)
        return self._pending.setdefault(producer_id, {}).setdefault(group_id, {}).setdefault(topic, {})

    def _committed_of(self, group_id: str, topic: str) -> dict[int, CommittedOffset]:
        return self._offsets.setdefault(group_id, {}).setdefault(topic, {})

    def remove(self, group_id: str, topic: str, partition: int) -> None:
        """Replay a tombstone."""
        _take(self._offsets, group_id, topic, partition)
        for producer_id in self._open.get(group_id, ()):
            pending = self._pending[producer_id].get(group_id)
            if pending is not None and topic in pending:
                pending[topic].pop(partition, None)

    def end_transaction(self, producer_id: int, is_committed: bool) -> None:
        for group_id, offsets in self._pending.pop(producer_id, {}).items():
            producers = self._open[group_id]
            producers.discard(producer_id)
            if not producers:
                del self._open[group_id]
            if not is_committed:
                continue
            for topic, partitions in offsets.items():
                for partition, committed in partitions.items():
                    known = self.get(group_id, topic, partition)
                    if known is None or committed.record_offset > known.record_offset:
                        self._committed_of(group_id, topic)[partition] = committed


def _partitions(offsets: Offsets) -> Iterator[tuple[str, int]]:
    return ((topic, partition) for topic, partitions in offsets.items() for partition in partitions)


def _take(groups: dict[str, Offsets], group_id: str, topic: str, partition: int) -> None:
    """Remove an offset, and what is empty without it."""
    offsets = groups.get(group_id, {})
    partitions = offsets.get(topic, {})
    if partitions.pop(partition, None) is None:
        return
    if not partitions:
        del offsets[topic]
    if not offsets:
        del groups[group_id]
