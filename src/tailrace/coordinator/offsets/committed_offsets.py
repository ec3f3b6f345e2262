"""CommittedOffsets: the offsets of all groups of a shard: commit, fetch, delete, expire.

An offset that is committed in a transaction is pending until the transaction ends: `end_transaction`. Of two commits,
the one with the higher record offset in the log is valid, in a transaction or not. Compaction keeps the last record, so
it cannot change which one is valid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

from tailrace.coordinator.groups.group import CommittedOffset, Group, TopicCommit
from tailrace.coordinator.offsets.offset_kernels import OffsetReplay
from tailrace.coordinator.offsets.offset_records import NO_EXPIRY, OffsetRecords, offset_tombstone
from tailrace.coordinator.shard import CoordinatorRecord
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import NO_PRODUCER_ID, Offset
from tailrace.records.record import wrapped

DEFAULT_RETENTION = -1

Offsets = dict[str, dict[int, CommittedOffset]]  # topic → partition → offset
Verdict: TypeAlias = ErrorCode | list[ErrorCode]  # for the partitions of a topic: one for all, or one for each


class FetchedOffset(NamedTuple):
    partition: int
    offset: int = -1
    leader_epoch: int = -1
    metadata: str = ""
    error: ErrorCode = ErrorCode.NONE


class CommittedOffsets:
    def __init__(self, ensure_group: Callable[[str], object], *, retention_ms: int) -> None:
        """`ensure_group(group_id)` creates the group of a replayed offset, if it does not exist."""
        self._ensure_group = ensure_group
        self._retention_ms = retention_ms
        self._offsets: dict[str, Offsets] = {}  # by group
        self._pending: dict[int, dict[str, Offsets]] = {}  # by producer id, then by group
        self._open: dict[str, set[int]] = {}  # group → producers with an open transaction in it
        self._gone: dict[str, Offset] = {}  # deleted topic → log end at its deletion, while its offsets are deleted

    # Commit

    def plan_commit(
        self,
        group_id: str,
        topics: Sequence[TopicCommit],
        now_ms: int,
        *,
        retention_ms: int = DEFAULT_RETENTION,
        producer_id: int = NO_PRODUCER_ID,
    ) -> OffsetRecords:
        """Return the records of a commit."""
        expire_ms = NO_EXPIRY if retention_ms == DEFAULT_RETENTION else wrapped(now_ms + retention_ms)  # as Java adds
        records = OffsetRecords(group_id, now_ms, expire_ms, self.replay(producer_id))
        for topic in topics:
            records.add(topic)
        return records

    # Fetch

    def fetch(
        self, group_id: str, topics: Sequence[tuple[str, Sequence[int]]] | None, *, require_stable: bool
    ) -> list[tuple[str, list[FetchedOffset]]]:
        """Return the offsets of the requested partitions, or of all."""
        known = self._offsets.get(group_id, {})
        if self._gone:
            known = self._without_gone(known)
        if topics is None:
            topics = [(topic, list(partitions)) for topic, partitions in known.items()]
        found = []
        for topic, partitions in topics:
            committed = known.get(topic, {})
            fetched = []
            for partition in partitions:
                one = committed.get(partition)
                if require_stable and self.is_pending(group_id, topic, partition):
                    fetched.append(FetchedOffset(partition, error=ErrorCode.UNSTABLE_OFFSET_COMMIT))
                elif one is None:
                    fetched.append(FetchedOffset(partition))
                else:
                    fetched.append(FetchedOffset(partition, one.offset, one.leader_epoch, one.metadata))
            found.append((topic, fetched))
        return found

    def get(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        return self._offsets.get(group_id, {}).get(topic, {}).get(partition)

    def knows(self, group_id: str) -> bool:
        """Return True if the group has committed anything, also in a transaction that has not ended."""
        return group_id in self._offsets or group_id in self._open

    def is_pending(self, group_id: str, topic: str, partition: int) -> bool:
        """Return True if an open transaction has committed an offset for the partition."""
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
        """Return tombstones for all offsets of a group, also those of open transactions."""
        return [offset_tombstone(group_id, *key) for key in self._known_partitions(group_id)]

    def _known_partitions(self, group_id: str) -> dict[tuple[str, int], None]:
        known = dict.fromkeys(_partitions(self._offsets.get(group_id, {})))
        for producer_id in self._open.get(group_id, ()):
            known.update(dict.fromkeys(_partitions(self._pending[producer_id].get(group_id, {}))))
        return known

    def group_ids(self) -> list[str]:
        """Return the groups that have committed anything, also in a transaction that has not ended."""
        return list({**self._offsets, **self._open})

    def hide(self, topics: Iterable[str], end: Offset) -> None:
        """Return no offsets below a log end for deleted topics, until `unhide`."""
        self._gone.update(dict.fromkeys(topics, end))

    def unhide(self, topics: Iterable[str]) -> None:
        """Note that the offsets of deleted topics are deleted."""
        for topic in topics:
            del self._gone[topic]

    def _without_gone(self, known: Offsets) -> Offsets:
        """Return a group's offsets without those of deleted topics."""
        left: Offsets = {}
        for topic, partitions in known.items():
            end = self._gone.get(topic, 0)
            valid = {number: one for number, one in partitions.items() if one.record_offset >= end}
            if valid:
                left[topic] = valid
        return left

    def plan_forget(self, group_id: str, log_ends: Mapping[str, Offset]) -> list[CoordinatorRecord]:
        """Return tombstones for a group's offsets of deleted topics.

        `log_ends` has the log end at the deletion of each topic. Later commits are for a new topic of that name and
        are kept.
        """
        all_offsets = [self._offsets.get(group_id, {})]
        all_offsets += [self._pending[producer_id].get(group_id, {}) for producer_id in self._open.get(group_id, ())]
        latest: dict[tuple[str, int], Offset] = {}
        for offsets in all_offsets:
            for topic in log_ends.keys() & offsets.keys():
                for partition, committed in offsets[topic].items():
                    key = topic, partition
                    latest[key] = max(latest.get(key, -1), committed.record_offset)
        return [offset_tombstone(group_id, *key) for key, offset in latest.items() if offset < log_ends[key[0]]]

    # Expire

    def plan_expire(self, group: Group, now_ms: int) -> tuple[list[CoordinatorRecord], bool]:
        """Return tombstones for a group's expired offsets, and True if the group then has no offsets left."""
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
        """Return the replay of a batch of commits, just written or read from the log.

        With a producer id, the commits belong to a transaction and are pending until it ends.
        """
        return OffsetReplay(CommittedOffset, partial(self._known_of, producer_id), self.remove)

    def _known_of(self, producer_id: int, group_id: str, topic: str) -> dict[int, CommittedOffset]:
        """Return the dictionary that gets a replayed commit of a group and topic."""
        self._ensure_group(group_id)
        if producer_id < 0:
            return self._committed_of(group_id, topic)
        self._open.setdefault(group_id, set()).add(producer_id)
        return self._pending.setdefault(producer_id, {}).setdefault(group_id, {}).setdefault(topic, {})

    def _committed_of(self, group_id: str, topic: str) -> dict[int, CommittedOffset]:
        return self._offsets.setdefault(group_id, {}).setdefault(topic, {})

    def remove(self, group_id: str, topic: str, partition: int) -> None:
        """Replay a tombstone."""
        _remove_offset(self._offsets, group_id, topic, partition)
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


def _remove_offset(groups: dict[str, Offsets], group_id: str, topic: str, partition: int) -> None:
    """Remove an offset, and dictionaries that are empty then."""
    offsets = groups.get(group_id, {})
    partitions = offsets.get(topic, {})
    if partitions.pop(partition, None) is None:
        return
    if not partitions:
        del offsets[topic]
    if not offsets:
        del groups[group_id]
