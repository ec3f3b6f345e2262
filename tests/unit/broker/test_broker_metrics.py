"""Metrics of the broker, compared with the requests that were sent."""

from __future__ import annotations

from typing import Any

import pytest

from tailrace.broker.broker import Broker
from tailrace.metrics.families import Kind
from tailrace.model.ids import TopicPartition
from tailrace.protocol.messages import (
    AlterClientQuotasRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    FetchRequest,
    MetadataRequest,
    ProduceRequest,
)
from tailrace.records.builder import BatchBuilder
from tests.support.memory_node import NOW_MS, Client, start

TRAFFIC = "kafka_server_brokertopicmetrics_"


def samples(broker: Broker) -> dict[tuple[str, ...], float]:
    """Return the samples by name and label values."""
    read = {}
    for family in broker.metric_families(NOW_MS):
        for labels, value, suffix in family.samples:
            read[family.name + suffix, *labels.values()] = value
    return read


def create(client: Client, name: str, partitions: int = 1, **configs: str) -> None:
    topic = CreateTopicsRequest.CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=1,
        configs=[CreateTopicsRequest.CreatableTopicConfig(name=key, value=text) for key, text in configs.items()],
    )
    assert client.ask(CreateTopicsRequest(topics=[topic]), 7).topics[0].error_code == 0


def batch(records: int, size: int = 10) -> bytes:
    builder = BatchBuilder()
    for _ in range(records):
        builder.append(NOW_MS, key=None, value=b"x" * size)
    return bytes(builder.build())


def produce(client: Client, topic: str, *batches: bytes, version: int = 9, acks: int = 1) -> Any:
    partitions = [ProduceRequest.PartitionProduceData(index=index, records=data) for index, data in enumerate(batches)]
    topics = [ProduceRequest.TopicProduceData(name=topic, partition_data=partitions)]
    return client.ask(ProduceRequest(acks=acks, timeout_ms=1_000, topic_data=topics), version)


def fetch(client: Client, topic: str, offset: int = 0, version: int = 12, partition: int = 0) -> Any:
    asked = FetchRequest.FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1_000_000)
    topics = [FetchRequest.FetchTopic(topic=topic, partitions=[asked])]
    return client.ask(FetchRequest(min_bytes=1, max_bytes=1_000_000, session_epoch=-1, topics=topics), version)


@pytest.fixture
def client() -> Client:
    made = Client(start())
    create(made, "orders", 2)
    return made


def test_produced_records_are_counted_by_topic_and_in_total(client: Client) -> None:
    create(client, "other")
    for _ in range(3):  # the first request may take another path than the next ones
        produce(client, "orders", batch(5), batch(2))
        produce(client, "other", batch(1))
    read = samples(client.broker)
    size = 3 * (len(batch(5)) + len(batch(2)))
    assert read[TRAFFIC + "messagesin", "orders"] == 21
    assert read[TRAFFIC + "bytesin", "orders"] == size
    assert read[TRAFFIC + "totalproducerequests", "orders"] == 6
    assert read[(TRAFFIC + "messagesin",)] == 24
    assert read[(TRAFFIC + "bytesin",)] == size + 3 * len(batch(1))
    assert read["kafka_network_requestmetrics_errors", "Produce", "NONE"] == 9


@pytest.mark.parametrize("acks", [1, -1])
def test_single_batches_are_counted_with_acks_1_and_all(client: Client, acks: int) -> None:
    for _ in range(4):
        produce(client, "orders", batch(3), acks=acks)
        fetch(client, "orders")
    read = samples(client.broker)
    assert read[TRAFFIC + "messagesin", "orders"] == 12
    assert read[TRAFFIC + "bytesin", "orders"] == 4 * len(batch(3))
    assert read[TRAFFIC + "totalproducerequests", "orders"] == 4
    assert read[TRAFFIC + "bytesout", "orders"] == (1 + 2 + 3 + 4) * len(batch(3))
    assert read[TRAFFIC + "totalfetchrequests", "orders"] == 4
    assert read["kafka_network_requestmetrics_errors", "Fetch", "NONE"] == 8  # of the response and of its partition


