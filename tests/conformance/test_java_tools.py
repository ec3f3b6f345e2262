"""Kafka's command line tools print the same at Apache Kafka and at Tailrace.

All tools run inside one JVM. Values that must differ (ids, directories, ports, epochs of the metadata log) are replaced
by words. The text of an error may differ: of a command that fails, only its status and the kind of error are compared.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from tailrace.protocol.messages import ApiVersionsRequest
from tests.support.confluent import produce
from tests.support.controller_twin import raw_request
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_controllers import KafkaControllers
from tests.support.kafka_install import KafkaInstallation
from tests.support.kraft_broker import kraft_broker
from tests.support.log_oracle import LogOracle
from tests.support.tailrace_process import TailraceProcess

pytestmark = pytest.mark.kafka

TOOLS = "org.apache.kafka.tools"
TOPICS = f"{TOOLS}.TopicCommand"
CONFIGS = "kafka.admin.ConfigCommand"
METRICS = f"{TOOLS}.ClientMetricsCommand"
OFFSETS = f"{TOOLS}.GetOffsetShell"
REASSIGN = f"{TOOLS}.reassign.ReassignPartitionsCommand"
ELECTION = f"{TOOLS}.LeaderElectionCommand"
LAG_S = 10  # a broker learns of a change a moment after the controller made it


class Printed(NamedTuple):
    status: int
    text: str


class Pair:
    """The two brokers, and tools to run at both."""

    def __init__(
        self, oracle: LogOracle, kafka: KafkaBroker, ours: TailraceProcess, *, is_below_a_controller: bool = False
    ) -> None:
        self.is_below_a_controller = is_below_a_controller
        self.oracle = oracle
        self.kafka = kafka
        self.ours = ours

    def same(self, tool: str, *arguments: str) -> str:
        """Run a tool at both, and return the common output."""
        ours = self.run(self.ours, tool, *arguments)
        deadline = time.monotonic() + LAG_S
        kafka = self.run(self.kafka, tool, *arguments)
        while kafka != ours and _only_asks(arguments) and time.monotonic() < deadline:
            time.sleep(0.1)
            kafka = self.run(self.kafka, tool, *arguments)
        assert ours == kafka
        return ours.text

    def refused(self, tool: str, *arguments: str) -> None:
        """Run a tool at both, and check that both refuse for the same reason."""
        ours, kafka = (self.run(broker, tool, *arguments) for broker in (self.ours, self.kafka))
        assert ours.status == kafka.status != 0
        assert _first_words(ours.text) == _first_words(kafka.text)

    def produce(self, topic: str, partition: int, values: list[bytes]) -> None:
        for broker in (self.ours, self.kafka):
            produce(broker.bootstrap, topic, partition, values)

    def run(self, broker: KafkaBroker | TailraceProcess, tool: str, *arguments: str) -> Printed:
        server = ["--bootstrap-server", broker.bootstrap]
        where = 1 if arguments and tool.endswith("ClusterTool") else 0  # after its verb
        line = [*arguments[:where], *server, *arguments[where:]]
        status, text = self.oracle.call("tool", **{"class": tool, "arguments": line})
        replaced = str(text).replace(broker.bootstrap, "BOOTSTRAP").replace(str(broker.data), "DATA")
        return Printed(int(status), replaced.replace(str(broker.port), "PORT"))


def _only_asks(arguments: tuple[str, ...]) -> bool:
    changes = {"--create", "--alter", "--delete", "--execute", "--cancel"}
    return not changes.intersection(arguments)


def _first_words(text: str) -> str:
    return re.split(r":|\. ", text.strip())[0]


@pytest.fixture(scope="module", params=["alone", pytest.param("below a controller", marks=pytest.mark.slow)])
def pair(
    request: pytest.FixtureRequest,
    log_oracle: LogOracle,
    kafka: KafkaInstallation,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Pair]:
    directory = tmp_path_factory.mktemp("tools")
    with ExitStack() as stack:
        theirs = stack.enter_context(KafkaBroker(kafka, tmp_path_factory.mktemp("tools-kafka")))
        if request.param == "alone":
            ours = TailraceProcess(directory / "data", "-o", "auto.create.topics.enable=false")
        else:
            controllers = stack.enter_context(KafkaControllers(kafka, directory))
            ours = kraft_broker(controllers, directory / "data", settings={"auto.create.topics.enable": "false"})
        stack.enter_context(ours)
        yield Pair(log_oracle, theirs, ours, is_below_a_controller=request.param != "alone")
        assert ours.stop() == 0
    if request.param == "alone":
        assert ours.errors == ""


def test_kafka_topics_creates_lists_alters_and_deletes(pair: Pair, topic: str) -> None:
    named = ("--topic", topic)
    shape = ("--partitions", "2", "--replication-factor", "1", "--config", "retention.ms=1000000")
    assert f"Created topic {topic}." in pair.same(TOPICS, "--create", *named, *shape)
    pair.refused(TOPICS, "--create", *named)
    pair.same(TOPICS, "--create", "--if-not-exists", *named)
    pair.refused(TOPICS, "--create", "--topic", "bad/name")
    pair.refused(TOPICS, "--create", "--topic", f"{topic}-wide", "--replication-factor", "2")
    pair.refused(TOPICS, "--create", "--topic", f"{topic}-odd", "--config", "no.such=1")
    pair.same(TOPICS, "--create", "--topic", f"{topic}-placed", "--replica-assignment", "1,1,1")
    assert pair.same(TOPICS, "--list").split() == [topic, f"{topic}-placed"]

    pair.refused(TOPICS, "--alter", *named, "--partitions", "1")
    pair.same(TOPICS, "--alter", *named, "--partitions", "4")
    for option in ("--under-replicated-partitions", "--unavailable-partitions", "--at-min-isr-partitions"):
        pair.same(TOPICS, "--describe", option)
    pair.refused(TOPICS, "--describe", "--topic", "nowhere")
    pair.same(TOPICS, "--delete", "--topic", f"{topic}-placed")
    pair.refused(TOPICS, "--delete", "--topic", "nowhere")
    pair.same(TOPICS, "--list")


def test_kafka_topics_describes_a_topic_the_same(pair: Pair, topic: str) -> None:
    pair.same(TOPICS, "--create", "--topic", topic, "--partitions", "2", "--config", "retention.ms=1000000")
    found = []
    for broker in (pair.ours, pair.kafka):
        text = pair.run(broker, TOPICS, "--describe", "--topic", topic).text
        found.append(re.sub(r"TopicId: \S{22}", "TopicId: ID", text))
    assert found[0] == found[1]
    assert "PartitionCount: 2" in found[0]


def test_kafka_configs_changes_topics_the_same(pair: Pair, topic: str) -> None:
    pair.same(TOPICS, "--create", "--topic", topic)
    about = ("--entity-type", "topics", "--entity-name", topic)
    pair.same(CONFIGS, *about, "--describe", "--all")
    changes = "max.message.bytes=5000,cleanup.policy=[compact,delete],retention.ms=77"
    pair.same(CONFIGS, *about, "--alter", "--add-config", changes)
    described = pair.same(CONFIGS, *about, "--describe")
    assert "cleanup.policy=compact,delete sensitive=false" in described
    pair.refused(CONFIGS, *about, "--alter", "--add-config", "max.message.bytes=x")
    pair.same(CONFIGS, *about, "--alter", "--delete-config", "segment.ms")
    pair.same(CONFIGS, *about, "--alter", "--delete-config", "retention.ms")
    pair.same(CONFIGS, *about, "--describe")


def test_kafka_configs_changes_brokers_the_same(pair: Pair) -> None:
    one, every = (("--entity-type", "brokers", *which) for which in (("--entity-name", "1"), ("--entity-default",)))
    pair.same(CONFIGS, *every, "--alter", "--add-config", "log.retention.ms=86400000")
    pair.same(CONFIGS, *one, "--alter", "--add-config", "message.max.bytes=2000000")
    pair.refused(CONFIGS, *one, "--alter", "--add-config", "node.id=7")
    assert "log.retention.ms=86400000" in pair.same(CONFIGS, *every, "--describe")
    assert "message.max.bytes=2000000" in pair.same(CONFIGS, *one, "--describe")
    pair.same(CONFIGS, *one, "--alter", "--delete-config", "message.max.bytes")
    pair.same(CONFIGS, *every, "--alter", "--delete-config", "log.retention.ms")
    assert "log.retention.ms" not in pair.same(CONFIGS, *every, "--describe")


def test_kafka_configs_changes_quotas_the_same(pair: Pair) -> None:
    for about, quota in (
        (("--entity-type", "clients", "--entity-name", "c1"), "producer_byte_rate=1024"),
        (("--entity-type", "clients", "--entity-default"), "consumer_byte_rate=2048"),
        (("--entity-type", "ips", "--entity-name", "10.0.0.1"), "connection_creation_rate=10"),
    ):
        pair.same(CONFIGS, *about, "--alter", "--add-config", quota)
        assert quota in pair.same(CONFIGS, *about, "--describe")
        pair.same(CONFIGS, *about[:2], "--describe")
        pair.refused(CONFIGS, *about, "--alter", "--add-config", "no.such=1")
        pair.same(CONFIGS, *about, "--alter", "--delete-config", quota.partition("=")[0])
        pair.same(CONFIGS, *about[:2], "--describe")


def test_kafka_client_metrics_keeps_subscriptions(pair: Pair) -> None:
    """As in Kafka without a receiver, clients do not learn about them."""
    assert pair.same(METRICS, "--list").strip() == ""
    some = ("--interval", "10000", "--metrics", "org.apache.kafka.producer.,org.apache.kafka.consumer.")
    pair.same(
        METRICS, "--alter", "--name", "m1", *some, "--match", "client_id=x,client_software_name=apache-kafka-java"
    )
    pair.same(METRICS, "--alter", "--name", "m2", "--interval", "500")
    assert pair.same(METRICS, "--list").split() == ["m1", "m2"]
    assert "interval.ms=10000" in pair.same(METRICS, "--describe", "--name", "m1")
    pair.same(METRICS, "--describe")
    pair.same(CONFIGS, "--entity-type", "client-metrics", "--describe")
    pair.refused(METRICS, "--alter", "--name", "m3", "--interval", "1")
    pair.refused(METRICS, "--alter", "--name", "m3", "--match", "no_such=x")
    pair.same(METRICS, "--alter", "--name", "m1", "--metrics", "")
    pair.same(METRICS, "--describe", "--name", "m1")
    for name in ("m1", "m2"):
        pair.same(METRICS, "--delete", "--name", name)
    assert pair.same(METRICS, "--list").strip() == ""


def test_kafka_get_offsets_prints_the_same(pair: Pair, topic: str) -> None:
    pair.same(TOPICS, "--create", "--topic", topic, "--partitions", "3")
    pair.produce(topic, 0, [b"x" * 100] * 30)
    pair.produce(topic, 2, [b"x" * 100] * 20)
    expected = [f"{topic}:0:30", f"{topic}:1:0", f"{topic}:2:20"]
    assert pair.same(OFFSETS, "--topic", topic).split() == expected
    for when in ("earliest", "latest", "earliest-local", "latest-tiered", "0", "9999999999999"):
        pair.same(OFFSETS, "--topic-partitions", f"{topic}:0-2", "--time", when)
    pair.same(OFFSETS, "--topic-partitions", f"{topic}:1,{topic}:2")
    pair.refused(OFFSETS, "--topic", "nowhere")


def test_kafka_delete_records_prints_the_same(pair: Pair, topic: str, tmp_path: Path) -> None:
    pair.same(TOPICS, "--create", "--topic", topic, "--partitions", "3")
    for partition in range(3):
        pair.produce(topic, partition, [b"x" * 100] * 30)
    wanted = tmp_path / "delete.json"
    offsets = [{"topic": topic, "partition": partition, "offset": at} for partition, at in enumerate((10, -1, 99))]
    wanted.write_text(json.dumps({"version": 1, "partitions": offsets}))
    output = []
    for broker in (pair.ours, pair.kafka):
        arguments = ["--bootstrap-server", broker.bootstrap, "--offset-json-file", str(wanted)]
        _, text = pair.oracle.call("tool", **{"class": f"{TOOLS}.DeleteRecordsCommand", "arguments": arguments})
        # the third offset is beyond the end: the error text is the broker's own
        output.append(sorted(line.partition("Exception: ")[0] for line in str(text).splitlines()))
    assert output[0] == output[1]
    assert f"partition: {topic}-0\tlow_watermark: 10" in output[0]
    assert f"partition: {topic}-1\tlow_watermark: 30" in output[0]
    pair.same(OFFSETS, "--topic", topic, "--time", "earliest")


def test_kafka_log_dirs_prints_the_same(pair: Pair, topic: str) -> None:
    pair.same(TOPICS, "--create", "--topic", topic)
    pair.produce(topic, 0, [b"x" * 100] * 30)
    output = pair.same(f"{TOOLS}.LogDirsCommand", "--describe", "--topic-list", topic)
    (broker,) = json.loads(output.splitlines()[-1])["brokers"]
    (partition,) = broker["logDirs"][0]["partitions"]
    assert partition["partition"] == f"{topic}-0"
    pair.refused(f"{TOOLS}.LogDirsCommand", "--describe", "--broker-list", "7")


def test_kafka_leader_election_prints_the_same(pair: Pair, topic: str, tmp_path: Path) -> None:
    pair.same(TOPICS, "--create", "--topic", topic)
    one = ("--topic", topic, "--partition", "0")
    wanted = tmp_path / "election.json"
    wanted.write_text(json.dumps({"partitions": [{"topic": topic, "partition": 0}]}))
    for kind in ("preferred", "unclean"):
        pair.same(ELECTION, "--election-type", kind, *one)
    pair.same(ELECTION, "--election-type", "preferred", "--path-to-json-file", str(wanted))
    pair.same(ELECTION, "--election-type", "preferred", "--all-topic-partitions")
    pair.refused(ELECTION, "--election-type", "preferred", "--topic", "nowhere", "--partition", "0")


def test_kafka_reassign_partitions_prints_the_same(pair: Pair, topic: str, tmp_path: Path) -> None:
    pair.same(TOPICS, "--create", "--topic", topic, "--partitions", "2")
    here, there, topics = (tmp_path / name for name in ("here.json", "there.json", "topics.json"))
    for file, broker in ((here, 1), (there, 2)):
        moves = [{"topic": topic, "partition": number, "replicas": [broker]} for number in range(2)]
        file.write_text(json.dumps({"version": 1, "partitions": moves}))
    topics.write_text(json.dumps({"version": 1, "topics": [{"topic": topic}]}))
    assert "No partition reassignments found." in pair.same(REASSIGN, "--list")
    pair.same(REASSIGN, "--generate", "--topics-to-move-json-file", str(topics), "--broker-list", "1")
    pair.same(REASSIGN, "--execute", "--reassignment-json-file", str(here))
    pair.same(REASSIGN, "--verify", "--reassignment-json-file", str(here))
    pair.refused(REASSIGN, "--execute", "--reassignment-json-file", str(there))
    pair.same(REASSIGN, "--cancel", "--reassignment-json-file", str(here))


def test_kafka_transactions_describes_the_producers_of_a_partition_the_same(pair: Pair, topic: str) -> None:
    pair.same(TOPICS, "--create", "--topic", topic)
    pair.produce(topic, 0, [b"x"] * 5)
    asked = ("describe-producers", "--topic", topic, "--partition", "0")
    rows = []
    for broker in (pair.ours, pair.kafka):
        text = pair.oracle.tool(f"{TOOLS}.TransactionsCommand", "--bootstrap-server", broker.bootstrap, *asked)
        header, row = (line.split() for line in text.splitlines())
        found = dict(zip(header, row, strict=True))
        del found["ProducerId"], found["LastTimestamp"]
        rows.append(found)
    assert rows[0] == rows[1]


def test_the_verifiable_producer_writes_all_records(pair: Pair, kafka: KafkaInstallation, topic: str) -> None:
    """The tool runs in its own JVM, because it flushes when the JVM ends."""
    pair.same(TOPICS, "--create", "--topic", topic)
    arguments = ("--topic", topic, "--max-messages", "5", "--acks", "-1", "--value-prefix", "7")
    output = []
    for broker in (pair.ours, pair.kafka):
        text = kafka.tool(f"{TOOLS}.VerifiableProducer", "--bootstrap-server", broker.bootstrap, *arguments)
        lines = [json.loads(line) for line in text.splitlines()]
        output.append([{name: line.get(name) for name in ("name", "value", "offset", "acked")} for line in lines])
    assert output[0] == output[1]
    written = [(line["value"], line["offset"]) for line in output[0] if line["name"] == "producer_send_success"]
    assert written == [(f"7.{number}", number) for number in range(5)]


def words(pair: Pair, tool: str, *arguments: str) -> list[str]:
    """Return the common output of a tool, without ids and numbers of the metadata log."""
    found = []
    for broker in (pair.ours, pair.kafka):
        text = pair.oracle.tool(tool, "--bootstrap-server", broker.bootstrap, *arguments)
        text = re.sub(r"(?<![\w-])[\w-]{22}(?![\w-])|127\.0\.0\.1:\d+", "ID", text)
        found.append([re.sub(r"\d{2,}", "N", line.rstrip()) for line in text.splitlines()])
    assert found[0] == found[1]
    return found[0]


def test_kafka_metadata_quorum_prints_the_same(pair: Pair) -> None:
    if pair.is_below_a_controller:
        text = pair.run(pair.ours, f"{TOOLS}.MetadataQuorumCommand", "describe", "--status").text
        assert re.search(r"^LeaderId: +3000$", text, re.MULTILINE)
        assert re.search(
            r'^CurrentObservers: +\[\{"id": 1, "directoryId": "[A-Za-z0-9_-]{22}"\}\]$', text, re.MULTILINE
        )
        return
    status = words(pair, f"{TOOLS}.MetadataQuorumCommand", "describe", "--status")
    assert any(line.startswith("CurrentVoters:") for line in status)


def test_kafka_features_prints_the_same(pair: Pair) -> None:
    features = f"{TOOLS}.FeatureCommand"
    described = words(pair, features, "describe")
    assert any(line.startswith("Feature: metadata.version") for line in described)
    pair.same(features, "version-mapping")
    pair.same(features, "feature-dependencies", "--feature", "transaction.version=2")
    pair.same(features, "upgrade", "--feature", "share.version=1", "--dry-run")
    pair.refused(features, "upgrade", "--feature", "group.version=9", "--dry-run")


def test_kafka_cluster_prints_the_same(pair: Pair) -> None:
    listed = pair.same(f"{TOOLS}.ClusterTool", "list-endpoints")
    assert "PORT" in listed
    pair.refused(f"{TOOLS}.ClusterTool", "unregister", "--id", "7")


def test_api_versions_lists_the_same_apis_as_kafka(pair: Pair) -> None:
    """Latest versions are Kafka's; oldest versions are Kafka's or older."""
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    ours, theirs = (
        {one.api_key: one for one in raw_request(broker.port, request, 3).api_keys}  # type: ignore[attr-defined]
        for broker in (pair.ours, pair.kafka)
    )
    assert list(ours) == list(theirs)
    assert len(ours) == 75
    assert {key: one.max_version for key, one in ours.items()} == {key: one.max_version for key, one in theirs.items()}
    assert {key: one.min_version for key, one in ours.items() if one.min_version > theirs[key].min_version} == {}


def test_kafka_broker_api_versions_shows_the_latest_versions_of_kafka(pair: Pair) -> None:
    """Without a receiver, neither broker offers telemetry."""
    usable = []
    for broker in (pair.ours, pair.kafka):
        text = pair.oracle.tool(f"{TOOLS}.BrokerApiVersionsCommand", "--bootstrap-server", broker.bootstrap)
        usable.append(dict(re.findall(r"(\w+)\(\d+\): (?:.*\[usable: (\d+)\]|UNSUPPORTED)", text)))
    ours, theirs = usable
    assert ours.keys() == theirs.keys()
    assert ours == theirs
    for name in ("GetTelemetrySubscriptions", "PushTelemetry"):
        assert (ours[name], theirs[name]) == ("", "")
