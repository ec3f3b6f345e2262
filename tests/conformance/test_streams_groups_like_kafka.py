"""Streams groups (KIP-1071) at Apache Kafka and at Tailrace: the same heartbeats get the same responses and leave the
same records.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.conformance.test_groups_like_kafka import SETTINGS, make_twins, start_with_groups
from tests.support.group_twins import OFFSETS
from tests.support.kafka_broker import KafkaBroker
from tests.support.streams_play import PROBE, StreamsPlay

pytestmark = pytest.mark.kafka

STEPS = 150


@pytest.fixture(scope="module")
def settings() -> dict[str, str]:
    return {
        **SETTINGS,
        "group.streams.assignment.interval.ms": "0",
        "group.streams.initial.rebalance.delay.ms": "0",
        "group.streams.max.size": "6",
        "group.streams.session.timeout.ms": "600000",
        "group.streams.max.session.timeout.ms": "600000",
    }


@pytest.fixture
def kafka(kafka_broker: Callable[..., KafkaBroker], settings: dict[str, str]) -> KafkaBroker:
    return start_with_groups(kafka_broker, settings)


def play(kafka: KafkaBroker, settings: dict[str, str], seeds: range) -> None:
    twins, ids = make_twins(kafka, settings)
    try:
        for seed in seeds:
            twins.steps.clear()
            twins.steps.append(f"seed {seed}")
            StreamsPlay(twins, seed, ids).run(STEPS)
        log = kafka.data / str(OFFSETS) / "00000000000000000000.log"
        kafkas, ours = twins.records(log.read_bytes())
        assert ours == [record for record in kafkas if PROBE not in record[2].values()]
        assert len(ours) > STEPS
    finally:
        twins.close()


def test_the_same_streams_heartbeats_get_the_same_responses(kafka: KafkaBroker, settings: dict[str, str]) -> None:
    play(kafka, settings, range(2))


@pytest.mark.slow
def test_many_more_streams_heartbeats_get_the_same_responses(kafka: KafkaBroker, settings: dict[str, str]) -> None:
    play(kafka, settings, range(100, 142))
