"""Queries and changes of the client with a real cluster; the Java client checks the results."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator

import pytest

from tailrace.client.admin import (
    ALL_RECORDS,
    NewTopic,
    add_partitions,
    create_topic,
    delete_records,
    delete_topic,
    describe_cluster,
    log_directories,
)
from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.configs import ConfigChange, ConfigSource, Operation, Resource, alter_configs, describe_configs
from tailrace.client.errors import OffsetOutOfRange, Refused, UnknownPartition, UnknownTopic
from tailrace.client.offsets import FoundOffset, OffsetSpec, earliest_offsets, find_offsets, latest_offsets
from tailrace.client.producing.producer import BatchProducer
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicId, TopicPartition
from tests.support.batches import batch
from tests.support.config_changes import set_configs, unset_configs
from tests.support.log_oracle import LogOracle
from tests.support.oracle_types import OracleRecord

NOW_MS = 1_700_000_000_000
KEPT = {"retention.ms": "-1"}  # records have the timestamp NOW_MS or an earlier one


@pytest.fixture
def cluster(bootstrap: str) -> Iterator[ClusterClient]:
    with ClusterClient(bootstrap) as cluster:
        yield cluster


def eventually(get: Callable[[], object], expected: object) -> None:
    """Wait for a change: a broker learns of it shortly after the controller."""
    deadline = time.monotonic() + 10
    while (found := get()) != expected and time.monotonic() < deadline:
        time.sleep(0.02)
    assert found == expected


def own_configs(cluster: ClusterClient, topic: str) -> dict[str, str | None]:
    configs = describe_configs(cluster, Resource.topic(topic))
    return {one.name: one.value for one in configs if one.source is ConfigSource.TOPIC_CONFIG}


def code_of(raised: pytest.ExceptionInfo[Refused]) -> ErrorCode:
    return ErrorCode(raised.value.code)


def test_describe_cluster_returns_brokers_and_controller(cluster: ClusterClient) -> None:
    found = describe_cluster(cluster)
    assert found.cluster_id == cluster.metadata.cluster_id
    assert found.brokers == cluster.metadata.brokers
    assert [str(one.address) for one in found.brokers.values()] == [str(one) for one in cluster.bootstrap]


def test_a_topic_is_created_altered_and_deleted(cluster: ClusterClient, topic: str) -> None:
    create_topic(cluster, NewTopic(name=topic, partitions=3, replication_factor=1, config={"retention.ms": "7000"}))
    made = cluster.topic(topic)
    assert [one.leader for one in made.partitions] == list(cluster.metadata.brokers) * 3
    assert made.has_id
    assert topic in [one.name for one in cluster.topics()]
    eventually(lambda: own_configs(cluster, topic), {"retention.ms": "7000"})
    with pytest.raises(Refused) as raised:
        create_topic(cluster, NewTopic(name=topic, partitions=3))
    assert code_of(raised) == ErrorCode.TOPIC_ALREADY_EXISTS
    add_partitions(cluster, topic, 5)
    assert len(cluster.topic(topic).partitions) == 5
    delete_topic(cluster, topic)
    assert topic not in [one.name for one in cluster.topics()]
    with pytest.raises(UnknownTopic):
        delete_topic(cluster, topic)
    with pytest.raises(UnknownTopic):
        cluster.topic(topic)


def test_omitted_numbers_are_the_brokers_defaults(cluster: ClusterClient, topic: str) -> None:
    create_topic(cluster, NewTopic(name=topic))
    assert (len(cluster.topic(topic).partitions), cluster.topic(topic).replication_factor) == (1, 1)


def test_replicas_can_be_assigned(cluster: ClusterClient, topic: str) -> None:
    (node_id,) = cluster.metadata.brokers
    create_topic(cluster, NewTopic(name=topic, assignment=[[node_id], [node_id]]))
    assert [one.replicas for one in cluster.topic(topic).partitions] == [(node_id,)] * 2
    add_partitions(cluster, topic, 3, assignment=[[node_id]])
    assert len(cluster.topic(topic).partitions) == 3


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        ({"name": "a/b"}, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ({"partitions": 0}, ErrorCode.INVALID_PARTITIONS),
        ({"replication_factor": 9}, ErrorCode.INVALID_REPLICATION_FACTOR),
        ({"config": {"no.such.key": "1"}}, ErrorCode.INVALID_CONFIG),
        ({"config": {"retention.ms": "soon"}}, ErrorCode.INVALID_CONFIG),
        ({"assignment": [[99]]}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
    ids=str,
)
def test_refusals_have_a_code_and_a_message(cluster: ClusterClient, wanted: dict[str, object], code: ErrorCode) -> None:
    with pytest.raises(Refused) as raised:
        create_topic(cluster, NewTopic(**{"name": "refused", "partitions": 1, **wanted}))  # type: ignore[arg-type]
    assert code_of(raised) == code
    assert raised.value.message


def test_validate_only_changes_nothing(cluster: ClusterClient, topic: str) -> None:
    create_topic(cluster, NewTopic(name=topic), validate_only=True)
    with pytest.raises(UnknownTopic):
        cluster.topic(topic)
    create_topic(cluster, NewTopic(name=topic))
    add_partitions(cluster, topic, 4, validate_only=True)
    assert len(cluster.topic(topic, fresh=True).partitions) == 1
    with pytest.raises(Refused) as raised:
        add_partitions(cluster, topic, 1)
    assert code_of(raised) == ErrorCode.INVALID_PARTITIONS


@pytest.mark.kafka
def test_topics_of_the_java_client_are_visible_and_vice_versa(
    cluster: ClusterClient, bootstrap: str, topic: str, log_oracle: LogOracle
) -> None:
    with log_oracle.connect(bootstrap) as java:
        topic_id = java.create_topic(topic, 2, {"cleanup.policy": "compact"})
        found = cluster.topic(topic)
        assert (str(TopicId(uuid.UUID(bytes=found.topic_id))), len(found.partitions)) == (topic_id, 2)
        java.alter_topic(topic, {"cleanup.policy": "compact,delete", "segment.ms": "1000"})
        expected = {"cleanup.policy": "compact,delete", "segment.ms": "1000"}
        eventually(lambda: own_configs(cluster, topic), expected)
        add_partitions(cluster, topic, 3)
        assert java.produce(topic, 2, [OracleRecord(key=b"k", value=b"v", timestamp=NOW_MS)]) == [[0]]
        java.delete_topic(topic)
        eventually(lambda: topic in [one.name for one in cluster.topics()], False)


def test_configs_of_a_topic(cluster: ClusterClient, topic: str) -> None:
    create_topic(cluster, NewTopic(name=topic))
    resource = Resource.topic(topic)

    def own() -> dict[str, str | None]:
        return own_configs(cluster, topic)

    set_configs(cluster, resource, {"retention.ms": "1000", "max.message.bytes": "5000"})
    eventually(own, {"retention.ms": "1000", "max.message.bytes": "5000"})
    alter_configs(cluster, resource, [ConfigChange("cleanup.policy", Operation.APPEND, "compact")])
    eventually(lambda: own().get("cleanup.policy"), "delete,compact")
    alter_configs(cluster, resource, [ConfigChange("cleanup.policy", Operation.SUBTRACT, "delete")])
    eventually(lambda: own().get("cleanup.policy"), "compact")
    unset_configs(cluster, resource, ["cleanup.policy", "retention.ms"])
    eventually(own, {"max.message.bytes": "5000"})
    with pytest.raises(Refused) as raised:
        set_configs(cluster, resource, {"retention.ms": "7", "max.message.bytes": "-1"})
    assert code_of(raised) == ErrorCode.INVALID_CONFIG
    assert own() == {"max.message.bytes": "5000"}
    alter_configs(cluster, resource, [ConfigChange("retention.ms", Operation.SET, "5")], validate_only=True)
    assert "retention.ms" not in own()
    with pytest.raises(UnknownTopic):
        describe_configs(cluster, Resource.topic("no-such-topic"))


def test_configs_of_brokers(cluster: ClusterClient) -> None:
    (node_id,) = cluster.metadata.brokers
    own, everyone = Resource.broker(node_id), Resource.broker(None)
    key = "log.retention.ms"

    def value() -> tuple[str | None, ConfigSource]:
        (found,) = describe_configs(cluster, own, [key])
        return found.value, found.source

    try:
        set_configs(cluster, everyone, {key: "86400000"})
        eventually(value, ("86400000", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG))
        set_configs(cluster, own, {key: "96400000"})
        eventually(value, ("96400000", ConfigSource.DYNAMIC_BROKER_CONFIG))
        assert [(one.name, one.value) for one in describe_configs(cluster, everyone, [key])] == [(key, "86400000")]
    finally:
        unset_configs(cluster, own, [key])
        unset_configs(cluster, everyone, [key])
    eventually(lambda: value()[1], ConfigSource.DEFAULT_CONFIG)
    with pytest.raises(Refused) as raised:
        set_configs(cluster, own, {"node.id": "9"})
    assert code_of(raised) in (ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_CONFIG)


@pytest.mark.kafka
def test_offsets_are_those_of_the_java_client(
    cluster: ClusterClient, bootstrap: str, topic: str, log_oracle: LogOracle
) -> None:
    create_topic(cluster, NewTopic(name=topic, partitions=2, config=KEPT))
    here, empty = cluster.topic(topic).topic_partitions
    producer = BatchProducer(cluster)
    times = [NOW_MS + shift for shift in (0, 5, 3, 3, 20, 10)]
    for first in (0, 2, 4):
        producer.send({here: batch(b"a", b"b", timestamp=times[first : first + 2])})
    delete_records(cluster, {here: 1})
    with log_oracle.connect(bootstrap) as java:
        assert java.bounds(topic, 0) == (earliest_offsets(cluster, [here])[here], latest_offsets(cluster, [here])[here])
        for shift in range(-1, 23):
            ours = find_offsets(cluster, {here: NOW_MS + shift, empty: NOW_MS + shift})
            theirs = java.offset_for_time(topic, 0, NOW_MS + shift)
            assert ours[empty] is None
            if theirs is None:
                assert ours[here] is None
            else:
                assert ours[here] == FoundOffset(theirs.offset, theirs.timestamp, theirs.leader_epoch or 0)
    largest = find_offsets(cluster, dict.fromkeys([here, empty], OffsetSpec.MAX_TIMESTAMP))
    assert largest == {here: FoundOffset(4, NOW_MS + 20, 0), empty: None}


def test_records_are_deleted_up_to_an_offset(cluster: ClusterClient, topic: str) -> None:
    create_topic(cluster, NewTopic(name=topic, partitions=2, config=KEPT))
    first, second = cluster.topic(topic).topic_partitions
    BatchProducer(cluster).send({first: batch(*[b"v"] * 10), second: batch(*[b"v"] * 10)})
    assert delete_records(cluster, {first: 3, second: ALL_RECORDS}) == {first: 3, second: 10}
    assert earliest_offsets(cluster, [first, second]) == {first: 3, second: 10}
    with pytest.raises(OffsetOutOfRange, match="offset 11 is out of range"):
        delete_records(cluster, {first: 11})
    with pytest.raises(UnknownPartition, match="has no partition 2"):
        delete_records(cluster, {TopicPartition(topic, 2): 1})


def test_log_directories_have_the_sizes_of_replicas(cluster: ClusterClient, topic: str) -> None:
    create_topic(cluster, NewTopic(name=topic, partitions=2, config=KEPT))
    first, second = cluster.topic(topic).topic_partitions
    data = batch(b"v" * 1000)
    BatchProducer(cluster).send({first: data})

    def sizes() -> dict[TopicPartition, int]:
        return {one.partition: one.size for where in log_directories(cluster, [topic]) for one in where.replicas}

    eventually(sizes, {first: len(data), second: 0})
    (directory,) = log_directories(cluster, [topic])
    assert directory.error_code == 0
    assert directory.broker in cluster.metadata.brokers
    assert directory.total_bytes >= directory.usable_bytes  # -1 and -1 if the broker does not report them
    (everything,) = log_directories(cluster)
    assert set(directory.replicas) <= set(everything.replicas)
