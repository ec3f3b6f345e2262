"""A Tailrace broker below Apache Kafka's controllers: it joins, serves, forwards, follows and leaves like a Kafka
broker.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

import tailrace
from tailrace.coordinator.key_partition import partition_of
from tests.support.confluent import consume, produce
from tests.support.kafka_controllers import KafkaControllers
from tests.support.kafka_install import KafkaInstallation
from tests.support.kafka_member import KafkaMember
from tests.support.kraft_broker import kraft_broker
from tests.support.log_oracle import LogOracle
from tests.support.replicated_cluster import PATIENCE_S, eventually
from tests.support.tailrace_process import TailraceProcess

pytestmark = pytest.mark.kafka

QUICK = {"broker.session.timeout.ms": "3000"}  # a restart waits until the session of the last incarnation has expired
QUORUM = "org.apache.kafka.tools.MetadataQuorumCommand"


def admin(broker: TailraceProcess) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap})


def create(broker: TailraceProcess, name: str, partitions: int = 1) -> None:
    client = admin(broker)
    client.create_topics([NewTopic(name, partitions)])[name].result(PATIENCE_S)
    eventually(lambda: name in client.list_topics(timeout=10).topics, f"{name} is known")


def replicas(kafka: KafkaInstallation, broker: TailraceProcess) -> dict[int, tuple[int, str]]:
    """Return (lag, status) of every replica of the metadata log, from kafka-metadata-quorum."""
    text = kafka.tool(QUORUM, "--bootstrap-server", broker.bootstrap, "describe", "--replication")
    rows = [line.split() for line in text.splitlines()[1:] if line.strip()]
    return {int(row[0]): (int(row[3]), row[6]) for row in rows}


def test_a_broker_joins_serves_and_leaves_a_cluster(kafka: KafkaInstallation, tmp_path: Path) -> None:
    with (
        KafkaControllers(kafka, tmp_path, is_formatted_here=True) as controllers,
        kraft_broker(controllers, tmp_path / "data") as broker,
    ):
        create(broker, "orders", partitions=2)
        offsets = produce(broker.bootstrap, "orders", 1, [b"a", b"b"])
        assert offsets == [0, 1]
        assert [one.value for one in consume(broker.bootstrap, "orders", 1)] == [b"a", b"b"]
        with pytest.raises(KafkaException, match="TOPIC_ALREADY_EXISTS"):
            create(broker, "orders")
        assert broker.stop() == 0
        assert "state=LEFT" in broker.errors
        assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()


@pytest.fixture(scope="module")
def cluster(
    kafka: KafkaInstallation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[KafkaControllers, TailraceProcess]]:
    """Start one controller and one broker, for tests that stop neither."""
    directory = tmp_path_factory.mktemp("below")
    with (
        KafkaControllers(kafka, directory, properties=QUICK) as controllers,
        kraft_broker(controllers, directory / "data") as broker,
    ):
        yield controllers, broker


@pytest.mark.slow
def test_requests_for_the_controller_are_forwarded(
    cluster: tuple[KafkaControllers, TailraceProcess], kafka: KafkaInstallation
) -> None:
    _, broker = cluster
    create(broker, "forwarded", partitions=1)
    client = admin(broker)
    client.create_partitions([NewPartitions("forwarded", 3)])["forwarded"].result(PATIENCE_S)
    eventually(
        lambda: len(client.list_topics("forwarded", timeout=10).topics["forwarded"].partitions) == 3, "three partitions"
    )
    entry = ConfigEntry("retention.ms", "12345", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, "forwarded", incremental_configs=[entry])
    next(iter(client.incremental_alter_configs([resource]).values())).result(PATIENCE_S)

    def retention() -> bool:
        asked = client.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, "forwarded")])
        return bool(next(iter(asked.values())).result(PATIENCE_S)["retention.ms"].value == "12345")

    eventually(retention, "the topic's retention")
    rule = AclBinding(
        ResourceType.TOPIC,
        "forwarded",
        ResourcePatternType.LITERAL,
        "User:a",
        "*",
        AclOperation.READ,
        AclPermissionType.ALLOW,
    )
    made = client.create_acls([rule])[rule]
    with pytest.raises(KafkaException, match="SECURITY_DISABLED"):  # the error of a controller without an authorizer
        made.result(PATIENCE_S)
    client.delete_topics(["forwarded"])["forwarded"].result(PATIENCE_S)
    eventually(lambda: "forwarded" not in client.list_topics(timeout=10).topics, "the topic is gone")
    assert replicas(kafka, broker)[1] == (0, "Observer")


@pytest.mark.slow
def test_groups_transactions_and_automatically_created_topics_work_in_a_cluster(
    cluster: tuple[KafkaControllers, TailraceProcess],
) -> None:
    _, broker = cluster
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "t"})
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    for number in range(100):
        producer.produce("made-on-first-use", str(number).encode())
    producer.commit_transaction(PATIENCE_S)
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["made-on-first-use"])
    got: list[Any] = []
    eventually(lambda: got.extend(consumer.consume(100, 1.0)) or len(got) == 100, "all records")
    consumer.commit(asynchronous=False)
    consumer.close()


@pytest.mark.slow
def test_all_records_survive_a_restart_and_a_kill(kafka: KafkaInstallation, tmp_path: Path) -> None:
    with KafkaControllers(kafka, tmp_path, properties=QUICK) as controllers:
        broker = kraft_broker(controllers, tmp_path / "data")
        with broker:
            create(broker, "kept", partitions=3)
            produce(broker.bootstrap, "kept", 2, [b"1", b"2"])
            assert broker.stop() == 0
            broker.start()
            assert [one.value for one in consume(broker.bootstrap, "kept", 2)] == [b"1", b"2"]
            broker.kill()
            broker.start()
            assert produce(broker.bootstrap, "kept", 2, [b"3"]) == [2]
            assert replicas(kafka, broker)[1] == (0, "Observer")


@pytest.mark.slow
def test_a_broker_follows_three_controllers_whose_active_one_dies_repeatedly(
    kafka: KafkaInstallation, tmp_path: Path
) -> None:
    with (
        KafkaControllers(kafka, tmp_path, count=3) as controllers,
        kraft_broker(controllers, tmp_path / "data") as broker,
    ):
        create(broker, "topic-0")
        for number in range(1, 4):
            leader = next(one for one, (_, status) in replicas(kafka, broker).items() if status == "Leader")
            controllers.node(leader).crash()
            create(broker, f"topic-{number}")
            assert produce(broker.bootstrap, f"topic-{number}", 0, [b"x"]) == [0]
            controllers.node(leader).start()
            eventually(lambda: replicas(kafka, broker).get(1) == (0, "Observer"), "the observer has caught up")
        assert "RUNNING" in broker.errors
        assert broker.errors.count("state=REGISTERING") == 0
        assert broker.stop() == 0


@pytest.mark.slow
def test_a_broker_that_was_away_too_long_loads_a_snapshot(kafka: KafkaInstallation, tmp_path: Path) -> None:
    small = {
        **QUICK,
        "metadata.log.max.record.bytes.between.snapshots": "5000",
        "metadata.max.retention.bytes": "10000",
        "internal.metadata.log.segment.bytes": "4096",
        "internal.metadata.max.batch.size.in.bytes": "2048",
        "internal.metadata.max.fetch.size.in.bytes": "2048",
        "internal.metadata.delete.delay.millis": "100",
    }
    with KafkaControllers(kafka, tmp_path, properties=small) as controllers:
        away = kraft_broker(controllers, tmp_path / "away", node_id=1)
        other = kraft_broker(controllers, tmp_path / "other", node_id=2)
        with away, other:
            create(away, "before")
            gone = [f"gone-{number}" for number in range(5)]
            for name in gone:
                create(other, name)
            assert away.stop() == 0
            client = admin(other)
            for future in client.delete_topics(gone).values():
                future.result(PATIENCE_S)
            for number in range(100):
                create(other, f"after-{number}", partitions=2)
            first = controllers.nodes[0].data / "__cluster_metadata-0" / "00000000000000000000.log"
            eventually(lambda: not first.exists(), "the controller has deleted the start of its log")
            away.start()
            topics = set(admin(away).list_topics(timeout=10).topics)
            assert {"before", "after-99"} <= topics
            assert not topics.intersection(gone)
            assert "loaded from the leader" in away.errors
            assert replicas(kafka, away)[1] == (0, "Observer")


def place(client: AdminClient, name: str, *leaders: int) -> None:
    """Create a topic with one replica per partition, on the given brokers."""
    topic = NewTopic(name, num_partitions=len(leaders), replica_assignment=[[leader] for leader in leaders])
    client.create_topics([topic])[name].result(PATIENCE_S)


@pytest.mark.slow
def test_transactions_and_groups_span_kafka_and_tailrace_brokers(kafka: KafkaInstallation, tmp_path: Path) -> None:
    settings = {"auto.create.topics.enable": "false"}
    two = {"offsets.topic.num.partitions": "2", "transaction.state.log.num.partitions": "2"}
    with (
        KafkaControllers(kafka, tmp_path, is_formatted_here=True) as controllers,
        kraft_broker(controllers, tmp_path / "ours", node_id=1, settings=settings) as ours,
        KafkaMember(controllers, tmp_path / "theirs", 2, properties=two) as theirs,
    ):
        client = admin(ours)
        place(client, "__transaction_state", 1, 2)
        place(client, "__consumer_offsets", 1, 2)
        place(client, "input", 1, 2)
        place(client, "output", 1, 2, 1, 2)
        bootstrap = f"{ours.bootstrap},{theirs.bootstrap}"
        for partition in (0, 1):
            produce(bootstrap, "input", partition, [str(number).encode() for number in range(50)])
        coordinators = set()
        for transactional_id in ("a", "b", "c", "d"):  # these ids hash to both partitions
            coordinators.add(partition_of(transactional_id, 2))
            producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": transactional_id})
            producer.init_transactions(PATIENCE_S)
            for is_committed in (False, True):
                producer.begin_transaction()
                for partition in range(4):
                    for _ in range(10):
                        value = f"{transactional_id}-{is_committed}".encode()
                        producer.produce("output", value, partition=partition)
                producer.flush(PATIENCE_S)
                (producer.commit_transaction if is_committed else producer.abort_transaction)(PATIENCE_S)
        assert coordinators == {0, 1}
        for partition in range(4):
            got = read_committed(bootstrap, "output", partition, 40)
            assert {value.partition(b"-")[2] for value in got} == {b"True"}
        for group in ("g1", "g2", "g3", "g4"):
            copy_in_transactions(bootstrap, group, 100)


def read_committed(bootstrap: str, topic: str, partition: int, count: int) -> list[bytes]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", "isolation.level": "read_committed"})
    consumer.assign([TopicPartition(topic, partition, 0)])
    got: list[bytes] = []
    eventually(lambda: got.extend(one.value() for one in consumer.consume(500, 0.5)) or len(got) >= count, "records")
    consumer.close()
    return got


def copy_in_transactions(bootstrap: str, group: str, count: int) -> None:
    """Consume, transform and produce in transactions with offsets, whatever brokers coordinate group and
    transaction.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe(["input"])
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"copy-{group}"})
    producer.init_transactions(PATIENCE_S)
    copied = 0
    deadline = time.monotonic() + PATIENCE_S
    while copied < count:
        assert time.monotonic() < deadline
        records = consumer.consume(20, 1.0)
        if not records:
            continue
        producer.begin_transaction()
        for one in records:
            producer.produce("output", one.value(), partition=one.partition())
        producer.send_offsets_to_transaction(
            consumer.position(consumer.assignment()), consumer.consumer_group_metadata(), PATIENCE_S
        )
        producer.commit_transaction(PATIENCE_S)
        copied += len(records)
    committed = consumer.committed([TopicPartition("input", 0), TopicPartition("input", 1)], PATIENCE_S)
    assert [one.offset for one in committed] == [50, 50]
    consumer.close()


