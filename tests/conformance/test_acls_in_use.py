"""ACLs in use: kafka-acls, permitted and refused clients, a directory that Kafka and Tailrace use in turn, and a mixed
cluster whose controllers have an authorizer.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tailrace.model.acls import Acl, AclResource, Operation, PatternType, Permission
from tailrace.protocol.messages import CreateAclsRequest
from tests.support.acl_cases import make
from tests.support.acl_twins import AUTHORIZER, KafkaUser, creation, described_acls, secured_properties
from tests.support.api_twins import KafkaSide
from tests.support.kafka_broker import KafkaBroker, free_port
from tests.support.kafka_controllers import KafkaControllers
from tests.support.kafka_install import KafkaInstallation
from tests.support.kafka_member import KafkaMember
from tests.support.kraft_broker import kraft_broker
from tests.support.secured import jaas
from tests.support.tailrace_process import TailraceProcess

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

PATIENCE_S = 60
USERS = ("reader", "writer")
DENIED = 29  # TOPIC_AUTHORIZATION_FAILED


def acl(user: str, operation: Operation, name: str = "orders") -> Acl:
    return Acl(AclResource.TOPIC, name, PatternType.LITERAL, f"User:{user}", "*", operation, Permission.ALLOW)


def make_topic(side: Any, name: str) -> int:
    topic = {"name": name, "num_partitions": 1, "replication_factor": 1}
    return int(side.ask(make("CreateTopics", topics=[topic], timeout_ms=30_000), 7).topics[0].error_code)


def grant(side: Any, *acls: Acl) -> None:
    answer = side.ask(CreateAclsRequest(creations=list(map(creation, acls))), 3)
    assert [one.error_code for one in answer.results] == [0] * len(acls)


def seen(side: Any) -> tuple[int, int]:
    """Return the error of a topic, and the operations that are allowed on it."""
    asked = make("Metadata", topics=[{"name": "orders"}], include_topic_authorized_operations=True)
    (topic,) = side.ask(asked, 12).topics
    return topic.error_code, topic.topic_authorized_operations


def ours_of(broker: KafkaBroker) -> TailraceProcess:
    """Return a Tailrace broker with the settings of a Kafka broker, on the same directory and ports."""
    settings = {key: text for key, text in broker.properties.items() if key not in ("log.dirs", "process.roles")}
    options = [part for key, text in settings.items() for part in ("-o", f"{key}={text}")]
    process = TailraceProcess(broker.data, *options, port=broker.port)
    process.ready_timeout_s = PATIENCE_S
    return process


def secured(kafka: KafkaInstallation, path: Path) -> tuple[KafkaBroker, int]:
    port = free_port()
    broker = KafkaBroker(kafka, path)
    broker.properties |= secured_properties(broker, port, USERS)
    return broker, port


TOOL = "org.apache.kafka.tools.AclCommand"
COMMANDS = (
    ("--list",),
    ("--add", "--allow-principal", "User:reader", "--consumer", "--topic", "orders", "--group", "g"),
    ("--add", "--allow-principal", "User:writer", "--producer", "--idempotent", "--topic", "orders"),
    ("--add", "--deny-principal", "User:*", "--deny-host", "10.0.0.9", "--operation", "All", "--cluster"),
    (
        "--add",
        "--allow-principal",
        "User:a",
        "--operation",
        "Read",
        "--topic",
        "or",
        "--resource-pattern-type",
        "prefixed",
    ),
    ("--list",),
    ("--list", "--topic", "orders"),
    ("--list", "--topic", "orders", "--resource-pattern-type", "match"),
    ("--list", "--principal", "User:writer"),
    ("--remove", "--allow-principal", "User:reader", "--consumer", "--topic", "orders", "--group", "g", "--force"),
    ("--remove", "--topic", "nothing", "--force"),
    ("--list",),
)


def _lines(printed: str) -> list[str]:
    return sorted(line.rstrip() for line in printed.splitlines() if line.strip())


def test_kafka_acls_prints_the_same_at_both(kafka: KafkaInstallation, tmp_path: Path) -> None:
    theirs, _ = secured(kafka, tmp_path / "kafka")
    twin, _ = secured(kafka, tmp_path / "ours")
    with theirs, ours_of(twin) as ours:
        for command in COMMANDS:
            printed = []
            for bootstrap in (theirs.bootstrap, ours.bootstrap):
                printed.append(_lines(kafka.tool(TOOL, "--bootstrap-server", bootstrap, *command, check=False)))
            assert printed[0] == printed[1], command


def test_acls_survive_when_kafka_and_tailrace_use_a_directory_in_turn(kafka: KafkaInstallation, tmp_path: Path) -> None:
    broker, port = secured(kafka, tmp_path)
    reads, writes = acl("reader", Operation.READ), acl("writer", Operation.WRITE)
    may_read, may_write = (0, 1 << Operation.READ | 1 << Operation.DESCRIBE), (0, 1 << Operation.WRITE | 1 << 8)
    nothing = DENIED, -(2**31)

    def check(reader: tuple[int, int], writer: tuple[int, int], *acls: Acl) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while described_acls(KafkaSide(broker.port)) != set(acls):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert seen(KafkaUser(port, "reader")) == reader
        assert seen(KafkaUser(port, "writer")) == writer

    with ours_of(broker):
        assert make_topic(KafkaSide(broker.port), "orders") == 0
        grant(KafkaSide(broker.port), reads)
        check(may_read, nothing, reads)
    with ours_of(broker):
        check(may_read, nothing, reads)
    with broker:
        check(may_read, nothing, reads)
        grant(KafkaSide(broker.port), writes)
        check(may_read, may_write, reads, writes)
        broker.stop()
        with ours_of(broker):
            check(may_read, may_write, reads, writes)
        broker.start()
        check(may_read, may_write, reads, writes)


def test_both_kinds_of_brokers_enforce_the_acls_of_their_controllers(kafka: KafkaInstallation, tmp_path: Path) -> None:
    """Clients use the same listeners at both. Brokers log in to each other as a super user."""
    ports = {node: (free_port(), free_port()) for node in (1, 5)}
    rules = {"authorizer.class.name": AUTHORIZER, "super.users": "User:ANONYMOUS"}

    def settings(node: int) -> dict[str, str]:
        plain, sasl = ports[node]
        return {
            **rules,
            "listeners": f"PLAINTEXT://127.0.0.1:{plain},SASL_PLAINTEXT://127.0.0.1:{sasl}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": jaas(
                "Plain", "x", "x", **dict.fromkeys(USERS, "secret")
            ),
        }

    with KafkaControllers(kafka, tmp_path, properties=rules) as controllers:
        theirs = KafkaMember(controllers, tmp_path / "kafka", 5, settings(5), port=ports[5][0])
        ours = kraft_broker(controllers, tmp_path / "ours" / "data", 1, settings(1))
        with theirs, ours:
            admin = KafkaSide(ports[1][0])
            topic: dict[str, Any] = {"name": "orders", "assignments": [{"partition_index": 0, "broker_ids": [1, 5]}]}
            asked = make(
                "CreateTopics", topics=[{**topic, "num_partitions": -1, "replication_factor": -1}], timeout_ms=30_000
            )
            assert admin.ask(asked, 7).topics[0].error_code == 0
            reads = acl("reader", Operation.READ)
            grant(admin, reads)
            wanted = {
                "reader": (0, 1 << Operation.READ | 1 << Operation.DESCRIBE),
                "writer": (DENIED, -(2**31)),
            }
            deadline = time.monotonic() + PATIENCE_S
            for node, (plain, sasl) in ports.items():
                while True:
                    reported = described_acls(KafkaSide(plain))
                    found = {user: seen(KafkaUser(sasl, user)) for user in USERS}
                    if reported == {reads} and found == wanted:
                        break
                    assert time.monotonic() < deadline, f"node {node}: {reported}, {found}"
                    time.sleep(0.2)
            # The controllers authorize a forwarded request, for the client that sent it.
            user = KafkaUser(ports[1][1], "reader")
            assert make_topic(user, "another") == DENIED
            answer = user.ask(CreateAclsRequest(creations=[creation(acl("reader", Operation.ALL))]), 3)
            assert answer.results[0].error_code == 31  # CLUSTER_AUTHORIZATION_FAILED
            # The replicas follow each other as before.
            deadline = time.monotonic() + PATIENCE_S
            while set(_isr(admin)) != {1, 5}:
                assert time.monotonic() < deadline
                time.sleep(0.2)


def _isr(side: Any) -> list[int]:
    return list(side.ask(make("Metadata", topics=[{"name": "orders"}]), 12).topics[0].partitions[0].isr_nodes)
