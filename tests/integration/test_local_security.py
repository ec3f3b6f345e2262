"""LocalSecurity: a secured broker for tests, and the settings with which clients reach it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import aiokafka
import kafka
import pytest
from confluent_kafka import KafkaError, Producer

import tailrace
from tailrace.embedded.certificates import Authority
from tailrace.embedded.security import LocalSecurity

TIMEOUT_S = 20
USERS = {"alice": "alice-secret", "bob": "bob-secret"}
SECURITIES = {
    "tls": LocalSecurity(),
    "certificates": LocalSecurity(client_certificates=True),
    "plain": LocalSecurity(tls=False, users=USERS),
    "plain-tls": LocalSecurity(users=USERS),
    "scram-256": LocalSecurity(users=USERS, mechanism="SCRAM-SHA-256"),
    "scram-512-certificates": LocalSecurity(users=USERS, mechanism="SCRAM-SHA-512", client_certificates=True),
}


def write(settings: dict[str, Any]) -> KafkaError | None:
    """Write a record with librdkafka, and return the error of its delivery report."""
    errors: list[KafkaError | None] = []
    producer = Producer({**settings, "message.timeout.ms": TIMEOUT_S * 1000})
    producer.produce("t", b"x", on_delivery=lambda error, record: errors.append(error))
    producer.flush(TIMEOUT_S)
    return errors[0]


async def read_with_aiokafka(settings: dict[str, Any]) -> bytes | None:
    consumer = aiokafka.AIOKafkaConsumer("t", auto_offset_reset="earliest", **settings)
    async with consumer:
        record = await asyncio.wait_for(consumer.getone(), TIMEOUT_S)
    value: bytes | None = record.value
    return value


@pytest.mark.parametrize("security", SECURITIES.values(), ids=SECURITIES.keys())
def test_every_client_connects_with_its_settings(security: LocalSecurity) -> None:
    with tailrace.Broker(security=security) as broker:
        broker.create_topic("t")
        assert write(broker.client_settings()) is None
        consumer = kafka.KafkaConsumer(
            "t",
            auto_offset_reset="earliest",
            consumer_timeout_ms=TIMEOUT_S * 1000,
            **broker.client_settings("kafka-python"),
        )
        assert next(consumer).value == b"x"
        consumer.close()
        assert asyncio.run(read_with_aiokafka(broker.client_settings("aiokafka"))) == b"x"


def test_each_user_logs_in_with_its_own_password() -> None:
    with tailrace.Broker(security=SECURITIES["scram-256"]) as broker:
        broker.create_topic("t")
        assert [broker.client_settings(user=name)["sasl.password"] for name in USERS] == list(USERS.values())
        assert [write(broker.client_settings(user=name)) for name in USERS] == [None, None]
        wrong = {**broker.client_settings(user="bob"), "sasl.password": "other", "message.timeout.ms": 1000}
        failed = Producer(wrong)
        errors: list[Any] = []
        failed.produce("t", b"x", on_delivery=lambda error, record: errors.append(error))
        failed.flush(TIMEOUT_S)
        assert errors[0] is not None
        with pytest.raises(ValueError, match="there is no user 'carol'; the users are alice, bob"):
            broker.client_settings(user="carol")


def test_scram_users_are_there_after_a_reset() -> None:
    with tailrace.Broker(security=SECURITIES["scram-256"]) as broker:
        for _ in range(2):
            broker.create_topic("t")
            assert write(broker.client_settings(user="bob")) is None
            broker.reset()


def test_openssl_makes_certificates_where_cryptography_is_missing(tmp_path: Path) -> None:
    import ssl

    authority = Authority(tmp_path, uses_openssl=True)
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(authority.certificate("broker", ("127.0.0.1", "localhost")))
    client = ssl.create_default_context(cafile=str(authority.certificate_file))
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname="127.0.0.1"),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for _ in range(5):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
    assert ends[0].getpeercert()["subject"] == ((("commonName", "broker"),),)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"mechanism": "GSSAPI"}, "must be one of PLAIN"),
        ({"tls": False}, "needs tls or users"),
        ({"tls": False, "users": USERS, "client_certificates": True}, "need tls"),
        ({"users": {"alice": 'a"b'}}, "cannot be a name or a password"),
    ],
)
def test_impossible_security_is_refused(wrong: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        LocalSecurity(**wrong)


def test_settings_for_an_unknown_client_or_user_are_refused() -> None:
    with tailrace.Broker() as broker:
        assert broker.client_settings("java") == {"bootstrap.servers": broker.bootstrap}
        with pytest.raises(ValueError, match="the clients are librdkafka, kafka-python, aiokafka, java"):
            broker.client_settings("sarama")
        with pytest.raises(ValueError, match="give the broker a LocalSecurity"):
            broker.client_settings(user="alice")
