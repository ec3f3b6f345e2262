"""The rules of compaction: a function from bytes to bytes, for the cleaner and for jobs that read segments.

There are two passes over whole batches in offset order. The loops over records are in `cleaner_kernels.py`:

    KeyScan    the dirty part: store the latest offset of every key, until the end or until the map is full
    SurvivingRecords  everything up to the end of the first pass: write the remaining records

A record after the end of the first pass stays. A record before it stays if it has a key, is the latest of that key, and
is not a tombstone that is due for removal. Records without a key are removed. Whole batches are judged before their
records:

    data of an aborted transaction     is removed
    a marker without remaining data    stays until its delete horizon, like a tombstone: a reader that is inside the
                                       transaction may still wait for the marker
    the last batch of a producer that
    is still known, or of the range    keeps at least its header: after a restart, the producer's last sequence and
                                       epoch and the range's end are read from it
    a message of format 0 or 1         is written again as a v2 batch, as everything that Kafka 4 writes

The delete horizon is not known when a tombstone is written. The first cleaning that finds a tombstone sets the horizon
of its batch to now + delete.retention.ms. A later cleaning after that time drops the batch's tombstones.

Unlike Kafka's cleaner, both passes check every batch's checksum. Otherwise a damaged record that is written again would
get a valid checksum.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from struct import Struct
from typing import NamedTuple

from tailrace.log.compaction.cleaned_transactions import CleanedTransactions
from tailrace.log.compaction.cleaner_kernels import LatestOffsets, RecordFilter
from tailrace.log.segments.batch_walk import parse_header
from tailrace.model.ids import NO_TIMESTAMP, Offset, ProducerId
from tailrace.records.batch import LOG_OVERHEAD, CorruptBatch, RecordBatch
from tailrace.records.builder import BatchBuilder, assemble_batch, batch_attributes, empty_batch
from tailrace.records.codecs.compression import compress
from tailrace.records.legacy import Message
from tailrace.records.record import Record, TimestampType, iter_records, uncompressed_payload

__all__ = ["KeyScan", "LastRecord", "LatestOffsets", "SurvivingRecords", "WrittenBatch"]

_INT32 = Struct(">i")
_SMALLEST_BATCH = 26


class LastRecord(NamedTuple):
    """The last offset of a producer that is still known. None if the producer has only ended transactions."""

    last_data_offset: Offset | None
    producer_epoch: int


class WrittenBatch(NamedTuple):
    size: int
    last_offset: Offset
    max_timestamp: int


class KeyScan:
    """The first pass. `latest.latest_offset` is the offset that it reached. `is_full` means that the map ended it."""

    def __init__(self, latest: LatestOffsets, start_offset: Offset, transactions: CleanedTransactions) -> None:
        self.latest = latest
        self.start_offset = start_offset
        self.is_full = False
        self.records_read = 0
        self._transactions = transactions

    def add(self, data: bytes | bytearray, start: int, end: int) -> int:
        """Read the whole batches at the beginning of data[start:end]. Return their end, or the position at which the
        map was full."""
        position = start
        while True:
            position, records, self.is_full = self.latest.put_batches(data, position, end, self.start_offset)
            self.records_read += records
            if self.is_full or not _is_whole(data, position, end):
                return position
            try:
                size = self._add_one(data, position, end)
            except CorruptBatch as error:
                raise CorruptBatch(error.reason, position=position) from None
            if size == 0:
                return position
            position += size

    def _add_one(self, data: bytes | bytearray, start: int, end: int) -> int:
        """Read a batch that is not plain. Return its size, or 0 if the map was full."""
        header = parse_header(data, start, start, end - start)
        view = memoryview(data)[start : start + header.size]
        if header.magic < 2:
            message = Message(view)
            message.check()
            self._put_records(message.records())
        else:
            batch = RecordBatch(view)
            batch.check()
            if batch.is_control:
                self._transactions.on_control(batch)
                self.records_read += 1
            elif self._transactions.on_data(batch):
                self.records_read += batch.record_count
            elif batch.record_count:
                payload = bytes(uncompressed_payload(batch))
                read = self.latest.put_records(
                    payload, 0, len(payload), batch.record_count, batch.base_offset, self.start_offset
                )
                self.records_read += read
                self.is_full = read < batch.record_count
        if self.is_full:
            return 0
        if header.last_offset >= self.start_offset:
            self.skip_to(header.last_offset + 1)
        return header.size

    def skip_to(self, offset: Offset) -> None:
        """Record that the map covers everything below `offset`."""
        self.latest.skip_to(offset)

    def _put_records(self, records: Iterable[Record]) -> None:
        latest = self.latest
        for record in records:
            if record.key is not None and record.offset >= self.start_offset:
                if latest.size >= latest.limit:
                    self.is_full = True
                    return
                latest.put(record.key, record.offset)
            self.records_read += 1


class SurvivingRecords:
    """The second pass, up to `end_offset`, the end of the range that is cleaned."""

    def __init__(
        self,
        latest: LatestOffsets,
        *,
        transactions: CleanedTransactions,
        last_records: Mapping[ProducerId, LastRecord],
        end_offset: Offset,
        now_ms: int,
        delete_retention_ms: int,
    ) -> None:
        last_offsets = {
            producer_id: last.last_data_offset
            for producer_id, last in last_records.items()
            if last.last_data_offset is not None
        }
        self._latest = latest
        self._transactions = transactions
        self._last_records = last_records
        self._now_ms = now_ms
        self._delete_retention_ms = delete_retention_ms
        self._filter = RecordFilter(
            latest,
            now_ms=now_ms,
            delete_retention_ms=delete_retention_ms,
            end_offset=end_offset,
            last_offsets=last_offsets,
        )
        self._end_offset = end_offset
        self._read = self._kept = self._without_key = 0  # of the records that the kernel did not process

    @property
    def records_read(self) -> int:
        return self._filter.records_read + self._read

    @property
    def records_kept(self) -> int:
        return self._filter.records_kept + self._kept

    @property
    def records_without_key(self) -> int:
        return self._filter.records_without_key + self._without_key

    def take(self) -> tuple[memoryview, list[WrittenBatch]]:
        """Return the remaining part of the batches added since the last call. The bytes are valid until the
        next `add`."""
        kernel = self._filter
        taken = memoryview(kernel.out)[: kernel.out_size], [WrittenBatch(*batch) for batch in kernel.written]
        kernel.clear()
        return taken

    def add(self, data: bytes | bytearray, start: int, end: int, *, retain_legacy_deletes: bool) -> int:
        """Filter the whole batches at the beginning of data[start:end]. Return their end."""
        position = start
        while True:
            position = self._filter.put_batches(data, position, end)
            if not _is_whole(data, position, end):
                return position
            try:
                position += self._add_one(data, position, end, retain_legacy_deletes)
            except CorruptBatch as error:
                raise CorruptBatch(error.reason, position=position) from None

    def _add_one(self, data: bytes | bytearray, start: int, end: int, retain_legacy_deletes: bool) -> int:
        header = parse_header(data, start, start, end - start)
        view = memoryview(data)[start : start + header.size]
        if header.magic < 2:
            self._add_message(Message(view), retain_legacy_deletes)
            return header.size
        batch = RecordBatch(view)
        batch.check()
        if batch.is_control:
            self._add_control(batch)
        elif self._transactions.on_data(batch):
            if self._keeps_empty(batch):
                self._read += batch.record_count
                self._put_empty(batch)
        elif batch.is_compressed:
            self._add_compressed(batch)
        else:
            self._filter.put_batch(data, start, header.size)
        return header.size

    # Whole batches

    def _keeps_empty(self, batch: RecordBatch) -> bool:
        """Return True if at least the header of a batch is kept."""
        if batch.next_offset == self._end_offset:
            return True
        last = self._last_records.get(batch.producer_id) if batch.has_producer_id else None
        if last is None:
            return False
        if last.last_data_offset is not None:
            return batch.last_offset == last.last_data_offset
        return batch.is_control and batch.producer_epoch == last.producer_epoch

    def _put_empty(self, batch: RecordBatch) -> None:
        header = empty_batch(
            base_offset=batch.base_offset,
            last_offset=batch.last_offset,
            timestamp_type=TimestampType.LOG_APPEND_TIME if batch.is_log_append_time else TimestampType.CREATE_TIME,
            max_timestamp=batch.max_timestamp,
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            base_sequence=batch.base_sequence,
            transactional=batch.is_transactional,
            control=batch.is_control,
            leader_epoch=batch.leader_epoch,
        )
        self._filter.add(header, batch.last_offset, batch.max_timestamp)

    def _add_control(self, batch: RecordBatch) -> None:
        is_done = self._transactions.on_control(batch)
        horizon = batch.delete_horizon_ms
        records = list(iter_records(batch))
        if is_done and horizon is not None and horizon <= self._now_ms:
            if self._keeps_empty(batch):
                self._read += len(records)
                self._put_empty(batch)
            return
        if not records:
            if self._keeps_empty(batch):
                self._put_empty(batch)
            return
        self._read += len(records)
        self._kept += len(records)
        has_tombstone = any(record.value is None for record in records)
        if horizon is None and (is_done or has_tombstone):
            self._filter.keep_all(len(records))
            self._put_rewritten(batch, bytes(uncompressed_payload(batch)), sets_horizon=True)
        else:
            self._filter.add(bytes(batch.view), batch.last_offset, batch.max_timestamp)

    def _add_compressed(self, batch: RecordBatch) -> None:
        horizon = batch.delete_horizon_ms
        payload = bytes(uncompressed_payload(batch)) if batch.record_count else b""
        kept, has_tombstone = self._filter.judge(
            payload, 0, len(payload), batch.record_count, batch.base_offset, horizon is None or self._now_ms < horizon
        )
        sets_horizon = has_tombstone and horizon is None
        if kept == 0:
            if self._keeps_empty(batch):
                self._put_empty(batch)
        elif kept == batch.record_count and not sets_horizon:
            self._filter.add(bytes(batch.view), batch.last_offset, batch.max_timestamp)
        else:
            self._put_rewritten(batch, payload, sets_horizon=sets_horizon)

    def _put_rewritten(self, batch: RecordBatch, payload: bytes, *, sets_horizon: bool) -> None:
        horizon = self._new_horizon() if sets_horizon else batch.delete_horizon_ms
        if horizon is not None and horizon < 0:
            horizon = None
        kept, base_timestamp, max_timestamp, count = self._filter.rewrite(
            payload,
            0,
            len(payload),
            batch.record_count,
            batch.base_timestamp,
            batch.max_timestamp,
            batch.is_log_append_time,
            NO_TIMESTAMP if horizon is None else horizon,
        )
        written = assemble_batch(
            compress(batch.codec, kept),
            base_offset=batch.base_offset,
            last_offset=batch.last_offset,
            base_timestamp=base_timestamp,
            max_timestamp=max_timestamp,
            attributes=batch_attributes(
                batch.codec,
                log_append_time=batch.is_log_append_time,
                transactional=batch.is_transactional,
                control=batch.is_control,
                delete_horizon=horizon is not None,
            ),
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            base_sequence=batch.base_sequence,
            leader_epoch=batch.leader_epoch,
            record_count=count,
        )
        self._filter.add(written, batch.last_offset, max_timestamp)

    def _new_horizon(self) -> int | None:
        """Return None if delete.retention.ms exceeds the largest timestamp. A tombstone then never gets a horizon."""
        horizon = self._now_ms + self._delete_retention_ms
        return horizon if horizon < 2**63 else None

    # Formats 0 and 1

    def _add_message(self, message: Message, retain_deletes: bool) -> None:
        message.check()
        records = message.records()
        self._read += len(records)
        kept = [record for record in records if self._keeps(record, retain_deletes)]
        if not kept:
            if message.offset + 1 == self._end_offset:
                raise CorruptBatch(f"the range ends with a message of format {message.magic}, which cannot be emptied")
            return
        self._kept += len(kept)
        is_log_append_time = message.timestamp_type == TimestampType.LOG_APPEND_TIME
        builder = BatchBuilder(
            base_offset=kept[0].offset,
            codec=message.codec,
            timestamp_type=TimestampType.LOG_APPEND_TIME if is_log_append_time else TimestampType.CREATE_TIME,
            log_append_time_ms=message.timestamp if is_log_append_time else NO_TIMESTAMP,
            delete_horizon_ms=self._new_horizon() if any(record.value is None for record in kept) else None,
        )
        try:
            builder.extend(kept)
        except ValueError as error:
            raise CorruptBatch(str(error)) from None
        max_timestamp = message.timestamp if is_log_append_time else builder.max_timestamp
        self._filter.add(builder.build(), kept[-1].offset, max_timestamp)

    def _keeps(self, record: Record, retain_deletes: bool) -> bool:
        if record.offset > self._latest.latest_offset:
            return True
        if record.key is None:
            self._without_key += 1
            return False
        return record.offset >= self._latest.get(record.key) and (record.value is not None or retain_deletes)


def _is_whole(data: bytes | bytearray, position: int, end: int) -> bool:
    """Return True if the next batch is complete. A batch with an impossible length counts, so that the error is
    reported."""
    if end - position < LOG_OVERHEAD:
        return False
    size = _INT32.unpack_from(data, position + 8)[0] + LOG_OVERHEAD
    return bool(size < _SMALLEST_BATCH or size <= end - position)
