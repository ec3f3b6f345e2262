"""A cluster whose nodes authenticate to each other with OAUTHBEARER: a Kafka controller, Tailrace and Kafka brokers,
with replicas on both. Tokens are valid for a few seconds, so that every connection outlives several tokens.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support import oauth_settings
from tests.support.confluent import consume
from tests.support.identity_provider import IdentityProvider
from tests.support.kafka_broker import free_port
from tests.support.kafka_controllers import KafkaControllers
from tests.support.kafka_install import KafkaInstallation
from tests.support.kafka_member import KafkaMember
from tests.support.kraft_broker import kraft_broker

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

PATIENCE_S = 120
LIFETIME_S = 8
OURS, KAFKAS = (1, 2), 5


def common(provider: IdentityProvider) -> dict[str, str]:
    made = {
        "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT,INSIDE:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.mechanism.controller.protocol": "OAUTHBEARER",
        "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
        "broker.session.timeout.ms": "9000",
        "sasl.login.refresh.min.period.seconds": "1",
        "sasl.login.refresh.buffer.seconds": "1",
    }
    for name in ("controller", "inside"):
        own = oauth_settings.login(provider, "broker")
        made |= {f"listener.name.{name}.oauthbearer.{key}": text for key, text in own.items()}
        made |= oauth_settings.listener(name, provider, **{"sasl.jaas.config": f"{oauth_settings.MODULE};"})
    return made


def broker_settings(provider: IdentityProvider, port: int, plain_port: int) -> dict[str, str]:
    return {
        **common(provider),
        "listeners": f"INSIDE://127.0.0.1:{port},PLAINTEXT://127.0.0.1:{plain_port}",
        "inter.broker.listener.name": "INSIDE",
        "broker.heartbeat.interval.ms": "500",
    }


@pytest.fixture(scope="module")
def bootstrap(kafka: KafkaInstallation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    path = tmp_path_factory.mktemp("oauth-cluster")
    ports = {node: free_port() for node in (*OURS, KAFKAS)}
    plain_ports = {node: free_port() for node in ports}
    with ExitStack() as stack:
        provider = stack.enter_context(IdentityProvider(lifetime_s=LIFETIME_S))
        allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={provider.jwks_url},{provider.token_url}"
        controllers = KafkaControllers(kafka, path, count=1, properties=common(provider))
        for controller in controllers.nodes:
            controller.launch(jvm_flags=(allowed,))
            stack.callback(controller._kill)
        settings = broker_settings(provider, ports[KAFKAS], plain_ports[KAFKAS])
        kafkas = KafkaMember(controllers, path / "kafka", KAFKAS, settings)
        kafkas.port = plain_ports[KAFKAS]
        kafkas.launch(jvm_flags=(allowed,))
        stack.callback(kafkas._kill)
        for node in OURS:
            settings = broker_settings(provider, ports[node], plain_ports[node])
            stack.enter_context(kraft_broker(controllers, path / f"ours-{node}" / "data", node, settings))
        kafkas._wait_until_it_answers()
        yield ",".join(f"127.0.0.1:{port}" for port in plain_ports.values())


@pytest.mark.parametrize("replicas", [[1, 5], [5, 1], [1, 2, 5]], ids=str)
def test_replicas_stay_in_sync_beyond_the_lifetime_of_several_tokens(bootstrap: str, replicas: list[int]) -> None:
    topic = "t-" + "-".join(map(str, replicas))
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, 1, replica_assignment=[replicas])])[topic].result(PATIENCE_S)
    values = []
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    deadline = time.monotonic() + 2 * LIFETIME_S
    while time.monotonic() < deadline:
        values.append(b"%d" % len(values))
        producer.produce(topic, values[-1], partition=0)
        assert producer.flush(PATIENCE_S) == 0
        time.sleep(0.2)
    assert [one.value for one in consume(bootstrap, topic, 0)] == values
    limit = time.monotonic() + PATIENCE_S
    while (found := _in_sync(admin, topic)) != set(replicas):
        assert time.monotonic() < limit, f"{topic} is in sync on {found}, not on {replicas}"
        time.sleep(0.2)


def _in_sync(admin: AdminClient, topic: str) -> set[int]:
    partitions = admin.list_topics(topic, timeout=PATIENCE_S).topics[topic].partitions
    return set(partitions[0].isrs) if 0 in partitions else set()
