"""The rules for each record of an append: a key on a compacted topic, and a timestamp within the topic's bounds.

One record that violates a rule is enough to refuse the batch. The response names these records by their index, up to
`RECORD_ERRORS_MAX`. Kafka names all of them. A batch of 1 MB can have 140,000, though, and their messages would take 20
MB.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import NO_TIMESTAMP, TopicPartition
from tailrace.model.topic_config import LONG_MAX, TopicConfig
from tailrace.records.checks.check_kernels import timestamp_bounds
from tailrace.records.record import wrapped

RECORD_ERRORS_MAX: Final = 1_000
_LONG_MIN: Final = -LONG_MAX - 1


class RecordsRefused(KafkaError):
    """A batch refused because of single records. Each is named by its index in the batch."""

    def __init__(self, code: ErrorCode, message: str, record_errors: list[tuple[int, str]]) -> None:
        super().__init__(code, message)
        self.record_errors = record_errors


class RecordFacts(NamedTuple):
    """The facts about a record that the rules check."""

    position: int  # the record's index in the batch
    offset: int
    timestamp: int
    has_key: bool


class RecordRules:
    """A topic's rules at one point in time."""

    def __init__(self, config: TopicConfig, now_ms: int, partition: TopicPartition | None) -> None:
        self.needs_keys = config.is_compacted
        self.broker_sets_time = config.message_timestamp_type == "LogAppendTime"
        self.before_max_ms = config.message_timestamp_before_max_ms
        self.after_max_ms = config.message_timestamp_after_max_ms
        self.now_ms = now_ms
        self.partition = partition

    def timestamp_bounds(self, append_time: int | None) -> tuple[int, int]:
        """Return the earliest and the latest timestamp that are certainly accepted. If the latest is less than the
        earliest, every timestamp has to be checked.

        `append_time` is the batch's log append time, if it has one. It applies to all its records.
        """
        everything, nothing = (_LONG_MIN, LONG_MAX), (LONG_MAX, _LONG_MIN)
        if self.broker_sets_time:
            return everything if append_time is None else nothing
        earliest, latest = timestamp_bounds(self.now_ms, self.before_max_ms, self.after_max_ms)
        if append_time is None:
            return earliest, latest
        return everything if append_time != NO_TIMESTAMP and earliest <= append_time <= latest else nothing

    def check(self, records: Iterable[RecordFacts], batch_has_append_time: bool) -> None:
        """Raise RecordsRefused if a record violates a rule."""
        errors: list[tuple[int, str]] = []
        code = ErrorCode.INVALID_RECORD
        for record in records:
            if self.needs_keys and not record.has_key:
                errors.append((record.position, f"a record of compacted {self.partition} needs a key"))
            elif (why := self._timestamp_error(record, batch_has_append_time)) is not None:
                errors.append((record.position, why))
                code = ErrorCode.INVALID_TIMESTAMP
            if len(errors) == RECORD_ERRORS_MAX:
                break
        if errors:
            count = f"{len(errors)} or more" if len(errors) == RECORD_ERRORS_MAX else f"{len(errors)}"
            first = "; ".join(why for _, why in errors[:3])
            raise RecordsRefused(code, f"{count} records refused in {self.partition}: {first}", errors)

    def _timestamp_error(self, record: RecordFacts, batch_has_append_time: bool) -> str | None:
        if not self.broker_sets_time and record.timestamp != NO_TIMESTAMP:
            age = wrapped(self.now_ms - record.timestamp)
            if age > self.before_max_ms or wrapped(-age) > self.after_max_ms:
                earliest, latest = wrapped(self.now_ms - self.before_max_ms), wrapped(self.now_ms + self.after_max_ms)
                return (
                    f"timestamp {record.timestamp} of the record at offset {record.offset} is out of range: "
                    f"it must be within [{earliest}, {latest}]"
                )
        elif batch_has_append_time:
            return "a producer cannot set the timestamp type to LogAppendTime"
        return None
