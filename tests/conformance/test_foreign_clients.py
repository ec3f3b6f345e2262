"""Clients in other languages, each with the same scenario at Apache Kafka and at Tailrace.

The scenario: create a topic, write with every codec of the client, read the records back, look up offsets, read and
change configs, delete records, add a partition, delete the topic. `tests/support/clients` has the programs.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.confluent import create_topic
from tests.support.foreign_clients import Program, go_program, node_program, rust_program

PARTITIONS = 3
PER_CODEC = 60
FIRST_TIME_MS = 1_700_000_000_000


def record(number: int) -> dict[str, Any]:
    return {
        "partition": number % PARTITIONS,
        "offset": number // PARTITIONS,
        "timestamp": FIRST_TIME_MS + number,
        "key": f"key-{number}",
        "value": f"value {number} " * (number % 50 + 1),
        "header": str(number),
    }


def reported(codecs: int, *, without: set[str] = frozenset()) -> dict[str, Any]:
    """Return the expected output of a client that wrote with a number of codecs."""
    count = codecs * PER_CODEC
    records = sorted(map(record, range(count)), key=lambda one: (one["partition"], one["offset"]))
    everything = {
        "created again": "TOPIC_ALREADY_EXISTS",
        "records": records,
        "unknown topic": "UNKNOWN_TOPIC_OR_PARTITION",
        "too large": "MESSAGE_TOO_LARGE",
        "earliest": {"0": 0, "1": 0, "2": 0},
        "latest": {str(partition): count // PARTITIONS for partition in range(PARTITIONS)},
        "at time": {"0": 10, "1": 10, "2": 10},
        "config": {"max.message.bytes": "1000000", "retention.ms": "-1"},
        "config changed": "2000000",
        "cut": 5,
        "out of range": "OFFSET_OUT_OF_RANGE",
        "partitions": PARTITIONS + 1,
        "deleted": "UNKNOWN_TOPIC_OR_PARTITION",
    }
    return {name: fact for name, fact in everything.items() if name not in without}


def report(program: Program, *arguments: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(program(*arguments))
    return answer


def test_franz_go_runs_the_scenario(bootstrap: str, topic: str) -> None:
    assert report(go_program("franz"), bootstrap, topic) == reported(codecs=5)


def test_sarama_runs_the_scenario(bootstrap: str, topic: str) -> None:
    """Without an unknown topic: sarama waits until it appears."""
    assert report(go_program("sarama"), bootstrap, topic) == reported(codecs=5, without={"unknown topic"})


@pytest.mark.parametrize("client", ["franz", "sarama"])
def test_franz_go_runs_the_scenario_with_the_protocol_of_2019(bootstrap: str, topic: str, client: str) -> None:
    """In these versions no header or message is flexible."""
    found = report(go_program(client), bootstrap, topic, "2.3.0")
    found.pop("unknown topic", None)
    assert found == reported(codecs=5, without={"unknown topic"})


def test_segmentio_kafka_go_runs_the_scenario(bootstrap: str, topic: str) -> None:
    """Without DeleteRecords, which it lacks, and without a large record, which its writer refuses itself."""
    without = {"unknown topic", "too large", "cut", "out of range"}
    assert report(go_program("segmentio"), bootstrap, topic) == reported(codecs=5, without=without)


def test_kafkajs_runs_the_scenario(bootstrap: str, topic: str) -> None:
    """Only with gzip: other codecs are separate packages. Reading without a group is not part of its public API."""
    assert report(node_program("kafkajs.js"), bootstrap, topic) == reported(codecs=2, without={"out of range"})


@pytest.mark.slow  # building takes a minute
def test_rskafka_runs_the_scenario(bootstrap: str, topic: str) -> None:
    create_topic(bootstrap, topic, PARTITIONS, {"retention.ms": "-1"})
    without = {"unknown topic", "config", "config changed", "partitions"}
    assert report(rust_program("rskafka"), bootstrap, topic) == reported(codecs=5, without=without)
