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

The first try looks at what was read just before. Later ones begin with the partition that is said to have changed: if
that one is reason enough, the others are not looked at.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import TYPE_CHECKING

from tailrace.fetch.fetch_plan import unsettled
from tailrace.fetch.session import PartitionFetch
from tailrace.model.errors import ErrorCode
from tailrace.purgatory import DelayedOperation

if TYPE_CHECKING:
    from tailrace.fetch.fetches import Fetch


class Reason(Enum):
    """Why a fetch is answered."""

    NO_WAIT = "no wait was asked for"
    NOTHING_ASKED = "nothing can be read"
    ENOUGH = "there are enough bytes"
    ERROR = "a partition has an error"
    DIVERGING = "a partition's epoch diverges"
    PREFERRED = "a partition is better read elsewhere"
    WATERMARK = "a follower's readers wait for its high watermark"
    NOT_LEADER = "Case A: no longer the leader"
    NO_REPLICA = "Case B: no longer a replica"
    UNKNOWN = "Case C: not known any more"
    OFFLINE = "Case D: offline"
    FENCED = "Case E: the leader epoch is fenced"
    OTHER_SEGMENT = "Case F: the bound is in another segment, or before the offset"
    ENOUGH_NOW = "Case G: enough bytes have come"
    DIVERGING_NOW = "Case H: the epoch has come to diverge"
    WATERMARK_NOW = "Case I: the high watermark has moved"
    DEADLINE = "the time is over"


_MISSING = {
    ErrorCode.KAFKA_STORAGE_ERROR: Reason.OFFLINE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: Reason.UNKNOWN,
}


class DelayedFetch(DelayedOperation):
    __slots__ = ("_fetch", "_is_new")

    def __init__(self, fetch: Fetch, deadline_ms: int) -> None:
        super().__init__(deadline_ms)
        self._fetch = fetch
        self._is_new = True

    def try_complete(self, now_ms: int) -> bool:
        reason = self._reason()
        if reason is None:
            return False
        self._fetch.woken(reason, self.woken_by, now_ms)
        return True

    def expire(self, now_ms: int) -> None:
        self._fetch.woken(Reason.DEADLINE, None, now_ms)

    def _reason(self) -> Reason | None:
        fetch = self._fetch
        if self._is_new:
            self._is_new = False
            return self._count(fetch.plan.reads)
        hinted = fetch.partition_of(self.woken_by)
        if hinted is not None:
            reason = self._count((hinted,))
            if reason is not None:
                return reason
        reads: Iterable[PartitionFetch] = fetch.all_reads()
        return self._count(unsettled(reads) if fetch.skips_settled else reads)

    def _count(self, reads: Iterable[PartitionFetch]) -> Reason | None:
        readable = 0
        for read in reads:
            found = self._readable(read)
            if isinstance(found, Reason):
                return found
            readable += found
        return Reason.ENOUGH_NOW if readable >= self._fetch.params.min_bytes else None

    def _readable(self, read: PartitionFetch) -> int | Reason:
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
        marks = partition.log.snapshot_marks()
        bound = marks.bound(params.isolation)
        if params.is_follower and fetch.reader.select_replica and read.lacks_watermark(marks.high_watermark.offset):
            return Reason.WATERMARK_NOW
        readable = 0
        # A bound at the same offset may be on the old or on the new segment after a roll, and means nothing to read.
        if position.offset > bound.offset:
            return Reason.OTHER_SEGMENT
        if position.offset < bound.offset and not (params.is_follower and fetch.reader.is_throttled(partition, params)):
            if position.segment_base_offset < bound.segment_base_offset:
                return Reason.OTHER_SEGMENT
            if position.segment_base_offset == bound.segment_base_offset:
                readable = min(bound.position - position.position, read.max_bytes)
        if read.last_fetched_epoch >= 0:
            end = partition.log.end_of_epoch(read.last_fetched_epoch)
            if end.end_offset < read.fetch_offset or end.epoch < read.last_fetched_epoch:
                return Reason.DIVERGING_NOW
        return readable
