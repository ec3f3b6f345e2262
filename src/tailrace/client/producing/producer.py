"""BatchProducer: writes whole record batches, with or without idempotence.

A batch is sent unchanged, except that an idempotent producer sets producer id, epoch and sequence in a copy. The broker
then recognizes a batch that is sent again after a lost response, so each batch is written once. Without idempotence it
may be written twice. With acks=0 there is no response.

Each partition has at most one batch in flight, so its batches keep their order. If a batch cannot be delivered, it is
usually unknown if it was written. The producer then continues with a new producer id.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntEnum
from struct import Struct
from typing import Final, NamedTuple

from tailrace.client.cluster.cluster_client import ClusterClient, LedPartition, PartitionAnswer
from tailrace.client.errors import ClientError, Refused
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import NO_TIMESTAMP, Offset, TopicPartition
from tailrace.protocol.codegen.field_versions import PRODUCE_TOPIC_IDS
from tailrace.protocol.messages import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    ProduceRequest,
    ProduceResponse,
)
from tailrace.records.batch import (
    CODEC_MASK,
    CRC_POSITION,
    HEADER_SIZE,
    PRODUCER_ID_POSITION,
    Buffer,
    Codec,
    RecordBatch,
    increment_sequence,
)

FIRST_VERSION_WITH_BATCHES: Final = 3
FIRST_VERSION_WITH_ZSTD: Final = 7
LAST_VERSION_BY_NAME: Final = PRODUCE_TOPIC_IDS - 1
NO_OFFSET: Final = -1
ANSWER_MARGIN_MS: Final = 1_000  # added to the timeout, so that the broker's own timeout error arrives
_INT_MAX: Final = 2**31 - 1
_PRODUCER: Final = Struct(">qhi")  # id, epoch, base sequence
_CRC: Final = Struct(">I")


class Acks(IntEnum):
    NONE = 0
    LEADER = 1
    ALL = -1


class Produced(NamedTuple):
    """A written batch. base_offset is -1 if the broker does not report it (acks=0, old duplicates)."""

    partition: TopicPartition
    base_offset: Offset
    log_append_time_ms: int = NO_TIMESTAMP
    log_start_offset: Offset = NO_OFFSET


class NotDelivered(ClientError):
    """Some batches were refused or lost: `errors` has those, `delivered` the written ones."""

    def __init__(
        self, errors: Mapping[TopicPartition, ClientError], delivered: Mapping[TopicPartition, Produced]
    ) -> None:
        super().__init__("; ".join(str(error) for error in dict.fromkeys(errors.values())))
        self.errors = dict(errors)
        self.delivered = dict(delivered)


class BatchProducer:
    def __init__(self, cluster: ClusterClient, *, acks: Acks = Acks.ALL, idempotent: bool | None = None) -> None:
        """Create a producer. With acks=ALL it is idempotent by default."""
        if idempotent and acks is not Acks.ALL:
            raise ValueError(f"an idempotent producer needs acks=ALL, not {acks.name}")
        self.cluster = cluster
        self.acks = acks
        self.is_idempotent = acks is Acks.ALL if idempotent is None else idempotent
        self._identity: tuple[int, int] | None = None  # producer id, epoch
        self._sequences: dict[TopicPartition, int] = {}

    def send(self, batches: Mapping[TopicPartition, Buffer]) -> dict[TopicPartition, Produced]:
        """Write one batch to each of these partitions. Raise NotDelivered if one of them fails.

        Another ClientError is raised if the metadata cannot be queried between two attempts. Batches may be written
        then.
        """
        headers = {partition: _header_of(data, partition) for partition, data in batches.items()}
        if self.is_idempotent:
            batches = {partition: self._stamped(partition, data) for partition, data in batches.items()}
        version_min = FIRST_VERSION_WITH_BATCHES
        if any(header.attributes & CODEC_MASK == Codec.ZSTD for header in headers.values()):
            version_min = FIRST_VERSION_WITH_ZSTD

        def build(leaders: list[LedPartition]) -> ProduceRequest:
            return ProduceRequest(
                acks=self.acks,
                timeout_ms=self.cluster.settings.request_timeout_ms,
                topic_data=produce_topics(leaders, batches),
            )

        if self.acks is Acks.NONE:
            self.cluster.send_to_leaders(
                batches, build, version_min=version_min, version_max_without_ids=LAST_VERSION_BY_NAME
            )
            return {partition: Produced(partition, NO_OFFSET) for partition in batches}
        try:
            answers = self.cluster.ask_leaders(
                batches,
                build,
                produced_answers,
                version_min=version_min,
                version_max_without_ids=LAST_VERSION_BY_NAME,
                wait_ms=ANSWER_MARGIN_MS,
                errors_are_values=True,
            )
        except BaseException:  # such as an error of the metadata between two attempts
            self._forget_identity()
            raise
        delivered = {partition: answer for partition, answer in answers.items() if isinstance(answer, Produced)}
        if len(delivered) < len(answers):
            self._forget_identity()
            errors = {partition: answer for partition, answer in answers.items() if isinstance(answer, ClientError)}
            raise NotDelivered(errors, delivered)
        if self.is_idempotent:
            for partition, header in headers.items():
                sequence = self._sequences.get(partition, 0)
                self._sequences[partition] = increment_sequence(sequence, header.last_offset_delta + 1)
        return delivered

    def _forget_identity(self) -> None:
        """Continue with a new producer id, because it is unknown which batches were written."""
        self._identity = None
        self._sequences.clear()

    def _stamped(self, partition: TopicPartition, data: Buffer) -> bytearray:
        """Return a copy of the batch with producer id, epoch and sequence."""
        if self._identity is None:
            self._identity = new_producer_id(self.cluster)
        copy = bytearray(data)
        _PRODUCER.pack_into(copy, PRODUCER_ID_POSITION, *self._identity, self._sequences.get(partition, 0))
        _CRC.pack_into(copy, CRC_POSITION, RecordBatch(memoryview(copy)).computed_crc())
        return copy


def new_producer_id(cluster: ClusterClient) -> tuple[int, int]:
    """Return a new producer id and its epoch, for idempotence without a transaction."""

    def check(answer: InitProducerIdResponse) -> None:
        if answer.error_code:
            is_forbidden = answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            reason = "the user needs the right Write on a topic" if is_forbidden else None
            raise Refused("an idempotent producer", answer.error_code, reason)

    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=_INT_MAX)
    answer: InitProducerIdResponse = cluster.ask_any(request, check=check)
    return answer.producer_id, answer.producer_epoch


def _header_of(data: Buffer, partition: TopicPartition) -> RecordBatch:
    if len(data) < HEADER_SIZE:
        raise ValueError(f"{len(data)} bytes for {partition} are not a record batch: a header has {HEADER_SIZE} bytes")
    batch = RecordBatch(memoryview(data))
    if batch.magic != 2 or batch.size != len(data):
        raise ValueError(f"the bytes for {partition} are not exactly one record batch of format 2")
    return batch


def produce_topics(
    leaders: list[LedPartition], batches: Mapping[TopicPartition, Buffer]
) -> list[ProduceRequest.TopicProduceData]:
    topics: dict[str, ProduceRequest.TopicProduceData] = {}
    for partition, topic_id, _ in leaders:
        topic = topics.setdefault(
            partition.topic, ProduceRequest.TopicProduceData(name=partition.topic, topic_id=topic_id)
        )
        topic.partition_data.append(
            ProduceRequest.PartitionProduceData(index=partition.partition, records=batches[partition])
        )
    return list(topics.values())


def produced_answers(answer: ProduceResponse, leaders: list[LedPartition]) -> Iterator[PartitionAnswer]:
    names = {leader.topic_id: leader.partition.topic for leader in leaders}
    for topic in answer.responses:
        name = topic.name or names.get(topic.topic_id, "")
        for data in topic.partition_responses:
            partition = TopicPartition(name, data.index)
            if data.error_code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
                # The batch was written before. The broker remembers the offsets of the last five batches only.
                yield PartitionAnswer(partition, Produced(partition, NO_OFFSET))
            elif data.error_code:
                yield PartitionAnswer(partition, None, Refused(str(partition), data.error_code, _refusal_text(data)))
            else:
                produced = Produced(partition, data.base_offset, data.log_append_time_ms, data.log_start_offset)
                yield PartitionAnswer(partition, produced)


def _refusal_text(data: ProduceResponse.PartitionProduceResponse) -> str | None:
    """Return the reason why a batch was refused: that of its first invalid record, if the broker reports one."""
    for record in data.record_errors:
        if record.batch_index_error_message:
            return f"record {record.batch_index} of the batch: {record.batch_index_error_message}"
    return data.error_message
