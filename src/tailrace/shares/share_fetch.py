"""ShareFetch: a member's request for records, until its response.

It looks for partitions with records to acquire: records that were given back, or new ones within the limit of records
in flight. The response is sent when these have `min_bytes` together, when one of them cannot be read, or at the
deadline. It is tried again when records are appended, given back or finished, and when a partition's state was read.

A partition from which nothing could be acquired is not in the response. If retention has deleted the wanted records,
the partition moves on to the log start, and is not in this response either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tailrace.fetch.byte_budget import ByteBudget
from tailrace.log.reading.log_read import LogRead, OffsetInRemoteStore, OffsetOutOfRange
from tailrace.log.segments.position import FileSlice
from tailrace.log.watermarks import Isolation
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.records.batch import CorruptBatch
from tailrace.shares.aborted import leave_out_aborted
from tailrace.shares.acquiring import AcquiredRecords, AcquireMode, AcquireRequest, acquire
from tailrace.shares.share_partitions import HostedShare, SharePartitions
from tailrace.shares.share_read import batches_of, slice_of
from tailrace.shares.share_sessions import SharedPartition
from tailrace.shares.state.persisted_state import SharePartitionKey
from tailrace.waiting.purgatory import DelayedOperation


@dataclass(frozen=True, slots=True)
class ShareFetchParams:
    group_id: str
    member_id: str
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    max_records: int
    batch_size: int
    mode: AcquireMode


class ShareAnswer(NamedTuple):
    """The part of a response about one partition."""

    error_code: ErrorCode = ErrorCode.NONE
    records: FileSlice | bytes | None = None
    acquired: Sequence[AcquiredRecords] = ()


Answers = dict[SharedPartition, ShareAnswer]
Answer = Callable[[Answers, int], None]
_Reads = dict[HostedShare, LogRead | ErrorCode]


def start_share_fetch(
    shares: SharePartitions,
    params: ShareFetchParams,
    partitions: Mapping[SharedPartition, str],
    epoch: int,
    answer: Answer,
    now_ms: int,
) -> ShareFetch | None:
    """Fetch from partitions, each with its topic's name. Return the operation if it has to wait."""
    if not partitions or params.max_records == 0 or params.max_bytes == 0:
        answer({}, now_ms)
        return None
    fetch = ShareFetch(shares, params, answer, now_ms)
    for one in _rotated(list(partitions), epoch):
        fetch.add(one, partitions[one], now_ms)
    if len(fetch.errors) == fetch.partition_count:
        fetch.answer({}, now_ms)
        return None
    keys = [key for hosted in fetch.hosted for key in (hosted.key, hosted.replica.key)]
    if params.max_wait_ms <= 0:
        if not fetch.try_complete(now_ms):
            fetch.expire(now_ms)
        return None
    return None if shares.purgatory.try_complete_or_watch(fetch, keys, now_ms) else fetch


def _rotated(partitions: list[SharedPartition], epoch: int) -> list[SharedPartition]:
    """Return the partitions in rotated order: each request of a session begins with another one."""
    begin = epoch % len(partitions) if epoch >= 1 else 0
    return partitions[begin:] + partitions[:begin]