@pytest.mark.slow
def test_kafka_and_tailrace_take_turns_as_the_same_cluster_node(kafka: KafkaInstallation, tmp_path: Path) -> None:
    """Both use the same directory and node id."""
    with KafkaControllers(kafka, tmp_path, properties=QUICK, is_formatted_here=True) as controllers:
        ours = kraft_broker(controllers, tmp_path / "node" / "data")
        with ours:
            create(ours, "turns", partitions=2)
            produce(ours.bootstrap, "turns", 1, [b"ours"])
            assert ours.stop() == 0
        theirs = KafkaMember(controllers, tmp_path / "node", 1, port=ours.port)
        with theirs:
            eventually(lambda: _can_produce(theirs.bootstrap, "turns", b"theirs"), "Kafka leads the partition")
            theirs.stop()
        with ours:
            assert [one.value for one in consume(ours.bootstrap, "turns", 1)] == [b"ours", b"theirs"]
            assert replicas(kafka, ours)[1] == (0, "Observer")


def _can_produce(bootstrap: str, topic: str, value: bytes) -> bool:
    try:
        return produce(bootstrap, topic, 1, [value]) == [1]
    except (KafkaException, AssertionError):
        return False


def embedded(controllers: KafkaControllers, data: str | None = None, **settings: object) -> tailrace.Broker:
    """Return a broker inside this process, whose parts a test can inspect."""
    return tailrace.Broker(
        data,
        config={
            "process.roles": "broker",
            "controller.quorum.bootstrap.servers": controllers.bootstrap,
            "controller.listener.names": "CONTROLLER",
        },
        **settings,
    )


