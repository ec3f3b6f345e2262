from __future__ import annotations

from typing import Any

import pytest

from tailrace.client.errors import ClientError, UnsupportedByBroker
from tailrace.client.producing.producer import Acks, BatchProducer, NotDelivered, Produced
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicPartition
from tailrace.protocol.api_keys import ApiKey
from tailrace.protocol.codegen.schema import Versions
from tailrace.protocol.messages import InitProducerIdResponse, ProduceRequest, ProduceResponse
from tailrace.records.batch import Codec, RecordBatch
from tailrace.records.record import iter_records
from tests.support.batches import batch
from tests.unit.client.fakes import HANG_UP, SILENCE, FakeCluster

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


class Writing:
    """A cluster with two partitions on two brokers.

    `answers` are used in turn (an error code, HANG_UP or SILENCE); later requests succeed.
    """

    def __init__(self) -> None:
        self.fake = FakeCluster(brokers=2)
        self.fake.add_topic("t", 1, 2)
        self.fake.handle(ApiKey.PRODUCE, self.produce)
        self.fake.handle(ApiKey.INIT_PRODUCER_ID, self.init_producer_id)
        self.cluster = self.fake.client(total_timeout_ms=5000, request_timeout_ms=1000)
        self.answers: list[Any] = []
        self.next_producer_id = 70

    def init_producer_id(self, request: Any, version: int) -> InitProducerIdResponse:
        self.next_producer_id += 1
        return InitProducerIdResponse(producer_id=self.next_producer_id, producer_epoch=0)

    def produce(self, request: ProduceRequest, version: int) -> Any:
        answer = self.answers.pop(0) if self.answers else ErrorCode.NONE
        if request.acks == 0:
            return SILENCE
        if not isinstance(answer, int):
            return answer
        (topic,) = request.topic_data
        partitions = [
            ProduceResponse.PartitionProduceResponse(index=one.index, error_code=answer, base_offset=40 + one.index)
            for one in topic.partition_data
        ]
        topics = [
            ProduceResponse.TopicProduceResponse(
                name=topic.name, topic_id=topic.topic_id, partition_responses=partitions
            )
        ]
        return ProduceResponse(responses=topics)

    @property
    def sent(self) -> list[tuple[int, int, int, int]]:
        """Return partition, producer id, epoch and sequence of every received batch."""
        found = []
        for one in self.fake.asked:
            if one.api_key == ApiKey.PRODUCE:
                for data in one.message.topic_data[0].partition_data:
                    batch = RecordBatch(data.records)
                    batch.check()
                    found.append((data.index, batch.producer_id, batch.producer_epoch, batch.base_sequence))
        return found


def test_each_leader_gets_its_batch() -> None:
    writing = Writing()
    found = BatchProducer(writing.cluster).send({T0: batch(b"a"), T1: batch(b"b")})
    assert found == {T0: Produced(T0, 40), T1: Produced(T1, 41)}
    assert [(one.node_id, one.message.acks) for one in writing.fake.asked if one.api_key == ApiKey.PRODUCE] == [
        (1, -1),
        (2, -1),
    ]


def test_sequences_count_the_records_of_each_partition() -> None:
    writing = Writing()
    producer = BatchProducer(writing.cluster)
    for partitions in ([T0], [T0, T1], [T0, T1]):
        producer.send({partition: batch(b"a", b"b", b"c") for partition in partitions})
    assert writing.sent == [(0, 71, 0, 0), (0, 71, 0, 3), (1, 71, 0, 0), (0, 71, 0, 6), (1, 71, 0, 3)]


def test_the_batch_of_the_caller_is_not_modified() -> None:
    data = batch(b"a")
    before = bytes(data)
    writing = Writing()
    BatchProducer(writing.cluster).send({T0: data})
    assert data == before
    BatchProducer(writing.cluster).send({T0: memoryview(before)})
    assert [one.value for one in iter_records(RecordBatch(memoryview(before)))] == [b"a"]


@pytest.mark.parametrize("trouble", [HANG_UP, SILENCE, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND])
def test_a_batch_is_sent_again_unchanged_after_a_lost_response(trouble: Any) -> None:
    writing = Writing()
    producer = BatchProducer(writing.cluster)
    producer.send({T0: batch(b"a")})
    writing.answers = [trouble, trouble]
    assert producer.send({T0: batch(b"b")}) == {T0: Produced(T0, 40)}
    assert [sequence for _, _, _, sequence in writing.sent] == [0, 1, 1, 1]


def test_a_duplicate_without_offset_counts_as_delivered() -> None:
    writing = Writing()
    writing.answers = [HANG_UP, ErrorCode.DUPLICATE_SEQUENCE_NUMBER]
    assert BatchProducer(writing.cluster).send({T0: batch(b"a")}) == {T0: Produced(T0, -1)}


