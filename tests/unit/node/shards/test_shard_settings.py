"""The settings of each shard: node ids, ports, folders, and the secured listeners between shards."""

from __future__ import annotations

import pytest

from tailrace.model.topic_config import InvalidConfig
from tailrace.node.serving import server_settings, split_settings
from tailrace.node.shards.shard_settings import Login, check_client_ports, check_shardable, settings_of_shard

PROPERTIES = {"listeners": "PLAINTEXT://127.0.0.1:9092", "log.dirs": "/disk1,/disk2", "num.partitions": "3"}
SOCKETS = {"SHARDS": (7001, 5), "SHARD_CONTROLLER": (7000, 6)}
LOGIN = Login("shard-a", "secret")


def settings(number: int, properties: dict[str, str] | None = None, **more: tuple[int, int]) -> dict[str, str]:
    sockets = {**SOCKETS, **more} if number == 1 else {"SHARDS": (7002, 7), **more}
    return settings_of_shard(properties or PROPERTIES, number, sockets, 7000, LOGIN)


def test_the_first_shard_is_broker_and_controller() -> None:
    config, own = split_settings(settings(1))
    assert config.node_id == 1
    assert config.roles.serves_brokers
    assert config.roles.has_broker
    assert config.log_dirs == ("/disk1/shard1", "/disk2/shard1")
    server = server_settings(config, own)
    assert [str(one) for one in server.listeners] == [
        "PLAINTEXT://127.0.0.1:9092", "SHARDS://127.0.0.1:7001", "SHARD_CONTROLLER://127.0.0.1:7000",
    ]  # fmt: skip
    assert server.inherited == {"SHARDS": 5, "SHARD_CONTROLLER": 6}
    assert set(server.sasl_receive_bytes_max) == {"SHARDS", "SHARD_CONTROLLER"}


def test_other_shards_are_brokers_with_the_next_ids_ports_and_folders() -> None:
    config, own = split_settings(settings(3, {**PROPERTIES, "node.id": "10", "metadata.log.dir": "/fast"}))
    assert config.node_id == 12
    assert config.roles.is_broker_only
    assert config.roles.controllers == (("127.0.0.1", 7000),)
    assert config.log_dirs == ("/disk1/shard3", "/disk2/shard3")
    assert config.metadata_log_dir == "/fast/shard3"
    assert [str(one) for one in server_settings(config, own).listeners] == [
        "PLAINTEXT://127.0.0.1:9094", "SHARDS://127.0.0.1:7002",
    ]  # fmt: skip


def test_shards_log_in_to_each_other_with_the_drawn_password() -> None:
    for number in (1, 2):
        config, _ = split_settings(settings(number, {**PROPERTIES, "sasl.mechanism.inter.broker.protocol": "OTHER"}))
        assert config.inter_broker_listener.name == "SHARDS"
        assert config.inter_broker_listener.security_protocol == "SASL_PLAINTEXT"
        assert config.sasl["SHARDS"].passwords == {"shard-a": "secret"}
        assert config.sasl["SHARDS"].mechanisms == ("PLAIN",)


def test_drawn_logins_differ() -> None:
    assert Login.draw() != Login.draw()
    assert len(Login.draw().password) == 64


def test_internal_topics_have_one_replica_unless_set() -> None:
    assert settings(2)["offsets.topic.replication.factor"] == "1"
    chosen = settings(2, {**PROPERTIES, "offsets.topic.replication.factor": "2"})
    assert chosen["offsets.topic.replication.factor"] == "2"


def test_with_an_authorizer_the_shards_are_super_users_beside_those_of_the_user() -> None:
    authorized = {**PROPERTIES, "authorizer.class.name": "A", "super.users": "User:admin"}
    assert settings(2, authorized)["super.users"] == "User:admin;User:shard-a"
    assert "super.users" not in settings(2)


def test_the_controller_listener_of_a_kafka_node_is_replaced() -> None:
    file = {
        **PROPERTIES,
        "process.roles": "broker,controller",
        "listeners": "IN://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
        "advertised.listeners": "IN://example.org:19092",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": "127.0.0.1:9093",
        "listener.security.protocol.map": "IN:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "IN",
    }
    found = settings(2, file)
    assert found["listeners"] == "IN://127.0.0.1:9093,SHARDS://127.0.0.1:7002"
    assert found["advertised.listeners"] == "IN://example.org:19093,SHARDS://127.0.0.1:7002"
    config, _ = split_settings(found)
    assert config.roles.controller_listener == "SHARD_CONTROLLER"


def test_a_listener_on_port_0_gets_the_port_of_its_socket() -> None:
    found = settings(2, {**PROPERTIES, "listeners": "PLAINTEXT://127.0.0.1:0"}, PLAINTEXT=(8123, 9))
    assert found["listeners"] == "PLAINTEXT://127.0.0.1:8123,SHARDS://127.0.0.1:7002"
    assert "PLAINTEXT:9" in found["tailrace.inherited.sockets"]


def test_metrics_of_a_shard_are_at_the_inherited_socket_and_not_at_the_port_of_the_node() -> None:
    properties = {**PROPERTIES, "tailrace.metrics.port": "9404", "tailrace.metrics.host": ""}
    found = settings(2, properties, METRICS=(8124, 9))
    assert found["tailrace.metrics.port"] == "8124"
    assert "tailrace.metrics.host" not in found


def test_listeners_whose_ports_overlap_are_refused() -> None:
    two = {**PROPERTIES, "listeners": "IN://127.0.0.1:9092,OUT://127.0.0.1:9094"}
    check_client_ports(two, 2)
    with pytest.raises(InvalidConfig, match=r"shard 1 would listen on OUT://127.0.0.1:9094, and shard 3 on IN://"):
        check_client_ports(two, 3)
    with pytest.raises(InvalidConfig, match=r"shard 2 would listen on PLAINTEXT://127.0.0.1:65536"):
        check_client_ports({**PROPERTIES, "listeners": "PLAINTEXT://127.0.0.1:65535"}, 2)


def test_a_broker_below_other_controllers_has_no_shards() -> None:
    check_shardable({"process.roles": "broker"}, 1)
    check_shardable({"process.roles": "controller, broker"}, 2)
    with pytest.raises(InvalidConfig, match=r"process.roles: a node with several shards is broker and controller"):
        check_shardable({"process.roles": "broker"}, 2)
    with pytest.raises(InvalidConfig, match="0 is not between 1 and 256"):
        check_shardable({}, 0)