def test_bytes_out_counts_the_bytes_sent_including_converted_ones(client: Client) -> None:
    data = batch(5)
    produce(client, "orders", data, data)
    fetch(client, "orders")
    fetch(client, "orders", offset=5)  # nothing there
    read = samples(client.broker)
    assert read[TRAFFIC + "bytesout", "orders"] == len(data)
    old = fetch(client, "orders", version=1)
    converted = len(old.responses[0].partitions[0].records)
    assert converted != len(data)
    assert samples(client.broker)[TRAFFIC + "bytesout", "orders"] == len(data) + converted


def test_too_large_records_count_as_rejected_bytes_not_as_failures() -> None:
    client = Client(start())
    create(client, "small", **{"max.message.bytes": "100"})
    data = batch(1, size=200)
    assert produce(client, "small", data).responses[0].partition_responses[0].error_code == 10
    read = samples(client.broker)
    assert read[TRAFFIC + "bytesrejected", "small"] == len(data)
    assert read[TRAFFIC + "failedproducerequests", "small"] == 0
    assert read[TRAFFIC + "totalproducerequests", "small"] == 1
    assert read[TRAFFIC + "bytesin", "small"] == 0
    assert read["kafka_network_requestmetrics_errors", "Produce", "MESSAGE_TOO_LARGE"] == 1


def test_refused_records_count_as_failed_produce_requests() -> None:
    client = Client(start())
    create(client, "keyed", **{"cleanup.policy": "compact"})
    assert produce(client, "keyed", batch(2)).responses[0].partition_responses[0].error_code == 87
    read = samples(client.broker)
    assert read[TRAFFIC + "failedproducerequests", "keyed"] == 1
    assert read[TRAFFIC + "messagesin", "keyed"] == 0


def test_requests_for_unknown_topics_create_no_series(client: Client) -> None:
    before = set(samples(client.broker))
    for number in range(100):
        produce(client, f"guess-{number}", batch(1))
        fetch(client, f"guess-{number}")
        produce(client, "orders", b"", b"", batch(1))  # no such partition
    new = {key for key in samples(client.broker) if key not in before}
    assert new <= {
        ("kafka_network_requestmetrics_errors", api, error)
        for api in ("Produce", "Fetch")
        for error in ("NONE", "UNKNOWN_TOPIC_OR_PARTITION", "INVALID_RECORD")
    }


def test_a_deleted_topic_has_no_series_but_stays_in_the_totals(client: Client) -> None:
    create(client, "passing", 3)
    produce(client, "passing", batch(4), batch(4), batch(4))
    fetch(client, "passing")
    before = samples(client.broker)
    assert [key for key in before if "passing" in key]
    client.ask(DeleteTopicsRequest(topic_names=["passing"], timeout_ms=1_000), 5)
    after = samples(client.broker)
    assert not [key for key in after if "passing" in key]
    for name in ("messagesin", "bytesin", "bytesout", "totalproducerequests", "totalfetchrequests"):
        assert after[(TRAFFIC + name,)] == before[(TRAFFIC + name,)] > 0
    create(client, "passing", 1)
    assert samples(client.broker)[TRAFFIC + "messagesin", "passing"] == 0


def test_an_offline_partition_stays_in_the_topic_counters(client: Client) -> None:
    produce(client, "orders", batch(4), batch(4))
    client.broker.services.partitions.mark_offline(TopicPartition("orders", 0))
    read = samples(client.broker)
    assert read[TRAFFIC + "messagesin", "orders"] == 8
    assert read[("kafka_server_replicamanager_offlinereplicacount",)] == 1
    assert read[("kafka_server_replicamanager_partitioncount",)] == 1
    assert ("kafka_log_log_size", "orders", "0") not in read


