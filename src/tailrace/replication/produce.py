"""Produce, partition by partition: append, and fill in that partition's part of the answer.

What an answer tells depends on the refusal, as in Kafka: records that were refused one by one are listed with a message
and the log's start; other refusals have no message, and those that say nothing about the log (not here, too large,
corrupt, disk failed) leave out its start as well.
"""

from __future__ import annotations

import logging

from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import Offset, TopicPartition
from tailrace.protocol.messages import ProduceResponse
from tailrace.records.batch import Buffer
from tailrace.records.checked_records import CheckedRecords
from tailrace.records.record_rules import RecordsRefused
from tailrace.records.validation import Origin
from tailrace.replication.hosted_partitions import HostedPartitions
from tailrace.replication.topic_traffic import TopicTraffic

_log = logging.getLogger(__name__)

_SAYS_NOTHING_OF_THE_LOG = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)


class ProducedPartition:
    """One partition's part of a Produce request: its answer, and from which offset on all replicas have it."""

    __slots__ = ("high_watermark_moved", "key", "required_offset", "response")

    def __init__(self, key: TopicPartition) -> None:
        self.key = key
        self.response = ProduceResponse.PartitionProduceResponse(index=key.partition, base_offset=-1)
        self.required_offset: Offset = 0
        self.high_watermark_moved = False

    @property
    def is_appended(self) -> bool:
        return self.response.error_code == ErrorCode.NONE

    def refuse(self, code: ErrorCode, message: str | None = None) -> None:
        self.response.error_code = code
        self.response.error_message = message


def append_produced(
    partitions: HostedPartitions,
    key: TopicPartition,
    records: Buffer | CheckedRecords,
    *,
    required_acks: int,
    now_ms: int,
    origin: Origin = Origin.CLIENT,
    transaction_version: int = 0,
) -> ProducedPartition:
    """Append a partition's records; what is wrong with them, or with the partition, is in its response."""
    part = ProducedPartition(key)
    partition = None
    size = records.size if isinstance(records, CheckedRecords) else len(records)
    try:
        partition = partitions.find(key)
        partition.traffic.produce_requests += 1
        result, part.high_watermark_moved = partition.append_as_leader(
            records,
            required_acks=required_acks,
            now_ms=now_ms,
            origin=origin,
            transaction_version=transaction_version,
        )
    except RecordsRefused as error:
        part.refuse(error.code, str(error))
        part.response.record_errors = [
            ProduceResponse.BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=message)
            for index, message in error.record_errors
        ]
    except KafkaError as error:
        part.refuse(error.code)
    except OSError as error:
        assert partition is not None
        partitions.failed(partition, error)
        part.refuse(ErrorCode.KAFKA_STORAGE_ERROR)
    else:
        response = part.response
        response.base_offset = result.first_offset
        response.log_append_time_ms = result.log_append_time_ms
        response.log_start_offset = result.log_start_offset
        part.required_offset = result.last_offset + 1
        traffic = partition.traffic
        traffic.bytes_in += size
        if result.first_offset >= 0:
            traffic.messages_in += result.last_offset - result.first_offset + 1
        return part
    if partition is not None:
        _count_failure(partition.traffic, part.response.error_code, size)
    if part.response.error_code not in _SAYS_NOTHING_OF_THE_LOG and partition is not None and partition.is_leader:
        part.response.log_start_offset = partition.log.log_start_offset
    return part


def _count_failure(traffic: TopicTraffic, code: int, size: int) -> None:
    """As in Kafka, failures that say nothing of the log are no failures of the broker."""
    if code not in _SAYS_NOTHING_OF_THE_LOG:
        traffic.failed_produce_requests += 1
    elif code == ErrorCode.MESSAGE_TOO_LARGE:
        traffic.bytes_rejected += size
