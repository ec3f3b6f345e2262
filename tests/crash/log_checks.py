"""Checks of any open log against a naive reading of its bytes.

`check_log` walks every segment from its first byte and works out by itself what the indexes, the producer states, the
leader epochs and the reads should be.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from tailrace.log.partition_log import PartitionLog
from tailrace.log.segments.indexes.transaction_index import AbortedTransaction
from tailrace.log.segments.segment import Segment
from tailrace.log.watermarks import Isolation
from tailrace.model.ids import NO_TIMESTAMP
from tailrace.records.batch import RecordBatch, split_batches
from tailrace.records.control_records import end_marker


@dataclass
class NaiveProducer:
    """A producer's state, from the bytes of the log; `last_*` are None before its first data batch."""

    epoch: int
    last_sequence: int | None = None
    last_offset: int | None = None
    last_timestamp: int = NO_TIMESTAMP
    coordinator_epoch: int = -1
    transaction_first_offset: int | None = None


@dataclass
class NaiveReplay:
    producers: dict[int, NaiveProducer] = field(default_factory=dict)
    aborted: dict[int, AbortedTransaction] = field(default_factory=dict)  # by the marker's offset

    def take(self, batch: RecordBatch) -> None:
        if batch.producer_id < 0:
            return
        known = self.producers.setdefault(batch.producer_id, NaiveProducer(batch.producer_epoch))
        known_epoch, known.epoch = known.epoch, batch.producer_epoch
        if not batch.is_control:
            known.last_sequence, known.last_offset = batch.last_sequence, batch.last_offset
            known.last_timestamp = batch.max_timestamp
            if batch.is_transactional and known.transaction_first_offset is None:
                known.transaction_first_offset = batch.base_offset
            return
        marker = end_marker(batch)
        assert marker is not None
        if known_epoch != batch.producer_epoch:
            known.last_sequence = known.last_offset = None
        known.coordinator_epoch = marker.coordinator_epoch
        known.last_timestamp = batch.max_timestamp
        first, known.transaction_first_offset = known.transaction_first_offset, None
        if first is not None and not marker.is_commit:
            others = [
                other.transaction_first_offset
                for other in self.producers.values()
                if other.transaction_first_offset is not None
            ]
            self.aborted[batch.base_offset] = AbortedTransaction(
                batch.producer_id, first, batch.base_offset, min(others, default=batch.base_offset + 1)
            )


def check_log(log: PartitionLog, deleted_below: int = 0) -> None:
    """Check that bounds, batches, indexes, producers, epochs and reads agree with the bytes in the segments.

    What was `deleted_below` an offset may be back after a crash, if no checkpoint had the new log start yet; the epoch
    of those records may have been forgotten meanwhile.
    """
    log.marks.check()
    assert log.recovery_point <= log.log_end_offset
    replay = NaiveReplay()
    next_offset = log.segments.first.base_offset
    assert log.log_start_offset >= next_offset
    first_stored: int | None = None
    for segment in log.segments:
        assert segment.base_offset >= next_offset, f"{segment} starts before {next_offset}"
        batches = _batches_of(segment)
        aborted_before = set(replay.aborted)
        for batch, _ in batches:
            batch.check()
            assert batch.base_offset >= max(next_offset, segment.base_offset), f"{batch} is out of order in {segment}"
            next_offset = batch.next_offset
            first_stored = batch.base_offset if first_stored is None else first_stored
            replay.take(batch)
        check_indexes(segment, batches)
        expected = [replay.aborted[offset] for offset in replay.aborted if offset not in aborted_before]
        _check_aborted(segment, expected, first_stored or 0, {batch.base_offset for batch, _ in batches})
    # It may end later: a truncation that falls into a gap, or into a batch, ends the log at the requested offset.
    assert max(next_offset, log.segments.active.base_offset) <= log.log_end_offset
    check_producers(log, replay)
    check_epochs(log, deleted_below)
    check_reads(log)


def _batches_of(segment: Segment) -> list[tuple[RecordBatch, int]]:
    """Return the batches of the file's first `size` bytes, with their positions."""
    data = segment.log.read(0, segment.size)
    assert len(data) == segment.size, f"{segment}: the file has only {len(data)} bytes"
    found, position = [], 0
    for batch in split_batches(data):
        found.append((batch, position))
        position += batch.size
    return found


