"""append_produced: places and writes a partition's records, like a Produce request for one partition."""

from __future__ import annotations

from tailrace.model.ids import TopicPartition
from tailrace.records.batch import Buffer
from tailrace.records.checks.checked_records import CheckedRecords
from tailrace.records.checks.validation import Origin
from tailrace.replication.hosted_partitions import HostedPartitions
from tailrace.replication.produce import ProducePart


def append_produced(
    partitions: HostedPartitions,
    key: TopicPartition,
    records: Buffer | CheckedRecords,
    *,
    required_acks: int,
    now_ms: int,
    origin: Origin = Origin.CLIENT,
    transaction_version: int = 0,
) -> ProducePart:
    """Place a partition's records and write them."""
    part = ProducePart(key)
    failure = part.place(partitions, records, required_acks, now_ms, origin, transaction_version)
    if part.partition is not None and failure is None and part.is_appended:
        try:
            part.partition.write_placed(now_ms)
        except OSError as error:
            failure = error
    if failure is not None and part.partition is not None:
        partitions.failed(part.partition, failure)
    if not part.error:
        part.count(partitions)
    return part
