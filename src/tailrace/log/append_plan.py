"""What an append will do, decided before a byte is written.

A leader's `validate_produced` checks batches and places them at the log's end; `plan_follower_append` takes a leader's
batches as they are. `plan_producers` checks producer epochs and sequences, and knows a retried batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from tailrace.log.batch_reader import BatchHeader, parse_header
from tailrace.log.position import LogPosition
from tailrace.log.producers.producer_append import EndedTransaction, ProducerAppend
from tailrace.log.producers.producer_state import BatchMemory, ProducerState
from tailrace.log.producers.producer_states import ProducerStates
from tailrace.log.segment import Segment
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import NO_TIMESTAMP, LeaderEpoch, Offset, ProducerId, TopicPartition
from tailrace.model.topic_config import INT_MAX, TopicConfig
from tailrace.records.batch import LOG_OVERHEAD, PREFIX, Buffer, CorruptBatch, RecordBatch
from tailrace.records.legacy import check_message
from tailrace.records.validation import Origin


class AppendPlan(Protocol):
    """Batches with their offsets, ready to be written: a leader's, validated, or a follower's, taken as they are."""

    @property
    def data(self) -> Buffer: ...
    @property
    def batches(self) -> Sequence[RecordBatch | BatchHeader]: ...
    @property
    def first_offset(self) -> Offset: ...
    @property
    def last_offset(self) -> Offset: ...
    @property
    def max_timestamp(self) -> int: ...
    @property
    def log_append_time_ms(self) -> int: ...


class FollowerPlan(NamedTuple):
    """A leader's batches; messages of formats 0 and 1 by what their headers say."""

    data: Buffer
    batches: Sequence[RecordBatch | BatchHeader]
    first_offset: Offset  # -1 where only unpacking would tell: a message of format 0 or 1 names its last record
    last_offset: Offset
    max_timestamp: int
    log_append_time_ms: int = NO_TIMESTAMP


class ProducerPlan(NamedTuple):
    """What an append changes in the producer states; or the batch it repeats, and then nothing is appended.

    Nearly always it is one batch, the next `in_sequence` of its producer, and then that is all there is to change.
    """

    appends: dict[ProducerId, ProducerAppend]
    ended: list[EndedTransaction]
    duplicate: BatchMemory | None = None
    in_sequence: tuple[ProducerState, RecordBatch] | None = None


def plan_follower_append(
    data: Buffer,
    *,
    partition: TopicPartition,
    log_end_offset: Offset,
    leader_epoch: LeaderEpoch,
) -> FollowerPlan | None:
    """Take a leader's batches as they are. A last one that is cut short stays out, and so does a later epoch's, and
    what does not fit into a segment with the first one: compaction may leave gaps that large."""
    batches: list[RecordBatch | BatchHeader] = []
    next_offset, max_timestamp = log_end_offset, NO_TIMESTAMP
    end = 0
    for batch in _whole_batches(memoryview(data)):
        if batches and batch.next_offset - 1 - batches[0].base_offset > INT_MAX:
            break
        if batch.leader_epoch > leader_epoch:
            # From a leader elected after the one we asked: its epoch has to be learned first.
            break
        if batch.magic == 2 and batch.leader_epoch < 0:
            raise CorruptBatch(f"batch at offset {batch.base_offset} of {partition} has no leader epoch")
        if batch.base_offset < next_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"batch at offset {batch.base_offset} of {partition} lies below the next offset {next_offset}",
            )
        next_offset = batch.next_offset
        max_timestamp = max(max_timestamp, batch.max_timestamp)
        end += batch.size
        batches.append(batch)
    if not batches:
        return None
    first_offset = batches[0].base_offset if batches[0].magic == 2 else -1
    return FollowerPlan(memoryview(data)[:end], batches, first_offset, next_offset - 1, max_timestamp)


def _whole_batches(view: memoryview) -> Iterator[RecordBatch | BatchHeader]:
    """The batches whose bytes are all there, each with its checksum verified when it is taken."""
    position = 0
    while len(view) - position >= LOG_OVERHEAD:
        size = PREFIX.unpack_from(view, position)[1] + LOG_OVERHEAD
        if size > len(view) - position:
            break
        header = parse_header(view, position, position, len(view) - position)
        one = view[position : position + size]
        if header.magic == 2:
            batch = RecordBatch(one)
            batch.check()
            yield batch
        else:
            check_message(one)
            yield header
        position += size


def check_segment_size(size: int, partition: TopicPartition, config: TopicConfig) -> None:
    if size > config.roll_bytes:
        raise KafkaError(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"{size} bytes in one append to {partition} exceed the segment size of {config.roll_bytes}",
        )


def plan_producers(
    plan: AppendPlan, states: ProducerStates, origin: Origin, segment: Segment, transaction_version: int = 0
) -> ProducerPlan | None:
    """Check the batches of idempotent and transactional producers against what these wrote before; None if none is."""
    batches = plan.batches
    if len(batches) == 1:
        only = batches[0]
        if only.producer_id < 0:
            return None
        if origin is Origin.CLIENT and isinstance(only, RecordBatch):
            state = states.producers.get(only.producer_id)
            if state is not None and state.goes_on_with(only) and only.producer_id not in states.verifications:
                return ProducerPlan({}, [], in_sequence=(state, only))
    appends: dict[ProducerId, ProducerAppend] = {}
    ended: list[EndedTransaction] = []
    position = segment.size
    for batch in batches:
        if batch.producer_id >= 0 and isinstance(batch, RecordBatch):
            producer_id = batch.producer_id
            if origin is Origin.CLIENT and (known := states.producers.get(producer_id)):
                duplicate = known.duplicate_of(batch)
                if duplicate is not None:
                    return ProducerPlan({}, [], duplicate)
            append = appends.get(producer_id)
            if append is None:
                append = appends[producer_id] = states.prepare(producer_id, origin)
            first = LogPosition(batch.base_offset, segment.base_offset, position) if batch.is_transactional else None
            over = append.add(batch, first, transaction_version)
            if over is not None:
                ended.append(over)
            if states.verifications and batch.is_transactional:
                states.verified(batch)
        position += batch.size
    return ProducerPlan(appends, ended) if appends else None
