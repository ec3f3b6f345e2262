"""CoordinatorLog: what a coordinator needs of the partitions of its topic; `broker/coordination/partition_writer.py` is
one."""

from __future__ import annotations

from typing import Protocol

from tailrace.model.errors import ErrorCode
from tailrace.model.ids import Offset, TopicPartition


class CoordinatorLog(Protocol):
    def bounds(self, key: TopicPartition) -> tuple[Offset, Offset]:
        """Log start and log end; a KafkaError if the partition is not led here."""

    def read(self, key: TopicPartition, offset: Offset, max_bytes: int) -> bytes:
        """Bytes from the batch on that holds an offset, at least one whole batch; the last one may be cut short.
        Nothing if all that follows was compacted away."""

    def batch_bytes_max(self, key: TopicPartition) -> int:
        """How large a batch may be."""

    def append(self, key: TopicPartition, batch: bytes, now_ms: int, transaction_version: int = 0) -> Offset:
        """Append a batch; the log end after it. A KafkaError if it was not appended."""

    def commit_error(self, key: TopicPartition, end: Offset) -> ErrorCode | None:
        """NONE once everything below an offset is committed, an error if it never will be; None: wait."""
