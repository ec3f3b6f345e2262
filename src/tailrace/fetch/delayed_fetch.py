"""DelayedFetch: waiting for min_bytes or max_wait_ms.

It is answered, with whatever can be read by then, when for some partition

    Case A  this broker no longer leads it
    Case B  its replica is no longer here
    Case C  it is not known any more
    Case D  its directory is offline
    Case E  the leader epoch that the client named is fenced by a newer one
    Case F  the offset lies in an older segment than the bound, so that there is much to read; or past the bound, which
            a truncation has moved
    Case H  the last fetched epoch has come to diverge
    Case I  consumers may read from the follower that waits, and there is a high watermark that it does not know

or when all partitions together have min_bytes readable (Case G), each counted up to its partition_max_bytes and a
throttled one not at all; or at the deadline.

The first try looks at all partitions and keeps how much each has. Later ones look only at the partition that has
changed, so that a fetch of thousands of partitions does not make each append to one of them expensive.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from tailrace.fetch.fetch import Fetch, Reason
from tailrace.fetch.fetch_plan import unsettled
from tailrace.fetch.session import PartitionFetch
from tailrace.model.errors import ErrorCode
from tailrace.waiting.purgatory import DelayedOperation

_MISSING = {
    ErrorCode.KAFKA_STORAGE_ERROR: Reason.OFFLINE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: Reason.UNKNOWN,
}


class DelayedFetch(DelayedOperation):
    __slots__ = ("_by_key", "_fetch", "_readable_by_key", "_readable_bytes")

    def __init__(self, fetch: Fetch, deadline_ms: int) -> None:
        super().__init__(deadline_ms)
        self._fetch = fetch
        self._by_key: dict[Hashable, PartitionFetch] | None = None  # of a fetch without a session, once it waits
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

    def _reason(self, now_ms: int) -> Reason | None:
        fetch = self._fetch
        if self._readable_by_key is None:
            self._readable_by_key = {}
            return self._count(fetch.plan.reads, now_ms)
        changed = self._partition_of(self.woken_by)
        if changed is not None:
            return self._count((changed,), now_ms)
        reads: Iterable[PartitionFetch] = fetch.all_reads()
        return self._count(unsettled(reads) if fetch.skips_settled else reads, now_ms)

    def _partition_of(self, key: Hashable | None) -> PartitionFetch | None:
        fetch = self._fetch
        if fetch.context.session is not None:
            return fetch.partition_of(key)
        if self._by_key is None:
            self._by_key = {read.key: read for read in fetch.plan.reads}
        return self._by_key.get(key)

    def _count(self, reads: Iterable[PartitionFetch], now_ms: int) -> Reason | None:
        """Look at some partitions again."""
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
        """How many bytes of a partition could be returned, or why the fetch has to be answered at once."""
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
        # A bound at the same offset may be on the old or on the new segment after a roll, and means nothing to read.
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
