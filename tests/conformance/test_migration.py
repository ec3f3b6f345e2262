"""`tailrace migrate` with real controllers: the state of a standalone node is kept in the cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

import tailrace
from tests.support.command import contents
from tests.support.command import tailrace as command
from tests.support.confluent import consume, produce
from tests.support.kafka_broker import KafkaBroker, free_port
from tests.support.kafka_install import KafkaInstallation
from tests.support.migrated import MigratedController, migrated_broker
from tests.support.replicated_cluster import PATIENCE_S, ReplicatedCluster, eventually
from tests.support.tailrace_process import TailraceProcess

CONFIGS = "kafka.admin.ConfigCommand"
QUORUM = "org.apache.kafka.tools.MetadataQuorumCommand"
REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
FEW = {"offsets.topic.num.partitions": "2", "transaction.state.log.num.partitions": "2"}
OVERRIDES = [part for key, text in FEW.items() for part in ("-o", f"{key}={text}")]


def addresses(count: int) -> list[str]:
    return [f"{3000 + number}@127.0.0.1:{free_port()}" for number in range(count)]


def migrate(*arguments: object, controllers: Sequence[str]) -> None:
    words = [part for one in controllers for part in ("--controller", one)]
    ran = command("migrate", *arguments, *words)
    assert ran.status == 0, ran.err


@contextmanager
def running(kafka: KafkaInstallation, target: Path) -> Iterator[list[MigratedController]]:
    """Run the controller processes of a migration."""
    with ExitStack() as stack:
        nodes = []
        for path in sorted(target.glob("controller-*/controller.properties")):
            node = MigratedController(kafka, path)
            stack.callback(node._kill)
            node.start()
            nodes.append(node)
        yield nodes


def group(bootstrap: str, name: str, protocol: str, topic: str) -> Consumer:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": name,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic])
    return consumer


def take(consumer: Consumer, count: int) -> list[bytes]:
    found: list[bytes] = []

    def has_enough() -> bool:
        message = consumer.poll(0.5)
        if message is not None:
            assert message.error() is None, message.error()
            found.append(message.value() or b"")
        return len(found) >= count

    eventually(has_enough, f"{count} records")
    return found


def topic_ids(kafka: KafkaInstallation, bootstrap: str) -> dict[str, str]:
    text = kafka.tool("org.apache.kafka.tools.TopicCommand", "--bootstrap-server", bootstrap, "--describe")
    rows = [line.split("\t") for line in text.splitlines() if line.startswith("Topic: ")]
    return {row[0].split()[1]: row[1].split()[1] for row in rows}


def configs(kafka: KafkaInstallation, bootstrap: str, *words: str) -> str:
    # For a user, kafka-configs prints the quotas first, and then fails at credentials, which Tailrace does not list.
    return kafka.tool(CONFIGS, "--bootstrap-server", bootstrap, *words, check=False)


def members(kafka: KafkaInstallation, bootstrap: str) -> dict[int, str]:
    """Return the replicas of the metadata log with their roles."""
    text = kafka.tool(QUORUM, "--bootstrap-server", bootstrap, "describe", "--replication")
    rows = [line.split() for line in text.splitlines()[1:] if line.strip()]
    return {int(row[0]): row[6] for row in rows}


@pytest.mark.kafka
@pytest.mark.slow
def test_a_migrated_tailrace_node_keeps_all_its_state(kafka: KafkaInstallation, tmp_path: Path) -> None:
    data, target = tmp_path / "data", tmp_path / "cluster"
    alone = TailraceProcess(data, *OVERRIDES)
    with alone:
        admin = AdminClient({"bootstrap.servers": alone.bootstrap})
        wanted = [
            NewTopic("orders", 1, config={"retention.ms": "123456789"}),
            NewTopic("prices", 1, config={"cleanup.policy": "compact"}),
            NewTopic("paid", 1),
        ]
        for future in admin.create_topics(wanted).values():
            future.result(PATIENCE_S)
        produce(alone.bootstrap, "prices", 0, [b"1", b"2"])
        sequenced = Producer({"bootstrap.servers": alone.bootstrap, "enable.idempotence": True})
        for number in range(10):
            sequenced.produce("orders", b"before %d" % number, partition=0)
        assert sequenced.flush(PATIENCE_S) == 0
        for name, protocol, count in (("classic", "classic", 4), ("modern", "consumer", 7)):
            consumer = group(alone.bootstrap, name, protocol, "orders")
            last = take(consumer, count)[-1]
            assert last == b"before %d" % (count - 1)
            consumer.commit(offsets=[TopicPartition("orders", 0, count)], asynchronous=False)
            consumer.close()
        patient = {"transaction.timeout.ms": 600_000}  # on a busy machine the open transaction must not time out
        paying = Producer({"bootstrap.servers": alone.bootstrap, "transactional.id": "payer", **patient})
        paying.init_transactions(PATIENCE_S)
        paying.begin_transaction()
        paying.produce("paid", b"in time", partition=0)
        paying.commit_transaction(PATIENCE_S)
        paying.begin_transaction()
        paying.produce("paid", b"over the migration", partition=0)
        assert paying.flush(PATIENCE_S) == 0
        quota = ("--alter", "--add-config", "producer_byte_rate=12345678", "--entity-type", "users")
        configs(kafka, alone.bootstrap, *quota, "--entity-name", "alice")
        ids = topic_ids(kafka, alone.bootstrap)
        assert alone.stop() == 0

    controllers = addresses(1)
    migrate("--data", data, "--to", target, *OVERRIDES, controllers=controllers)
    cluster_id = (data / "meta.properties").read_text().split("cluster.id=")[1].splitlines()[0]
    with pytest.raises(
        AssertionError, match=r"belongs to a quorum of the voters \[3000\]; node 1 cannot lead it alone"
    ):
        TailraceProcess(data).start()
    with running(kafka, target), migrated_broker(target, data, alone.port) as first:
        assert topic_ids(kafka, first.bootstrap) == ids
        assert members(kafka, first.bootstrap) == {3000: "Leader", 1: "Observer"}
        status = kafka.tool(QUORUM, "--bootstrap-server", first.bootstrap, "describe", "--status")
        assert cluster_id in status
        assert '"id": 1,' not in status.split("CurrentVoters:")[1].split("CurrentObservers:")[0]
        kept = configs(kafka, first.bootstrap, "--describe", "--entity-type", "topics", "--entity-name", "orders")
        assert "retention.ms=123456789" in kept
        kept = configs(kafka, first.bootstrap, "--describe", "--entity-type", "users", "--entity-name", "alice")
        assert "producer_byte_rate=1.2345678E7" in kept

        for number in range(5):
            sequenced.produce("orders", b"after %d" % number, partition=0)
        assert sequenced.flush(PATIENCE_S) == 0
        expected = [b"before %d" % number for number in range(10)] + [b"after %d" % number for number in range(5)]
        assert [one.value for one in consume(first.bootstrap, "orders", 0)] == expected
        for name, protocol, count in (("classic", "classic", 4), ("modern", "consumer", 7)):
            consumer = group(first.bootstrap, name, protocol, "orders")
            assert take(consumer, len(expected) - count) == expected[count:]
            consumer.commit(asynchronous=False)
            consumer.close()
        paying.commit_transaction(PATIENCE_S)
        paying.begin_transaction()
        paying.produce("paid", b"later", partition=0)
        paying.commit_transaction(PATIENCE_S)
        committed = group(first.bootstrap, "auditor", "classic", "paid")
        assert take(committed, 3) == [b"in time", b"over the migration", b"later"]
        committed.close()
        assert [one.value for one in consume(first.bootstrap, "prices", 0)] == [b"1", b"2"]

        grown(kafka, tmp_path, target, first, expected)


def grown(
    kafka: KafkaInstallation, tmp_path: Path, target: Path, first: TailraceProcess, expected: list[bytes]
) -> None:
    """Let a broker of Tailrace and one of Kafka join, and give them a replica of every partition."""
    bootstrap = (target / "broker.properties").read_text().split("controller.quorum.bootstrap.servers=")[1].split()[0]
    below = {
        "process.roles": "broker",
        "controller.quorum.bootstrap.servers": bootstrap,
        "controller.listener.names": "CONTROLLER",
    }
    options = [part for key, text in {**below, "node.id": "2"}.items() for part in ("-o", f"{key}={text}")]
    second = TailraceProcess(tmp_path / "second", *options)
    second.ready_timeout_s = 120
    third = _Member(kafka, tmp_path / "third", below, first.data)
    with second, third:
        cluster = ReplicatedCluster({1: first, 2: second})
        eventually(lambda: set(members(kafka, first.bootstrap)) == {1, 2, 3, 3000}, "three brokers")
        places = [
            {"topic": topic, "partition": partition, "replicas": [1, 2, 3]}
            for topic in ("orders", "prices", "paid", "__consumer_offsets", "__transaction_state")
            for partition in range(2 if topic.startswith("__") else 1)
        ]
        plan = tmp_path / "plan.json"
        plan.write_text(json.dumps({"version": 1, "partitions": places}))
        kafka.tool(
            REASSIGN,
            *("--bootstrap-server", first.bootstrap, "--reassignment-json-file", str(plan), "--execute"),
        )
        for place in places:
            cluster.await_isr(str(place["topic"]), int(str(place["partition"])), [1, 2, 3])
        assert first.stop() == 0
        rest = ReplicatedCluster({2: second})
        rest.await_leader("orders", 0, [2, 3])
        assert [one.value for one in consume(second.bootstrap, "orders", 0)] == expected
        produce(second.bootstrap, "orders", 0, [b"grown"])
        for name, protocol in (("classic", "classic"), ("modern", "consumer")):
            consumer = group(second.bootstrap, name, protocol, "orders")
            assert take(consumer, 1) == [b"grown"]
            consumer.close()
        paying = Producer({"bootstrap.servers": second.bootstrap, "transactional.id": "payer"})
        paying.init_transactions(PATIENCE_S)
        paying.begin_transaction()
        paying.produce("paid", b"elsewhere", partition=0)
        paying.commit_transaction(PATIENCE_S)
        first.start()
        for place in places:
            cluster.await_isr(str(place["topic"]), int(str(place["partition"])), [1, 2, 3])


class _Member(KafkaBroker):
    """Return a broker of Kafka in the cluster of a data directory."""

    def __init__(self, installation: KafkaInstallation, directory: Path, below: dict[str, str], like: Path) -> None:
        self._below = below
        self._like = like
        super().__init__(installation, directory)

    def _default_properties(self) -> dict[str, str]:
        settings = super()._default_properties() | self._below
        return settings | {"node.id": "3", "listeners": f"PLAINTEXT://127.0.0.1:{self.port}"}

    def _format(self, settings: Path) -> None:
        cluster_id = (self._like / "meta.properties").read_text().split("cluster.id=")[1].splitlines()[0]
        arguments = ("format", f"--cluster-id={cluster_id}", "-c", str(settings), "--no-initial-controllers")
        self.installation.tool("kafka.tools.StorageTool", *arguments)


@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.parametrize("quorum", ["dynamic", "static"])
def test_a_migration_to_three_controllers_forms_a_quorum(kafka: KafkaInstallation, tmp_path: Path, quorum: str) -> None:
    data, target = tmp_path / "data", tmp_path / "cluster"
    with tailrace.Broker(data) as alone:
        alone.create_topic("orders")
        port = alone.port
        produce(alone.bootstrap, "orders", 0, [b"a"])
    migrate("--data", data, "--to", target, "--quorum", quorum, *OVERRIDES, controllers=addresses(3))
    with running(kafka, target) as controllers, migrated_broker(target, data, port) as broker:
        found = members(kafka, broker.bootstrap)
        assert sorted(found) == [1, 3000, 3001, 3002]
        assert sorted(found.values()) == ["Follower", "Follower", "Leader", "Observer"]
        leader = next(one for one, role in found.items() if role == "Leader")
        controllers[leader - 3000].crash()
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        admin.create_topics([NewTopic("later", 1)])["later"].result(PATIENCE_S)
        assert produce(broker.bootstrap, "orders", 0, [b"b"]) == [1]
        assert [one.value for one in consume(broker.bootstrap, "orders", 0)] == [b"a", b"b"]


class _Combined(KafkaBroker):
    """Return a Kafka node that is broker and controller, with a static or dynamic quorum."""

    is_static = False

    def _default_properties(self) -> dict[str, str]:
        settings = super()._default_properties()
        if self.is_static:
            del settings["controller.quorum.bootstrap.servers"]
            settings["controller.quorum.voters"] = f"1@127.0.0.1:{self.controller_port}"
        return settings

    def _format(self, settings: Path) -> None:
        if not self.is_static:
            super()._format(settings)
            return
        arguments = ("format", "--cluster-id=5mMaLsSiSzukRaP023ybvA", "-c", str(settings))
        self.installation.tool("kafka.tools.StorageTool", *arguments)


class _Static(_Combined):
    is_static = True


@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.parametrize(("kind", "crashes"), [(_Combined, False), (_Combined, True), (_Static, False)])
def test_a_migrated_kafka_node_keeps_all_its_state(
    kafka: KafkaInstallation, tmp_path: Path, kind: type[_Combined], crashes: bool
) -> None:
    alone = kind(kafka, tmp_path / "kafka")
    target = tmp_path / "cluster"
    with alone:
        admin = AdminClient({"bootstrap.servers": alone.bootstrap})
        admin.create_topics([NewTopic("orders", 2)])["orders"].result(PATIENCE_S)
        produce(alone.bootstrap, "orders", 1, [b"a", b"b", b"c"])
        scram = ("--alter", "--add-config", "SCRAM-SHA-256=[password=secret]", "--entity-type", "users")
        configs(kafka, alone.bootstrap, *scram, "--entity-name", "bob")
        consumer = group(alone.bootstrap, "readers", "consumer", "orders")
        take(consumer, 2)
        consumer.commit(offsets=[TopicPartition("orders", 1, 2)], asynchronous=False)
        consumer.close()
        ids = topic_ids(kafka, alone.bootstrap)
        alone.crash() if crashes else alone.stop()
    settings = tmp_path / "kafka" / "server.properties"
    migrate("--config", settings, "--to", target, controllers=addresses(1))
    reported = (target / "broker.properties").read_text()
    assert ("controller.quorum.voters=3000@" in reported) is kind.is_static
    with running(kafka, target):
        with migrated_broker(target, alone.data, alone.port) as broker:
            assert topic_ids(kafka, broker.bootstrap) == ids
            assert members(kafka, broker.bootstrap) == {3000: "Leader", 1: "Observer"}
            consumer = group(broker.bootstrap, "readers", "consumer", "orders")
            assert take(consumer, 1) == [b"c"]
            consumer.close()
            assert produce(broker.bootstrap, "orders", 1, [b"d"]) == [3]
            assert broker.stop() == 0
        below = MigratedBroker(kafka, target / "broker.properties", alone.port)
        with below:
            eventually(lambda: members(kafka, below.bootstrap) == {3000: "Leader", 1: "Observer"}, "Kafka is back")
            kept = configs(kafka, below.bootstrap, "--describe", "--entity-type", "users", "--entity-name", "bob")
            assert "SCRAM-SHA-256=iterations=4096" in kept
            assert [one.value for one in consume(below.bootstrap, "orders", 1)] == [b"a", b"b", b"c", b"d"]


class MigratedBroker(MigratedController):
    """Return Kafka with the settings of the migrated broker."""

    def __init__(self, installation: KafkaInstallation, path: Path, port: int) -> None:
        super().__init__(installation, path)
        self.directory = path.parent / "as-kafka"
        self.heap = "512m"


def test_migrate_prints_its_plan_and_is_idempotent(tmp_path: Path) -> None:
    data, target = tmp_path / "data", tmp_path / "cluster"
    words: list[Any] = ["migrate", "--data", data, "--to", target, "--controller", "3000@127.0.0.1:9093"]
    with tailrace.Broker(data) as broker:
        broker.create_topic("orders", partitions=2)
        listener = f"listeners=PLAINTEXT://127.0.0.1:{broker.port}\n"
        refused = command(*words)
        assert refused.status == 2
        assert "in use" in refused.err
    before = contents(data)
    rehearsed = command(*words, "--dry-run")
    assert rehearsed.status == 0
    assert "1 topic, 2 partitions" in rehearsed.out
    assert "nothing was changed" in rehearsed.out
    assert contents(data) == before
    assert not target.exists()
    done = command(*words)
    assert done.status == 0, done.err
    assert f"tailrace serve --config {target}/broker.properties" in done.out
    assert f"kafka-server-start.sh {target}/controller-3000/controller.properties" in done.out
    assert listener in (target / "broker.properties").read_text()
    kept = {name.removeprefix("__cluster_metadata-0/"): data for name, data in before.items() if "metadata-0" in name}
    assert contents(target / "metadata-before") == kept
    after = contents(tmp_path)
    again = command(*words)
    assert again.status == 0
    assert "was complete already" in again.out
    assert contents(tmp_path) == after
    other = command(*words[:-1], "3001@127.0.0.1:9094")
    assert other.status == 2
    assert "belongs to a quorum of the voters 3000, not to a standalone node" in other.err
    wrong = command(*words[:-1], "3001:9094")
    assert "is not ID@HOST:PORT" in wrong.err