def check_indexes(segment: Segment, batches: list[tuple[RecordBatch, int]]) -> None:
    """Check that every entry of both sparse indexes is right, and that the largest timestamp is known."""
    segment.offset_index.check()
    segment.time_index.check()
    last_offset_at = {position: batch.last_offset for batch, position in batches}
    for slot in range(segment.offset_index.count):
        offset, position = segment.offset_index.entry(slot)
        assert last_offset_at.get(position) == offset, f"{segment}: offset index says {offset} is at {position}"
    largest, largest_offset = NO_TIMESTAMP, segment.base_offset
    true_entries = {(NO_TIMESTAMP, segment.base_offset)}
    for batch, _ in batches:
        if batch.max_timestamp > largest:
            largest, largest_offset = batch.max_timestamp, batch.last_offset
            true_entries.add((largest, largest_offset))
    for slot in range(segment.time_index.count):
        entry = segment.time_index.entry(slot)
        assert tuple(entry) in true_entries, f"{segment}: time index says {entry}, not in {sorted(true_entries)}"
    assert tuple(segment.largest) == (largest, largest_offset), f"{segment}: largest timestamp"


def _check_aborted(
    segment: Segment, expected: list[AbortedTransaction], first_stored: int, base_offsets: set[int]
) -> None:
    actual = segment.transaction_index.entries
    if segment.config.is_compacted:
        # The data of an aborted transaction goes before its marker does, and its entry goes with the marker.
        assert set(expected) <= set(actual), f"{segment}: transaction index"
        assert {entry.last_offset for entry in actual} <= base_offsets, f"{segment}: transaction index"
    else:
        # A transaction that began before the first batch that is left is known to the index alone.
        known = [entry for entry in actual if entry.first_offset >= first_stored]
        assert known == expected, f"{segment}: transaction index"


def check_producers(log: PartitionLog, replay: NaiveReplay) -> None:
    start = log.log_start_offset
    assert log.producers.end_offset == log.log_end_offset
    for producer_id, state in log.producers.producers.items():
        naive = replay.producers.get(producer_id)
        if naive is None:
            assert state.last_offset < start, f"producer {producer_id} wrote nothing that is left"
            continue
        assert state.producer_epoch == naive.epoch, f"epoch of producer {producer_id}"
        assert state.coordinator_epoch == naive.coordinator_epoch, f"coordinator epoch of producer {producer_id}"
        assert state.transaction_first_offset == naive.transaction_first_offset, f"transaction of {producer_id}"
        # Compaction may take a batch's latest record and leave the batch.
        assert log.config.is_compacted or state.last_timestamp == naive.last_timestamp, f"timestamp of {producer_id}"
        if naive.last_offset is not None and naive.last_offset >= start:
            actual = (state.last_sequence, state.last_offset)
            assert actual == (naive.last_sequence, naive.last_offset), f"last batch of producer {producer_id}"
    for producer_id, naive in replay.producers.items():
        if naive.last_offset is not None and naive.last_offset >= start:
            assert producer_id in log.producers.producers, f"producer {producer_id} was forgotten"
    open_now = {first: open_.producer_id for first, open_ in log.producers.open_transactions.items()}
    assert open_now == {
        state.transaction_first_offset: producer_id
        for producer_id, state in log.producers.producers.items()
        if state.transaction_first_offset is not None
    }


def check_epochs(log: PartitionLog, deleted_below: int) -> None:
    entries = log.epochs.entries
    for before, after in pairwise(entries):
        assert before.epoch < after.epoch, entries
        assert before.start_offset < after.start_offset, entries
    assert not entries or entries[-1].start_offset <= log.log_end_offset, entries
    for segment in log.segments:
        for header in segment.headers():
            offset = max(header.base_offset, log.log_start_offset)
            if header.last_offset >= offset and header.leader_epoch >= 0:
                known = next((one.epoch for one in reversed(entries) if one.start_offset <= offset), None)
                if known is None and header.base_offset < deleted_below:
                    continue
                assert known == header.leader_epoch, f"epoch of offset {header.base_offset}: {entries}"


def check_reads(log: PartitionLog) -> None:
    """Check that a read at the first, the last and an inner offset of every batch finds that batch."""
    for segment in log.segments:
        for header in segment.headers():
            for offset in {header.base_offset, (header.base_offset + header.last_offset) // 2, header.last_offset}:
                if offset >= log.log_start_offset:
                    found = log.read(offset, 1, Isolation.LOG_END, at_least_one=True)
                    assert found.slice is not None, f"nothing to read at {offset}"
                    assert found.slice.file.path == segment.log.path
                    assert (found.slice.position, found.slice.size) == (header.position, header.size)
