"""Copies one partition of a replay: batches of a source slice into a partition of the target.

Whole batches are copied without decoding if nothing inside them changes (`records/resend.py`). Each record arrives
exactly once, by three rules:

    - The producer is idempotent: the broker recognizes a batch that is sent again within a task.
    - A task that starts again, in this run or in a later one with a state, reads the end offset of the target. No other
      producer writes to the partition, so the records after the saved offset were sent before the state was saved. The
      same number of records is skipped in the source. The last of them must be equal on both sides, or the replay
      stops.
    - Every acknowledgement contains the offset of the batch. If it is not the expected one, another producer writes to
      the partition, and the replay stops.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tailrace.client.batches import FetchOptions, fetch_range
from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.errors import ClientError, Refused
from tailrace.client.offsets import latest_offsets
from tailrace.client.producing.producer import NO_OFFSET, BatchProducer, NotDelivered
from tailrace.client.visible_batches import IsolationLevel
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import Offset, TopicPartition
from tailrace.records.batch import RecordBatch
from tailrace.records.raw_batches import RawBatches
from tailrace.records.record import Record, iter_records
from tailrace.records.resend import AddHeader, ResentBatches, as_produced, halves
from tailrace.spark.jobs.errors import JobError
from tailrace.spark.jobs.place import ClientProperties, as_job_errors, cluster_at
from tailrace.spark.jobs.replay.state import ReplayPoint, ReplayState
from tailrace.spark.source.transports.transport import Slice

PROVENANCE = "tailrace.source"
_NOTE_EVERY_S = 1.0


@dataclass(frozen=True, slots=True)
class ReplayTask:
    slice: Slice
    target: str
    partition: TopicPartition  # in the target
    point: ReplayPoint
    state: ReplayState | None
    rate: float | None
    provenance: str | None
    client: ClientProperties = field(default_factory=dict, repr=False)  # for the target


@dataclass(slots=True)
class Replayed:
    """The result of one partition."""

    partition: TopicPartition
    source: TopicPartition
    start: Offset
    end: Offset
    records: int = 0
    bytes: int = 0
    batches_copied: int = 0
    batches_decoded: int = 0
    records_found: int = 0  # records that an earlier task sent without saving the state
    target_end: Offset = -1

    def to_json(self) -> dict[str, Any]:
        return {
            "topic": self.source.topic,
            "partition": self.source.partition,
            "targetTopic": self.partition.topic,
            "fromOffset": self.start,
            "toOffset": self.end,
            "records": self.records,
            "bytes": self.bytes,
            "batchesCopied": self.batches_copied,
            "batchesDecoded": self.batches_decoded,
            "recordsFound": self.records_found,
            "targetEndOffset": self.target_end,
        }


def replay_partition(task: ReplayTask) -> Replayed:
    with as_job_errors(), cluster_at(task.target, task.client) as cluster:
        return _Copy(task, cluster).run()


class _Copy:
    def __init__(self, task: ReplayTask, cluster: ClusterClient) -> None:
        self._task = task
        self._cluster = cluster
        self._producer = BatchProducer(cluster)
        source = task.slice.range
        self._next = task.point.target_next
        self._source_next = source.start
        self._started = self._noted = time.monotonic()
        self.done = Replayed(task.partition, source.partition, source.start, source.end, target_end=self._next)

    def run(self) -> Replayed:
        there = latest_offsets(self._cluster, [self._task.partition])[self._task.partition]
        ahead = there - self._next
        if ahead < 0:
            raise JobError(
                f"{self._task.partition} at {self._task.target} ends at offset {there}, before the saved {self._next}"
            )
        for whole in self._batches():
            batch: ResentBatches | None = whole
            if ahead:
                sent, last, batch = _passed_over(whole, ahead)
                ahead -= sent
                self.done.records_found += sent
                if not ahead:
                    self._check_last(there - 1, last)
                    self._next = there
            if batch is None:
                continue
            self._send(batch)
            self._pause()
            if time.monotonic() - self._noted >= _NOTE_EVERY_S:
                self._note()
        if ahead:
            raise self._foreign(there - ahead)
        self._source_next = self._task.slice.range.end
        self._note()
        self.done.target_end = self._next
        return self.done

    def _batches(self) -> Iterator[ResentBatches]:
        wanted = self._task.slice.range
        add_header = self._provenance()
        raw = RawBatches(wanted.start, wanted.end)

        def taken() -> Iterator[ResentBatches]:
            for batch in raw.take():
                found = as_produced(batch, wanted.start, wanted.end, add_header)
                if found is not None:
                    yield found

        for _ in self._task.slice.feed(raw, fail_on_data_loss=True):
            yield from taken()
        yield from taken()

    def _provenance(self) -> AddHeader | None:
        if self._task.provenance is None:
            return None
        place = f"{self._task.provenance}/{self._task.slice.range.partition}"
        return lambda record: (PROVENANCE, f"{place}@{record.offset}".encode())

    def _send(self, batch: ResentBatches) -> None:
        partition = self._task.partition
        try:
            produced = self._producer.send({partition: batch.data})[partition]
        except NotDelivered as error:
            refused = error.errors.get(partition)
            parts = halves(batch) if _is_too_large(refused) else None
            if parts is None:
                raise
            for part in parts:
                self._send(part)
            return
        if produced.base_offset not in (self._next, NO_OFFSET):
            raise self._foreign(self._next)
        self._next += batch.records
        self._source_next = batch.next_offset
        self.done.records += batch.records
        self.done.bytes += len(batch.data)
        if batch.was_decoded:
            self.done.batches_decoded += 1
        else:
            self.done.batches_copied += 1

    def _foreign(self, offset: Offset) -> JobError:
        return JobError(
            f"another producer writes to {self._task.partition} at {self._task.target}: "
            f"the record at offset {offset} is not from this replay",
            status=1,
        )

    def _check_last(self, offset: Offset, expected: Record | None) -> None:
        """Raise an error unless the last record of the target is the one that was sent last."""
        options = FetchOptions(isolation=IsolationLevel.READ_UNCOMMITTED)
        for batch in fetch_range(self._cluster, self._task.partition, offset, offset + 1, options):
            records = iter_records(batch) if isinstance(batch, RecordBatch) else iter(batch.records())
            for record in records:
                if record.offset == offset and expected is not None and _content(record) == _content(expected):
                    return
        raise self._foreign(offset)

    def _note(self) -> None:
        self._noted = time.monotonic()
        if self._task.state is not None:
            point = self._task.point
            self._task.state.write(
                self._task.slice.range.partition,
                ReplayPoint(point.source, point.target, point.start, self._source_next, self._next),
            )

    def _pause(self) -> None:
        if self._task.rate:
            due = self._started + self.done.records / self._task.rate
            wait = due - time.monotonic()
            if wait > 0:
                time.sleep(wait)


def _passed_over(batch: ResentBatches, ahead: int) -> tuple[int, Record | None, ResentBatches | None]:
    """Return the number of records of a batch that were sent before, the last of them, and the rest of the batch."""
    if batch.records < ahead:
        return batch.records, None, None
    records = list(iter_records(RecordBatch(memoryview(batch.data))))
    rest = None
    if batch.records > ahead:
        part = as_produced(RecordBatch(memoryview(batch.data)), ahead, batch.records)
        rest = None if part is None else part._replace(next_offset=batch.next_offset)
    return ahead, records[ahead - 1], rest


def _is_too_large(error: ClientError | None) -> bool:
    return isinstance(error, Refused) and error.code in (
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
    )


def _content(record: Record) -> tuple[Any, ...]:
    """Return the fields of a record without the timestamp, which a topic may set itself."""
    return record.key, record.value, record.headers
