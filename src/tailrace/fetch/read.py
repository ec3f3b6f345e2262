"""PartitionReader: reads each partition of a plan within the budget, and makes its part of the response.

For each partition in turn: its local replica, its topic id, a preferred replica elsewhere, the epochs, the bounds
(taken before the read), the read itself. An error becomes the answer of that partition and does not affect others.

A follower's fetch also reports how far the follower has replicated, which may advance the high watermark. The response
has the high watermark after that.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final, Protocol

from tailrace.fetch.byte_budget import ByteBudget
from tailrace.fetch.context import Answer
from tailrace.fetch.fetch_plan import FetchParams
from tailrace.fetch.isolation import describe_replica, is_consumer
from tailrace.fetch.preferred_replica import ReplicaSelector, preferred_replica
from tailrace.fetch.session import NO_TOPIC_ID, PartitionFetch
from tailrace.log.reading.log_read import OffsetInRemoteStore
from tailrace.log.segments.position import LogPosition
from tailrace.log.watermarks import Isolation
from tailrace.metadata.image.image import MetadataImage
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import BrokerId, TopicPartition
from tailrace.protocol.flat.fetch import PartitionAnswer
from tailrace.records.batch import CorruptBatch
from tailrace.replication.hosted_partitions import HostedPartitions
from tailrace.replication.partition import Partition
from tailrace.tiers.reading.remote_read import RemoteAsk
from tailrace.tiers.reading.remote_reader import RemoteAnswer, RemotePart, RemoteReader

_log = logging.getLogger(__name__)

_EMPTY = b""
_new_tuple: Final = tuple.__new__  # makes a NamedTuple in half the time
READS_PER_STEP = 64  # partitions that are read between two pauses


class ReplicationQuota(Protocol):
    """The quota of followers that are not in sync, for throttled partitions."""

    def is_throttled(self, partition: TopicPartition, replica_id: BrokerId) -> bool: ...
    def is_exceeded(self, now_ms: int) -> bool: ...
    def record(self, size: int, now_ms: int) -> None: ...


class ReadResult:
    """The answers of a plan's partitions, in order, and their summary for the whole fetch."""

    __slots__ = (
        "answers", "budget", "has_diverging", "has_error", "has_preferred", "has_watermark", "moved", "remote",
        "size",
    )  # fmt: skip

    def __init__(self, params: FetchParams) -> None:
        self.budget = ByteBudget(params.max_bytes, is_hard=params.has_hard_limit)
        self.answers: list[Answer] = []
        self.size = 0
        self.has_error = False
        self.has_diverging = False
        self.has_preferred = False
        self.has_watermark = False  # there is a high watermark that the follower lacks and can take
        self.remote: list[RemotePart] = []  # partitions that have to be read from the remote store
        self.moved: list[TopicPartition] = []  # partitions whose high or low watermark may have moved

    def add(self, fetch: PartitionFetch, answer: PartitionAnswer) -> None:
        """Add the answer of the next partition."""
        self.answers.append((fetch, answer))
        size = len(answer.records)
        self.size += size
        self.budget.take(size)
        if answer.error_code:
            self.has_error = True

    def put_remote(self, part: RemotePart, found: RemoteAnswer) -> None:
        """Put the end of a remote read into the answer of its partition."""
        fetch, answer = self.answers[part.slot]
        if found.error:
            answer = PartitionAnswer(fetch.index, found.error)
        else:
            aborted = answer.aborted
            if found.aborted is not None:
                aborted = [(one.producer_id, one.first_offset) for one in found.aborted]
            answer = answer._replace(records=found.records, aborted=aborted)
        self.answers[part.slot] = (fetch, answer)
        self.size += len(found.records)


