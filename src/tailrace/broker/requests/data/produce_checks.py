"""Checks of the records of a Produce request, and their costs."""

from __future__ import annotations

from copy import copy
from typing import Final

from tailrace.model.errors import KafkaError
from tailrace.model.ids import TopicPartition
from tailrace.model.topic_config import TopicConfig
from tailrace.records.batch import Buffer
from tailrace.records.checks.checked_records import CheckedRecords, walk_cost
from tailrace.records.checks.produce_request import check_produce_request
from tailrace.records.checks.record_rules import RECORD_ERRORS_MAX
from tailrace.records.checks.validation import check_produced
from tailrace.replication.produce import ProducePart

_FORMAT_2_FROM: Final = 3


def check_records(records: Buffer, key: TopicPartition, config: TopicConfig, now_ms: int) -> CheckedRecords:
    """Check a partition's records, on any thread."""
    try:
        return check_produced(records, config=config, now_ms=now_ms, partition=key)
    except KafkaError as error:
        return CheckedRecords(len(records), None, refusal=copy(error))


def cost_of(records: Buffer | CheckedRecords | None) -> int:
    """Return the cost of reading records. Already checked records cost nothing."""
    return 0 if records is None or isinstance(records, CheckedRecords) else walk_cost(records)


def limit_record_errors(parts: list[ProducePart]) -> None:
    """Limit the record errors in a response to RECORD_ERRORS_MAX."""
    room = RECORD_ERRORS_MAX
    for part in parts:
        if part.record_errors:
            room -= part.limit_record_errors(room)


def request_error(records: Buffer | CheckedRecords, version: int) -> KafkaError | None:
    """Return the error if a request version may not contain these records. Already checked records have no error."""
    if version < _FORMAT_2_FROM or isinstance(records, CheckedRecords):
        return None
    try:
        check_produce_request(records, version)
    except KafkaError as refusal:
        return refusal
    return None
