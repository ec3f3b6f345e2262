"""Kafka's tools with three Tailrace brokers and with three Kafka brokers print the same."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.cluster_twins import Cluster, ClusterTwins, cluster_twins
from tests.support.command import tailrace
from tests.support.kafka_install import KafkaInstallation
from tests.support.log_oracle import LogOracle

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

TOOLS = "org.apache.kafka.tools"
TOPICS = f"{TOOLS}.TopicCommand"
CONFIGS = "kafka.admin.ConfigCommand"
OFFSETS = f"{TOOLS}.GetOffsetShell"
REASSIGN = f"{TOOLS}.reassign.ReassignPartitionsCommand"
ELECTION = f"{TOOLS}.LeaderElectionCommand"
CLUSTER = f"{TOOLS}.ClusterTool"
QUORUM = f"{TOOLS}.MetadataQuorumCommand"
# Configs that only a secured broker has; Tailrace may have them or not.
SECURITY = {
    "DescribeAcls", "DescribeDelegationToken", "DescribeUserScramCredentials", "SaslAuthenticate", "SaslHandshake",
}  # fmt: skip
UNHEALTHY = ("--under-replicated-partitions", "--unavailable-partitions", "--under-min-isr-partitions")


@pytest.fixture(scope="module")
def twins(
    kafka: KafkaInstallation, log_oracle: LogOracle, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ClusterTwins]:
    with cluster_twins(kafka, log_oracle, tmp_path_factory.mktemp("twins")) as twins:
        yield twins


def create(twins: ClusterTwins, topic: str, placement: str, *config: str) -> None:
    options = [word for one in config for word in ("--config", one)]
    twins.both_do(TOPICS, "--create", "--topic", topic, "--replica-assignment", placement, *options)


def described(text: str) -> list[dict[str, Any]]:
    """Return the --describe output of each partition, with the ISR sorted: its order depends on which broker came back
    first.
    """
    found = []
    for line in text.splitlines():
        if "Partition:" in line:
            fields = dict(re.findall(r"(\w+): ?(\S*)", line))
            fields["Isr"] = ",".join(sorted(fields["Isr"].split(",")))
            found.append(fields)
    return found


def without_numbers(text: str) -> list[str]:
    return [re.sub(r"\d+", "N", line) for line in text.splitlines()]


def moves(path: Path, topic: str, *replicas: list[int]) -> str:
    partitions = [{"topic": topic, "partition": n, "replicas": ids} for n, ids in enumerate(replicas)]
    path.write_text(json.dumps({"version": 1, "partitions": partitions}))
    return str(path)


def status(cluster: Cluster, topic: str) -> Any:
    """Return the `tailrace cluster status` output of a topic's first partition."""
    reported = tailrace("cluster", "status", "--all", "--json", "--bootstrap", cluster.bootstrap).json
    return next(one for one in reported["partitions"] if (one["topic"], one["partition"]) == (topic, 0))


def test_topics_are_described_the_same(twins: ClusterTwins, topic: str) -> None:
    create(twins, topic, "1:2:3,2:3:1,3:1:2", "min.insync.replicas=2")
    output = twins.same(TOPICS, "--describe", "--topic", topic)
    assert len(output) == 4
    for flag in (*UNHEALTHY, "--at-min-isr-partitions"):
        assert twins.same(TOPICS, "--describe", flag) == []
    twins.both_do(TOPICS, "--delete", "--topic", topic)


def test_offsets_deleted_records_and_directories_are_the_same(twins: ClusterTwins, topic: str, tmp_path: Path) -> None:
    create(twins, topic, "1:2:3,2:3:1,3:1:2")
    for partition in range(3):
        twins.produce(topic, partition, [b"x" * 100] * (10 + partition))
    expected = [f"{topic}:{n}:{10 + n}" for n in range(3)]
    twins.becomes(expected, OFFSETS, "--topic", topic)
    for when in ("earliest", "latest", "max-timestamp", "earliest-local", "latest-tiered", "0"):
        twins.same(OFFSETS, "--topic", topic, "--time", when)
    wanted = tmp_path / "delete.json"
    offsets = [{"topic": topic, "partition": n, "offset": at} for n, at in enumerate((4, -1, 0))]
    wanted.write_text(json.dumps({"version": 1, "partitions": offsets}))
    deleted = twins.both_do(
        f"{TOOLS}.DeleteRecordsCommand",
        "--offset-json-file",
        str(wanted),
        view=lambda text: sorted(line for line in text.splitlines() if line.startswith("partition")),
    )
    assert deleted == [f"partition: {topic}-{n}\tlow_watermark: {at}" for n, at in enumerate((4, 11, 0))]
    twins.same(OFFSETS, "--topic", topic, "--time", "earliest")

    def directories(text: str) -> Any:
        reported = json.loads(text.splitlines()[-1])
        for broker in reported["brokers"]:
            for one in broker["logDirs"]:
                one["partitions"].sort(key=lambda partition: partition["partition"])
        return reported

    reported = twins.same(f"{TOOLS}.LogDirsCommand", "--describe", "--topic-list", topic, view=directories)
    assert [broker["broker"] for broker in reported["brokers"]] == [1, 2, 3]
    assert all(len(broker["logDirs"][0]["partitions"]) == 3 for broker in reported["brokers"])


