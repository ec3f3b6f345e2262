"""A BatchRun: the batches of a leader that a follower appends unchanged, at their own offsets.

An incomplete last batch is left out. So is a batch of a later epoch than the leader's, and a batch that does not fit
into one segment with the first, because compaction may leave gaps that large. The kernel `take_replicated` reads all
batches of format 2 in one loop. Messages of formats 0 and 1 are read one by one.
"""

from __future__ import annotations

from typing import Final, NamedTuple, NoReturn

from tailrace.log.replicated.replicated_kernels import (
    CUT_SHORT,
    LATER_EPOCH,
    NO_EPOCH,
    OFFSET_BELOW,
    OFFSET_OVERFLOW,
    OLD_FORMAT,
    TOO_FAR,
    WRONG_CHECKSUM,
    last_batch,
    take_replicated,
)
from tailrace.log.segments.batch_walk import BatchHeader, parse_header
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import NO_LEADER_EPOCH, NO_TIMESTAMP, LeaderEpoch, Offset, TopicPartition
from tailrace.model.topic_config import INT_MAX
from tailrace.records.batch import CorruptBatch, RecordBatch
from tailrace.records.legacy import check_message

_ENDS: Final = (CUT_SHORT, TOO_FAR, LATER_EPOCH)
_new_tuple: Final = tuple.__new__  # makes a NamedTuple in half the time


class BatchRun(NamedTuple):
    """Consecutive batches that have their offsets."""

    data: memoryview
    batches: list[tuple[int, Offset, int]]  # size, last offset, largest timestamp
    epochs: list[tuple[LeaderEpoch, Offset]]  # each with its first offset; -1 for messages of an old format
    produced: list[tuple[int, memoryview]]  # the batches with a producer id, each with its position
    first_offset: Offset  # -1 for a message of an old format, whose header has only the last offset
    max_timestamp: int


def split_replicated(
    view: memoryview, next_offset: Offset, leader_epoch: LeaderEpoch, partition: TopicPartition
) -> BatchRun | None:
    """Return the batches to append to a log that ends at `next_offset`, or None if there are none.

    Raises CorruptBatch or KafkaError if one of them must not be appended.
    """
    batches: list[tuple[int, Offset, int]] = []
    epochs: list[tuple[LeaderEpoch, Offset]] = []
    produced: list[tuple[int, memoryview]] = []
    position, max_timestamp = 0, NO_TIMESTAMP
    while True:
        position, stopped_by, largest = take_replicated(
            view, position, next_offset, leader_epoch, batches, epochs, produced
        )
        if largest > max_timestamp:
            max_timestamp = largest
        if stopped_by in _ENDS:
            break
        if batches:
            next_offset = batches[-1][1] + 1
        if stopped_by != OLD_FORMAT:
            _refuse(stopped_by, view, position, next_offset, partition)
        message = _checked_message(view, position)
        if epochs and message.last_offset - epochs[0][1] > INT_MAX:
            break
        if message.base_offset < next_offset:
            _refuse_offset(message.base_offset, next_offset, partition)
        if not epochs or epochs[-1][0] != NO_LEADER_EPOCH:
            epochs.append((NO_LEADER_EPOCH, message.base_offset))
        batches.append((message.size, message.last_offset, message.max_timestamp))
        max_timestamp = max(max_timestamp, message.max_timestamp)
        next_offset = message.next_offset
        position += message.size
    if not batches:
        return None
    first_epoch, first_offset = epochs[0]
    data = view if position == len(view) else view[:position]
    if first_epoch < 0:
        first_offset = -1
    return _new_tuple(BatchRun, (data, batches, epochs, produced, first_offset, max_timestamp))


def end_of_records(records: memoryview, leader_epoch: LeaderEpoch) -> tuple[Offset, LeaderEpoch] | None:
    """Return the offset after a leader's records, and the epoch of their last batch, without checking the records.

    Return None if the header of the last batch does not give that: the records are of an old format, or of a later
    epoch than the leader's.
    """
    position = last_batch(records)
    if position < 0:
        return None
    header = parse_header(records, position, position, len(records) - position)
    return (header.next_offset, header.leader_epoch) if 0 <= header.leader_epoch <= leader_epoch else None


def _checked_message(view: memoryview, position: int) -> BatchHeader:
    header = parse_header(view, position, position, len(view) - position)
    check_message(view[position : position + header.size])
    return header


def _refuse(fault: int, view: memoryview, position: int, next_offset: Offset, partition: TopicPartition) -> NoReturn:
    header = parse_header(view, position, position, len(view) - position)  # raises the error of the header
    if fault == WRONG_CHECKSUM:
        RecordBatch(view[position : position + header.size]).check()
    if fault == NO_EPOCH:
        raise CorruptBatch(f"batch at offset {header.base_offset} of {partition} has no leader epoch")
    if fault == OFFSET_OVERFLOW:
        raise CorruptBatch(f"batch at offset {header.base_offset} of {partition} ends after the last possible offset")
    assert fault == OFFSET_BELOW, f"unknown fault {fault}"
    _refuse_offset(header.base_offset, next_offset, partition)


def _refuse_offset(offset: Offset, next_offset: Offset, partition: TopicPartition) -> NoReturn:
    raise KafkaError(
        ErrorCode.OFFSET_OUT_OF_RANGE,
        f"batch at offset {offset} of {partition} is below the next offset {next_offset}",
    )
