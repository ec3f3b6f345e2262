"""What a follower is sent all day, appended by a shorter way: plain batches of the log's latest epoch.

Plain is what `replicated_kernels.take_plain` takes, for the active segment, without a producer id or next in its
producer's sequence. A last batch that is cut short is left out. Anything else is left to `append_plan.py` as a whole,
with nothing changed: `PartitionLog.append_as_follower`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailrace.log.position import LogPosition
from tailrace.log.producers.producer_state import ProducerState
from tailrace.log.replicated_kernels import take_plain
from tailrace.log.roll_policy import roll_reason
from tailrace.model.ids import LeaderEpoch, Offset
from tailrace.records.batch import LOG_OVERHEAD, PREFIX, RecordBatch, increment_sequence

if TYPE_CHECKING:
    from tailrace.log.partition_log import PartitionLog


def append_plain(log: PartitionLog, data: memoryview, leader_epoch: LeaderEpoch, now_ms: int) -> bool:
    """Append what a leader has sent, as it is; False if this is not for here."""
    latest, end_offset = log.epochs.latest, log.marks.log_end.offset
    if latest is None or latest.epoch > leader_epoch or latest.start_offset > end_offset:
        return False
    batches: list[tuple[int, Offset, int]] = []
    produced: list[memoryview] = []
    size = take_plain(data, end_offset, latest.epoch, batches, produced)
    if not batches or not _is_cut(data, size):
        return False
    last_offset = batches[-1][1]
    segment = log.segments.active
    max_timestamp = batches[0][2] if len(batches) == 1 else max(batch[2] for batch in batches)
    if roll_reason(segment, log.config, size, max_timestamp, last_offset, now_ms) is not None:
        return False
    in_sequence = _in_sequence(log, produced) if produced else []
    if in_sequence is None:
        return False
    segment.append_joined(data if size == len(data) else data[:size], batches)
    log.marks.log_end = LogPosition(last_offset + 1, segment.base_offset, segment.size)
    log.producers.end_offset = last_offset + 1
    for state, batch in in_sequence:
        state.go_on_with(batch)
    if last_offset + 1 - log.recovery_point >= log.config.flush_messages:
        log.flush(now_ms)
    return True


def _is_cut(data: memoryview, size: int) -> bool:
    """Whether what follows is nothing, or a batch that is not there as a whole."""
    left = len(data) - size
    return left < LOG_OVERHEAD or PREFIX.unpack_from(data, size)[1] + LOG_OVERHEAD > left


def _in_sequence(log: PartitionLog, produced: list[memoryview]) -> list[tuple[ProducerState, RecordBatch]] | None:
    """Each batch with its producer, if all are next in sequence there; those that come before it here included."""
    found: list[tuple[ProducerState, RecordBatch]] = []
    before: dict[int, RecordBatch] = {}
    for view in produced:
        batch = RecordBatch(view)
        state = log.producers.producers.get(batch.producer_id)
        if state is None or batch.producer_id in log.producers.verifications:
            return None
        last = before.get(batch.producer_id)
        if last is None:
            if not state.goes_on_with(batch):
                return None
        elif (
            batch.producer_epoch != last.producer_epoch
            or batch.attributes != last.attributes
            or batch.base_sequence != increment_sequence(last.last_sequence, 1)
        ):
            return None
        before[batch.producer_id] = batch
        found.append((state, batch))
    return found