def test_a_reassignment_is_generated_executed_and_verified(twins: ClusterTwins, topic: str, tmp_path: Path) -> None:
    create(twins, topic, "1:2,2:1")
    for partition in range(2):
        twins.produce(topic, partition, [b"x" * 1000] * 50)
    topics = tmp_path / "topics.json"
    topics.write_text(json.dumps({"version": 1, "topics": [{"topic": topic}]}))
    # The start of the proposal is random.
    generated = twins.both_do(
        REASSIGN, "--generate", "--topics-to-move-json-file", str(topics), "--broker-list", "1,2,3",
        view=lambda text: text.split("Proposed")[0],
    )  # fmt: skip
    assert '"replicas":[1,2]' in generated
    there = moves(tmp_path / "there.json", topic, [2, 3], [3, 2])
    twins.both_do(REASSIGN, "--execute", "--reassignment-json-file", there)
    done = ["Status of partition reassignment:"]
    done += [f"Reassignment of partition {topic}-{n} is completed." for n in range(2)]
    twins.becomes(done, REASSIGN, "--verify", "--preserve-throttles", "--reassignment-json-file", there)
    assert len(twins.same(REASSIGN, "--verify", "--reassignment-json-file", there)) > 3
    assert twins.same(REASSIGN, "--list") == ["No partition reassignments found."]
    found = twins.same(TOPICS, "--describe", "--topic", topic, view=described)
    assert [one["Replicas"] for one in found] == ["2,3", "3,2"]
    twins.becomes([f"{topic}:0:50", f"{topic}:1:50"], OFFSETS, "--topic", topic)


def test_a_reassignment_is_throttled_and_cancelled(twins: ClusterTwins, topic: str, tmp_path: Path) -> None:
    create(twins, topic, "1:2")
    # At least a megabyte is fetched before the throttle has an effect, and then one in eleven seconds.
    for _ in range(4):
        twins.produce(topic, 0, [b"x" * 100_000] * 50)
    there = moves(tmp_path / "there.json", topic, [2, 3])
    twins.both_do(REASSIGN, "--execute", "--throttle", "1000", "--reassignment-json-file", there)
    for about in (("topics", topic), ("brokers", "1"), ("brokers", "3")):
        output = twins.same(CONFIGS, "--describe", "--entity-type", about[0], "--entity-name", about[1])
        assert "replication.throttled" in "".join(output)
    assert twins.same(REASSIGN, "--list") != ["No partition reassignments found."]
    for cluster in twins.both:
        state = status(cluster, topic)
        assert (state["adding"], state["removing"], state["underReplicated"]) == ([3], [1], False)
        assert state["logEndOffsets"]["1"] == state["logEndOffsets"]["2"] == 200
        assert state["lag"] == {"2": 0, "3": 200 - state["logEndOffsets"]["3"]}
        assert state["lag"]["3"] > 0
    twins.both_do(REASSIGN, "--execute", "--additional", "--throttle", "2000", "--reassignment-json-file", there)
    twins.both_do(REASSIGN, "--cancel", "--reassignment-json-file", there)
    twins.becomes(["No partition reassignments found."], REASSIGN, "--list")
    for about in (("topics", topic), ("brokers", "1"), ("brokers", "3")):
        output = twins.same(CONFIGS, "--describe", "--entity-type", about[0], "--entity-name", about[1])
        assert "replication.throttled" not in "".join(output)
    found = twins.same(TOPICS, "--describe", "--topic", topic, view=described)
    assert [(sorted(one["Replicas"]), one["Isr"]) for one in found] == [([",", "1", "2"], "1,2")]

    twins.both_do(REASSIGN, "--execute", "--throttle", "100000000", "--reassignment-json-file", there)
    moved = [("2,3", "2,3")]
    twins.becomes(
        moved, TOPICS, "--describe", "--topic", topic,
        view=lambda text: [(one["Replicas"], one["Isr"]) for one in described(text)],
    )  # fmt: skip
    assert any("throttle" in line for line in twins.same(REASSIGN, "--verify", "--reassignment-json-file", there))


