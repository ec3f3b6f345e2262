"""Compaction in the background."""

from __future__ import annotations

from tailrace.model.ids import TopicPartition
from tailrace.protocol.messages import CreateTopicsRequest, ProduceRequest
from tailrace.records.builder import BatchBuilder
from tests.support.memory_node import NOW_MS, Client, start

SETTINGS = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.1", "segment.ms": "1000"}


def compacted_topic(client: Client) -> None:
    configs = [CreateTopicsRequest.CreatableTopicConfig(name=name, value=value) for name, value in SETTINGS.items()]
    topic = CreateTopicsRequest.CreatableTopic(name="t", num_partitions=1, replication_factor=1, configs=configs)
    assert client.ask(CreateTopicsRequest(topics=[topic]), 7).topics[0].error_code == 0


def produce(client: Client, key: bytes, timestamp: int) -> None:
    builder = BatchBuilder()
    builder.append(timestamp, key, b"v")
    part = ProduceRequest.PartitionProduceData(index=0, records=builder.build())
    topic = ProduceRequest.TopicProduceData(name="t", partition_data=[part])
    answer = client.ask(ProduceRequest(acks=1, topic_data=[topic]), 12).responses[0].partition_responses[0]
    assert answer.error_code == 0


def test_a_dirty_log_is_compacted_when_its_time_comes() -> None:
    client = Client(start())
    compacted_topic(client)
    for number in range(20):
        produce(client, b"k%d" % (number % 3), NOW_MS + number * 200)
    log = client.broker.services.logs.get(TopicPartition("t", 0))
    assert log is not None
    before = sum(segment.size for segment in log.segments.sealed)
    deadline = client.broker.next_deadline_ms()
    assert deadline is not None
    client.broker.tick(NOW_MS + 14_999)
    assert sum(segment.size for segment in log.segments.sealed) == before
    client.broker.tick(NOW_MS + 15_000)
    sealed = [header for segment in log.segments.sealed for header in segment.headers()]
    assert 0 < sum(header.record_count for header in sealed) <= 3
    assert client.broker.services.cleaning is not None


def test_compaction_can_be_switched_off() -> None:
    assert start(static={"log.cleaner.enable": "false"}).services.cleaning is None
