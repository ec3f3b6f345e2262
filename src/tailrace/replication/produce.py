"""Produce, partition by partition: place records, write them, and fill in that partition's part of the response.

The content of a response depends on the refusal, as in Kafka. Records that were refused one by one are listed with a
message and the log's start. Other refusals have no message. Those that are not about the log's content (not led here,
too large, corrupt, disk failed) leave out the log start as well.
"""

from __future__ import annotations

from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import Offset, TopicPartition
from tailrace.protocol.flat.produce import ProducedPartition
from tailrace.records.batch import Buffer
from tailrace.records.checks.checked_records import CheckedRecords
from tailrace.records.checks.record_rules import RecordsRefused
from tailrace.records.checks.validation import Origin
from tailrace.replication.hosted_partitions import HostedPartitions
from tailrace.replication.partition import Partition
from tailrace.replication.topic_traffic import TopicTraffic

_ERRORS_WITHOUT_LOG_START = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)


class ProducePart(ProducedPartition):
    """The part of a Produce request about one partition: its response, and the offset that all replicas have to
    reach."""

    __slots__ = ("_size", "key", "partition", "required_offset")

    def __init__(self, key: TopicPartition) -> None:
        super().__init__(key.partition)
        self.key = key
        self.partition: Partition | None = None
        self.required_offset: Offset = 0
        self._size = 0

    @property
    def is_appended(self) -> bool:
        """True if the part is placed or written."""
        return not self.error

    def refuse(self, code: ErrorCode, message: str | None = None) -> None:
        self.error = code
        self.message = message

    def limit_record_errors(self, errors_max: int) -> int:
        """Keep only the first errors of single records; return their number."""
        self.record_errors = self.record_errors[:errors_max]
        return len(self.record_errors)

    def place(
        self,
        partitions: HostedPartitions,
        records: Buffer | CheckedRecords,
        required_acks: int,
        now_ms: int,
        origin: Origin = Origin.CLIENT,
        transaction_version: int = 0,
    ) -> OSError | None:
        """Place records. Return the error of a failed disk; any other refusal is noted in the part."""
        failure = None
        self._size = records.size if isinstance(records, CheckedRecords) else len(records)
        try:
            self.partition = partition = partitions.find(self.key)
            partition.traffic.produce_requests += 1
            result = partition.place(records, required_acks, now_ms, origin, transaction_version)
        except RecordsRefused as error:
            self.refuse(error.code, str(error))
            self.record_errors = error.record_errors
        except KafkaError as error:
            self.refuse(error.code)
        except OSError as error:
            self.refuse(ErrorCode.KAFKA_STORAGE_ERROR)
            failure = error
        else:
            self.first_offset, last_offset, self.append_time_ms, self.log_start, _ = result
            self.required_offset = last_offset + 1
            return None
        self._count_refusal()
        return failure

    def _count_refusal(self) -> None:
        partition = self.partition
        if partition is None:
            return
        if self.error not in _ERRORS_WITHOUT_LOG_START:
            partition.traffic.failed_produce_requests += 1
            if partition.is_leader:
                self.log_start = partition.log.log_start_offset
        elif self.error == ErrorCode.MESSAGE_TOO_LARGE:
            partition.traffic.bytes_rejected += self._size

    def count(self, partitions: HostedPartitions) -> bool:
        """Count the records of a written part. If it was not written, or its partition is offline, refuse the part and
        return False."""
        partition = self.partition
        if partition is None:
            return True
        if self.required_offset > partition.log.marks.log_end.offset or partitions.get(self.key) is not partition:
            self.refuse(ErrorCode.KAFKA_STORAGE_ERROR)
            self.first_offset = self.append_time_ms = self.log_start = -1
            return False
        traffic: TopicTraffic = partition.traffic
        traffic.bytes_in += self._size
        if self.first_offset >= 0:
            traffic.messages_in += self.required_offset - self.first_offset
        return True