@pytest.mark.slow
def test_a_stuck_loop_does_not_fence_the_broker(
    kafka: KafkaInstallation, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        KafkaControllers(kafka, tmp_path, properties=QUICK, is_formatted_here=True) as controllers,
        embedded(controllers, broker_heartbeat_interval_ms=500) as broker,
    ):
        core, server = broker._running_core(), broker._running()
        epochs = [core.services.controller.image.brokers[1].epoch]
        changes: list[bool] = []

        def watch(change: Any, now_ms: int) -> None:
            registered = change.delta.brokers.get(1)
            changes.extend([] if registered is None else [registered.fenced])

        server.call(lambda: core.services.events.metadata_changed.listen(watch))
        server.call(lambda: time.sleep(10))  # three session timeouts
        before = core.services.controller.image.offset
        eventually(lambda: core.services.controller.image.offset > before + 3, "the metadata log is followed again")
        assert changes == []
        assert [core.services.controller.image.brokers[1].epoch] == epochs
        broker.crash()
        caplog.clear()
        broker.start()
        assert broker._running_core().services.controller.image.brokers[1].epoch > epochs[0]


@pytest.mark.slow
def test_the_controller_learns_the_directory_of_a_replica_and_its_failure(
    kafka: KafkaInstallation, tmp_path: Path
) -> None:
    paths = [tmp_path / "one", tmp_path / "two"]
    with (
        KafkaControllers(kafka, tmp_path, is_formatted_here=True) as controllers,
        embedded(controllers, ",".join(map(str, paths))) as broker,
    ):
        core, server = broker._running_core(), broker._running()
        client = AdminClient({"bootstrap.servers": broker.bootstrap})
        client.create_topics([NewTopic("spread", 4)])["spread"].result(PATIENCE_S)

        def places() -> dict[int, bytes]:
            topic = core.services.controller.image.topics.get("spread")
            return {} if topic is None else {number: one.directories[0] for number, one in topic.partitions.items()}

        ids = {directory.id: directory for directory in core.services.logs.directories}
        eventually(lambda: len(places()) == 4 and set(places().values()) == set(ids), "all directories are known")
        for number, place in places().items():
            assert (Path(ids[place].path) / f"spread-{number}").is_dir()
        second = core.services.logs.directories[1]
        server.call(lambda: core.services.logs.on_failure(second, OSError(5, "made to fail")))
        server.wake()
        lost = [number for number, place in places().items() if place == second.id]

        def leaders() -> list[int]:
            return [core.services.controller.image.topics["spread"].partitions[number].leader for number in lost]

        eventually(lambda: leaders() == [-1] * len(lost), "partitions of the failed directory have no leader")
        assert core.services.controller.image.brokers[1].directories == (core.services.logs.directories[0].id,)
        kept = next(number for number, place in places().items() if place != second.id)
        assert produce(broker.bootstrap, "spread", kept, [b"x"]) == [0]


@pytest.mark.slow
def test_kafkas_dump_tool_reads_the_observed_metadata_log(
    cluster: tuple[KafkaControllers, TailraceProcess], kafka: KafkaInstallation, log_oracle: LogOracle
) -> None:
    controllers, broker = cluster
    create(broker, "dumped")
    name = Path("__cluster_metadata-0") / "00000000000000000000.log"
    ours, theirs = (broker.data / name).read_bytes(), (controllers.nodes[0].data / name).read_bytes()
    assert ours
    assert theirs.startswith(ours[: min(len(ours), len(theirs))])
    assert "dumped" in kafka.dump(broker.data / name, options=("--cluster-metadata-decoder",))
