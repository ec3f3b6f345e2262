"""kafka-share-groups and `tailrace groups` print the same about share groups of Kafka and of Tailrace."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tailrace.model.errors import ErrorCode
from tailrace.protocol.messages import FindCoordinatorRequest, ShareGroupHeartbeatRequest
from tests.conformance.test_java_tools import TOPICS, Pair
from tests.support.command import tailrace
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_install import KafkaInstallation
from tests.support.log_oracle import LogOracle
from tests.support.raw_client import RawClient
from tests.support.tailrace_process import TailraceProcess

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

SHARES = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
SETTINGS = {
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.share.assignment.interval.ms": "0",
}
VALUES = [str(number).encode() for number in range(20)]
PATIENCE_S = 60


@pytest.fixture(scope="module")
def pair(log_oracle: LogOracle, kafka: KafkaInstallation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    options = [part for name, text in SETTINGS.items() for part in ("-o", f"{name}={text}")]
    ours = TailraceProcess(tmp_path_factory.mktemp("tools") / "data", *options)
    with KafkaBroker(kafka, tmp_path_factory.mktemp("tools-kafka"), properties=SETTINGS) as theirs, ours:
        yield Pair(log_oracle, theirs, ours, is_below_a_controller=False)
        assert ours.stop() == 0
    assert ours.errors == ""


def same(pair: Pair, *arguments: str) -> str:
    ours, kafka = (pair.run(broker, SHARES, *arguments) for broker in (pair.ours, pair.kafka))
    assert (ours.status, _plain(ours.text)) == (kafka.status, _plain(kafka.text))
    return _plain(ours.text)


def _plain(text: str) -> str:
    return re.sub(r" +", " ", text)


class Member:
    """A member with the same name at both brokers."""

    def __init__(self, pair: Pair, group: str, topic: str) -> None:
        self._clients = [RawClient(broker.bootstrap, client_id="sharer") for broker in (pair.ours, pair.kafka)]
        self._group = group
        for client in self._clients:
            self._join(client, topic)

    def _join(self, client: RawClient, topic: str) -> None:
        """Send heartbeats until all partitions are assigned."""
        deadline = time.monotonic() + PATIENCE_S
        while client.ask(FindCoordinatorRequest(key=self._group), 3).error_code:
            assert time.monotonic() < deadline
        epoch = 0
        while True:
            answer = self._beat(client, epoch, [topic])
            if answer.error_code == ErrorCode.NONE:
                epoch = answer.member_epoch
                if answer.assignment.topic_partitions:
                    return
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def _beat(self, client: RawClient, epoch: int, topics: list[str] | None = None) -> Any:
        request = ShareGroupHeartbeatRequest(
            group_id=self._group, member_id="member-1", member_epoch=epoch, subscribed_topic_names=topics
        )
        return client.ask(request, 1)

    def leave(self) -> None:
        for client in self._clients:
            assert self._beat(client, -1).error_code == 0
            client.close()


def test_kafka_share_groups_prints_the_same_at_both_brokers(pair: Pair, topic: str) -> None:
    name = f"group-of-{topic}"
    group = ("--group", name)
    pair.same(TOPICS, "--create", "--topic", topic, "--partitions", "2")
    for partition in (0, 1):
        pair.produce(topic, partition, VALUES)
    member = Member(pair, name, topic)
    assert "member-1" in same(pair, *group, "--describe", "--members")
    same(pair, *group, "--describe", "--members", "--verbose")
    assert "Stable" in same(pair, *group, "--describe", "--state")
    same(pair, *group, "--describe", "--state", "--verbose")
    same(pair, *group, "--describe")
    same(pair, *group, "--delete")
    same(pair, *group, "--reset-offsets", "--topic", topic, "--to-earliest", "--execute")
    member.leave()
    assert name in same(pair, "--list")
    same(pair, "--list", "--state", "empty")
    same(pair, *group, "--reset-offsets", "--topic", topic, "--to-earliest", "--dry-run")
    same(pair, *group, "--reset-offsets", "--topic", topic, "--to-earliest", "--execute")
    assert f"{topic} 0 0 20" in same(pair, *group, "--describe")
    same(pair, *group, "--describe", "--offsets", "--verbose")
    same(pair, *group, "--reset-offsets", "--topic", topic, "--to-latest", "--execute")
    same(pair, *group, "--describe")
    same(pair, *group, "--delete-offsets", "--topic", topic)
    same(pair, *group, "--describe")
    same(pair, *group, "--delete-offsets", "--topic", topic)
    same(pair, *group, "--delete")
    same(pair, *group, "--describe")
    same(pair, "--list")


def test_tailrace_groups_prints_the_same_at_both_brokers(pair: Pair, topic: str) -> None:
    name = f"group-of-{topic}"
    pair.same(TOPICS, "--create", "--topic", topic, "--partitions", "2")
    for partition in (0, 1):
        pair.produce(topic, partition, VALUES)
    brokers = (pair.ours, pair.kafka)

    def both(*arguments: str) -> Any:
        ran = [tailrace("groups", *arguments, "--json", "--bootstrap", broker.bootstrap) for broker in brokers]
        assert [(one.status, one.err) for one in ran] == [(0, ""), (0, "")]
        ours, kafka = (json.loads(one.out) for one in ran)
        assert ours == kafka
        return ours

    both("reset", name, "--share", "--topic", topic, "--to-offset", "7", "--execute")
    (group,) = both("describe", name)["groups"]
    assert (group["type"], [(one["committed"], one["lag"]) for one in group["partitions"]]) == ("share", [(7, 13)] * 2)
    member = Member(pair, name, topic)
    (group,) = both("describe", name)["groups"]
    assert [one["memberIds"] for one in group["partitions"]] == [["member-1"], ["member-1"]]
    refused = tailrace("groups", "reset", name, "--to-latest", "--execute", "--bootstrap", pair.ours.bootstrap)
    assert (refused.status, "has members" in refused.err) == (1, True)
    member.leave()
    both("reset", name, "--to-latest", "--execute")
    assert {one["lag"] for one in both("describe", name)["groups"][0]["partitions"]} == {0}
    both("delete-offsets", name, "--topic", topic)
    assert both("describe", name)["groups"][0]["partitions"] == []
    both("delete", name)
