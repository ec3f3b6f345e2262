"""Clients of ten years: today's clients read their records, and the other way round.

Apache Kafka 4 refuses the requests of most of them, so there is no real broker to compare with. The tests rely on the
checks of the old clients and on the records that they return.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.confluent import consume, create_topic, produce
from tests.support.foreign_clients import PYTHON, java_program, librdkafka, maven_jars, python_with
from tests.support.tailrace_process import TailraceProcess

COUNT = 50
TODAY = [f"key:today {number}" for number in range(COUNT)]
OLD = [f"key:old {number}" for number in range(COUNT)]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TailraceProcess]:
    process = TailraceProcess(tmp_path_factory.mktemp("old-clients") / "data")
    with process:
        yield process
        assert process.stop() == 0
    assert process.errors == ""


def written_today(broker: TailraceProcess, topic: str, codec: str = "lz4") -> None:
    """Write a topic with a client of today: v2 batches, which the broker converts for older clients."""
    create_topic(broker.bootstrap, topic)
    values = [line.split(":")[1].encode() for line in TODAY]
    produce(broker.bootstrap, topic, 0, values, **{"compression.type": codec, "linger.ms": 5})


def read_today(broker: TailraceProcess, topic: str) -> list[str]:
    return [f"{one.offset} {one.key.decode()}:{one.value.decode()}" for one in consume(broker.bootstrap, topic, 0)]


def numbered(lines: list[str]) -> list[str]:
    return [f"{offset} {line}" for offset, line in enumerate(lines)]


# librdkafka since 2018: before 1.0 it knew no idempotence and no zstd


@pytest.mark.parametrize("version", ["0.11.6", "1.0.0", "1.4.0", "1.9.2"])
def test_old_librdkafka_writes_and_reads(broker: TailraceProcess, topic: str, version: str) -> None:
    old = librdkafka(version)
    assert old("version").strip() == version
    written_today(broker, topic)
    codecs = ("gzip", "snappy", "lz4")
    for codec in codecs:
        old("produce", broker.bootstrap, topic, codec, stdin="\n".join(OLD))
    expected = numbered(TODAY + OLD * len(codecs))
    assert old("consume", broker.bootstrap, topic).splitlines() == expected
    assert read_today(broker, topic) == expected


# Clients in Python since 2019


@pytest.mark.parametrize("version", ["1.4.7", "2.0.2"])
def test_old_kafka_python_writes_and_reads(broker: TailraceProcess, topic: str, version: str) -> None:
    old = python_with(f"kafka-python=={version}", "lz4==4.4.4")
    written_today(broker, topic)
    expected = numbered(TODAY + OLD)
    read = old(str(PYTHON / "kafka_python.py"), broker.bootstrap, topic, "lz4", stdin="\n".join(OLD))
    assert read.splitlines() == expected
    assert read_today(broker, topic) == expected


# Kafka's own clients since 2015. Consumers do not commit, because they would wait for a group coordinator.

JAVA = [
    pytest.param("kafka_2.11:0.8.2.2"),
    pytest.param("kafka_2.11:0.9.0.1", marks=pytest.mark.slow),
    pytest.param("kafka_2.11:0.10.2.2", marks=pytest.mark.slow),
    pytest.param("kafka_2.11:0.11.0.3", marks=pytest.mark.slow),
    pytest.param("kafka_2.11:1.1.1", marks=pytest.mark.slow),
    pytest.param("kafka_2.12:2.8.2", marks=pytest.mark.slow),
]


@pytest.mark.parametrize("release", JAVA)
def test_old_java_clients_write_and_read(broker: TailraceProcess, topic: str, release: str) -> None:
    jars = maven_jars(f"org.apache.kafka:{release}")
    version = tuple(map(int, release.split(":")[1].split(".")))
    written_today(broker, topic)
    servers, keys = (
        ("--broker-list", broker.bootstrap),
        ("--property", "parse.key=true", "--property", "key.separator=:"),
    )
    java_program(jars, "kafka.tools.ConsoleProducer")(
        *servers, "--topic", topic, *keys, "--compression-codec", "gzip", "--request-required-acks", "-1",
        stdin="\n".join(OLD) + "\n",
    )  # fmt: skip
    expected = TODAY + OLD
    assert read_today(broker, topic) == numbered(expected)

    ends = java_program(jars, "kafka.tools.GetOffsetShell")(*servers, "--topic", topic, "--time", "-1")
    assert ends.split() == [f"{topic}:0:{len(expected)}"]
    shown = ("--property", "print.key=true", "--property", "key.separator=:")
    if version < (0, 10):
        read = java_program(jars, "kafka.tools.SimpleConsumerShell")(
            *servers, "--topic", topic, "--partition", "0", "--offset", "-2", "--no-wait-at-logend", *shown
        )  # fmt: skip
        assert read.splitlines()[:-1] == expected
    else:
        read = java_program(jars, "kafka.tools.ConsoleConsumer")(
            *("--bootstrap-server", broker.bootstrap, "--topic", topic, "--partition", "0", "--offset", "earliest"),
            *("--max-messages", str(len(expected)), "--timeout-ms", "20000", *shown),
            *("--consumer-property", "enable.auto.commit=false"),
        )
        assert read.splitlines() == expected
