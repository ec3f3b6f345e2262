"""Clients of other projects at a secured broker: librdkafka, kafka-python, aiokafka, and Kafka's own tools."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, Producer
from kafka import KafkaConsumer, KafkaProducer

from tests.support.kafka_broker import free_port
from tests.support.kafka_install import KafkaInstallation
from tests.support.secured import STORES, TLS, jaas, librdkafka
from tests.support.tailrace_process import TailraceProcess

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

LISTENERS = {"PLAINTEXT": "PLAINTEXT", "MUTUAL": "SSL", "BOTH": "SASL_SSL"}
VALUES = [b"%d" % number for number in range(50)]
USERS = {
    "PLAIN": ("alice", "secret"),
    "SCRAM-SHA-256": ("bob", "sesame"),
    "SCRAM-SHA-512": ("bob", "sesame"),
}


class Secured:
    def __init__(self, broker: TailraceProcess, ports: dict[str, int]) -> None:
        self.broker = broker
        self.ports = ports

    def at(self, listener: str) -> str:
        return f"127.0.0.1:{self.ports[listener]}"


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    ports = {name: free_port() for name in LISTENERS}
    settings = {
        **STORES,
        "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items()),
        "listener.security.protocol.map": ",".join(f"{name}:{kind}" for name, kind in LISTENERS.items()),
        "ssl.client.auth": "required",
        "sasl.enabled.mechanisms": ",".join(USERS),
        "listener.name.both.plain.sasl.jaas.config": jaas("Plain", "x", "x", alice="secret"),
        "connections.max.reauth.ms": "10000",
        "auto.create.topics.enable": "true",
    }
    options = [part for key, text in settings.items() for part in ("-o", f"{key}={text}")]
    folder = tmp_path_factory.mktemp("secured")
    credentials = folder / "credentials"
    credentials.write_text("".join(f"SCRAM-SHA-{size}=[name=bob,password=sesame]\n" for size in (256, 512)))
    broker = TailraceProcess(folder / "data", *options, "--add-scram", f"@{credentials}")
    broker.ready_timeout_s = 120
    with broker:
        yield Secured(broker, ports)


def test_librdkafka_writes_and_reads_with_a_certificate(secured: Secured) -> None:
    settings = {**librdkafka(tls=True), "bootstrap.servers": secured.at("MUTUAL")}
    check_confluent(settings, "with-certificate")


@pytest.mark.parametrize("mechanism", USERS)
def test_librdkafka_writes_and_reads_with_a_password(secured: Secured, mechanism: str) -> None:
    name, password = USERS[mechanism]
    settings = {**librdkafka(mechanism, name, password, tls=True), "bootstrap.servers": secured.at("BOTH")}
    check_confluent(settings, f"confluent-{mechanism}")


def check_confluent(settings: dict[str, str], topic: str) -> None:
    producer = Producer(settings)
    for value in VALUES:
        producer.produce(topic, value, partition=0)
    assert producer.flush(60) == 0
    consumer = Consumer({**settings, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    read: list[bytes | None] = []
    for _ in range(600):
        read += [one.value() for one in consumer.consume(100, 0.1) if one.error() is None]
        if len(read) >= len(VALUES):
            break
    consumer.close()
    assert read == VALUES


@pytest.mark.parametrize("mechanism", USERS)
def test_kafka_python_writes_and_reads_with_a_password(secured: Secured, mechanism: str) -> None:
    name, password = USERS[mechanism]
    settings = {
        "bootstrap_servers": secured.at("BOTH"),
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": name,
        "sasl_plain_password": password,
        "ssl_cafile": str(TLS / "authority.pem"),
    }
    topic = f"python-{mechanism}"
    producer = KafkaProducer(**settings)
    for value in VALUES:
        producer.send(topic, value, partition=0)
    producer.flush(60)
    producer.close()
    consumer = KafkaConsumer(topic, **settings, auto_offset_reset="earliest", consumer_timeout_ms=30_000)
    assert [next(consumer).value for _ in VALUES] == VALUES
    consumer.close()


@pytest.mark.parametrize("mechanism", USERS)
def test_aiokafka_writes_and_reads_with_a_password(secured: Secured, mechanism: str) -> None:
    name, password = USERS[mechanism]
    settings = {
        "bootstrap_servers": secured.at("BOTH"),
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": name,
        "sasl_plain_password": password,
        "ssl_context": ssl.create_default_context(cafile=str(TLS / "authority.pem")),
    }
    topic = f"aio-{mechanism}"

    async def run() -> list[bytes | None]:
        async with AIOKafkaProducer(**settings) as producer:
            for value in VALUES:
                await producer.send_and_wait(topic, value, partition=0)
        async with AIOKafkaConsumer(topic, **settings, auto_offset_reset="earliest") as consumer:
            return [(await asyncio.wait_for(consumer.getone(), 60)).value for _ in VALUES]

    assert asyncio.run(run()) == VALUES


def test_kafkas_own_tools_work_with_a_settings_file(secured: Secured, kafka: KafkaInstallation, tmp_path: Path) -> None:
    """Topics, credentials, writing and reading."""
    java = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": jaas("Scram", "bob", "sesame"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(TLS / "authority.pem"),
    }
    settings = tmp_path / "client.properties"

    def write(**changes: str) -> None:
        settings.write_text("".join(f"{key}={text}\n" for key, text in {**java, **changes}.items()))

    write()
    where = ("--bootstrap-server", secured.at("BOTH"))
    command = ("--command-config", str(settings))
    topics = "org.apache.kafka.tools.TopicCommand"
    kafka.tool(topics, *where, *command, "--create", "--topic", "tools", "--partitions", "2")
    assert "tools" in kafka.tool(topics, *where, *command, "--list").split()
    configs = "kafka.admin.ConfigCommand"
    user = ("--entity-type", "users", "--entity-name", "carol")
    add = "SCRAM-SHA-512=[iterations=8192,password=opensesame]"
    reported = kafka.tool(configs, *where, *command, "--alter", *user, "--add-config", add)
    assert "Completed updating config for user carol." in reported
    assert "SCRAM-SHA-512=iterations=8192" in kafka.tool(configs, *where, *command, "--describe", *user)
    write(**{"sasl.jaas.config": jaas("Scram", "carol", "opensesame")})
    kafka.tool(
        "org.apache.kafka.tools.ConsoleProducer",
        *where,
        *command,
        "--topic",
        "tools",
        stdin="".join(f"{number}\n" for number in range(20)),
    )
    read = kafka.tool(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *where,
        *command,
        "--topic",
        "tools",
        "--from-beginning",
        "--max-messages",
        "20",
        "--timeout-ms",
        "60000",
    )
    assert sorted(line for line in read.split() if line.isdecimal()) == sorted(map(str, range(20)))
    write(**{"sasl.jaas.config": jaas("Scram", "carol", "wrong")})
    refused = kafka.tool(topics, *where, *command, "--list", check=False)
    assert "tools" not in refused.split()
