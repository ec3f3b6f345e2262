"""HostedPartitions: what is here, and why something is not."""

from __future__ import annotations

import pytest

from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import TopicPartition
from tailrace.replication.hosted_partitions import HostedPartitions
from tailrace.replication.partition import Partition
from tests.simulation.node import Node, registration


def test_partitions_are_found_by_name_and_by_topic_id() -> None:
    node = Node()
    first, second = node.host("a", 0), node.host("a", 1)
    assert node.partitions.get(TopicPartition("a", 1)) is second
    assert node.partitions.find(TopicPartition("a", 0)) is first
    assert node.partitions.of_topic(first.topic_id, 1) is second
    assert node.partitions.of_topic(bytes(16), 1) is None
    assert list(node.partitions) == [first, second]
    assert len(node.partitions) == 2


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ("unknown", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("elsewhere", ErrorCode.NOT_LEADER_OR_FOLLOWER),
        ("offline", ErrorCode.KAFKA_STORAGE_ERROR),
    ],
)
def test_the_error_of_a_missing_partition_has_the_reason(what: str, expected: ErrorCode) -> None:
    node = Node()
    key = TopicPartition("topic", 0)
    if what == "elsewhere":
        node.publish(key, registration(2, (2, 3)))
    elif what == "offline":
        node.host()
        node.partitions.mark_offline(key)
    assert node.partitions.get(key) is None
    assert node.partitions.error_of(key) == expected
    with pytest.raises(KafkaError) as refused:
        node.partitions.find(key)
    assert refused.value.code == expected


def test_an_offline_partition_comes_back_or_is_removed() -> None:
    node = Node()
    partition = node.host()
    assert node.partitions.mark_offline(partition.key) is partition
    assert node.partitions.offline == {partition.key}
    assert node.partitions.of_topic(partition.topic_id, 0) is None
    node.partitions.add(partition)
    assert node.partitions.offline == frozenset()
    assert node.partitions.remove(partition.key) is partition
    assert node.partitions.remove(partition.key) is None
    assert node.partitions.mark_offline(partition.key) is None
    assert node.partitions.remove(partition.key) is None
    assert node.partitions.offline == frozenset()


def test_every_change_of_what_is_hosted_is_counted() -> None:
    node = Node()
    seen = [node.partitions.generation]
    partition = node.host()
    seen.append(node.partitions.generation)
    node.partitions.mark_offline(partition.key)
    seen.append(node.partitions.generation)
    node.partitions.add(partition)
    seen.append(node.partitions.generation)
    node.partitions.remove(partition.key)
    seen.append(node.partitions.generation)
    assert seen == sorted(set(seen))


def test_a_partition_is_hosted_once() -> None:
    node = Node()
    partition = node.host()
    with pytest.raises(AssertionError):
        node.partitions.add(partition)


def test_leaders_lists_the_partitions_led_here() -> None:
    node = Node()
    led = node.host("led")
    node.host("followed", state=registration(2, (1, 2)))
    assert node.partitions.leaders() == [led]


def test_a_failing_disk_takes_a_partition_offline_and_calls_on_failure() -> None:
    failures: list[tuple[Partition, OSError]] = []
    node = Node()
    hosted = HostedPartitions(lambda: node.image, lambda partition, error: failures.append((partition, error)))
    partition = node.host()
    hosted.add(partition)
    error = OSError(5, "broken")
    hosted.failed(partition, error)
    assert failures == [(partition, error)]
    assert hosted.error_of(partition.key) == ErrorCode.KAFKA_STORAGE_ERROR
