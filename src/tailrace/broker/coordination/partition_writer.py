"""PartitionWriter: reads and appends records of a coordinator's topic, in partitions that are led here."""

from __future__ import annotations

from collections.abc import Callable

from tailrace.log.watermarks import Isolation
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import Offset, TopicPartition
from tailrace.records.checks.validation import Origin
from tailrace.replication.hosted_partitions import HostedPartitions
from tailrace.replication.partition import ALL_ACKS, Partition


class PartitionWriter:
    def __init__(self, partitions: HostedPartitions, appended: Callable[[TopicPartition, int], None]) -> None:
        """`appended(partition, now_ms)` is called after each append, to wake requests that wait for one."""
        self._partitions = partitions
        self._appended = appended

    def _led(self, key: TopicPartition) -> Partition:
        partition = self._partitions.find(key)
        if not partition.is_leader:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"this broker does not lead {key}")
        return partition

    def bounds(self, key: TopicPartition) -> tuple[Offset, Offset]:
        log = self._led(key).log
        return log.log_start_offset, log.log_end_offset

    def committed_bounds(self, key: TopicPartition) -> tuple[Offset, Offset]:
        """Return the start of a partition and its high watermark."""
        log = self._led(key).log
        return log.log_start_offset, log.high_watermark

    def read(self, key: TopicPartition, offset: Offset, max_bytes: int) -> bytes:
        found = self._led(key).log.read(offset, max_bytes, Isolation.LOG_END, at_least_one=True)
        return b"" if found.slice is None else found.slice.read()

    def batch_bytes_max(self, key: TopicPartition) -> int:
        return self._led(key).log.config.max_message_bytes

    def append(self, key: TopicPartition, batch: bytes, now_ms: int, transaction_version: int = 0) -> Offset:
        partition = self._led(key)
        try:
            done = partition.append_as_leader(
                batch,
                required_acks=ALL_ACKS,
                now_ms=now_ms,
                origin=Origin.COORDINATOR,
                transaction_version=transaction_version,
            )
        except OSError as error:
            self._partitions.failed(partition, error)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
        self._appended(key, now_ms)
        return done.result.last_offset + 1

    def commit_error(self, key: TopicPartition, end: Offset) -> ErrorCode | None:
        partition = self._partitions.get(key)
        return self._partitions.error_of(key) if partition is None else partition.acks_error(end)