def test_preferred_and_unclean_elections_succeed(twins: ClusterTwins, topic: str) -> None:
    """A preferred leader after its broker was away, and an unclean leader on request."""
    create(twins, topic, "1:2:3,2:3:1", "min.insync.replicas=2")
    # with min.insync.replicas=2 the second would stay eligible (KIP-966)
    create(twins, f"{topic}-two", "1:2", "min.insync.replicas=1")
    about = ("--describe", "--topic", topic)
    twins.stop(1)
    found = twins.same(TOPICS, *about, view=described)
    assert [(one["Leader"], one["Isr"]) for one in found] == [("2", "2,3"), ("2", "2,3")]
    for flag in (*UNHEALTHY, "--at-min-isr-partitions"):
        twins.same(TOPICS, "--describe", flag, view=described)
    twins.same(CLUSTER, "list-endpoints", "--include-fenced-brokers", view=lambda text: sorted(text.splitlines()))
    twins.start(1)
    twins.becomes(
        ["1,2,3", "1,2,3"], TOPICS, *about, view=lambda text: [one["Isr"] for one in described(text)]
    )  # fmt: skip
    elected = twins.both_do(ELECTION, "--election-type", "preferred", "--topic", topic, "--partition", "0")
    assert elected == [f"Successfully completed leader election (PREFERRED) for partitions {topic}-0"]
    again = twins.both_do(ELECTION, "--election-type", "preferred", "--topic", topic, "--partition", "0")
    assert again == [f"Valid replica already elected for partitions {topic}-0"]
    twins.same(TOPICS, *about, view=described)

    two = ("--describe", "--topic", f"{topic}-two")
    twins.stop(2)
    twins.becomes(["1"], TOPICS, *two, view=lambda text: [one["Isr"] for one in described(text)])
    twins.stop(1)
    twins.becomes(["none"], TOPICS, *two, view=lambda text: [one["Leader"] for one in described(text)])
    assert twins.same(TOPICS, "--describe", "--unavailable-partitions", view=described)
    assert twins.same(TOPICS, "--describe", "--under-min-isr-partitions", view=described)
    twins.start(2)
    assert twins.same(TOPICS, *two, view=described)[0]["Leader"] == "none"
    elected = twins.both_do(ELECTION, "--election-type", "unclean", "--topic", f"{topic}-two", "--partition", "0")
    assert elected == [f"Successfully completed leader election (UNCLEAN) for partitions {topic}-two-0"]
    twins.becomes(["2"], TOPICS, *two, view=lambda text: [one["Leader"] for one in described(text)])
    twins.start(1)
    for name, isr in ((topic, ["1,2,3", "1,2,3"]), (f"{topic}-two", ["1,2"])):
        twins.becomes(
            isr, TOPICS, "--describe", "--topic", name, view=lambda text: [one["Isr"] for one in described(text)]
        )
    assert twins.same(TOPICS, "--describe", "--under-replicated-partitions") == []


def test_the_quorum_and_its_observers_are_described_the_same(twins: ClusterTwins) -> None:
    status = twins.same(QUORUM, "describe", "--status", view=without_numbers)
    assert any(line.startswith("CurrentObservers:") for line in status)
    roles = twins.same(
        QUORUM, "describe", "--replication",
        view=lambda text: sorted((int(line.split()[0]), line.split()[-1]) for line in text.splitlines()[1:] if line),
    )  # fmt: skip
    assert roles == [(1, "Observer"), (2, "Observer"), (3, "Observer"), (3000, "Leader")]
    for cluster in twins.both:
        text = twins.run(cluster, QUORUM, "describe", "--replication").text
        lags = [int(line.split()[3]) for line in text.splitlines()[1:] if line]
        assert max(lags) < 10, text


