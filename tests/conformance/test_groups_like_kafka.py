"""Classic groups at Apache Kafka and at Tailrace: the same requests get the same responses and leave the
same records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from tailrace.model.errors import ErrorCode
from tailrace.protocol.messages import CreateTopicsRequest, FindCoordinatorRequest, MetadataRequest, OffsetFetchRequest
from tests.support.group_play import TOPICS, GroupPlay
from tests.support.group_twins import OFFSETS, GroupTwins
from tests.support.kafka_broker import KafkaBroker
from tests.support.memory_node import start
from tests.support.raw_client import RawClient

pytestmark = pytest.mark.kafka

SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.max.size": "3",
    "auto.create.topics.enable": "false",
}
STEPS = 120


@pytest.fixture
def kafka(kafka_broker: Callable[..., KafkaBroker]) -> KafkaBroker:
    return start_with_groups(kafka_broker, SETTINGS)


def start_with_groups(kafka_broker: Callable[..., KafkaBroker], settings: Mapping[str, str]) -> KafkaBroker:
    """Start a Kafka and wait until its group coordinator is ready."""
    broker = kafka_broker(properties=dict(settings))
    broker.start()
    with RawClient(broker.bootstrap) as client:
        while client.ask(FindCoordinatorRequest(key="any"), 1).error_code:
            pass
        while not is_loaded(client):
            pass
    return broker


def is_loaded(client: RawClient) -> bool:
    asked = OffsetFetchRequest(group_id="any", topics=None)
    return client.ask(asked, 2).error_code == ErrorCode.NONE


def make_twins(
    kafka: KafkaBroker, settings: Mapping[str, str] = SETTINGS
) -> tuple[GroupTwins, tuple[dict[str, bytes], dict[str, bytes]]]:
    twins = GroupTwins(kafka.bootstrap, start(static=dict(settings)))
    twins.ask_both("admin", FindCoordinatorRequest(key="any"), 1)
    topics = [
        CreateTopicsRequest.CreatableTopic(name=name, num_partitions=count, replication_factor=1)
        for name, count in TOPICS.items()
    ]
    twins.ask_both("admin", CreateTopicsRequest(topics=topics, timeout_ms=30_000), 5)
    while len(twins.ask_both("admin", MetadataRequest(topics=None), 12)[0].topics) < len(TOPICS) + 1:
        pass
    twins.learn_topics()
    kafkas, ours = twins.ask_both("admin", MetadataRequest(topics=None), 12)
    ids = tuple({topic.name: topic.topic_id for topic in answer.topics} for answer in (kafkas, ours))
    return twins, (ids[0], ids[1])


def play(kafka: KafkaBroker, seeds: range) -> None:
    twins, ids = make_twins(kafka)
    try:
        for seed in seeds:
            twins.steps.clear()
            twins.steps.append(f"seed {seed}")
            one = GroupPlay(twins, seed)
            one.topic_ids = ids
            one.run(STEPS)
        log = kafka.data / str(OFFSETS) / "00000000000000000000.log"
        kafkas, ours = twins.records(log.read_bytes())
        assert ours == kafkas
        assert len(ours) > 5
    finally:
        twins.close()


def test_the_same_group_requests_get_the_same_responses_and_leave_the_same_records(kafka: KafkaBroker) -> None:
    play(kafka, range(2))


@pytest.mark.slow
def test_many_more_group_requests_get_the_same_responses(kafka: KafkaBroker) -> None:
    play(kafka, range(100, 140))
