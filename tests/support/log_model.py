"""ModelLog: a log as a plain list of batches. Every question is answered by looking at all of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from tailrace.log.segments.indexes.transaction_index import AbortedTransaction
from tailrace.model.topic_config import TopicConfig
from tailrace.records.batch import RecordBatch, split_batches
from tailrace.records.control_records import end_marker
from tailrace.records.record import Record, iter_records


class ModelBatch(NamedTuple):
    data: bytes
    batch: RecordBatch
    records: tuple[Record, ...]

    @classmethod
    def of(cls, data: bytes) -> ModelBatch:
        (batch,) = split_batches(data)
        return cls(data, batch, tuple(iter_records(batch)))

    @property
    def base_offset(self) -> int:
        return int(self.batch.base_offset)

    @property
    def last_offset(self) -> int:
        return self.batch.last_offset


def placed(data: bytes, offset: int, leader_epoch: int, config: TopicConfig, now_ms: int) -> ModelBatch:
    """Return a produced batch as a leader stores it."""
    copy = bytearray(data)
    (batch,) = split_batches(copy)
    batch.set_offset_and_epoch(offset, leader_epoch)
    if config.message_timestamp_type == "LogAppendTime":
        batch.set_max_timestamp(now_ms, log_append_time=True)
    return ModelBatch.of(bytes(copy))


@dataclass
class ModelLog:
    batches: list[ModelBatch] = field(default_factory=list)
    start: int = 0
    end: int = 0
    high_watermark: int = 0

    def append(self, batch: ModelBatch) -> None:
        self.batches.append(batch)
        self.end = batch.last_offset + 1

    def truncate(self, offset: int) -> None:
        if offset < self.end:
            self.batches = [batch for batch in self.batches if batch.last_offset < offset]
            self.end = offset
            self.start = min(self.start, offset)
            self.high_watermark = min(self.high_watermark, offset)

    def data_from(self, offset: int, bound: int) -> list[ModelBatch]:
        """Return the batches that a read from `offset` up to `bound` may see: those that end below the bound."""
        return [batch for batch in self.batches if offset <= batch.last_offset < bound]

    def records(self) -> Iterable[Record]:
        return (record for batch in self.batches for record in batch.records)

    # Transactions

    def transactions(self) -> tuple[dict[int, int], list[tuple[int, int, int, bool]]]:
        """Return the first offsets of open transactions by producer, and the ended ones as (producer, first, last,
        committed).
        """
        open_now: dict[int, int] = {}
        ended = []
        for one in self.batches:
            if not one.batch.is_transactional:
                continue
            producer_id = one.batch.producer_id
            if not one.batch.is_control:
                open_now.setdefault(producer_id, one.base_offset)
            elif producer_id in open_now:
                marker = end_marker(one.batch)
                assert marker is not None
                ended.append((producer_id, open_now.pop(producer_id), one.base_offset, marker.is_commit))
        return open_now, ended

    def last_stable_offsets(self) -> tuple[int, int]:
        """Return the range of valid last stable offsets: an ended transaction holds it back until its marker is
        replicated, or until a restart.
        """
        open_now, ended = self.transactions()
        unstable = [max(self.start, first) for first in open_now.values()]
        unreplicated = [max(self.start, first) for _, first, last, _ in ended if last >= self.high_watermark]
        return min([*unstable, *unreplicated, self.high_watermark]), min([*unstable, self.high_watermark])

    def committed(self, batches: Iterable[ModelBatch]) -> list[Record]:
        """Return the records of these batches that are not part of an aborted transaction."""
        _, ended = self.transactions()
        aborted = [(producer_id, first, last) for producer_id, first, last, is_commit in ended if not is_commit]
        return [
            record
            for one in batches
            if not one.batch.is_control
            for record in one.records
            if not any(
                one.batch.is_transactional and one.batch.producer_id == producer_id and first <= record.offset < last
                for producer_id, first, last in aborted
            )
        ]

    # Time

    def first_at(self, timestamp: int, segment_starts: list[int]) -> Record | None:
        """Return the first record at or after a time, in the first segment that has one, if it is not before the log
        start.
        """
        for start, end in zip(segment_starts, [*segment_starts[1:], self.end], strict=True):
            inside = [one for one in self.batches if start <= one.base_offset < end]
            if any(one.batch.max_timestamp >= timestamp for one in inside):
                for one in inside:
                    for record in one.records:
                        if record.timestamp >= timestamp and record.offset >= self.start:
                            return record
                return None
        return None


def as_consumer(batches: Iterable[ModelBatch], aborted: list[AbortedTransaction]) -> list[Record]:
    """Return the records that a read_committed consumer keeps of fetched batches, given the aborted transactions of the
    response.
    """
    coming = sorted(aborted, key=lambda transaction: transaction.first_offset)
    inside: set[int] = set()
    found: list[Record] = []
    for one in batches:
        while coming and coming[0].first_offset <= one.last_offset:
            inside.add(coming.pop(0).producer_id)
        if one.batch.is_control:
            marker = end_marker(one.batch)
            if marker is not None and not marker.is_commit:
                inside.discard(one.batch.producer_id)
        elif not (one.batch.is_transactional and one.batch.producer_id in inside):
            found += one.records
    return found
