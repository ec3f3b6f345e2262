"""CoordinatorLog: the log operations that a coordinator needs; implemented by
`broker/coordination/partition_writer.py`."""

from __future__ import annotations

from typing import Protocol

from tailrace.model.errors import ErrorCode
from tailrace.model.ids import Offset, TopicPartition


class CoordinatorLog(Protocol):
    def bounds(self, key: TopicPartition) -> tuple[Offset, Offset]:
        """Return log start and log end. Raise KafkaError if the partition is not led here."""

    def read(self, key: TopicPartition, offset: Offset, max_bytes: int) -> bytes:
        """Read bytes from the batch that contains an offset: at least one whole batch; the last one may be cut off.

        Return nothing if all later batches were compacted away.
        """

    def batch_bytes_max(self, key: TopicPartition) -> int:
        """Return the maximum size of a batch."""

    def append(self, key: TopicPartition, batch: bytes, now_ms: int, transaction_version: int = 0) -> Offset:
        """Append a batch; return the log end after it. A KafkaError if it was not appended."""

    def commit_error(self, key: TopicPartition, end: Offset) -> ErrorCode | None:
        """Return NONE if everything below an offset is committed, an error if it never will be, or None to wait."""
