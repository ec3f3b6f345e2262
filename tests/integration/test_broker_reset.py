"""Broker.reset: nothing of a test is left for the next one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_INVALID, Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

import tailrace
from tailrace.protocol.messages import InitProducerIdRequest, MetadataRequest
from tests.support.raw_client import RawClient

TIMEOUT_S = 20
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


@pytest.fixture
def broker() -> Iterator[tailrace.Broker]:
    with tailrace.Broker(authorizer_class_name=AUTHORIZER, super_users="User:ANONYMOUS") as broker:
        yield broker


def topics(broker: tailrace.Broker) -> list[str]:
    with RawClient(broker.bootstrap) as client:
        return [topic.name for topic in client.ask(MetadataRequest(topics=None), 12).topics]


def admin(broker: tailrace.Broker) -> AdminClient:
    return AdminClient(broker.client_settings())


def read_in_group(broker: tailrace.Broker) -> list[bytes | None]:
    """Write two records, and read and commit them in the group `g`. Return what the group read."""
    broker.create_topic("t")
    producer = Producer(broker.client_settings())
    for value in (b"1", b"2"):
        producer.produce("t", value)
    assert producer.flush(TIMEOUT_S) == 0
    consumer = Consumer({**broker.client_settings(), "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["t"])
    found = [consumer.poll(TIMEOUT_S), consumer.poll(TIMEOUT_S)]
    consumer.close()
    return [record.value() for record in found if record is not None]


def test_topics_and_groups_are_gone_after_a_reset(broker: tailrace.Broker) -> None:
    port, data = broker.port, broker.data
    for _ in range(3):
        assert topics(broker) == []
        assert read_in_group(broker) == [b"1", b"2"]
        broker.reset()
    assert (broker.port, broker.data) == (port, data), "topics and groups need no new directory"
    client = admin(broker)
    assert client.list_consumer_groups().result(TIMEOUT_S).valid == []
    broker.create_topic("t")
    consumer = Consumer({**broker.client_settings(), "group.id": "g"})
    (committed,) = consumer.committed([TopicPartition("t", 0)], TIMEOUT_S)
    consumer.close()
    assert committed.offset == OFFSET_INVALID


def test_an_open_transaction_is_gone_after_a_reset(broker: tailrace.Broker) -> None:
    broker.create_topic("t")
    producer = Producer({**broker.client_settings(), "transactional.id": "tx"})
    producer.init_transactions(TIMEOUT_S)
    producer.begin_transaction()
    producer.produce("t", b"1")
    producer.flush(TIMEOUT_S)
    broker.reset()
    assert topics(broker) == []
    with RawClient(broker.bootstrap) as client:
        request = InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=60_000)
        deadline_s = time.monotonic() + TIMEOUT_S
        while (response := client.ask(request, 4)).error_code and time.monotonic() < deadline_s:
            time.sleep(0.01)  # the coordinator creates its topic
    assert (response.error_code, response.producer_epoch) == (0, 0)


def create_acl(broker: tailrace.Broker) -> None:
    place = (ResourceType.TOPIC, "t", ResourcePatternType.LITERAL, "User:alice", "*")
    acl = AclBinding(*place, AclOperation.READ, AclPermissionType.ALLOW)
    client = admin(broker)
    client.create_acls([acl])[acl].result(TIMEOUT_S)


def create_user(broker: tailrace.Broker) -> None:
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    client = admin(broker)
    changes = client.alter_user_scram_credentials([UserScramCredentialUpsertion("alice", info, b"secret")])
    changes["alice"].result(TIMEOUT_S)


def alter_config(broker: tailrace.Broker) -> None:
    entry = ConfigEntry("log.retention.ms", "1000", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[entry])
    client = admin(broker)
    client.incremental_alter_configs([resource])[resource].result(TIMEOUT_S)


def leftovers(broker: tailrace.Broker) -> tuple[int, list[str], str | None]:
    """Return the number of ACLs, the SCRAM users, and a config of the broker."""
    everything = AclBindingFilter(
        ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
    )
    client = admin(broker)
    acls = client.describe_acls(everything).result(TIMEOUT_S)
    users = client.describe_user_scram_credentials().result(TIMEOUT_S)
    described = client.describe_configs([ConfigResource(ResourceType.BROKER, "1")])
    (configs,) = [future.result(TIMEOUT_S) for future in described.values()]
    return len(acls), list(users), configs["log.retention.ms"].value


@pytest.mark.parametrize("change", [create_acl, create_user, alter_config])
def test_other_metadata_is_gone_after_a_reset(
    broker: tailrace.Broker, change: Callable[[tailrace.Broker], None]
) -> None:
    before, port = leftovers(broker), broker.port
    change(broker)
    assert leftovers(broker) != before
    broker.reset()
    assert leftovers(broker) == before
    assert broker.port == port


def test_faults_and_a_moved_clock_are_gone_after_a_reset(broker: tailrace.Broker) -> None:
    broker.fail("Metadata", "UNKNOWN_SERVER_ERROR")
    broker.delay("CreateTopics", 60_000)
    broker.move_clock(3_600_000)
    broker.reset()
    assert broker.faults == ()
    assert topics(broker) == []
    broker.create_topic("t")
    assert read_timestamp(broker) < time.time() * 1000 + 60_000


def read_timestamp(broker: tailrace.Broker) -> int:
    """Write a record whose time the broker sets, and return that time."""
    entry = {"message.timestamp.type": "LogAppendTime"}
    broker.create_topic("times", config=entry)
    stamps: list[int] = []
    producer = Producer(broker.client_settings())
    producer.produce("times", b"x", on_delivery=lambda error, record: stamps.append(record.timestamp()[1]))
    producer.flush(TIMEOUT_S)
    return stamps[0]


@pytest.mark.parametrize("end", [tailrace.Broker.stop, tailrace.Broker.crash])
def test_a_reset_starts_a_stopped_broker_without_its_data(
    broker: tailrace.Broker, end: Callable[[tailrace.Broker], None]
) -> None:
    port = broker.port
    broker.create_topic("t")
    end(broker)
    broker.reset()
    assert (topics(broker), broker.port) == ([], port)


def test_metadata_that_a_restart_has_kept_is_gone_after_a_reset(broker: tailrace.Broker) -> None:
    before = leftovers(broker)
    create_acl(broker)
    broker.restart()
    broker.reset()
    assert leftovers(broker) == before


def test_a_given_data_directory_is_not_reset(tmp_path: Path) -> None:
    for place in ({"data": tmp_path / "a"}, {"log_dirs": str(tmp_path / "b")}):
        with tailrace.Broker(**place) as broker, pytest.raises(ValueError, match="would delete the data directory"):
            broker.reset()
