"""ShareFetch and ShareAcknowledge at Apache Kafka and at Tailrace: the same requests get the same responses (acquired
ranges, delivery counts, batches, errors and their messages) and leave the same state.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.kafka_broker import KafkaBroker
from tests.support.memory_node import start
from tests.support.share_play import SETTINGS, SharePlay

pytestmark = pytest.mark.kafka


@pytest.fixture
def kafka(kafka_broker: Callable[..., KafkaBroker]) -> KafkaBroker:
    broker = kafka_broker(properties=dict(SETTINGS))
    broker.start()
    return broker


def play(kafka: KafkaBroker, seeds: range, steps: int, settings: dict[str, str] | None = None) -> None:
    ours = start(static=dict(SETTINGS))
    for seed in seeds:
        one = SharePlay(kafka.bootstrap, ours, seed, settings)
        try:
            one.run(steps)
        finally:
            one.end()


def test_members_of_a_share_group_get_the_same_responses(kafka: KafkaBroker) -> None:
    play(kafka, range(1), 30)


@pytest.mark.slow
def test_members_of_many_share_groups_get_the_same_responses(kafka: KafkaBroker) -> None:
    play(kafka, range(1, 21), 250)


@pytest.mark.slow
def test_limits_of_one_group_give_the_same_responses(kafka: KafkaBroker) -> None:
    settings = {"share.delivery.count.limit": "3", "share.renew.acknowledge.enable": "false"}
    play(kafka, range(25, 33), 200, settings)
