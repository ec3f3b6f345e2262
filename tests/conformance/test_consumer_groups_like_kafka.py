"""Consumer groups (KIP-848) at Apache Kafka and at Tailrace: the same heartbeats get the same responses and leave the
same records. The metadata hash of a group is Kafka's.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from time import sleep
from typing import Any

import pytest

from tailrace.coordinator.groups.epoch.metadata_hash import TopicHashes
from tailrace.coordinator.loading import decode_record
from tailrace.metadata.image.image import MetadataImage, TopicImage
from tailrace.metadata.image.partition_registration import PartitionRegistration
from tailrace.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupMetadataValue,
    CreateTopicsRequest,
    MetadataRequest,
)
from tailrace.records.batch import split_batches
from tailrace.records.record import iter_records
from tests.conformance.test_groups_like_kafka import SETTINGS, make_twins, start_with_groups
from tests.support.consumer_play import ConsumerPlay
from tests.support.group_twins import OFFSETS
from tests.support.kafka_broker import KafkaBroker
from tests.support.raw_client import RawClient

pytestmark = pytest.mark.kafka

STEPS = 200


@pytest.fixture(scope="module")
def settings() -> dict[str, str]:
    return {
        **SETTINGS,
        "group.consumer.assignment.interval.ms": "0",
        "group.consumer.max.size": "4",
        "group.consumer.session.timeout.ms": "600000",
        "group.consumer.max.session.timeout.ms": "600000",
    }


@pytest.fixture
def kafka(kafka_broker: Callable[..., KafkaBroker], settings: dict[str, str]) -> KafkaBroker:
    return start_with_groups(kafka_broker, settings)


def in_any_order(records: list[Any]) -> list[Any]:
    """Sort the records of shares that were computed together: Kafka writes them in the order of a hash map."""
    reported: list[Any] = []
    for name, group in groupby(records, key=lambda record: record[1]):
        together = list(group)
        reported += sorted(together, key=str) if name == "ConsumerGroupTargetAssignmentMemberKey" else together
    return reported


def play(kafka: KafkaBroker, settings: dict[str, str], seeds: range) -> None:
    twins, ids = make_twins(kafka, settings)
    try:
        for seed in seeds:
            twins.steps.clear()
            twins.steps.append(f"seed {seed}")
            ConsumerPlay(twins, seed, ids).run(STEPS)
        log = kafka.data / str(OFFSETS) / "00000000000000000000.log"
        kafkas, ours = twins.records(log.read_bytes())
        assert in_any_order(ours) == in_any_order(kafkas)
        assert len(ours) > STEPS
    finally:
        twins.close()


def test_the_same_heartbeats_get_the_same_responses(kafka: KafkaBroker, settings: dict[str, str]) -> None:
    play(kafka, settings, range(5))


@pytest.mark.slow
def test_many_more_heartbeats_get_the_same_responses(kafka: KafkaBroker, settings: dict[str, str]) -> None:
    play(kafka, settings, range(100, 150))


def test_the_metadata_hash_of_a_group_is_kafkas(kafka: KafkaBroker, settings: dict[str, str]) -> None:
    twins, _ = make_twins(kafka, settings)
    twins.close()
    with RawClient(kafka.bootstrap) as client:
        joining = ConsumerGroupHeartbeatRequest(
            group_id="hashed",
            member_id="m",
            rebalance_timeout_ms=1_000,
            subscribed_topic_names=["orders", "payments", "missing"],
            topic_partitions=[],
        )
        for _ in range(100):  # until the coordinator knows the topics too
            if len(client.ask(joining, 1).assignment.topic_partitions) == 2:
                break
            sleep(0.1)
        topics = client.ask(MetadataRequest(topics=None), 12).topics
    registration = PartitionRegistration(replicas=(1,), isr=(1,), leader=1, directories=(bytes(16),))
    image = MetadataImage(
        topics={
            topic.name: TopicImage(
                topic.name, topic.topic_id, dict.fromkeys(range(len(topic.partitions)), registration)
            )
            for topic in topics
        }
    )
    log = (kafka.data / str(OFFSETS) / "00000000000000000000.log").read_bytes()
    values = [decode_record("group", record).value for batch in split_batches(log) for record in iter_records(batch)]
    hashes = [value.metadata_hash for value in values if isinstance(value, ConsumerGroupMetadataValue)]
    assert hashes[-1:] == [TopicHashes().of(["orders", "payments", "missing"], image)]


@pytest.mark.slow
def test_a_topic_created_later_joins_a_pattern_subscription_after_ten_seconds(
    kafka: KafkaBroker, settings: dict[str, str]
) -> None:
    twins, _ = make_twins(kafka, settings)
    # number of assigned partitions at Kafka and at our broker, after each heartbeat
    partitions: list[list[int]] = [[], []]
    epochs = [0, 0]
    try:
        for beat in range(32):
            for side, epoch in enumerate(epochs):
                request = ConsumerGroupHeartbeatRequest(
                    group_id="by-pattern",
                    member_id="m",
                    member_epoch=epoch,
                    rebalance_timeout_ms=60_000,
                    subscribed_topic_names=[],
                    subscribed_topic_regex="later-.*",
                    topic_partitions=[],
                )
                answer = twins.ask_one(side, "member", request, 1)
                epochs[side] = answer.member_epoch
                assigned = answer.assignment.topic_partitions if answer.assignment is not None else []
                partitions[side].append(sum(len(topic.partitions) for topic in assigned))
            if beat in (0, 3):
                topic = CreateTopicsRequest.CreatableTopic(name=f"later-{beat}", num_partitions=1, replication_factor=1)
                twins.ask_both("admin", CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 5)
            sleep(0.5)
    finally:
        twins.close()
    for side, counts in zip(("Kafka", "ours"), partitions, strict=True):
        assert counts[-1] == 2, (side, counts)
        assert counts[16] < 2, (side, counts)  # eight seconds