def test_logs_replicas_and_the_controller_have_metrics(client: Client) -> None:
    data = batch(4)
    produce(client, "orders", data)
    read = samples(client.broker)
    assert read["kafka_log_log_size", "orders", "0"] == len(data)
    assert read["kafka_log_log_logendoffset", "orders", "0"] == 4
    assert read["kafka_log_log_logstartoffset", "orders", "0"] == 0
    assert read["kafka_log_log_numlogsegments", "orders", "0"] == 1
    assert read["tailrace_log_high_watermark", "orders", "0"] == 4
    assert read[("kafka_server_replicamanager_leadercount",)] == 2
    assert read[("kafka_server_replicamanager_underreplicatedpartitions",)] == 0
    assert read[("kafka_controller_kafkacontroller_globaltopiccount",)] == 1
    assert read[("kafka_controller_kafkacontroller_globalpartitioncount",)] == 2
    assert read[("kafka_controller_kafkacontroller_offlinepartitionscount",)] == 0


def test_a_waiting_fetch_is_in_the_purgatory(client: Client) -> None:
    asked = FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1_000)
    request = FetchRequest(
        max_wait_ms=500,
        session_epoch=0,
        min_bytes=1,
        max_bytes=1_000,
        topics=[FetchRequest.FetchTopic(topic="orders", partitions=[asked])],
    )
    assert client.send(request, 12) == []
    size = "kafka_server_delayedoperationpurgatory_purgatorysize"
    read = samples(client.broker)
    assert (read[size, "Fetch"], read[size, "Produce"]) == (1, 0)
    client.broker.tick(NOW_MS + 500)
    read = samples(client.broker)
    assert read[size, "Fetch"] == 0
    assert read[("tailrace_purgatory_expired",)] == 1
    assert read[("kafka_server_fetchsessioncache_numincrementalfetchsessions",)] == 1


def test_errors_are_counted_wherever_a_response_has_them(client: Client) -> None:
    topics = [MetadataRequest.MetadataRequestTopic(name=name) for name in ("orders", "none")]
    client.ask(MetadataRequest(topics=topics, allow_auto_topic_creation=False), 9)
    read = samples(client.broker)
    assert read["kafka_network_requestmetrics_errors", "Metadata", "UNKNOWN_TOPIC_OR_PARTITION"] == 1


def test_counters_are_declared_as_such_and_names_are_unique(client: Client) -> None:
    families = list(client.broker.metric_families(NOW_MS))
    names = [family.name for family in families]
    assert len(names) == len(set(names))
    assert {family.kind for family in families if family.name.startswith(TRAFFIC)} == {Kind.COUNTER}


def test_set_quotas_have_metrics_of_rate_and_throttle_time() -> None:
    client = Client(start())
    create(client, "orders")
    names = {name for name, *_ in samples(client.broker)}
    assert not names & {"kafka_server_produce_byte_rate", "kafka_server_fetch_byte_rate"}
    request = AlterClientQuotasRequest()
    entity = [request.EntityData(entity_type="client-id", entity_name="test")]
    limit = request.OpData(key="producer_byte_rate", value=100.0)
    request.entries = [request.EntryData(entity=entity, ops=[limit])]
    assert client.ask(request, 1).entries[0].error_code == 0
    response = produce(client, "orders", batch(10, 300))
    assert response.throttle_time_ms > 0
    read = samples(client.broker)
    assert read["kafka_server_produce_byte_rate", "", "test"] > 100
    assert read["kafka_server_produce_throttle_time", "", "test"] == response.throttle_time_ms
    assert not any(name.startswith("kafka_server_fetch_byte_rate") for name, *_ in read)


def test_directories_quorum_and_replicas_have_metrics() -> None:
    client = Client(start())
    create(client, "orders")
    broker = client.broker
    read = samples(broker)
    assert read["kafka_log_logmanager_offlinelogdirectorycount",] == 0
    assert read["kafka_log_logmanager_logdirectoryoffline", "/data"] == 0
    assert read["kafka_server_raft_metrics_current_epoch",] == broker.services.controller.log.epoch
    assert read["kafka_server_raft_metrics_log_end_offset",] == broker.services.controller.log.next_offset
    assert read["kafka_cluster_partition_insyncreplicascount", "orders", "0"] == 1
    assert read["kafka_cluster_partition_underreplicated", "orders", "0"] == 0
    assert read["kafka_server_replicaalterlogdirsmanager_maxlag",] == 0
    broker.services.replicas.isr_counts.shrinks += 2
    assert samples(broker)["kafka_server_replicamanager_isrshrinks",] == 2
