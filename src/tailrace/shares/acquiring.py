"""acquire: gives records of a read to a member, until its lock expires.

If records were given back, a read begins with batches in flight; the records after them are new. Batches of
the log are delivered whole, so that a client decompresses each of them once. So `max_records` is rounded up to the end
of a batch, and records that are acquired together are kept as batches of about `batch_size` records. In record limit
mode `max_records` is exact, and parts of a batch may be delivered.

A record that was delivered often may be the reason why its consumers fail. From half of the delivery count limit on,
its batch is delivered alone, in smaller and smaller parts. In the last delivery each record is alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple, Protocol

from tailrace.shares.delivery_settings import DeliverySettings
from tailrace.shares.in_flight import InFlightBatch, RecordRun, RecordState
from tailrace.shares.share_partition import NO_OFFSET, Activity, SharePartition

_LEAST_THROTTLE_LIMIT = 2


class AcquireMode(IntEnum):
    BATCH_OPTIMIZED = 0
    RECORD_LIMIT = 1


class Span(Protocol):
    """The offsets of a batch in the log."""

    @property
    def base_offset(self) -> int: ...
    @property
    def last_offset(self) -> int: ...


class AcquiredRecords(NamedTuple):
    first_offset: int
    last_offset: int
    delivery_count: int


class AcquireRequest(NamedTuple):
    """The member that acquires, and its limits."""

    member_id: str
    mode: AcquireMode
    batch_size: int
    max_records: int


class _Acquired(NamedTuple):
    records: list[AcquiredRecords]
    size: int


def acquire(
    partition: SharePartition,
    request: AcquireRequest,
    fetch_offset: int,
    read: Sequence[Span],
    settings: DeliverySettings,
    now_ms: int,
) -> list[AcquiredRecords]:
    """Acquire from the records that were read at an offset. Return an empty result if none is available."""
    if partition.activity is not Activity.ACTIVE or request.max_records <= 0 or not read:
        return []
    last_offset = read[-1].last_offset
    if last_offset < partition.start_offset:
        return []
    room = settings.partition_max_record_locks - partition.in_flight_count
    records_max = min(request.max_records, room)
    if records_max <= 0:
        if fetch_offset > partition.end_offset:
            return []
        # The limit of records in flight is reached, but records between batches in flight are counted already.
        records_max = min(request.max_records, partition.end_offset - fetch_offset + 1)
        last_offset = min(last_offset, partition.end_offset)
    return _Acquiring(partition, request, read, settings, now_ms).acquire(fetch_offset, last_offset, records_max)


class _Acquiring:
    def __init__(
        self,
        partition: SharePartition,
        request: AcquireRequest,
        read: Sequence[Span],
        settings: DeliverySettings,
        now_ms: int,
    ) -> None:
        self.partition = partition
        self.request = request
        self.read = read
        self.limit = settings.delivery_count_limit
        self.throttle_limit = max(_LEAST_THROTTLE_LIMIT, (self.limit + 1) // 2)
        self.is_limited = request.mode is AcquireMode.RECORD_LIMIT
        self.deadline_ms = now_ms + settings.record_lock_duration_ms

    def acquire(self, fetch_offset: int, last_offset: int, records_max: int) -> list[AcquiredRecords]:
        partition = self.partition
        first_read = self.read[0].base_offset
        self._archive_missing(fetch_offset, first_read)
        base_offset = first_read
        slot = partition.floor_slot(base_offset)
        if slot < 0:
            base_offset = max(base_offset, partition.start_offset)
        elif partition.batches[slot].last_offset >= base_offset:
            base_offset = partition.batches[slot].first_offset
        known = partition.batches_from(_slot_from(partition, min(first_read, base_offset)), last_offset)
        if not known:
            return self._acquire_new(base_offset, last_offset, records_max).records
        acquired = self._acquire_known(known, base_offset, first_read, last_offset, records_max)
        if acquired:
            partition.move_gap(acquired[-1].last_offset + 1)
        return acquired

    def _archive_missing(self, fetch_offset: int, first_read: int) -> None:
        """Archive records that were to be read but are no longer in the log, because they were compacted away."""
        partition = self.partition
        if not partition.batches or fetch_offset >= first_read:
            return
        floor = fetch_offset
        slot = partition.floor_slot(fetch_offset)
        if slot >= 0 and partition.batches[slot].last_offset >= fetch_offset:
            floor = partition.batches[slot].first_offset
        missing = partition.batches_from(_slot_from(partition, floor), first_read - 1)
        archived = partition.archive(fetch_offset, first_read, missing, RecordState.AVAILABLE)
        if archived:
            partition.note_archived(archived)
            partition.look_for_available()

    # Batches in flight

    def _acquire_known(
        self, known: list[InFlightBatch], base_offset: int, first_read: int, last_offset: int, records_max: int
    ) -> list[AcquiredRecords]:
        partition = self.partition
        result: list[AcquiredRecords] = []
        count = 0
        gap = base_offset
        for batch in known:
            if count >= records_max:
                break
            if partition.gap_start != NO_OFFSET:
                if gap < batch.first_offset:
                    new = self._acquire_new(gap, batch.first_offset - 1, records_max - count)
                    result += new.records
                    count += new.size
                gap = batch.last_offset + 1
                if count >= records_max:
                    break
            is_throttled = self._is_throttled(batch, first_read, last_offset)
            if is_throttled and count > 0:
                return result
            in_parts = self.is_limited and len(batch) > records_max - count
            is_part = not batch.is_within(first_read, last_offset)
            if is_part or batch.by_offset or in_parts or is_throttled:
                if not batch.by_offset:
                    if not batch.whole.is_acquirable:
                        continue
                    batch.differ()
                taken = self._acquire_part(batch, first_read, last_offset, records_max - count, result)
                count += taken
                if is_throttled and taken:
                    return result
            elif batch.whole.is_acquirable:
                run = batch.whole
                self._acquire_run(run)
                result.append(AcquiredRecords(run.first_offset, run.last_offset, run.delivery_count))
                count += len(run)
        if count < records_max and known[-1].last_offset < last_offset:
            result += self._acquire_new(known[-1].last_offset + 1, last_offset, records_max - count).records
        return result

    def _acquire_run(self, run: RecordRun) -> None:
        run.acquire(self.request.member_id, self.partition.lock_until(self.deadline_ms))

    def _is_throttled(self, batch: InFlightBatch, first_read: int, last_offset: int) -> bool:
        if not batch.by_offset:
            return batch.whole.is_acquirable and batch.whole.delivery_count >= self.throttle_limit
        return any(
            run.is_acquirable and run.delivery_count >= self.throttle_limit
            for run in batch.runs
            if run.last_offset >= first_read and run.first_offset <= last_offset
        )

    def _acquire_part(
        self, batch: InFlightBatch, first_offset: int, last_offset: int, records_max: int, result: list[AcquiredRecords]
    ) -> int:
        """Acquire the available records between two offsets of a batch; return their number."""
        taken = 0
        throttled_most = None
        parts: list[AcquiredRecords] = []
        isolates = self.limit > _LEAST_THROTTLE_LIMIT
        for run in batch.between(first_offset, last_offset):
            if not run.is_acquirable:
                continue
            is_last_delivery = isolates and run.delivery_count == self.limit - 1
            if is_last_delivery and taken:
                break
            if throttled_most is None and run.delivery_count >= self.throttle_limit:
                throttled_most = max(1, len(batch) >> run.delivery_count - self.throttle_limit + 1)
            wanted = 1 if is_last_delivery else len(run)
            if self.is_limited:
                wanted = min(wanted, records_max - taken)
            if throttled_most is not None and taken < throttled_most:
                wanted = min(wanted, throttled_most - taken)
            batch.shorten(run, run.first_offset + wanted - 1)
            self._acquire_run(run)
            taken += wanted
            _append(parts, AcquiredRecords(run.first_offset, run.last_offset, run.delivery_count))
            if is_last_delivery or (self.is_limited and taken == records_max) or taken == throttled_most:
                break
        result += parts
        return taken

    # New records

    def _acquire_new(self, first_offset: int, last_offset: int, records_max: int) -> _Acquired:
        partition = self.partition
        first = first_offset
        if not partition.batches:
            first = max(first, partition.end_offset)
        last = last_offset
        if records_max < last - first + 1:
            last = self._end_of_batch(first + records_max - 1)
            if partition.gap_start != NO_OFFSET:
                last = min(last, last_offset)
        records = self._put_new(first, last, records_max)
        partition.note_acquired(first, last)
        last = records[-1].last_offset
        partition.move_gap(last + 1)
        return _Acquired(records, last - first + 1)

    def _end_of_batch(self, offset: int) -> int:
        """Return the last offset of the batch in the log that contains an offset, or the offset if no batch does."""
        for span in reversed(self.read):
            if span.base_offset <= offset:
                return max(offset, span.last_offset)
        return offset

    def _put_new(self, first: int, last: int, records_max: int) -> list[AcquiredRecords]:
        spans = [(first, last)] if self.is_limited else self._cut(first, last)
        if self.is_limited and last - first + 1 > records_max:
            batch = InFlightBatch(RecordRun(first, last, RecordState.AVAILABLE, 0))
            batch.differ()
            batch.shorten(batch.runs[0], first + records_max - 1)
            self._acquire_run(batch.runs[0])
            self.partition.put(batch)
            self.partition.look_for_available()
            return [AcquiredRecords(first, first + records_max - 1, 1)]
        for one_first, one_last in spans:
            run = RecordRun(one_first, one_last, RecordState.AVAILABLE, 0)
            self._acquire_run(run)
            self.partition.put(InFlightBatch(run))
        return [AcquiredRecords(*span, 1) for span in spans]

    def _cut(self, first: int, last: int) -> list[tuple[int, int]]:
        """Cut a range into pieces of at least `batch_size`, at the starts of batches in the log."""
        spans = []
        size = max(self.request.batch_size, 1)
        if last - first + 1 > size:
            for span in self.read:
                if span.base_offset > last:
                    break
                if span.base_offset - first >= size:
                    spans.append((first, span.base_offset - 1))
                    first = span.base_offset
        spans.append((first, last))
        return spans


def _slot_from(partition: SharePartition, offset: int) -> int:
    """Return the index of the first batch that begins at or after an offset."""
    return partition.floor_slot(offset - 1) + 1


def _append(parts: list[AcquiredRecords], part: AcquiredRecords) -> None:
    if parts and parts[-1].last_offset + 1 == part.first_offset and parts[-1].delivery_count == part.delivery_count:
        parts[-1] = AcquiredRecords(parts[-1].first_offset, part.last_offset, part.delivery_count)
    else:
        parts.append(part)
