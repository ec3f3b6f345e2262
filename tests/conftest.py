"""What tests share: a real Apache Kafka for those marked `kafka`.

A marked test is skipped, with the reason in one sentence, where Java or Kafka's jars cannot be had;
with TAILRACE_REQUIRE_KAFKA=1 it fails instead, so that a run cannot pass by comparing nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.kafka import KafkaBroker
from tests.support.kafka_install import KafkaInstallation, KafkaUnavailable, kafka_installation


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("kafka"):
        _require_kafka(kafka_installation)


def _require_kafka(get: Callable[[], Any]) -> Any:
    try:
        return get()
    except KafkaUnavailable as why:
        if os.environ.get("TAILRACE_REQUIRE_KAFKA") == "1":
            pytest.fail(f"no Apache Kafka to compare with: {why}", pytrace=False)
        pytest.skip(f"no Apache Kafka to compare with: {why}")


@pytest.fixture(scope="session")
def kafka() -> KafkaInstallation:
    """Java and Kafka's jars: run tools, dump files."""
    installation: KafkaInstallation = _require_kafka(kafka_installation)
    return installation


@pytest.fixture
def kafka_broker(kafka: KafkaInstallation, tmp_path: Path) -> Iterator[Callable[..., KafkaBroker]]:
    """Make brokers: kafka_broker(directory=…, properties=…), not yet started; killed when the test ends."""
    made: list[KafkaBroker] = []

    def make(directory: Path | None = None, **settings: Any) -> KafkaBroker:
        made.append(KafkaBroker(kafka, directory or tmp_path / f"kafka-{len(made)}", **settings))
        return made[-1]

    yield make
    for broker in made:
        broker.__exit__(None, None, None)
