"""What each record of an append must satisfy: a key on a compacted topic, a timestamp within the topic's bounds.

One record that does not is enough to refuse the batch, but all of them are named in the answer, by their index.
"""

from __future__ import annotations

from typing import NamedTuple

from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import NO_TIMESTAMP, TopicPartition
from tailrace.model.topic_config import TopicConfig
from tailrace.records.record import wrapped


class RecordsRefused(KafkaError):
    """A batch refused because of single records, each named by its index in the batch."""

    def __init__(self, code: ErrorCode, message: str, record_errors: list[tuple[int, str]]) -> None:
        super().__init__(code, message)
        self.record_errors = record_errors


class RecordFacts(NamedTuple):
    """All that the rules look at."""

    offset: int
    timestamp: int
    has_key: bool


class RecordRules:
    """A topic's rules at one moment."""

    def __init__(self, config: TopicConfig, now_ms: int, partition: TopicPartition | None) -> None:
        self.needs_keys = config.is_compacted
        self.broker_sets_time = config.message_timestamp_type == "LogAppendTime"
        self.before_max_ms = config.message_timestamp_before_max_ms
        self.after_max_ms = config.message_timestamp_after_max_ms
        self.now_ms = now_ms
        self.partition = partition

    def might_refuse(self, missing_keys: int, smallest: int, largest: int, append_time: int | None) -> bool:
        """Whether a look at single records is needed, from what is known of all of them together.

        `smallest` and `largest` are timestamps, without those of -1; append_time is that of a batch that claims one.
        """
        if missing_keys and self.needs_keys:
            return True
        if self.broker_sets_time:
            return append_time is not None
        return (
            smallest < self.now_ms - self.before_max_ms
            or largest > self.now_ms + self.after_max_ms
            or append_time == NO_TIMESTAMP
        )

    def check(self, records: list[RecordFacts], batch_has_append_time: bool) -> None:
        """Raise RecordsRefused if any of the records has to be."""
        errors: list[tuple[int, str]] = []
        code = ErrorCode.INVALID_RECORD
        for index, record in enumerate(records):
            if self.needs_keys and not record.has_key:
                errors.append((index, f"a record of compacted {self.partition} needs a key"))
            elif (why := self._timestamp_error(record, batch_has_append_time)) is not None:
                errors.append((index, why))
                code = ErrorCode.INVALID_TIMESTAMP
        if errors:
            first = "; ".join(why for _, why in errors[:3])
            raise RecordsRefused(code, f"{len(errors)} records refused in {self.partition}: {first}", errors)

    def _timestamp_error(self, record: RecordFacts, batch_has_append_time: bool) -> str | None:
        if not self.broker_sets_time and record.timestamp != NO_TIMESTAMP:
            age = wrapped(self.now_ms - record.timestamp)
            if age > self.before_max_ms or wrapped(-age) > self.after_max_ms:
                earliest, latest = wrapped(self.now_ms - self.before_max_ms), wrapped(self.now_ms + self.after_max_ms)
                return (
                    f"timestamp {record.timestamp} of the record at offset {record.offset} is out of range: "
                    f"it should be within [{earliest}, {latest}]"
                )
        elif batch_has_append_time:
            return "a producer cannot set the timestamp type to LogAppendTime"
        return None
