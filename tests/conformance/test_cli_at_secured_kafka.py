"""Every client command at an Apache Kafka broker with SASL_SSL and ACLs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli_play import ADMIN, Player, play, play_as_stranger, write_client_config
from tests.support.kafka_broker import KafkaBroker, free_port
from tests.support.kafka_install import kafka_installation
from tests.support.secured import STORES, jaas

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[KafkaBroker, str]]:
    broker = KafkaBroker(kafka_installation(), tmp_path_factory.mktemp("kafka"))
    port = free_port()
    scram = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    broker.properties |= {
        **STORES,
        "listeners": f"{broker.properties['listeners']},BOTH://127.0.0.1:{port}",
        "listener.security.protocol.map": f"{broker.properties['listener.security.protocol.map']},BOTH:SASL_SSL",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
        "listener.name.both.plain.sasl.jaas.config": jaas("Plain", "x", "x", **ADMIN),
        "listener.name.both.scram-sha-512.sasl.jaas.config": scram,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin;User:ANONYMOUS",  # the broker itself connects without authentication
    }
    with broker:
        yield broker, f"127.0.0.1:{port}"


def test_every_client_command_works_for_the_super_user(
    kafka: tuple[KafkaBroker, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker, bootstrap = kafka
    config = write_client_config(tmp_path / "admin.properties", "admin")
    play(
        Player.with_command_config(bootstrap, config, monkeypatch),
        tmp_path,
        bootstrap,
        broker=int(broker.properties["node.id"]),
    )


def test_every_client_command_is_refused_for_a_user_without_rights(
    kafka: tuple[KafkaBroker, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, bootstrap = kafka
    admin = Player.with_command_config(
        bootstrap, write_client_config(tmp_path / "admin.properties", "admin"), monkeypatch
    )
    admin.ok("topics", "create", "orders")
    stranger = Player.with_command_config(
        bootstrap, write_client_config(tmp_path / "mallory.properties", "mallory"), monkeypatch
    )
    play_as_stranger(stranger, tmp_path)
    admin.ok("topics", "delete", "orders")