def test_a_failure_is_followed_by_a_new_producer_id() -> None:
    writing = Writing()
    producer = BatchProducer(writing.cluster)
    producer.send({T0: batch(b"a")})
    writing.answers = [ErrorCode.NONE, ErrorCode.MESSAGE_TOO_LARGE]
    with pytest.raises(NotDelivered, match=r"t-1: .*MESSAGE_TOO_LARGE") as raised:
        producer.send({T0: batch(b"b"), T1: batch(b"c")})
    assert raised.value.delivered == {T0: Produced(T0, 40)}
    assert list(raised.value.errors) == [T1]
    producer.send({T0: batch(b"d")})
    assert writing.sent[-1] == (0, 72, 0, 0)


def test_an_error_of_the_metadata_is_followed_by_a_new_producer_id() -> None:
    writing = Writing()
    producer = BatchProducer(writing.cluster)
    producer.send({T0: batch(b"a")})
    writing.answers = [ErrorCode.NOT_ENOUGH_REPLICAS]
    topic = writing.fake.topics["t"]
    topic.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED  # seen by the query between two attempts
    with pytest.raises(ClientError, match="TOPIC_AUTHORIZATION_FAILED"):
        producer.send({T0: batch(b"b")})
    topic.error_code = ErrorCode.NONE
    producer.send({T0: batch(b"c")})
    assert writing.sent[-1] == (0, 72, 0, 0)


def test_delivery_of_a_batch_times_out() -> None:
    writing = Writing()
    writing.answers = [ErrorCode.NOT_ENOUGH_REPLICAS] * 1000
    with pytest.raises(NotDelivered, match="NOT_ENOUGH_REPLICAS"):
        BatchProducer(writing.cluster).send({T0: batch(b"a")})
    assert sum(writing.fake.clock.pauses) == pytest.approx(5.0)


def test_without_idempotence_batches_are_sent_unchanged() -> None:
    writing = Writing()
    BatchProducer(writing.cluster, idempotent=False).send({T0: batch(b"a")})
    BatchProducer(writing.cluster, acks=Acks.LEADER).send({T0: batch(b"a")})
    assert writing.sent == [(0, -1, -1, -1)] * 2
    with pytest.raises(ValueError, match="needs acks=ALL"):
        BatchProducer(writing.cluster, acks=Acks.LEADER, idempotent=True)


def test_acks_0_waits_for_no_response() -> None:
    writing = Writing()
    producer = BatchProducer(writing.cluster, acks=Acks.NONE)
    assert producer.send({T0: batch(b"a"), T1: batch(b"b")}) == {T0: Produced(T0, -1), T1: Produced(T1, -1)}
    assert len(writing.sent) == 2
    assert BatchProducer(writing.cluster).send({T0: batch(b"a")})


@pytest.mark.parametrize("data", [b"", b"x" * 100, bytes(batch(b"a") + batch(b"b")), bytes(batch(b"a"))[:-1]])
def test_bytes_that_are_not_exactly_one_batch_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="t-0"):
        BatchProducer(Writing().cluster).send({T0: data})


def test_zstd_is_not_sent_to_a_broker_that_cannot_read_it() -> None:
    writing = Writing()
    for broker in writing.fake.brokers.values():
        broker.versions[ApiKey.PRODUCE] = Versions(3, 6)
    producer = BatchProducer(writing.cluster)
    assert producer.send({T0: batch(b"a", codec=Codec.LZ4)})
    with pytest.raises(NotDelivered, match="Produce versions 3-6; 7") as raised:
        producer.send({T0: batch(b"a", codec=Codec.ZSTD)})
    assert isinstance(raised.value.errors[T0], UnsupportedByBroker)


def test_a_refusal_names_the_invalid_record() -> None:
    writing = Writing()
    blamed = ProduceResponse.BatchIndexAndErrorMessage(batch_index=3, batch_index_error_message="no key")
    answer = ProduceResponse.PartitionProduceResponse(
        index=0, error_code=ErrorCode.INVALID_RECORD, record_errors=[blamed], error_message="some are wrong"
    )
    topic_id = writing.fake.topics["t"].topic_id
    topics = [ProduceResponse.TopicProduceResponse(topic_id=topic_id, partition_responses=[answer])]
    writing.answers = [ProduceResponse(responses=topics)]
    with pytest.raises(NotDelivered, match=r"t-0: record 3 of the batch: no key \(INVALID_RECORD\)"):
        BatchProducer(writing.cluster).send({T0: batch(b"a")})
