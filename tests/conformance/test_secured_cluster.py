"""Tailrace brokers in a secured cluster, below real controllers and beside a Kafka broker: TLS with certificates on
both sides, and SASL over TLS. Replicas are on both kinds of brokers, and either kind leads.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import product
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from tests.support.both_controllers import KINDS, controllers_of
from tests.support.confluent import consume
from tests.support.kafka_broker import free_port
from tests.support.kafka_install import KafkaInstallation
from tests.support.kafka_member import KafkaMember
from tests.support.kraft_broker import kraft_broker
from tests.support.secured import STORES, jaas, librdkafka
from tests.support.tailrace_controller import TailraceController

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

PATIENCE_S = 120
OURS, KAFKAS = (1, 2), 5


class Secured:
    """The security settings of all nodes of a cluster."""

    def __init__(self, protocol: str) -> None:
        self.protocol = protocol
        self.common = {
            **STORES,
            "listener.security.protocol.map": f"CONTROLLER:{protocol},INSIDE:{protocol},PLAINTEXT:PLAINTEXT",
            "broker.session.timeout.ms": "6000",
        }
        self.format_options: tuple[str, ...] = ()
        if protocol == "SSL":
            self.common["ssl.client.auth"] = "required"
            self.client = librdkafka(tls=True)
        else:
            users = {"controller": "ctl", "broker": "brk", "alice": "secret"}
            self.common |= {
                "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
                "sasl.mechanism.controller.protocol": "PLAIN",
                "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
                "listener.name.controller.plain.sasl.jaas.config": jaas("Plain", "broker", "brk", **users),
                "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
                "listener.name.inside.plain.sasl.jaas.config": jaas("Plain", "broker", "brk", **users),
                "listener.name.inside.scram-sha-512.sasl.jaas.config": jaas("Scram", "broker", "scram-brk"),
                "listener.name.inside.connections.max.reauth.ms": "5000",
                "listener.name.controller.connections.max.reauth.ms": "7000",
            }
            self.format_options = ("--add-scram", "SCRAM-SHA-512=[name=broker,password=scram-brk]")
            self.client = librdkafka("PLAIN", "alice", "secret", tls=True)

    def broker(self, port: int, plain_port: int) -> dict[str, str]:
        return {
            **self.common,
            "listeners": f"INSIDE://127.0.0.1:{port},PLAINTEXT://127.0.0.1:{plain_port}",
            "inter.broker.listener.name": "INSIDE",
            "broker.heartbeat.interval.ms": "500",
        }


class Cluster:
    def __init__(self, secured: Secured, ports: dict[int, int], plain_ports: dict[int, int]) -> None:
        self.secured = secured
        self.ports = ports
        self.plain = ",".join(f"127.0.0.1:{port}" for port in plain_ports.values())
        self.client = {**secured.client, "bootstrap.servers": ",".join(f"127.0.0.1:{one}" for one in ports.values())}
        self.admin = AdminClient(self.client)

    def make(self, topic: str, replicas: list[int]) -> None:
        made = self.admin.create_topics([NewTopic(topic, 1, replica_assignment=[replicas])])[topic]
        made.result(PATIENCE_S)

    def in_sync(self, topic: str) -> set[int]:
        partitions = self.admin.list_topics(topic, timeout=PATIENCE_S).topics[topic].partitions
        return set(partitions[0].isrs) if 0 in partitions else set()

    def await_in_sync(self, topic: str, wanted: set[int]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while self.in_sync(topic) != wanted:
            assert time.monotonic() < deadline, f"{topic} is in sync on {self.in_sync(topic)}, not on {wanted}"
            time.sleep(0.2)


@pytest.fixture(scope="module", params=product(["SSL", "SASL_SSL"], KINDS), ids="-".join)
def cluster(
    request: pytest.FixtureRequest, kafka: KafkaInstallation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    protocol, kind = request.param
    secured = Secured(protocol)
    path = tmp_path_factory.mktemp("secured")
    ports = {node: free_port() for node in (*OURS, KAFKAS)}
    plain_ports = {node: free_port() for node in ports}
    with ExitStack() as stack:
        controllers = controllers_of(
            kind, kafka, path, properties=secured.common, format_options=secured.format_options
        )
        if isinstance(controllers, TailraceController):
            stack.enter_context(controllers)
        else:
            controllers.nodes[0].launch()  # it does not respond to plaintext requests
            stack.callback(controllers.nodes[0]._kill)
        kafkas = KafkaMember(controllers, path / "kafka", KAFKAS, secured.broker(ports[KAFKAS], plain_ports[KAFKAS]))
        kafkas.port = plain_ports[KAFKAS]
        kafkas.launch()
        stack.callback(kafkas._kill)
        for node in OURS:
            settings = secured.broker(ports[node], plain_ports[node])
            ours = kraft_broker(controllers, path / f"ours-{node}" / "data", node, settings)
            stack.enter_context(ours)
        kafkas._wait_until_it_answers()
        yield Cluster(secured, ports, plain_ports)


def produce(cluster: Cluster, topic: str, values: list[bytes]) -> None:
    refused: list[Any] = []
    producer = Producer({**cluster.client, "acks": "all", "linger.ms": 5})
    for value in values:
        producer.produce(
            topic, value, partition=0, on_delivery=lambda error, _: refused.append(error) if error else None
        )
    assert producer.flush(PATIENCE_S) == 0
    assert refused == []


@pytest.mark.parametrize("replicas", [[1, 5], [5, 1], [1, 2, 5], [2, 1]], ids=str)
def test_replicas_follow_leaders_of_both_kinds(cluster: Cluster, replicas: list[int]) -> None:
    topic = "t-" + "-".join(map(str, replicas))
    cluster.make(topic, replicas)
    values = [b"%d" % number + b"x" * 500 for number in range(3_000)]
    produce(cluster, topic, values)
    cluster.await_in_sync(topic, set(replicas))
    assert [one.value for one in consume(cluster.plain, topic, 0)] == values


def test_replication_continues_when_authenticated_sessions_expire(cluster: Cluster) -> None:
    """The test runs longer than a session. With TLS alone there are no sessions."""
    cluster.make("long", [1, 5])
    cluster.make("other-way", [5, 1])
    for number in range(8):
        for topic in ("long", "other-way"):
            produce(cluster, topic, [b"%d" % number])
        time.sleep(1.5)
    for topic in ("long", "other-way"):
        cluster.await_in_sync(topic, {1, 5})
        assert len(consume(cluster.plain, topic, 0)) == 8


def test_credentials_set_through_our_broker_are_valid_at_both(cluster: Cluster) -> None:
    if cluster.secured.protocol == "SSL":
        pytest.skip("clients of this listener have certificates and no passwords")
    admin = AdminClient({**cluster.client, "bootstrap.servers": f"127.0.0.1:{cluster.ports[1]}"})
    wanted = UserScramCredentialUpsertion("bob", ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4_096), b"opens")
    admin.alter_user_scram_credentials([wanted])["bob"].result(PATIENCE_S)
    for node in cluster.ports:
        where = {"bootstrap.servers": f"127.0.0.1:{cluster.ports[node]}"}
        bob = AdminClient({**librdkafka("SCRAM-SHA-512", "bob", "opens", tls=True), **where})
        assert bob.list_topics(timeout=PATIENCE_S).brokers.keys() == set(cluster.ports)
