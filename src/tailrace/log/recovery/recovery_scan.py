"""RecoveryScan: reads a segment whole and adds its batches to indexes, leader epochs and producer states.

A compiled loop processes runs of valid batches (`scan_kernels.py`). It stops at unusual batches: another format, a new
leader epoch, an offset that is too large, damage. This module handles such a batch, and the loop continues after it.
"""

from __future__ import annotations

from collections.abc import Callable

from tailrace.log.leader_epochs import LeaderEpochs
from tailrace.log.producers.producer_states import ProducerStates
from tailrace.log.recovery.scan_kernels import SegmentScan
from tailrace.log.segments.batch_walk import BatchHeader, parse_header, read_runs
from tailrace.log.segments.indexes.transaction_index import AbortedTransaction
from tailrace.log.segments.segment import Segment, SegmentOverflow
from tailrace.model.ids import NO_LEADER_EPOCH, Offset
from tailrace.model.topic_config import INT_MAX, LONG_MAX
from tailrace.records.batch import CorruptBatch, RecordBatch
from tailrace.records.checks.validation import Origin
from tailrace.records.legacy import check_message


class RecoveryScan:
    def __init__(
        self, segment: Segment, epochs: LeaderEpochs, states: ProducerStates, end_offset: Offset, gaps_end: Offset
    ) -> None:
        """Prepare a scan in which all offsets are below `end_offset`. Only offsets below `gaps_end` may have gaps."""
        self._segment = segment
        self._epochs = epochs
        self._states = states
        self._end_offset = end_offset
        self._gaps_end = gaps_end
        last_that_fits = min(segment.base_offset + INT_MAX, LONG_MAX - 1)
        interval = segment.config.index_interval_bytes
        self.found = SegmentScan(segment.base_offset, min(end_offset, last_that_fits + 1), interval, gaps_end)

    def run(self, pass_over: Callable[[CorruptBatch], None] | None) -> None:
        """Process all batches. `pass_over` is called for a damaged batch. If it is None, the scan ends there."""
        for position, run in read_runs(self._segment.log, 0, self._segment.size):
            start = 0
            while start < len(run):
                start = self._take_plain(run, start, position)
                if start < len(run):
                    header = parse_header(run, start, position + start, len(run) - start)
                    view = run[start : start + header.size]
                    start += header.size
                    try:
                        check_batch(header, view)
                        self._check_offsets(header)
                    except CorruptBatch as error:
                        located = error.at(self._segment.log.path, header.position)
                        if pass_over is None:
                            raise located from None
                        pass_over(located)
                    else:
                        self._take_batch(header, view)

    def _take_plain(self, run: memoryview, start: int, position: int) -> int:
        latest = self._epochs.latest
        self.found.leader_epoch = latest.epoch if latest else NO_LEADER_EPOCH
        produced: list[memoryview] = []
        end = self.found.take_plain(run, start, position, produced)
        for view in produced:
            self._take_into_producers(RecordBatch(view))
        if end > start:
            self._states.advance_to(self.found.next_offset)
        return end

    def _take_batch(self, header: BatchHeader, view: memoryview) -> None:
        if not self._segment.offset_index.fits(header.last_offset):
            raise SegmentOverflow(self._segment, header.last_offset)
        self.found.take(header.position, header.size, header.last_offset, header.max_timestamp)
        if header.magic == 2:
            if header.leader_epoch > self.found.leader_epoch:
                self._epochs.assign(header.leader_epoch, header.base_offset)
            if header.producer_id >= 0:
                self._take_into_producers(RecordBatch(view))
            self._states.advance_to(header.next_offset)

    def _take_into_producers(self, batch: RecordBatch) -> None:
        states = self._states
        append = states.prepare(batch.producer_id, Origin.REPLICATION)
        ended = append.add(batch)
        states.apply(append)
        if ended is not None:
            if ended.is_aborted:
                stable = states.last_stable_offset_after(ended)
                self._segment.transaction_index.append(
                    AbortedTransaction(ended.producer_id, ended.first_offset, ended.last_offset, stable)
                )
            states.complete(ended)

    def _check_offsets(self, header: BatchHeader) -> None:
        """Check the offset, which no checksum covers. It grows, stays below the next segment's, and seldom jumps."""
        expected = self.found.next_offset
        is_in_order = expected <= header.base_offset <= header.last_offset < self._end_offset
        jumps = header.base_offset > expected and header.magic == 2 and header.last_offset >= self._gaps_end
        fits = self._segment.offset_index.fits(header.last_offset)
        if jumps or not is_in_order or not (fits or self._is_passed(header)):
            raise CorruptBatch(f"offsets {header.base_offset} to {header.last_offset}, but the next is {expected}")

    def _is_passed(self, header: BatchHeader) -> bool:
        """Return True if the next batch continues from an offset that is too large for a segment. If not, a bit has
        flipped."""
        try:
            following = next(self._segment.headers(header.position + header.size), None)
        except CorruptBatch:
            return False
        return following is None or following.base_offset > header.last_offset


def check_batch(header: BatchHeader, view: memoryview) -> None:
    """Raise CorruptBatch if the checksum does not match, in any format."""
    if header.magic == 2:
        RecordBatch(view).check()
    else:
        check_message(view)
