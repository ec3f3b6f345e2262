"""Kafka Streams, unchanged, with Tailrace: word count with exactly_once_v2 while brokers and instances are killed."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from tests.support.confluent import create_topic
from tests.support.kafka_broker import KafkaBroker
from tests.support.tailrace_process import TailraceProcess
from tests.support.word_count import WordCount, write_lines

PARTITIONS = 2
WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta"]
SETTINGS = {
    "transaction.state.log.num.partitions": "2",
    "offsets.topic.num.partitions": "2",
    # A dead member is removed soon.
    "group.streams.min.session.timeout.ms": "6000",
    "group.streams.session.timeout.ms": "6000",
    "group.streams.min.heartbeat.interval.ms": "1000",
    "group.streams.heartbeat.interval.ms": "1000",
}
PROTOCOLS = pytest.mark.parametrize("protocol", ["classic", "streams"])


def lines(random: Random, count: int) -> list[str]:
    return [" ".join(random.choices(WORDS, k=random.randint(1, 6))) for _ in range(count)]


def ours(directory: Path, **more: str) -> TailraceProcess:
    options = [word for key, value in {**SETTINGS, **more}.items() for word in ("-o", f"{key}={value}")]
    return TailraceProcess(directory / "data", *options)


def prepare(bootstrap: str, directory: Path, protocol: str) -> WordCount:
    for name in ("lines", "counts"):
        create_topic(bootstrap, name, PARTITIONS)
    settings = {"group.protocol": protocol}
    if protocol == "classic":
        settings["session.timeout.ms"] = "6000"
    return WordCount(bootstrap, directory, "lines", "counts", settings)


@pytest.mark.slow
@pytest.mark.kafka
@PROTOCOLS
def test_word_count_is_exact_at_kafka(kafka_broker: Callable[..., KafkaBroker], tmp_path: Path, protocol: str) -> None:
    """The expectation is Kafka's own behaviour."""
    broker = kafka_broker(properties=SETTINGS)
    broker.start()
    run_calmly(broker.bootstrap, tmp_path, protocol)


@pytest.mark.slow
@pytest.mark.kafka
@PROTOCOLS
def test_word_count_is_exact(tmp_path: Path, protocol: str) -> None:
    with ours(tmp_path) as broker:
        run_calmly(broker.bootstrap, tmp_path, protocol)
    assert broker.errors == ""


def run_calmly(bootstrap: str, directory: Path, protocol: str) -> None:
    """Run one instance, a second one that joins, one that leaves and one that dies."""
    application = prepare(bootstrap, directory, protocol)
    random = Random(1)
    expected = Counter(write_lines(bootstrap, "lines", lines(random, 100)))
    with application.instance("a").wait_for("RUNNING"):
        application.wait_for(expected, PARTITIONS)
        with application.instance("b").wait_for("RUNNING") as other:
            expected.update(write_lines(bootstrap, "lines", lines(random, 100)))
            application.wait_for(expected, PARTITIONS)
            other.kill()
        expected.update(write_lines(bootstrap, "lines", lines(random, 100)))
        application.wait_for(expected, PARTITIONS)
    with application.instance("b").wait_for("RUNNING"):
        expected.update(write_lines(bootstrap, "lines", lines(random, 100)))
        application.wait_for(expected, PARTITIONS)


@pytest.mark.slow
@pytest.mark.kafka
@PROTOCOLS
def test_word_count_is_exact_when_brokers_and_instances_are_killed(tmp_path: Path, protocol: str) -> None:
    """The broker is killed and restarted repeatedly, an instance from time to time."""
    random = Random(2)
    with ours(tmp_path) as broker:
        application = prepare(broker.bootstrap, tmp_path, protocol)
        expected: Counter[str] = Counter()
        done = threading.Event()

        failures: list[BaseException] = []

        def kill_now_and_then() -> None:
            weather = Random(3)
            try:
                while not done.wait(weather.uniform(3, 8)):
                    broker.kill() if weather.random() < 0.7 else broker.stop()
                    broker.start()
            except AssertionError as failure:
                failures.append(failure)

        with application.instance("a").wait_for("RUNNING"):
            killer = threading.Thread(target=kill_now_and_then)
            killer.start()
            try:
                for round_number in range(4):
                    with application.instance("b") as other:
                        for _ in range(5):
                            expected.update(write_lines(broker.bootstrap, "lines", lines(random, 60)))
                            done.wait(1)
                            assert not failures, failures
                        if round_number % 2:
                            other.kill()
            finally:
                done.set()
                killer.join()
            application.wait_for(expected, PARTITIONS)
