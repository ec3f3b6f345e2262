"""Rebuilds the producer states from the log: the latest snapshot, then the batches after it."""

from __future__ import annotations

from collections.abc import Iterator

from tailrace.log.producers.producer_append import EndedTransaction, ProducerAppend
from tailrace.log.producers.producer_states import ProducerStates
from tailrace.log.segments.batch_walk import BatchHeader
from tailrace.log.segments.segment import Segment
from tailrace.log.segments.segment_list import SegmentList
from tailrace.model.ids import Offset, ProducerId
from tailrace.records.batch import RecordBatch
from tailrace.records.checks.validation import Origin


def rebuild_producers(
    states: ProducerStates, segments: SegmentList, log_start_offset: Offset, end: Offset, now_ms: int, *, clean: bool
) -> None:
    """Bring the states to offset `end`. Write snapshots at the last two segments and at the end.

    After a clean stop without any snapshot there are no producers, and nothing is scanned.
    """
    wanted = {segment.base_offset for segment in segments.tail(max(len(segments) - 2, 0))} | {end}
    if clean and states.latest_snapshot_offset is None:
        for offset in sorted(wanted):
            states.advance_to(offset)
            states.take_snapshot()
        return
    nothing_to_replay = states.is_empty and states.end_offset >= end
    states.truncate_and_reload(log_start_offset, end, now_ms)
    if end > states.end_offset and not nothing_to_replay:
        for segment in segments.between(states.end_offset, end):
            start = max(segment.base_offset, states.end_offset, log_start_offset)
            states.advance_to(start)
            if segment.base_offset in wanted:
                states.take_snapshot()
            _replay(states, _batches_between(segment, start, end))
    states.advance_to(end)
    states.take_snapshot()


def _batches_between(segment: Segment, start: Offset, end: Offset) -> Iterator[tuple[BatchHeader, memoryview]]:
    first = segment.find(start)
    if first is None:
        return iter(())
    last = segment.find(end)
    return segment.batches(first.position, last.position if last else segment.size)


def _replay(states: ProducerStates, batches: Iterator[tuple[BatchHeader, memoryview]]) -> None:
    appends: dict[ProducerId, ProducerAppend] = {}
    ended: list[EndedTransaction] = []
    for header, view in batches:
        if header.magic == 2 and header.producer_id >= 0:
            append = appends.get(header.producer_id)
            if append is None:
                append = appends[header.producer_id] = states.prepare(header.producer_id, Origin.REPLICATION)
            transaction = append.add(RecordBatch(view))
            if transaction is not None:
                ended.append(transaction)
    states.apply_all(appends)
    for transaction in ended:
        states.complete(transaction)
