"""RemoteReads: reads from the remote store for fetches.

A read runs on a thread of its own lane. A fetch waits at most `remote.fetch.max.wait.ms` for it. The read continues
after that, and its result is kept for the client's retry, which asks for the same offset: up to RESULTS_MAX results and
RESULT_BYTES_MAX bytes, for RESULT_MS.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

from tailrace.broker.storage.remote.remote_fetch import DelayedRemoteFetch
from tailrace.log.disk.bytes_file import BytesFile
from tailrace.log.reading.log_read import LogRead
from tailrace.log.reading.timestamp_lookup import FoundOffset
from tailrace.log.segments.indexes.index_file import CorruptIndex
from tailrace.log.segments.position import FileSlice, LogPosition
from tailrace.metrics.histogram import Histogram
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import Offset, TopicPartition
from tailrace.quota.replication_quota import ReplicationQuota
from tailrace.records.batch import CorruptBatch
from tailrace.replication.hosted_partitions import HostedPartitions
from tailrace.tiers.reading.index_cache import IndexCache
from tailrace.tiers.reading.remote_read import RemoteAsk, RemoteRecords, read_remote, whole_batches_size
from tailrace.tiers.reading.remote_reader import RemoteAnswer, RemoteEnd, RemotePart, RemoteWalk
from tailrace.tiers.reading.remote_times import find_remote_time
from tailrace.tiers.remote_partition import RemotePartition
from tailrace.tiers.steps import Publish, RemoteTask, Then, Work
from tailrace.tiers.stores.remote_store import RemoteStorageError, RemoteStore
from tailrace.waiting.purgatory import DelayedOperation, Purgatory

_log = logging.getLogger(__name__)

RESULTS_MAX: Final = 1_000
RESULT_BYTES_MAX: Final = 256 * 1024 * 1024
RESULT_MS: Final = 60_000


class ReadLimits(NamedTuple):
    fetch_wait_ms: int  # remote.fetch.max.wait.ms
    list_timeout_ms: int  # remote.list.offsets.request.timeout.ms
    threads: int  # remote.log.reader.threads
    reads_max: int  # remote.log.reader.threads and remote.log.reader.max.pending.tasks together


class TimeAnswer(NamedTuple):
    """The end of a lookup by time. Without an offset the local log has to be searched."""

    error: ErrorCode
    found: FoundOffset | None = None


class _Key(NamedTuple):
    partition: TopicPartition
    ask: RemoteAsk


class _Read:
    """A read in progress, or its result."""

    __slots__ = ("answer", "ended_ms")

    def __init__(self) -> None:
        self.answer: RemoteAnswer | None = None
        self.ended_ms = 0


class RemoteReads:
    def __init__(
        self,
        hosted: HostedPartitions,
        partition_of: Callable[[TopicPartition], RemotePartition | None],
        indexes: IndexCache,
        store: RemoteStore,
        quota: ReplicationQuota,
        purgatory: Purgatory,
        submit: Callable[[Work], None],
        limits: Callable[[], ReadLimits],
    ) -> None:
        """`limits()` returns the current limits."""
        self._hosted = hosted
        self._partition_of = partition_of
        self._indexes = indexes
        self._store = store
        self._quota = quota
        self._purgatory = purgatory
        self._submit = submit
        self._limits = limits
        self._reads: dict[_Key, _Read] = {}  # results in the order of their ends
        self._kept_bytes = 0
        self._running = 0
        self.durations = Histogram()  # of reads for fetches, in nanoseconds
        self.expired_fetches = 0
        self.expired_lookups = 0

    # For fetches

    @property
    def list_timeout_ms(self) -> int:
        return self._limits().list_timeout_ms

    def is_throttled(self, now_ms: int) -> bool:
        return self._quota.is_exceeded(now_ms)

    def explain(self, key: TopicPartition, offset: Offset) -> RemoteWalk | None:
        partition = self._partition_of(key)
        if partition is None:
            return None
        log = partition.log
        epoch = log.epochs.epoch_of(offset)
        segment = None if epoch is None else partition.cache.find(epoch, offset)
        if segment is None:
            return RemoteWalk(log.local_start_offset, epoch, None)
        indexes = self._indexes.in_memory(segment)
        return RemoteWalk(
            log.local_start_offset,
            epoch,
            segment.segment_id.text,
            segment.start_offset,
            segment.end_offset,
            segment.size,
            None if indexes is None else indexes.offsets.lookup(offset).position,
        )

    def begin(self, parts: Sequence[RemotePart], ended: RemoteEnd, now_ms: int) -> DelayedOperation:
        """Begin the reads of a fetch. Return the operation that waits for them."""
        polls = [self._poll(part, now_ms) for part in parts]
        deadline_ms = now_ms + self._limits().fetch_wait_ms
        return DelayedRemoteFetch(parts, polls, self._hosted, ended, self._note_expired_fetch, deadline_ms)

    def _note_expired_fetch(self) -> None:
        self.expired_fetches += 1

    def note_expired_lookups(self, count: int) -> None:
        """Count lookups by time that have not ended in time."""
        self.expired_lookups += count

    @property
    def queue_size(self) -> int:
        """Return the number of reads that wait for a thread."""
        return max(self._running - self._limits().threads, 0)

    @property
    def idle(self) -> float:
        """Return the part of the threads that is idle now, 0 to 1."""
        threads = self._limits().threads
        return max(threads - self._running, 0) / threads

    def _poll(self, part: RemotePart, now_ms: int) -> Callable[[], RemoteAnswer | None]:
        """Begin a read, or find the one that an earlier fetch began. Return a function that returns its answer, or None
        while it runs."""
        key = _Key(part.key, part.ask)
        read = self._reads.get(key)
        if read is None:
            read = self._start(key, now_ms)
        return partial(self._take, key, read)

    def _take(self, key: _Key, read: _Read) -> RemoteAnswer | None:
        if read.answer is not None and self._reads.get(key) is read:
            del self._reads[key]
            self._kept_bytes -= len(read.answer.records)
        return read.answer

    def _start(self, key: _Key, now_ms: int) -> _Read:
        read = _Read()
        partition = self._partition_of(key.partition)
        if partition is None:
            read.answer = RemoteAnswer(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return read
        if self._running >= self._limits().reads_max:
            _log.warning(
                "%s: the read of offset %d is refused: too many remote reads wait", key.partition, key.ask.offset
            )
            read.answer = RemoteAnswer(ErrorCode.UNKNOWN_SERVER_ERROR)
            return read
        self._reads[key] = read
        self._running += 1
        partition.counters.fetch_requests += 1
        steps = read_remote(partition, key.ask, self._indexes, self._store, now_ms)
        RemoteTask(steps, self._submit, _no_publish, partial(self._ended, key, read, partition, now_ms)).start(now_ms)
        return read

    def _ended(
        self,
        key: _Key,
        read: _Read,
        partition: RemotePartition,
        began_ms: int,
        result: RemoteRecords | None,
        error: BaseException | None,
        now_ms: int,
    ) -> None:
        self._running -= 1
        self.durations.add((now_ms - began_ms) * 1_000_000)
        if error is not None or result is None:
            read.answer = RemoteAnswer(_code_of(error, key.partition, f"read of offset {key.ask.offset}"))
            partition.counters.fetch_errors += 1
        else:
            read.answer = RemoteAnswer(ErrorCode.NONE, result.records, result.aborted)
            partition.counters.fetched_bytes += result.size
            self._quota.record(result.size, now_ms)
            self._kept_bytes += len(result.records)
        read.ended_ms = now_ms
        if self._reads.pop(key, None) is not None:
            self._reads[key] = read  # in the order of their ends
        self._purgatory.check(key.partition, now_ms)
        self._drop_old(now_ms)

    # For share fetches

    def read_now(
        self, key: TopicPartition, offset: Offset, max_bytes: int, wants_aborted: bool, now_ms: int
    ) -> LogRead | ErrorCode | None:
        """Return whole batches from an offset on, at least one, or an error. Return None while the store is read: the
        purgatory's operations of the partition are then tried again."""
        if self.is_throttled(now_ms):
            return None
        ask = RemoteAsk(offset, max_bytes, True, wants_aborted)
        answer = self._poll(RemotePart(key, ask, 0), now_ms)()
        if answer is None or answer.error:
            return None if answer is None else answer.error
        file = BytesFile(f"remote records of {key}", answer.records)
        return LogRead(
            LogPosition(offset), FileSlice(file, 0, whole_batches_size(answer.records)), False, answer.aborted
        )

    # For lookups by time

    def begin_time(
        self, key: TopicPartition, target: int, start: Offset, now_ms: int
    ) -> Callable[[], TimeAnswer | None]:
        """Begin a lookup by time. Return a function that returns its answer, or None while it runs."""
        answers: list[TimeAnswer] = []
        partition = self._partition_of(key)
        if partition is None:
            answers.append(TimeAnswer(ErrorCode.NOT_LEADER_OR_FOLLOWER))
            return lambda: answers[0]
        if self._running >= self._limits().reads_max:
            answers.append(TimeAnswer(ErrorCode.UNKNOWN_SERVER_ERROR))
            return lambda: answers[0]

        def ended(found: FoundOffset | None, error: BaseException | None, at_ms: int) -> None:
            self._running -= 1
            code = ErrorCode.NONE if error is None else _code_of(error, key, f"lookup of time {target}")
            answers.append(TimeAnswer(code, found))
            self._purgatory.check(key, at_ms)

        self._running += 1
        steps = find_remote_time(partition, target, start, self._indexes, self._store, now_ms)
        RemoteTask(steps, self._submit, _no_publish, ended).start(now_ms)
        return lambda: answers[0] if answers else None

    # Upkeep

    def _drop_old(self, now_ms: int) -> None:
        """Drop results that no client has asked for again, and those that have no room."""
        for key, read in list(self._reads.items()):
            is_old = now_ms - read.ended_ms > RESULT_MS
            has_room = self._kept_bytes <= RESULT_BYTES_MAX and len(self._reads) <= RESULTS_MAX
            if read.answer is None:
                continue
            if not is_old and has_room:
                return
            self._take(key, read)

    def tick(self, now_ms: int) -> None:
        self._drop_old(now_ms)

    def next_deadline_ms(self) -> int | None:
        first = next((read for read in self._reads.values() if read.answer is not None), None)
        return None if first is None else first.ended_ms + RESULT_MS + 1


def _code_of(error: BaseException | None, key: TopicPartition, what: str) -> ErrorCode:
    if isinstance(error, KafkaError):
        return error.code
    expected = isinstance(error, RemoteStorageError | CorruptBatch | CorruptIndex | OSError)
    _log.error("%s: the remote %s failed: %s", key, what, error, exc_info=None if expected else error)
    return ErrorCode.UNKNOWN_SERVER_ERROR


def _no_publish(step: Publish, then: Then, now_ms: int) -> None:
    raise AssertionError("a read publishes nothing")