def test_features_and_api_versions_are_the_same(twins: ClusterTwins) -> None:
    features = twins.same(f"{TOOLS}.FeatureCommand", "describe", view=without_numbers)
    assert any(line.startswith("Feature: metadata.version") for line in features)

    ours, theirs = (twins.run(cluster, f"{TOOLS}.BrokerApiVersionsCommand").text for cluster in twins.both)
    assert versions(ours).keys() == versions(theirs).keys()
    assert len(versions(ours)) == 3
    for broker, usable in versions(ours).items():
        assert {name: one for name, one in usable.items() if one != versions(theirs)[broker].get(name)} == {}
        missing = versions(theirs)[broker].keys() - usable.keys()
        assert missing <= SECURITY, missing


def versions(text: str) -> dict[str, dict[str, str]]:
    """Return the version of each API that a client would use with each broker."""
    brokers = re.split(r"^(?=127)", text, flags=re.MULTILINE)[1:]
    return {one.splitlines()[0]: dict(re.findall(r"(\w+)\(\d+\): .*?\[usable: (\d+)\]", one)) for one in brokers}


def test_configs_of_each_broker_and_of_all_are_the_same(twins: ClusterTwins) -> None:
    one, every = (("--entity-type", "brokers", *which) for which in (("--entity-name", "2"), ("--entity-default",)))
    for about, setting in ((one, "message.max.bytes=2000000"), (every, "log.retention.ms=86400000")):
        twins.both_do(CONFIGS, "--alter", *about, "--add-config", setting)
        assert setting in "".join(twins.same(CONFIGS, "--describe", *about))
        twins.both_do(CONFIGS, "--alter", *about, "--delete-config", setting.partition("=")[0])
        assert setting not in "".join(twins.same(CONFIGS, "--describe", *about))
    twins.same(CONFIGS, "--describe", "--entity-type", "brokers")


def test_tailrace_cluster_status_prints_the_same_for_both(twins: ClusterTwins, topic: str) -> None:
    create(twins, topic, "1:2:3,2:3:1")
    twins.produce(topic, 0, [b"x"] * 30)
    seen = []
    for cluster in twins.both:
        output = tailrace("cluster", "status", "--all", "--json", "--wait", 60, "--bootstrap", cluster.bootstrap)
        assert (output.status, output.json["problems"]) == (0, [])
        quorum, brokers = output.json["quorum"], output.json["brokers"]
        of_topic = [one for one in output.json["partitions"] if one["topic"] == topic]
        seen.append(
            (
                [(one["id"], one["rack"], one["fenced"], one["replicas"], one["outOfSync"]) for one in brokers],
                quorum["leader"],
                [one["id"] for one in quorum["voters"]],
                [one["id"] for one in quorum["observers"]],
                of_topic,
            )
        )
        assert [one["lag"] for one in of_topic] == [{"2": 0, "3": 0}, {"1": 0, "3": 0}]
    assert seen[0] == seen[1]


def test_kafkas_replica_verification_finds_no_difference(
    twins: ClusterTwins, kafka: KafkaInstallation, topic: str
) -> None:
    """Kafka's own verification tool fetches from each replica and compares."""
    create(twins, topic, "1:2:3,3:2:1")
    for partition in range(2):
        twins.produce(topic, partition, [b"%d" % n for n in range(500)])
    for cluster in twins.both:
        tool = kafka.command(
            f"{TOOLS}.ReplicaVerificationTool", "--broker-list", cluster.bootstrap, "--topics-include", topic,
            "--report-interval-ms", "500", "--time", "-2",
        )  # fmt: skip
        running = subprocess.Popen(tool, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            assert running.stdout is not None
            deadline = time.monotonic() + 60
            reports: list[str] = []
            while len(reports) < 3 and time.monotonic() < deadline:
                line = running.stdout.readline()
                assert "doesn't match" not in line, line
                if "max lag is" in line:
                    reports.append(line)
            assert reports, f"{cluster.name}: nothing was verified"
            assert "max lag is 0 " in reports[-1], reports
        finally:
            running.send_signal(signal.SIGKILL)
            running.wait()
            running.stdout.close()


def test_a_stopped_broker_is_unregistered(twins: ClusterTwins) -> None:
    """This test must be the last one: it removes a broker."""
    twins.same(CLUSTER, "list-endpoints", view=lambda text: sorted(text.splitlines()))
    twins.same(CLUSTER, "cluster-id")
    twins.stop(3)
    twins.both_do(CLUSTER, "unregister", "--id", "3")
    listed = twins.same(
        CLUSTER, "list-endpoints", "--include-fenced-brokers", view=lambda text: sorted(text.splitlines())
    )
    assert not any("PORT3" in line for line in listed)
