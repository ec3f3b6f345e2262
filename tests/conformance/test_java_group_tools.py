"""kafka-consumer-groups and the console consumer print the same at Apache Kafka and at Tailrace."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.conformance.test_java_tools import TOPICS, Pair
from tests.support.group_watch import GroupWatch
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_install import KafkaInstallation
from tests.support.log_oracle import LogOracle
from tests.support.tailrace_process import TailraceProcess

pytestmark = pytest.mark.kafka

GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
CONSOLE = "org.apache.kafka.tools.consumer.ConsoleConsumer"
SETTINGS = {
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
}
VALUES = [str(number).encode() for number in range(20)]


@pytest.fixture(scope="module")
def pair(log_oracle: LogOracle, kafka: KafkaInstallation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    options = [part for name, text in SETTINGS.items() for part in ("-o", f"{name}={text}")]
    ours = TailraceProcess(tmp_path_factory.mktemp("tools") / "data", *options)
    with KafkaBroker(kafka, tmp_path_factory.mktemp("tools-kafka"), properties=SETTINGS) as theirs, ours:
        yield Pair(log_oracle, theirs, ours)
        assert ours.stop() == 0
    assert ours.errors == ""


def plain(text: str) -> str:
    """Return the text without member ids and without the column widths that depend on them."""
    text = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UUID", text)
    return re.sub(r" +", " ", text)


def same(pair: Pair, *arguments: str) -> str:
    ours, kafka = (pair.run(broker, GROUPS, *arguments) for broker in (pair.ours, pair.kafka))
    assert (ours.status, plain(ours.text)) == (kafka.status, plain(kafka.text))
    return ours.text


def test_offsets_of_a_group_without_members_are_printed_the_same(pair: Pair, topic: str) -> None:
    group = ("--group", f"group of {topic}")
    pair.same(TOPICS, "--create", "--topic", topic, "--partitions", "2")
    for partition in (0, 1):
        pair.produce(topic, partition, VALUES)
    reset = (*group, "--reset-offsets", "--topic", topic)
    same(pair, *reset, "--to-offset", "7", "--dry-run")
    same(pair, *reset, "--to-offset", "7", "--execute")
    assert f"{topic} 0 7 20 13" in plain(same(pair, *group, "--describe"))
    same(pair, *reset, "--shift-by", "-3", "--execute")
    same(pair, *reset, "--shift-by", "-100", "--dry-run")
    same(pair, *reset, "--to-latest", "--dry-run")
    same(pair, *reset, "--to-datetime", "2020-01-01T00:00:00.000", "--dry-run")
    same(pair, *reset, "--by-duration", "PT1H", "--dry-run")
    same(pair, *group, "--reset-offsets", "--topic", f"{topic}:1", "--to-earliest", "--execute")
    same(pair, *group, "--describe")
    same(pair, *group, "--describe", "--state")
    same(pair, *group, "--describe", "--members")
    same(pair, *group, "--delete-offsets", "--topic", f"{topic}:0")
    same(pair, *group, "--describe", "--offsets", "--verbose")
    assert group[1] in same(pair, "--list", "--state")
    same(pair, *group, "--delete")
    same(pair, *group, "--delete")
    same(pair, "--list")
    same(pair, "--describe", "--group", "nobody")


def test_a_group_with_members_is_described_the_same(pair: Pair, topic: str) -> None:
    pair.same(TOPICS, "--create", "--topic", topic, "--partitions", "2")
    name = f"group of {topic}"
    watches = [GroupWatch(broker.bootstrap, name, topic, session_ms=30_000) for broker in (pair.ours, pair.kafka)]
    try:
        for watch in watches:
            watch.start("librdkafka")
            watch.wait_until(lambda watch=watch: watch.members[0].owned == {0, 1})
        for partition in (0, 1):
            pair.produce(topic, partition, VALUES)
        for watch in watches:
            watch.wait_until(lambda watch=watch: len(watch.members[0].of("committed")) == 2 * len(VALUES))
        for option in ((), ("--members",), ("--members", "--verbose"), ("--state",), ("--offsets",)):
            described = same(pair, "--group", name, "--describe", *option)
            assert "rdkafka" in described or option == ("--state",)
        same(pair, "--group", name, "--delete")
        same(pair, "--group", name, "--reset-offsets", "--topic", topic, "--to-earliest", "--execute")
        same(pair, "--group", name, "--delete-offsets", "--topic", topic)
        for watch in watches:
            watch.members[0].leave()
        same(pair, "--group", name, "--describe")
        same(pair, "--group", name, "--delete")
    finally:
        for watch in watches:
            watch.end()


def test_the_console_consumer_resumes_at_the_committed_offsets_of_its_group(pair: Pair, topic: str) -> None:
    pair.same(TOPICS, "--create", "--topic", topic)
    pair.produce(topic, 0, VALUES)
    read = ("--topic", topic, "--group", topic, "--timeout-ms", "20000")
    first = pair.run(pair.ours, CONSOLE, *read, "--from-beginning", "--max-messages", "12")
    second = pair.run(pair.ours, CONSOLE, *read, "--max-messages", "8")
    numbers = re.findall(r"(?m)^\d+$", first.text + second.text)
    assert numbers == [value.decode() for value in VALUES]
