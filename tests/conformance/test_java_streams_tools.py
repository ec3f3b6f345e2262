"""kafka-streams-groups prints the same at Apache Kafka and at Tailrace, and `tailrace groups` shows the
groups of both.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from tailrace.protocol.messages import DeleteGroupsRequest, OffsetCommitRequest
from tests.conformance.test_java_tools import TOPICS, Pair
from tests.support.command import tailrace
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_install import KafkaInstallation
from tests.support.log_oracle import LogOracle
from tests.support.raw_client import RawClient
from tests.support.streams_member import StreamsMember, reconcile, word_count
from tests.support.tailrace_process import TailraceProcess

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

STREAMS = "org.apache.kafka.tools.streams.StreamsGroupCommand"
SETTINGS = {
    "auto.create.topics.enable": "false",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.assignment.interval.ms": "0",
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


def same(pair: Pair, *arguments: str) -> str:
    """Return the output of both, sorted: the order of members and partitions is that of hash maps."""
    ours, kafka = (pair.run(broker, STREAMS, *arguments) for broker in (pair.ours, pair.kafka))
    assert (ours.status, _plain(ours.text)) == (kafka.status, _plain(kafka.text))
    return ours.text


def commit(client: RawClient, member: StreamsMember, topic: str, offset: int) -> None:
    """Commit an offset of both partitions, in the member's epoch."""
    partition = OffsetCommitRequest.OffsetCommitRequestPartition
    request = OffsetCommitRequest(
        group_id=member.group,
        member_id=member.member_id,
        generation_id_or_member_epoch=member.epoch,
        topics=[
            OffsetCommitRequest.OffsetCommitRequestTopic(
                name=topic,
                partitions=[partition(partition_index=number, committed_offset=offset) for number in (0, 1)],
            )
        ],
    )
    assert {one.error_code for one in client.ask(request, 9).topics[0].partitions} == {0}


def _plain(text: str) -> list[str]:
    return sorted(re.sub(r" +", " ", line).strip() for line in text.splitlines())


def test_an_application_with_and_without_members_is_described_the_same(pair: Pair, topic: str) -> None:
    group = "app"
    pair.same(TOPICS, "--create", "--topic", topic, "--partitions", "2")
    for partition in (0, 1):
        pair.produce(topic, partition, VALUES)
    named = ("--group", group)
    members = {}
    for broker in (pair.ours, pair.kafka):
        with RawClient(broker.bootstrap) as client:
            first = StreamsMember(group, "first", word_count(group, topic))
            reconcile(client, [first], tasks=4)  # now the topics exist, and epochs are the same at both
            first.leave(client)
            assert client.ask(DeleteGroupsRequest(groups_names=[group]), 2).results[0].error_code == 0
            members[broker] = [StreamsMember(group, name, word_count(group, topic)) for name in ("m1", "m2")]
            reconcile(client, members[broker], tasks=4)
            commit(client, members[broker][0], topic, 3)
    assert group in same(pair, "--list")
    assert "Stable" in same(pair, "--list", "--state")
    same(pair, "--list", "--state", "Empty")
    assert "Stable" in same(pair, "--describe", *named, "--state")
    same(pair, "--describe", *named, "--state", "--verbose")
    assert "m1" in same(pair, "--describe", *named, "--members")
    same(pair, "--describe", *named, "--members", "--verbose")
    same(pair, "--describe", *named)
    same(pair, "--describe", *named, "--offsets", "--verbose")
    same(pair, "--delete", *named)

    reported = tailrace("groups", "describe", group, "--json", "--bootstrap", pair.ours.bootstrap)
    (described,) = json.loads(reported.out)["groups"]
    assert (described["type"], described["state"]) == ("streams", "Stable")
    assert sorted(one["memberId"] for one in described["members"]) == ["m1", "m2"]
    assert {(one["topic"], one["partition"]) for one in described["partitions"]} == {
        (name, number) for name in (topic, f"{group}-words-repartition") for number in (0, 1)
    }
    assert "streams" in tailrace("groups", "list", "--bootstrap", pair.ours.bootstrap).out

    for broker, of in members.items():
        with RawClient(broker.bootstrap) as client:
            for member in of:
                member.leave(client)
    reset = (*named, "--reset-offsets", "--input-topic", topic)
    same(pair, *reset, "--to-offset", "7", "--dry-run")
    same(pair, *reset, "--to-offset", "7", "--execute")
    same(pair, "--describe", *named)
    reported = tailrace("groups", "describe", group, "--json", "--bootstrap", pair.ours.bootstrap)
    (described,) = json.loads(reported.out)["groups"]
    assert {one["committed"] for one in described["partitions"] if one["topic"] == topic} == {7}
    same(pair, *reset, "--shift-by", "3", "--execute")
    same(pair, *reset, "--to-latest", "--dry-run")
    same(pair, "--delete-offsets", *named, "--input-topic", f"{topic}:0")
    same(pair, "--describe", *named)
    assert "Empty" in same(pair, "--list", "--state")
    same(pair, "--delete", *named)
    same(pair, "--list")
    same(pair, "--describe", *named)
