"""MirrorMaker 2, unchanged, between two clusters: from Apache Kafka to Tailrace, and between two Tailrace brokers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ConfigResource,
    NewPartitions,
    ResourcePatternType,
    ResourceType,
)

from tests.support.confluent import TIMEOUT_S, create_topic
from tests.support.connect_worker import PATIENCE_S, JavaProcess, mirror_maker
from tests.support.kafka_broker import KafkaBroker
from tests.support.tailrace_process import TailraceProcess

pytestmark = pytest.mark.slow

AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
FLOW = {
    "topics": "orders",
    "groups": "billing",
    "sync.topic.acls.enabled": "true",
    "sync.group.offsets.enabled": "true",
    "offset.lag.max": "0",
    "refresh.topics.interval.seconds": "1",
    "refresh.groups.interval.seconds": "1",
    "sync.topic.configs.interval.seconds": "1",
    "sync.topic.acls.interval.seconds": "1",
    "emit.checkpoints.interval.seconds": "1",
    "sync.group.offsets.interval.seconds": "1",
    "emit.heartbeats.interval.seconds": "1",
}
# Retention keeps the records.
HOUR_AGO_MS = time.time_ns() // 1_000_000 - 3_600_000
Record = tuple[int, str | None, str | None, int, tuple[tuple[str, str], ...]]


def settings_of(primary: str, backup: str, *flows: str) -> dict[str, str]:
    settings = {
        "clusters": "primary, backup",
        "primary.bootstrap.servers": primary,
        "backup.bootstrap.servers": backup,
        "primary.exactly.once.source.support": "enabled",
        "backup.exactly.once.source.support": "enabled",
        "offset.flush.interval.ms": "500",
        "session.timeout.ms": "6000",
        "heartbeat.interval.ms": "1000",
        "replication.factor": "1",
    }
    for kind in ("checkpoints.topic", "heartbeats.topic", "offset-syncs.topic"):
        settings[f"{kind}.replication.factor"] = "1"
    for kind in ("config", "offset", "status"):
        settings[f"{kind}.storage.replication.factor"] = "1"
    for flow in ("primary->backup", "backup->primary"):
        settings[f"{flow}.enabled"] = str(flow in flows).lower()
    return settings | {f"{flow}.{key}": text for flow in flows for key, text in FLOW.items()}


@pytest.fixture(params=[pytest.param("kafka", marks=pytest.mark.kafka), "tailrace"])
def primary(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    broker: KafkaBroker | TailraceProcess
    if request.param == "kafka":
        broker = KafkaBroker(request.getfixturevalue("kafka"), tmp_path / "primary", properties=AUTHORIZER)
    else:
        broker = ours(tmp_path / "primary")
    with broker:
        yield broker.bootstrap


@pytest.fixture
def backup(tmp_path: Path) -> Iterator[str]:
    with ours(tmp_path / "backup") as broker:
        yield broker.bootstrap
    assert broker.errors == ""


def ours(directory: Path) -> TailraceProcess:
    return TailraceProcess(
        directory / "data", *(word for item in AUTHORIZER.items() for word in ("-o", "=".join(item)))
    )


def test_records_configs_partitions_acls_and_offsets_of_groups_are_mirrored(
    primary: str, backup: str, tmp_path: Path
) -> None:
    create_topic(primary, "orders", 2, {"retention.ms": "86400000", "max.message.bytes": "500000"})
    write(primary, "orders", range(100))
    commit(primary, "billing", TopicPartition("orders", 0, len(read(primary, "orders", 0))))
    admin, primary_admin = (AdminClient({"bootstrap.servers": one}) for one in (backup, primary))
    allow_to_read(primary_admin, "alice", "orders")
    with mirror_maker(tmp_path, settings_of(primary, backup, "primary->backup")) as mirror:
        wait_for_copy(mirror, primary, backup, "orders", 2)
        configs = {"retention.ms": "86400000", "max.message.bytes": "500000"}
        mirror.wait_until(lambda: configs_of(admin, "primary.orders").items() >= configs.items(), "copying configs")
        mirror.wait_until(lambda: readers_of(admin, "primary.orders") == {"User:alice"}, "copying ACLs")
        mirror.wait_until(lambda: rest_of(admin, backup, "billing", "primary.orders") == [], "translating offsets")

        primary_admin.create_partitions([NewPartitions("orders", 3)])["orders"].result()
        mirror.wait_until(lambda: partitions_of(admin, "primary.orders") == 3, "adding a partition")
        write(primary, "orders", range(100, 150))
        wait_for_copy(mirror, primary, backup, "orders", 3)
        assert {"heartbeats", "primary.heartbeats", "primary.checkpoints.internal"} <= topics_of(admin)


def test_each_record_is_mirrored_once_over_killed_mirror_makers(primary: str, backup: str, tmp_path: Path) -> None:
    create_topic(primary, "orders", 1)
    for number in range(3):
        with mirror_maker(tmp_path, settings_of(primary, backup, "primary->backup")) as mirror:
            write(primary, "orders", range(number * 200, number * 200 + 100))
            wanted = number * 200
            mirror.wait_until(partial(has_more, backup, wanted), f"copying more than {wanted} records")
            write(primary, "orders", range(number * 200 + 100, number * 200 + 200))
            mirror.kill()
    with mirror_maker(tmp_path, settings_of(primary, backup, "primary->backup")) as mirror:
        wait_for_copy(mirror, primary, backup, "orders", 1)


def has_more(bootstrap: str, count: int) -> bool:
    return len(read(bootstrap, "primary.orders", 0)) > count


def test_two_brokers_that_mirror_each_other_do_not_mirror_copies(tmp_path: Path) -> None:
    with ExitStack() as stack:
        one, other = (stack.enter_context(ours(tmp_path / name)) for name in ("primary", "backup"))
        for broker in (one, other):
            create_topic(broker.bootstrap, "orders", 1)
        write(one.bootstrap, "orders", range(100))
        write(other.bootstrap, "orders", range(100, 150))
        flows = settings_of(one.bootstrap, other.bootstrap, "primary->backup", "backup->primary")
        with mirror_maker(tmp_path, flows) as mirror:
            wait_for_copy(mirror, one.bootstrap, other.bootstrap, "orders", 1)
            wait_for_copy(mirror, other.bootstrap, one.bootstrap, "orders", 1, name="backup.orders")
        for broker in (one, other):
            names = topics_of(AdminClient({"bootstrap.servers": broker.bootstrap}))
            assert not [name for name in names if name.endswith("orders") and name.count(".") > 1]
            assert broker.stop() == 0
            assert broker.errors == ""


def write(bootstrap: str, topic: str, numbers: range) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "compression.type": "lz4"})
    for n in numbers:
        value = None if n % 10 == 9 else b"value %d" % n
        producer.produce(topic, value, b"key %d" % n, timestamp=HOUR_AGO_MS + n, headers=[("trace", b"t%d" % n)])
    assert producer.flush(TIMEOUT_S) == 0


def wait_for_copy(
    mirror: JavaProcess, source: str, target: str, topic: str, partitions: int, *, name: str = "primary.orders"
) -> None:
    """Wait until the copy is as long as the topic. Then compare the records: key, value, timestamp, headers."""
    expected = [read(source, topic, partition) for partition in range(partitions)]

    def copy() -> list[list[Record]]:
        return [read(target, name, partition) for partition in range(partitions)]

    mirror.wait_until(lambda: sum(map(len, copy())) >= sum(map(len, expected)), f"copying {topic}")
    assert copy() == expected


def rest_of(admin: AdminClient, bootstrap: str, group: str, topic: str) -> list[Record] | None:
    """Return the records of partition 0 that the group has not read, or None if it has no committed offset."""
    offset = committed(admin, group, topic, 0)
    return None if offset is None else read(bootstrap, topic, 0, offset)


def read(bootstrap: str, topic: str, partition: int, start: int = 0) -> list[Record]:
    """Return the committed records of a partition; none if it does not exist."""
    settings = {"isolation.level": "read_committed", "enable.partition.eof": True, "enable.auto.commit": False}
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "none", **settings})
    try:
        known = consumer.list_topics(timeout=TIMEOUT_S).topics.get(topic)
        if known is None or partition not in known.partitions:
            return []
        consumer.assign([TopicPartition(topic, partition, start)])
        found: list[Record] = []
        while True:
            message = consumer.poll(PATIENCE_S)
            assert message is not None
            if (error := message.error()) is not None:
                assert error.code() == KafkaError._PARTITION_EOF, error
                return found
            key, value = message.key(), message.value()
            headers = tuple((name, str(text)) for name, text in message.headers() or [])
            found.append((partition, str(key), str(value), message.timestamp()[1], headers))
    finally:
        consumer.close()


def commit(bootstrap: str, group: str, place: TopicPartition) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False})
    consumer.commit(offsets=[place], asynchronous=False)
    consumer.close()


def committed(admin: AdminClient, group: str, topic: str, partition: int) -> int | None:
    asked = [ConsumerGroupTopicPartitions(group)]
    found = admin.list_consumer_group_offsets(asked)[group].result(TIMEOUT_S)
    places = {(place.topic, place.partition): place.offset for place in found.topic_partitions or []}
    return places.get((topic, partition))


def allow_to_read(admin: AdminClient, user: str, topic: str) -> None:
    rule = (ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, f"User:{user}", "*")
    binding = AclBinding(*rule, AclOperation.READ, AclPermissionType.ALLOW)
    admin.create_acls([binding])[binding].result(TIMEOUT_S)


def readers_of(admin: AdminClient, topic: str) -> set[str]:
    rule = (ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, None, None)
    wanted = AclBindingFilter(*rule, AclOperation.READ, AclPermissionType.ALLOW)
    return {one.principal for one in admin.describe_acls(wanted).result(TIMEOUT_S)}


def configs_of(admin: AdminClient, topic: str) -> dict[str, str]:
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    found = admin.describe_configs([resource])[resource].result(TIMEOUT_S)
    return {name: entry.value for name, entry in found.items()}


def topics_of(admin: AdminClient) -> set[str]:
    return set(admin.list_topics(timeout=TIMEOUT_S).topics)


def partitions_of(admin: AdminClient, topic: str) -> int:
    return len(admin.list_topics(timeout=TIMEOUT_S).topics[topic].partitions)
