"""Fixtures for all tests: an Apache Kafka for those marked `kafka`.

A marked test is skipped, with the reason, if Java or Kafka's jars are not available. With TAILRACE_REQUIRE_KAFKA=1 it
fails instead, so that a run cannot pass by comparing nothing.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_install import KafkaInstallation, KafkaUnavailable, kafka_installation
from tests.support.log_oracle import LogOracle

if "CI" not in os.environ:  # in CI, Hypothesis has its own profile, as patient, with the same examples every time
    settings.register_profile("patient", deadline=None)
    settings.load_profile("patient")

_ORACLE = pytest.StashKey[LogOracle]()


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("kafka"):
        _require_kafka(kafka_installation)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    # A handler that a command has left behind would print the log lines of later tests into their output.
    left = [one for one in logging.root.handlers if type(one) is logging.StreamHandler]
    logging.root.handlers[:] = [one for one in logging.root.handlers if one not in left]
    assert not left, "the test has left a log handler at the root logger: use unchanged_process()"
    oracle = item.config.stash.get(_ORACLE, None)
    if oracle is not None and "log_oracle" in getattr(item, "fixturenames", ()):
        oracle.reset()


def _require_kafka(get: Callable[[], Any]) -> Any:
    try:
        return get()
    except KafkaUnavailable as why:
        if os.environ.get("TAILRACE_REQUIRE_KAFKA") == "1":
            pytest.fail(f"no Apache Kafka to compare with: {why}", pytrace=False)
        pytest.skip(f"no Apache Kafka to compare with: {why}")


@pytest.fixture(scope="session")
def kafka() -> KafkaInstallation:
    """Return Java and Kafka's jars, to run tools and dump files."""
    installation: KafkaInstallation = _require_kafka(kafka_installation)
    return installation


@pytest.fixture
def kafka_broker(kafka: KafkaInstallation, tmp_path: Path) -> Iterator[Callable[..., KafkaBroker]]:
    """Return a function that creates brokers: kafka_broker(directory=…, properties=…). They are not started, and end
    with the test.
    """
    made: list[KafkaBroker] = []

    def make(directory: Path | None = None, **settings: Any) -> KafkaBroker:
        made.append(KafkaBroker(kafka, directory or tmp_path / f"kafka-{len(made)}", **settings))
        return made[-1]

    yield make
    for broker in made:
        broker.__exit__(None, None, None)


@pytest.fixture(scope="session")
def log_oracle(kafka: KafkaInstallation, pytestconfig: pytest.Config) -> Iterator[LogOracle]:
    """Yield Kafka's log and record code in one JVM per worker. After each test its logs are dropped and its clock is
    reset.
    """
    oracle: LogOracle = _require_kafka(lambda: LogOracle(kafka))
    pytestconfig.stash[_ORACLE] = oracle
    yield oracle
    del pytestconfig.stash[_ORACLE]
    oracle.close()
