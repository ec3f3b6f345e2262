"""OAUTHBEARER with clients of other projects: librdkafka, kafka-python, aiokafka, Kafka's own tools.

Tokens are valid for a few seconds, so that clients re-authenticate while they write and read.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiokafka.abc
import kafka.net.sasl.oauth
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from kafka import KafkaConsumer, KafkaProducer

from tests.support import oauth_settings
from tests.support.identity_provider import CLIENTS, IdentityProvider
from tests.support.kafka_broker import free_port
from tests.support.kafka_install import KafkaInstallation
from tests.support.tailrace_process import TailraceProcess

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

LISTENERS = {"PLAINTEXT": "PLAINTEXT", "SIGNED": "SASL_PLAINTEXT", "UNSIGNED": "SASL_PLAINTEXT"}
LIFETIME_S = 6
COUNT = 12  # number of records; writing them takes twice the lifetime of a token
PAUSE_S = 2 * LIFETIME_S / COUNT
VALUES = [b"%d" % number for number in range(COUNT)]


class Secured:
    def __init__(self, provider: IdentityProvider, ports: dict[str, int]) -> None:
        self.provider = provider
        self.ports = ports

    def at(self, listener: str) -> str:
        return f"127.0.0.1:{self.ports[listener]}"


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    ports = {name: free_port() for name in LISTENERS}
    with IdentityProvider(lifetime_s=LIFETIME_S) as provider:
        settings = {
            "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items()),
            "listener.security.protocol.map": ",".join(f"{name}:{kind}" for name, kind in LISTENERS.items()),
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "auto.create.topics.enable": "true",
            "listener.name.unsigned.oauthbearer.sasl.jaas.config": f"{oauth_settings.MODULE};",
            **oauth_settings.listener("SIGNED", provider),
        }
        options = [part for key, text in settings.items() for part in ("-o", f"{key}={text}")]
        broker = TailraceProcess(tmp_path_factory.mktemp("oauth") / "data", *options)
        broker.ready_timeout_s = 120
        with broker:
            yield Secured(provider, ports)


def librdkafka(secured: Secured, way: str) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "bootstrap.servers": secured.at("SIGNED"),
        "security.protocol": "sasl_plaintext",
        "sasl.mechanisms": "OAUTHBEARER",
    }
    if way == "oidc":
        return settings | {
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.client.id": "alice",
            "sasl.oauthbearer.client.secret": CLIENTS["alice"],
            "sasl.oauthbearer.token.endpoint.url": secured.provider.token_url,
            "sasl.oauthbearer.scope": "kafka",
            "sasl.oauthbearer.extensions": "supportFeatureX=true",
        }
    if way == "callback":
        return settings | {
            "oauth_cb": lambda config: (secured.provider.token(), time.time() + LIFETIME_S),
        }
    return settings | {
        "bootstrap.servers": secured.at("UNSIGNED"),
        "enable.sasl.oauthbearer.unsecure.jwt": True,
        "sasl.oauthbearer.config": f"principal=alice lifeSeconds={LIFETIME_S} scope=kafka",
    }


@pytest.mark.parametrize("way", ["oidc", "callback", "unsigned"])
def test_librdkafka_writes_and_reads_beyond_the_lifetime_of_a_token(secured: Secured, way: str) -> None:
    settings = librdkafka(secured, way)
    before = secured.provider.requests["/token"]
    topic = f"confluent-{way}"
    refused: list[Any] = []
    producer = Producer(settings)
    consumer = Consumer({**settings, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    read: list[bytes | None] = []
    for value in VALUES:
        producer.produce(
            topic, value, partition=0, on_delivery=lambda error, _: refused.append(error) if error else None
        )
        producer.poll(0)
        read += [one.value() for one in consumer.consume(100, PAUSE_S) if one.error() is None]
    assert producer.flush(60) == 0
    deadline = time.monotonic() + 60
    while len(read) < COUNT and time.monotonic() < deadline:
        read += [one.value() for one in consumer.consume(100, 0.1) if one.error() is None]
    consumer.close()
    assert (read, refused) == (VALUES, [])
    if way == "oidc":  # a producer and a consumer, each with more than one token
        assert secured.provider.requests["/token"] >= before + 4


def test_librdkafka_is_refused_with_a_token_of_another_audience(secured: Secured) -> None:
    received: list[str] = []
    settings = librdkafka(secured, "callback") | {
        "oauth_cb": lambda config: (secured.provider.token(aud="another"), time.time() + LIFETIME_S),
        "error_cb": lambda error: received.append(str(error)),
    }
    admin = AdminClient(settings)
    with pytest.raises(KafkaException):
        admin.list_topics(timeout=5)
    admin.poll(0)
    assert any("invalid_token" in one for one in received)


class PythonTokens(kafka.net.sasl.oauth.AbstractTokenProvider):
    def __init__(self, provider: IdentityProvider) -> None:
        super().__init__()
        self._provider = provider

    def token(self) -> str:
        return self._provider.token()


def test_kafka_python_writes_and_reads_beyond_the_lifetime_of_a_token(secured: Secured) -> None:
    settings = {
        "bootstrap_servers": secured.at("SIGNED"),
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "OAUTHBEARER",
        "sasl_oauth_token_provider": PythonTokens(secured.provider),
    }
    producer = KafkaProducer(**settings, retries=5)
    for value in VALUES:
        producer.send("python", value, partition=0)
        time.sleep(PAUSE_S)
    producer.flush(60)
    producer.close()
    consumer = KafkaConsumer("python", **settings, auto_offset_reset="earliest", consumer_timeout_ms=30_000)
    assert [next(consumer).value for _ in VALUES] == VALUES
    consumer.close()


class AioTokens(aiokafka.abc.AbstractTokenProvider):
    def __init__(self, provider: IdentityProvider) -> None:
        self._provider = provider

    async def token(self) -> str:
        return self._provider.token()


def test_aiokafka_writes_and_reads_beyond_the_lifetime_of_a_token(secured: Secured) -> None:
    settings = {
        "bootstrap_servers": secured.at("SIGNED"),
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "OAUTHBEARER",
        "sasl_oauth_token_provider": AioTokens(secured.provider),
    }

    async def run() -> list[bytes | None]:
        async with AIOKafkaProducer(**settings) as producer:
            for value in VALUES:
                await producer.send_and_wait("aio", value, partition=0)
                await asyncio.sleep(PAUSE_S)
        async with AIOKafkaConsumer("aio", **settings, auto_offset_reset="earliest") as consumer:
            return [(await asyncio.wait_for(consumer.getone(), 60)).value for _ in VALUES]

    assert asyncio.run(run()) == VALUES


@pytest.mark.parametrize("way", ["SIGNED", "UNSIGNED"])
def test_kafkas_own_tools_write_and_read(
    secured: Secured, kafka: KafkaInstallation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    if way == "SIGNED":
        java = oauth_settings.client(secured.provider)
        java["sasl.jaas.config"] = f"{oauth_settings.MODULE};"
    else:
        java = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.jaas.config": f'{oauth_settings.MODULE} unsecuredLoginStringClaim_sub="alice" '
            'unsecuredLoginListClaim_scope=",a,b" unsecuredLoginExtension_traceId="123";',
        }
    allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={secured.provider.token_url}"
    monkeypatch.setenv("JDK_JAVA_OPTIONS", allowed)
    settings = tmp_path / "client.properties"
    settings.write_text("".join(f"{key}={text}\n" for key, text in java.items()))
    where = ("--bootstrap-server", secured.at(way), "--command-config", str(settings))
    topic = f"tools-{way}"
    kafka.tool("org.apache.kafka.tools.TopicCommand", *where, "--create", "--topic", topic)
    # A hundred records in twice the lifetime of a token: the producer re-authenticates on its connection.
    performance = (
        "--topic",
        topic,
        "--num-records",
        "100",
        "--record-size",
        "10",
        "--throughput",
        f"{50 / LIFETIME_S:.0f}",
    )
    reported = kafka.tool("org.apache.kafka.tools.ProducerPerformance", *performance, *where)
    assert "100 records sent" in reported
    read = kafka.tool(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *where,
        *("--topic", topic, "--from-beginning", "--max-messages", "100", "--timeout-ms", "60000"),
    )
    assert len(read.split()) == 100


def test_kafkas_own_tools_are_refused_with_a_wrong_secret(
    secured: Secured, kafka: KafkaInstallation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = oauth_settings.client(secured.provider) | {
        "sasl.jaas.config": f"{oauth_settings.MODULE};",
        "sasl.oauthbearer.client.credentials.client.secret": "wrong",
    }
    allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={secured.provider.token_url}"
    monkeypatch.setenv("JDK_JAVA_OPTIONS", allowed)
    settings = tmp_path / "client.properties"
    settings.write_text("".join(f"{key}={text}\n" for key, text in java.items()))
    where = ("--bootstrap-server", secured.at("SIGNED"), "--command-config", str(settings))
    before = secured.provider.refusals
    assert "tools" not in kafka.tool("org.apache.kafka.tools.TopicCommand", *where, "--list", check=False)
    assert secured.provider.refusals > before
