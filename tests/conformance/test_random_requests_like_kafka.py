"""Random requests under random settings: Apache Kafka and Tailrace give the same responses.

Each seed draws broker settings, topics with configs, and a sequence of requests: Produce, Fetch, ListOffsets,
OffsetCommit, OffsetFetch and the transactions between them, in all versions that both serve. A failure prints the
seed and the command that repeats it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.kafka_install import KafkaInstallation
from tests.support.random_requests.random_play import play

pytestmark = pytest.mark.kafka


@pytest.mark.parametrize("seed", [1, 3])
def test_random_requests_get_the_responses_of_kafka(kafka: KafkaInstallation, tmp_path: Path, seed: int) -> None:
    assert play(kafka, tmp_path, seed=seed, steps=300) >= 300


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 160))
def test_many_random_requests_get_the_responses_of_kafka(kafka: KafkaInstallation, tmp_path: Path, seed: int) -> None:
    assert play(kafka, tmp_path, seed=seed, steps=1_500) >= 1_500