class ShareFetch(DelayedOperation):
    __slots__ = ("_answer", "_settings", "_shares", "errors", "hosted", "params", "partition_count")
    ends_at_stop = True

    def __init__(self, shares: SharePartitions, params: ShareFetchParams, answer: Answer, now_ms: int) -> None:
        super().__init__(now_ms + params.max_wait_ms)
        self._shares = shares
        self._answer = answer
        self._settings = shares.settings(params.group_id)
        self.params = params
        self.hosted: list[HostedShare] = []
        self.partition_count = 0
        self.errors: dict[SharedPartition, ErrorCode] = {}

    def add(self, partition: SharedPartition, topic: str, now_ms: int) -> None:
        self.partition_count += 1

        def failed(error: KafkaError) -> None:
            self.errors[partition] = error.code

        try:
            hosted = self._shares.host(SharePartitionKey(self.params.group_id, *partition), topic)
        except KafkaError as error:
            failed(error)
            return
        self.hosted.append(hosted)
        self._shares.initialize(hosted, failed, now_ms)

    # Waiting

    def facts(self) -> dict[str, Any]:
        return {
            "group": self.params.group_id,
            "maxWaitMs": self.params.max_wait_ms,
            "partitions": self.partition_count,
        }

    def try_complete(self, now_ms: int) -> bool:
        offsets = self._acquirable()
        if not offsets:
            return len(self.errors) == self.partition_count and self._complete({}, {}, now_ms)
        unknown = [one for one, offset in offsets.items() if one.share.position_offset != offset]
        reads = self._read(unknown, offsets, len(offsets), now_ms)
        is_due = False
        for hosted, read in reads.items():
            if isinstance(read, LogRead) and not read.position.is_offset_only:
                hosted.share.note_position(offsets[hosted], read.position)
            else:
                is_due = True  # an error, or records from the remote store
        return (is_due or self._has_enough(list(offsets))) and self._complete(offsets, reads, now_ms)

    def expire(self, now_ms: int) -> None:
        self._complete(self._acquirable(), {}, now_ms)

    def _acquirable(self) -> dict[HostedShare, int]:
        """Return the partitions that have records to acquire, with the offset where they begin."""
        offsets = {}
        for hosted in self.hosted:
            if not hosted.share.can_acquire(self._settings):
                continue
            if not self._shares.is_current(hosted):
                self.errors[_name(hosted)] = self._shares.partitions.error_of(hosted.replica.key)
                continue
            offsets[hosted] = hosted.share.next_fetch_offset()
        return offsets

    def _share_of_bytes(self, partition_count: int) -> int:
        return max(self.params.max_bytes // partition_count, 1)

    def _has_enough(self, acquirable: list[HostedShare]) -> bool:
        readable = 0
        records_max = self._share_of_bytes(len(acquirable))
        for hosted in acquirable:
            bound = hosted.replica.log.snapshot_marks().bound(self._settings.isolation)
            position = hosted.share.position
            if position is None or position.offset == bound.offset:
                continue
            if position.offset > bound.offset or position.segment_base_offset < bound.segment_base_offset:
                return True
            if position.segment_base_offset == bound.segment_base_offset:
                readable += min(bound.position - position.position, records_max)
        return readable >= self.params.min_bytes

    # Read and respond

    def _read(
        self, wanted: list[HostedShare], offsets: dict[HostedShare, int], partition_count: int, now_ms: int
    ) -> _Reads:
        """Read partitions. A partition whose remote read has not ended is not in the result."""
        budget = ByteBudget(self.params.max_bytes)
        share_of_bytes = self._share_of_bytes(partition_count)
        reads: _Reads = {}
        for hosted in wanted:
            try:
                hosted.replica.fence(-1, leader_only=True)
                read = hosted.replica.read(
                    offsets[hosted],
                    budget.share(share_of_bytes),
                    self._settings.isolation,
                    at_least_one=budget.at_least_one,
                ).log
                assert read is not None
                if not budget.keeps(read.first_entry_incomplete):
                    read = read._replace(slice=None)
                budget.take(read.size)
                reads[hosted] = read
            except OffsetInRemoteStore:
                remote = self._shares.remote_read(
                    hosted.replica.key,
                    offsets[hosted],
                    max(budget.share(share_of_bytes), 0),
                    self._settings.isolation is Isolation.READ_COMMITTED,
                    now_ms,
                )
                if isinstance(remote, LogRead):
                    budget.take(remote.size)
                if remote is not None:
                    reads[hosted] = remote
            except OffsetOutOfRange as error:
                hosted.share.move_start(error.log_start_offset)
                reads[hosted] = ErrorCode.NONE
            except KafkaError as error:
                self._shares.fence_if(hosted, error)
                reads[hosted] = error.code
            except CorruptBatch:
                reads[hosted] = ErrorCode.CORRUPT_MESSAGE
            except OSError as error:
                self._shares.partitions.failed(hosted.replica, error)
                reads[hosted] = ErrorCode.KAFKA_STORAGE_ERROR
        return reads

    def _complete(self, offsets: dict[HostedShare, int], reads: _Reads, now_ms: int) -> bool:
        missing = [one for one in offsets if one not in reads]
        # Partitions whose log position was known have waited longer, so they come first.
        reads = {**self._read(missing, offsets, len(offsets), now_ms), **reads} if missing else reads
        answers: Answers = {}
        left = self.params.max_records
        for hosted, read in reads.items():
            if not isinstance(read, LogRead):
                answers[_name(hosted)] = ShareAnswer(read)
                continue
            try:
                answer = self._acquire(hosted, offsets[hosted], read, left, now_ms)
            except CorruptBatch:
                answer = ShareAnswer(ErrorCode.CORRUPT_MESSAGE)
            left -= sum(one.last_offset - one.first_offset + 1 for one in answer.acquired)
            answers[_name(hosted)] = answer
        self.answer(answers, now_ms)
        return True

    def _acquire(self, hosted: HostedShare, offset: int, read: LogRead, records_max: int, now_ms: int) -> ShareAnswer:
        if read.slice is None or records_max <= 0:
            return ShareAnswer()
        params, share = self.params, hosted.share
        batches = batches_of(read.slice, offset, share.end_offset + 1, records_max)
        request = AcquireRequest(params.member_id, params.mode, params.batch_size, records_max)
        acquired = acquire(share, request, offset, batches, self._settings, now_ms)
        if acquired and read.aborted:
            acquired = leave_out_aborted(share, acquired, batches, read.aborted)
        self._shares.note_deadline(share)
        if not acquired:
            return ShareAnswer()
        self._shares.count_acquired(sum(one.last_offset - one.first_offset + 1 for one in acquired))
        records = slice_of(read.slice, batches, acquired)
        return ShareAnswer(ErrorCode.NONE, records.read() if read.position.is_offset_only else records, acquired)

    def answer(self, answers: Answers, now_ms: int) -> None:
        for partition, code in self.errors.items():
            answers[partition] = ShareAnswer(code)
        self._answer(answers, now_ms)


def _name(hosted: HostedShare) -> SharedPartition:
    return SharedPartition(hosted.key.topic_id, hosted.key.partition)