class PartitionReader:
    """Reads partitions for all fetches."""

    def __init__(
        self,
        partitions: HostedPartitions,
        *,
        select_replica: ReplicaSelector | None = None,
        quota: ReplicationQuota | None = None,
        remote: RemoteReader | None = None,
    ) -> None:
        """`remote` is None if the broker has no tiered storage."""
        self.partitions = partitions
        self.remote = remote
        self.select_replica = select_replica
        self.quota = quota

    def read(
        self,
        reads: Sequence[PartitionFetch],
        result: ReadResult,
        params: FetchParams,
        image: MetadataImage,
        listener: str,
        now_ms: int,
        generation: int,
        notes_progress: bool,
    ) -> None:
        """Read partitions into a result. `generation` is that of the hosted partitions when they were looked up.
        `notes_progress` is True if a follower's position is to be recorded."""
        selects = self.select_replica is not None and bool(params.rack) and not params.is_follower
        hosted = self.partitions
        for fetch in reads:
            partition = fetch.partition
            answer = None
            try:
                if partition is None or generation != hosted.generation:
                    partition = hosted.find(fetch.key)
                if fetch.topic_id != partition.topic_id and fetch.topic_id != NO_TOPIC_ID:
                    raise KafkaError(ErrorCode.INCONSISTENT_TOPIC_ID, f"{fetch} is not {partition}")
                partition.traffic.fetch_requests += 1
                if selects:
                    answer = self._send_elsewhere(fetch, partition, params, image, listener, now_ms)
                    result.has_preferred = result.has_preferred or answer is not None
                if answer is None:
                    answer = self._read(fetch, partition, params, result, now_ms, notes_progress)
            except OffsetInRemoteStore as error:
                assert partition is not None
                answer = self._in_remote_store(fetch, partition, params, result, error.code, now_ms)
            except KafkaError as error:
                answer = self._refused(fetch, error.code)
                if error.code == ErrorCode.UNKNOWN_SERVER_ERROR and partition is not None:
                    partition.traffic.failed_fetch_requests += 1
                    _log.info("%s by a %s failed: %s", fetch, describe_replica(params.replica_id), error)
            except CorruptBatch as error:
                _log.error("%s by a %s failed: %s", fetch, describe_replica(params.replica_id), error)
                answer = self._refused(fetch, ErrorCode.CORRUPT_MESSAGE)
                assert partition is not None
                partition.traffic.failed_fetch_requests += 1
            except OSError as error:
                assert partition is not None
                hosted.failed(partition, error)
                answer = self._refused(fetch, ErrorCode.KAFKA_STORAGE_ERROR)
            result.add(fetch, answer)

    def _in_remote_store(
        self,
        fetch: PartitionFetch,
        partition: Partition,
        params: FetchParams,
        result: ReadResult,
        code: ErrorCode,
        now_ms: int,
    ) -> PartitionAnswer:
        """Plan a read from the remote store for a consumer. A follower gets an error instead, with the log's bounds."""
        marks = partition.log.snapshot_marks()
        bounds = (marks.high_watermark.offset, marks.last_stable.offset, marks.log_start_offset)
        fetch.refuse_read()
        if self.remote is None or not is_consumer(params.replica_id):
            high_watermark, _, log_start_offset = bounds
            return PartitionAnswer(fetch.index, code, high_watermark, log_start_offset=log_start_offset)
        wants_aborted = params.isolation is Isolation.READ_COMMITTED
        budget = result.budget
        if not self.remote.is_throttled(now_ms):
            max_bytes = max(budget.share(fetch.max_bytes), 0)
            ask = RemoteAsk(fetch.fetch_offset, max_bytes, budget.at_least_one, wants_aborted)
            result.remote.append(RemotePart(partition.key, ask, len(result.answers)))
            budget.reserve(max_bytes)
        return PartitionAnswer(fetch.index, 0, *bounds, aborted=[] if wants_aborted else None)

    def _refused(self, fetch: PartitionFetch, code: ErrorCode) -> PartitionAnswer:
        fetch.refuse_read()
        return PartitionAnswer(fetch.index, code)

    def _read(
        self,
        fetch: PartitionFetch,
        partition: Partition,
        params: FetchParams,
        result: ReadResult,
        now_ms: int,
        notes_progress: bool,
    ) -> PartitionAnswer:
        is_follower, budget = params.is_follower, result.budget
        fenced = partition.fencing_error(fetch.current_leader_epoch, params.leader_only)
        if fenced is not None:
            return self._refused(fetch, fenced)
        if is_follower:
            # The broker checks that the fetcher is a replica before it reads.
            partition.follower(params.replica_id, fetch.current_leader_epoch)
        log = partition.log
        found, high_watermark, log_start_offset, last_stable_offset, diverging, data = partition.read(
            fetch.fetch_offset,
            budget.share(fetch.max_bytes),
            params.isolation,
            budget.at_least_one,
            fetch.last_fetched_epoch,
            not params.needs_conversion,
        )
        if diverging is not None:
            fetch.record_read(LogPosition(fetch.fetch_offset), partition)
            result.has_diverging = True
            bounds = (high_watermark, last_stable_offset, log_start_offset)
            return PartitionAnswer(fetch.index, 0, *bounds, diverging=(diverging.epoch, diverging.end_offset))
        assert found is not None
        position, file_slice, is_incomplete, found_aborted = found
        fetch.record_read(position, partition)
        is_throttled = False
        if is_follower:
            if notes_progress and self._note_progress(fetch, partition, params, now_ms):
                result.moved.append(partition.key)
                high_watermark = log.high_watermark
            if self.select_replica is not None and fetch.lacks_watermark(high_watermark):
                result.has_watermark = True
            is_throttled = self.is_throttled(partition, params, now_ms)
        records: object = _EMPTY
        aborted = None
        if not is_throttled and (not is_incomplete or budget.keeps(is_incomplete)):
            if data is not None:
                records = data
            elif file_slice is not None:
                records = file_slice
            if found_aborted is not None:
                aborted = [(one.producer_id, one.first_offset) for one in found_aborted]
        index = fetch.identity[1]
        answer: PartitionAnswer = _new_tuple(
            PartitionAnswer,
            (index, 0, high_watermark, last_stable_offset, log_start_offset, aborted, -1, records, None, None),
        )
        return answer

    def _note_progress(self, fetch: PartitionFetch, partition: Partition, params: FetchParams, now_ms: int) -> bool:
        leader = partition.leader
        assert leader is not None
        return leader.note_fetch(
            leader.followers[params.replica_id],
            fetch.position,
            fetch.fetcher_log_start,
            partition.log.log_end_offset,
            params.replica_epoch,
            now_ms,
        )

    def is_throttled(self, partition: Partition, params: FetchParams, now_ms: int) -> bool:
        """Return True if a follower over its quota gets nothing of this partition. A follower that is in sync is never
        throttled, so that it stays in sync."""
        quota, leader = self.quota, partition.leader
        return (
            quota is not None
            and leader is not None
            and params.replica_id not in leader.isr.committed
            and quota.is_throttled(partition.key, params.replica_id)
            and quota.is_exceeded(now_ms)
        )

    def _send_elsewhere(
        self,
        fetch: PartitionFetch,
        partition: Partition,
        params: FetchParams,
        image: MetadataImage,
        listener: str,
        now_ms: int,
    ) -> PartitionAnswer | None:
        assert self.select_replica is not None
        assert params.rack is not None
        preferred = preferred_replica(
            self.select_replica, partition, image, params.rack, listener, fetch.fetch_offset, now_ms
        )
        if preferred is None:
            return None
        partition.fence(fetch.current_leader_epoch, leader_only=False)
        marks = partition.log.snapshot_marks()
        fetch.refuse_read()
        return PartitionAnswer(
            fetch.index,
            0,
            marks.high_watermark.offset,
            marks.last_stable.offset,
            marks.log_start_offset,
            preferred_replica=preferred,
        )
