"""acknowledge and release: a member reports on records that it has acquired, or gives them back because it leaves.

A request is carried out completely or not at all. If a part of it is invalid, changes by earlier parts are undone. Only
the locks that they renewed stay renewed, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum
from itertools import groupby
from typing import NamedTuple

from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.shares.delivery_settings import DeliverySettings
from tailrace.shares.in_flight import NOBODY, InFlightBatch, RecordRun, RecordState
from tailrace.shares.share_partition import Change, SharePartition


class AcknowledgeType(IntEnum):
    GAP = 0  # there is no record
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


_STATES: dict[int, RecordState] = {
    AcknowledgeType.GAP: RecordState.ARCHIVED,
    AcknowledgeType.ACCEPT: RecordState.ACKNOWLEDGED,
    AcknowledgeType.RELEASE: RecordState.AVAILABLE,
    AcknowledgeType.REJECT: RecordState.ARCHIVED,
}


class Acknowledgement(NamedTuple):
    """The acknowledgement of consecutive offsets: one type for all of them, or one for each."""

    first_offset: int
    last_offset: int
    types: Sequence[int]


def acknowledge(
    partition: SharePartition,
    member_id: str,
    acknowledgements: Sequence[Acknowledgement],
    settings: DeliverySettings,
    now_ms: int,
) -> Change:
    """Apply acknowledgements. Return a change to persist and complete, or None; after a KafkaError nothing is
    changed."""
    doing = _Acknowledging(partition, member_id, settings, now_ms)
    try:
        for one in acknowledgements:
            doing.acknowledge(one)
    except KafkaError:
        partition.complete(doing.change, is_committed=False, now_ms=now_ms)
        raise
    return doing.change


def release(partition: SharePartition, member_id: str, settings: DeliverySettings) -> Change:
    """Give back the records that a member has acquired."""
    change = Change()
    for batch in partition.batches:
        for run in tuple(batch.runs):
            if run.member_id != member_id or run.state is not RecordState.ACQUIRED:
                continue
            for piece in partition.cut_at_start(batch, run):
                _begin_run(partition, change, batch, piece, partition.state_of_given_up(piece), settings)
    return change


def _begin_run(
    partition: SharePartition,
    change: Change,
    batch: InFlightBatch,
    run: RecordRun,
    state: RecordState,
    settings: DeliverySettings,
) -> None:
    run.begin_giving_up(state, settings.delivery_count_limit)
    change.add(batch, run)
    if run.is_terminal:
        partition.note_done(run)


class _Acknowledging:
    def __init__(self, partition: SharePartition, member_id: str, settings: DeliverySettings, now_ms: int) -> None:
        self.partition = partition
        self.member_id = member_id
        self.settings = settings
        self.now_ms = now_ms
        self.change = Change()

    def acknowledge(self, one: Acknowledgement) -> None:
        if one.last_offset < self.partition.start_offset:
            return  # it is archived already
        for batch in self._find(one):
            if batch.last_offset >= self.partition.start_offset:
                self._acknowledge_batch(batch, one)

    def _find(self, one: Acknowledgement) -> list[InFlightBatch]:
        partition = self.partition
        slot = partition.floor_slot(one.first_offset)
        if slot < 0 and partition.begins_inside(one.first_offset, one.last_offset):
            slot = partition.floor_slot(partition.start_offset)
        if slot < 0:
            raise _invalid_state("Batch record not found. The request batch offsets are not found in the cache.")
        found = partition.batches_from(slot, one.last_offset)
        if found[-1].last_offset < one.first_offset:
            raise _invalid_request("Batch record not found. The first offset in request is past acquired records.")
        if one.last_offset > found[-1].last_offset:
            raise _invalid_request("Batch record not found. The last offset in request is past acquired records.")
        return found

    def _acknowledge_batch(self, batch: InFlightBatch, one: Acknowledgement) -> None:
        partition = self.partition
        if not batch.by_offset:
            self._check_whole(batch.whole)
            in_part = (
                len(one.types) > 1
                or not batch.is_within(one.first_offset, one.last_offset)
                or partition.begins_inside(batch.first_offset, batch.last_offset)
            )
            if not in_part:
                self._apply(batch, batch.whole, one.types[0])
                return
            batch.differ()
        first = max(one.first_offset, partition.start_offset)
        for run in batch.between(first, one.last_offset):
            if run.state is not RecordState.ACQUIRED:
                raise _invalid_state("The offset cannot be acknowledged. The offset is not acquired.")
            if run.member_id != self.member_id:
                raise _invalid_state("Member is not the owner of offset")
            for piece, kind in _by_type(batch, run, one):
                self._apply(batch, piece, kind)

    def _check_whole(self, run: RecordRun) -> None:
        if run.member_id == NOBODY:
            raise _invalid_state("The batch cannot be acknowledged. The batch is not in the acquired state.")
        if run.member_id != self.member_id:
            raise _invalid_state("Member is not the owner of batch record")
        assert run.state is RecordState.ACQUIRED, f"{run} has an owner but is not acquired"

    def _apply(self, batch: InFlightBatch, run: RecordRun, kind: int) -> None:
        if kind == AcknowledgeType.RENEW:
            if not self.settings.renew_acknowledge_enable:
                raise _invalid_state("Renewing acquisition locks is not enabled for the group.")
            run.renew(self.partition.lock_until(self.now_ms + self.settings.record_lock_duration_ms))
            return
        _begin_run(self.partition, self.change, batch, run, _STATES[kind], self.settings)


def _by_type(batch: InFlightBatch, run: RecordRun, one: Acknowledgement) -> Iterator[tuple[RecordRun, int]]:
    """Yield the pieces of a run that have one acknowledgement type each."""
    if len(one.types) == 1:
        yield run, one.types[0]
        return
    types = one.types[run.first_offset - one.first_offset : run.last_offset - one.first_offset + 1]
    offset = run.first_offset
    for kind, alike in groupby(types):
        piece = batch.run_at(offset)
        assert piece is not None
        offset += sum(1 for _ in alike)
        batch.shorten(piece, offset - 1)
        yield piece, kind


def _invalid_state(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD_STATE, message)


def _invalid_request(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)
