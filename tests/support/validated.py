"""Validated records: produced records after `check_produced` and `place`, without a log."""

from __future__ import annotations

from typing import NamedTuple

from tailrace.model.ids import NO_TIMESTAMP, TopicPartition
from tailrace.model.topic_config import TopicConfig
from tailrace.records.batch import Buffer, RecordBatch
from tailrace.records.checks.checked_records import CheckedRecords
from tailrace.records.checks.validation import Origin, check_given, check_produced, is_kept_as_sent


class ValidatedRecords(NamedTuple):
    """Batches with their offsets set; `data` spans them all."""

    data: Buffer
    batches: list[RecordBatch]
    first_offset: int
    last_offset: int
    max_timestamp: int
    log_append_time_ms: int = NO_TIMESTAMP
    records_converted: int = 0
    size_may_have_changed: bool = False


def validate_produced(
    data: Buffer,
    *,
    config: TopicConfig,
    base_offset: int,
    leader_epoch: int,
    now_ms: int,
    origin: Origin = Origin.CLIENT,
    partition: TopicPartition | None = None,
    thorough: bool = False,
) -> ValidatedRecords:
    """Check records as an append does and give them their offsets. `thorough` skips the check of the frequent case."""
    view = memoryview(data)
    if view.readonly:
        view = memoryview(bytearray(view))
    if origin in (Origin.RAFT_LEADER, Origin.REPLICATION):
        batches = check_given(
            view,
            config=config,
            base_offset=base_offset,
            leader_epoch=leader_epoch,
            origin=origin,
            partition=partition,
        )
        if not batches:
            return ValidatedRecords(b"", [], -1, -1, NO_TIMESTAMP)
        largest = max(batch.max_timestamp for batch in batches)
        size = sum(batch.size for batch in batches)
        return ValidatedRecords(view[:size], batches, batches[0].base_offset, batches[-1].last_offset, largest)
    if not thorough and is_kept_as_sent(view, config, now_ms):
        batch = RecordBatch(view)
        return placed(CheckedRecords(batch.size, batch, batch.max_timestamp), base_offset, leader_epoch)
    checked = check_produced(view, config=config, now_ms=now_ms, origin=origin, partition=partition)
    return placed(checked, base_offset, leader_epoch)


def placed(checked: CheckedRecords, base_offset: int, leader_epoch: int) -> ValidatedRecords:
    """Give checked records their offsets."""
    batch = checked.accepted()
    if batch is None:
        return ValidatedRecords(b"", [], -1, -1, NO_TIMESTAMP)
    batch.set_offset_and_epoch(base_offset + batch.record_count - 1 - batch.last_offset_delta, leader_epoch)
    return ValidatedRecords(
        batch.view,
        [batch],
        batch.base_offset,
        batch.last_offset,
        checked.max_timestamp,
        checked.log_append_time_ms,
        checked.records_converted,
        checked.size_may_have_changed,
    )
