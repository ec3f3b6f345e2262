"""DelayedFetch: a fetch that waits for min_bytes or max_wait_ms.

The fetch is read again and answered when one of these cases applies to some partition:

    Case A  this broker no longer leads it
    Case B  its replica is no longer on this broker
    Case C  it no longer exists
    Case D  its log directory is offline
    Case E  the leader epoch in the request is fenced by a newer one
    Case F  the fetch offset lies in an older segment than the bound, so that there is much to read; or beyond the
            bound, which a truncation has moved
    Case H  the last fetched epoch diverges from the leader's epochs
    Case I  the follower serves consumers and does not know the current high watermark

The fetch is also answered when all partitions together have min_bytes readable (Case G), or at the deadline. Case G
counts each partition up to its partition_max_bytes, and throttled partitions not at all.

The first try looks at all partitions and stores the readable bytes of each. Later tries look only at the partition that
has changed, so that an append to one of thousands of fetched partitions stays cheap.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

from tailrace.fetch.fetch import Fetch, Reason
from tailrace.fetch.fetch_plan import active_partitions
from tailrace.fetch.session import PartitionFetch
from tailrace.model.errors import ErrorCode
from tailrace.waiting.purgatory import DelayedOperation

_MISSING = {
    ErrorCode.KAFKA_STORAGE_ERROR: Reason.OFFLINE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: Reason.UNKNOWN,
}


class DelayedFetch(DelayedOperation):
    __slots__ = ("_by_key", "_fetch", "_readable_by_key", "_readable_bytes")
    ends_at_stop = True

    def __init__(self, fetch: Fetch, deadline_ms: int) -> None:
        super().__init__(deadline_ms)
        self._fetch = fetch
        self._by_key: dict[Hashable, PartitionFetch] | None = None  # of a waiting fetch without a session
        self._readable_by_key: dict[Hashable, int] | None = None
        self._readable_bytes = 0

    def try_complete(self, now_ms: int) -> bool:
        reason = self._reason(now_ms)
        if reason is None:
            return False
        self._fetch.woken(reason, self.woken_by, now_ms)
        return True

    def expire(self, now_ms: int) -> None:
        self._fetch.woken(Reason.DEADLINE, None, now_ms)

    def facts(self) -> dict[str, Any]:
        params = self._fetch.params
        session = self._fetch.context.session
        return {
            "replica": params.replica_id if params.is_follower else None,
            "maxWaitMs": params.max_wait_ms,
            "minBytes": params.min_bytes,
            "readableBytes": self._readable_bytes,
            "sessionId": None if session is None else session.id,
        }

    def _reason(self, now_ms: int) -> Reason | None:
        fetch = self._fetch
        if self._readable_by_key is None:
            self._readable_by_key = {}
            return self._count(fetch.plan.reads, now_ms)
        changed = self._partition_of(self.woken_by)
        if changed is not None:
            return self._count((changed,), now_ms)
        reads: Iterable[PartitionFetch] = fetch.all_reads()
        return self._count(active_partitions(reads) if fetch.skips_idle else reads, now_ms)

    def _partition_of(self, key: Hashable | None) -> PartitionFetch | None:
        fetch = self._fetch
        if fetch.context.session is not None:
            return fetch.partition_of(key)
        if self._by_key is None:
            self._by_key = {read.key: read for read in fetch.plan.reads}
        return self._by_key.get(key)

    def _count(self, reads: Iterable[PartitionFetch], now_ms: int) -> Reason | None:
        """Count the readable bytes of some partitions again."""
        readable = self._readable_by_key
        assert readable is not None
        for read in reads:
            found = self._readable(read, now_ms)
            if isinstance(found, Reason):
                return found
            before = readable.get(read.key, 0)
            if found != before:
                readable[read.key] = found
                self._readable_bytes += found - before
        return Reason.ENOUGH_NOW if self._readable_bytes >= self._fetch.params.min_bytes else None

    def _readable(self, read: PartitionFetch, now_ms: int) -> int | Reason:
        """Return how many bytes of a partition could be returned, or the reason to answer the fetch at once."""
        position = read.position
        if position.offset < 0:
            return 0
        fetch, params = self._fetch, self._fetch.params
        partition = fetch.reader.partitions.get(read.key)
        if partition is None:  # Case B, C or D
            return _MISSING.get(fetch.reader.partitions.error_of(read.key), Reason.NO_REPLICA)
        error = partition.fencing_error(read.current_leader_epoch, leader_only=params.leader_only)
        if error is not None:  # Case A or E
            return Reason.NOT_LEADER if error == ErrorCode.NOT_LEADER_OR_FOLLOWER else Reason.FENCED
        marks = partition.log.placed_marks()
        bound = marks.bound(params.isolation)
        if params.is_follower and fetch.reader.select_replica and read.lacks_watermark(marks.high_watermark.offset):
            return Reason.WATERMARK_NOW
        readable = 0
        # After a roll, a bound at the same offset may be on the old or the new segment. Neither has anything to read.
        if position.offset > bound.offset:
            return Reason.OTHER_SEGMENT
        if position.offset < bound.offset and not (
            params.is_follower and fetch.reader.is_throttled(partition, params, now_ms)
        ):
            if position.segment_base_offset < bound.segment_base_offset:
                return Reason.OTHER_SEGMENT
            if position.segment_base_offset == bound.segment_base_offset:
                readable = min(bound.position - position.position, read.max_bytes)
        if read.last_fetched_epoch >= 0:
            end = partition.log.end_of_epoch(read.last_fetched_epoch)
            if end.end_offset < read.fetch_offset or end.epoch < read.last_fetched_epoch:
                return Reason.DIVERGING_NOW
        return readable
