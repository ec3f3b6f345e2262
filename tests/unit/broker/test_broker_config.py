"""BrokerConfig: server.properties with types, support and warnings; listeners; dynamic changes; what is described."""

from __future__ import annotations

import pytest

from tailrace.broker.config.authorizer_config import authorizer_of
from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.config.config_description import describe_config, java_double
from tailrace.broker.config.config_support import _TABLE, Support, support_of
from tailrace.broker.config.dynamic_config import check_dynamic_config
from tailrace.broker.config.listener_config import Listener
from tailrace.broker.config.properties_file import MalformedProperties, parse_properties
from tailrace.metadata.image.effective_config import ConfigSource
from tailrace.metadata.image.image import ConfigResource
from tailrace.metadata.image.registrations import Endpoint
from tailrace.model.configs.config_definitions import definition
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.topic_config import InvalidConfig
from tailrace.protocol import messages as m
from tests.unit.metadata.cluster import Cluster

# What Kafka's own quick start has in its server.properties.
QUICK_START = """
# comment
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kraft-combined-logs
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""


def of(**settings: str) -> BrokerConfig:
    return BrokerConfig.of(
        log_dirs=["/data"], port=9092, settings={key.replace("_", "."): value for key, value in settings.items()}
    )


def test_kafkas_example_server_properties_is_accepted() -> None:
    config = BrokerConfig.parse(QUICK_START)
    assert config.node_id == 1
    assert config.log_dirs == ("/tmp/kraft-combined-logs",)
    assert config.listeners == [Listener("PLAINTEXT", "", 9092)]
    assert config.endpoints() == (Endpoint("PLAINTEXT", "localhost", 9092, 0),)
    assert config.controller_endpoints() == (Endpoint("CONTROLLER", "localhost", 9093, 0),)
    assert config.integer("socket.request.max.bytes") == 104_857_600
    assert [warning.partition(" ")[0] for warning in config.warnings] == ["num.recovery.threads.per.data.dir"]


def test_the_controller_address_of_one_node_has_the_next_port() -> None:
    config = of()
    assert config.node_id == 1
    assert config.endpoints() == (Endpoint("PLAINTEXT", "127.0.0.1", 9092, 0),)
    assert config.controller_endpoints() == (Endpoint("CONTROLLER", "127.0.0.1", 9093, 0),)
    free = BrokerConfig.of(log_dirs=["/data"], port=0)
    assert free.endpoints({"PLAINTEXT": 40000})[0].port == 40000
    assert free.controller_endpoints({"PLAINTEXT": 40000})[0].port == 40001
    assert BrokerConfig.of(log_dirs=["/data"], port=9092, host="::1").listeners[0].host == "::1"


def test_every_broker_key_of_kafka_is_classified() -> None:
    names = definition("broker")
    counts = {support: sum(support_of(name) is support for name in names) for support in Support}
    assert sum(counts.values()) == len(names) == 363
    assert all(counts.values())
    stale = [entry for entry in _TABLE if entry not in names and not any(name.startswith(entry) for name in names)]
    assert stale == []


def test_all_topic_defaults_are_honoured() -> None:
    from tailrace.model.configs.config_definitions import topic_synonyms

    for synonyms in topic_synonyms().values():
        for name, _ in synonyms:
            assert support_of(name) is Support.HONOURED, name


ACLS = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}


def _below(key: str, controllers: str) -> dict[str, str]:
    """Return the config of a broker whose controllers are other nodes."""
    return {"process.roles": "broker", "controller.listener.names": "CONTROLLER", key: controllers}


def test_a_broker_with_separate_controllers_has_their_addresses() -> None:
    settings = {
        **_below("controller.quorum.bootstrap.servers", "c1:9093,[::1]:9094"),
        "controller.quorum.voters": "3000@c1:9093,3001@c3:9095",
    }
    config = BrokerConfig.of(log_dirs=["/data"], port=9092, settings=settings)
    assert config.roles == (True, (("c1", 9093), ("::1", 9094), ("c3", 9095)), "CONTROLLER", "PLAINTEXT", True, False)


def test_a_controller_has_only_its_own_listener() -> None:
    settings = {
        "process.roles": "controller",
        "controller.listener.names": "CONTROLLER",
        "listeners": "CONTROLLER://127.0.0.1:9093",
    }
    config = BrokerConfig.of(log_dirs=["/data"], port=9092, settings=settings)
    assert config.listeners == []
    assert [str(one) for one in config.controller_listeners] == ["CONTROLLER://127.0.0.1:9093"]
    assert (config.roles.has_broker, config.roles.serves_brokers) == (False, True)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"ssl.engine.factory.class": "a.B"}, "not supported"),
        ({"listener.name.plaintext.ssl.provider": "x"}, "not supported"),
        ({"listener.name.plaintext.num.partitions": "2"}, "not supported"),
        ({"listener.name.nowhere.max.connections": "5"}, "listener NOWHERE does not exist"),
        ({"authorizer.class.name": "a.b.C"}, "a.b.C is not supported; use org.apache.kafka"),
        ({**ACLS, "super.users": "alice"}, "not a principal"),
        ({"remote.log.storage.system.enable": "true"}, "remote.log.storage.manager.class.name must be set"),
        ({"listeners": "SASL_SSL://:9092"}, "GSSAPI of listener SASL_SSL is not supported"),
        ({"num.partitions": "0"}, "at least 1"),
        ({"num.partitions": "many"}, "must be a number"),
        ({"process.roles": "controller"}, "at least one listener|needs a listener|has no other listeners"),
        (
            {
                "process.roles": "controller",
                "controller.listener.names": "CONTROLLER",
                "listeners": "PLAINTEXT://:9092",
            },
            "PLAINTEXT is not named in controller.listener.names",
        ),
        (
            {
                "process.roles": "controller",
                "controller.listener.names": "CONTROLLER",
                "listeners": "CONTROLLER://:9093",
                "controller.quorum.voters": "1@a:1,2@b:2",
            },
            "must be the only voter, 1; for more voters, run Apache Kafka's controllers",
        ),
        ({"process.roles": "broker"}, "controller.listener.names"),
        ({"process.roles": "broker", "controller.listener.names": "CONTROLLER"}, "needs controller.quorum.bootstrap"),
        (_below("controller.quorum.bootstrap.servers", "c1"), "not an address"),
        (_below("controller.quorum.voters", "c1:9093"), "not a voter"),
        (_below("controller.quorum.voters", "1@c1:9093"), "must not be a voter"),
        (
            {
                **_below("controller.quorum.bootstrap.servers", "c1:9093"),
                "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
            },
            "must not listen",
        ),
        ({"process.roles": "broker,observer"}, "one of broker, controller"),
        ({"controller.quorum.voters": "1@a:1,2@b:2"}, "must be the only voter"),
        ({"controller.quorum.bootstrap.servers": "a:1,b:2"}, "must be the only voter"),
        ({"broker.id": "2", "node.id": "1"}, "differs"),
        ({"log.dirs": "/a,"}, "between two commas"),
        ({"listeners": "PLAINTEXT://:9092,PLAINTEXT://:9093"}, "a different name"),
        (
            {"listeners": "A://:9092,B://:9092", "listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT"},
            "more than once",
        ),
        ({"listeners": "OTHER://:9092"}, "no security protocol"),
        ({"listeners": "9092"}, "NAME://host:port"),
        ({"listeners": "PLAINTEXT://:70000"}, "70000 is not a valid port"),
        (
            {"listeners": "PLAINTEXT://:9092", "controller.listener.names": "PLAINTEXT"},
            "at least one listener for clients",
        ),
        ({"listener.security.protocol.map": "A:ROT13"}, "not NAME:PROTOCOL"),
        ({"advertised.listeners": "PLAINTEXT://0.0.0.0:9092"}, "clients cannot connect"),
        ({"advertised.listeners": "SSL://a:9092"}, "not among the listeners"),
        ({"inter.broker.listener.name": "SSL"}, "not among the advertised"),
        ({"inter.broker.listener.name": "PLAINTEXT", "security.inter.broker.protocol": "PLAINTEXT"}, "only one of"),
        ({"log.retention.ms": "0"}, r"-1 \(no limit\) or more than 0"),
        ({"log.cleaner.min.compaction.lag.ms": "9", "log.cleaner.max.compaction.lag.ms": "5"}, "compaction"),
        ({"queued.max.request.bytes": "5"}, "socket.request.max.bytes"),
    ],
)
def test_invalid_broker_settings_are_refused(settings: dict[str, str], reason: str) -> None:
    with pytest.raises(InvalidConfig, match=reason):
        BrokerConfig.of(log_dirs=["/data"], port=9092, settings=settings)


def test_settings_without_effect_and_unknown_settings_are_warned_about() -> None:
    config = of(num_io_threads="99", my_own_key="x", broker_heartbeat_interval_ms="2000")
    assert config.warnings == ["num.io.threads has no effect", "my.own.key is not a known setting"]


def test_values_have_the_type_of_their_key() -> None:
    config = of(log_cleaner_io_buffer_load_factor="0.8", auto_create_topics_enable="false", broker_rack="r1")
    assert config.number("log.cleaner.io.buffer.load.factor") == 0.8
    assert config.flag("auto.create.topics.enable") is False
    assert config.rack == "r1"
    assert config.names("group.consumer.assignors") == ("uniform", "range")
    assert config.text("replica.selector.class") is None
    assert config.metadata_log.retention_bytes == 104_857_600
    assert config.metadata_log_dir == "/data"


def test_topics_get_their_defaults_from_the_broker() -> None:
    cluster = Cluster()
    cluster.add_topic("t", [1], cleanup_policy="compact", no_longer_known="x")
    config = of(log_segment_bytes="2000000", log_retention_minutes="3", log_roll_jitter_hours="1")
    topic = config.topic_config(cluster.image, "t")
    assert (topic.segment_bytes, topic.retention_ms, topic.segment_jitter_ms) == (2_000_000, 180_000, 3_600_000)
    assert topic.is_compacted
    cluster.apply([m.ConfigRecord(resource_type=4, resource_name="", name="log.retention.ms", value="77")])
    assert config.topic_config(cluster.image, "t").retention_ms == 77
    assert config.current("log.retention.ms", cluster.image) == 77
    assert config.current("log.segment.bytes", cluster.image) == 2_000_000


# Dynamic changes


@pytest.mark.parametrize(
    ("settings", "per_broker"),
    [
        ({"log.retention.ms": "5", "message.max.bytes": "7"}, False),
        ({"log.retention.ms": "5"}, True),
        ({"num.io.threads": "5"}, False),
        ({"leader.replication.throttled.rate": "5"}, True),
        ({"ssl.client.auth": "none"}, True),
        ({"no.such.key": "1"}, False),
        ({"listener.name.a.no.such.key": "1"}, True),
        ({"sasl.kerberos.min.time.before.relogin": "70000"}, True),
    ],
)
def test_allowed_dynamic_changes_are_accepted(settings: dict[str, str], per_broker: bool) -> None:
    check_dynamic_config(settings, per_broker)


@pytest.mark.parametrize(
    ("settings", "per_broker"),
    [
        ({"num.partitions": "5"}, False),
        ({"log.retention.ms": "soon"}, False),
        ({"listeners": "PLAINTEXT://:1"}, False),
        ({"ssl.keystore.location": "/x"}, True),
        ({"ssl.client.auth": "required"}, True),
        ({"listener.name.a.no.such.key": "1"}, False),
        ({"listener.name.a.plain.sasl.jaas.config": "x"}, True),
        ({"listener.name.a.max.connections": "1"}, True),
        ({"log.cleaner.min.compaction.lag.ms": "9", "log.cleaner.max.compaction.lag.ms": "5"}, False),
    ],
)
def test_forbidden_dynamic_changes_are_refused(settings: dict[str, str], per_broker: bool) -> None:
    with pytest.raises(KafkaError) as refusal:
        check_dynamic_config(settings, per_broker)
    assert refusal.value.code == ErrorCode.INVALID_REQUEST


# Descriptions


def test_a_topic_config_is_described_with_its_synonyms() -> None:
    cluster = Cluster()
    cluster.add_topic("t", [1], segment_bytes=" 3000000 ", min_cleanable_dirty_ratio="1")
    cluster.apply([m.ConfigRecord(resource_type=4, resource_name="", name="log.segment.bytes", value="4000000")])
    config = of(log_segment_bytes="2000000", log_retention_hours="5")
    reported = {one.name: one for one in describe_config(config, cluster.image, ConfigResource(2, "t"))}
    segment = reported["segment.bytes"]
    assert (segment.value, segment.source) == ("3000000", ConfigSource.DYNAMIC_TOPIC_CONFIG)
    assert [tuple(one) for one in segment.synonyms] == [
        ("segment.bytes", "3000000", 1),
        ("log.segment.bytes", "4000000", 3),
        ("log.segment.bytes", "2000000", 4),
        ("log.segment.bytes", "1073741824", 5),
    ]
    assert reported["min.cleanable.dirty.ratio"].value == "1.0"
    assert (reported["retention.ms"].value, reported["retention.ms"].source) == (
        "18000000",
        ConfigSource.DEFAULT_CONFIG,
    )
    assert reported["retention.ms"].synonyms == ()
    assert "internal.segment.bytes" not in reported


@pytest.mark.parametrize(
    ("resource", "code"),
    [
        (ConfigResource(2, "nobody"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (ConfigResource(2, ""), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (ConfigResource(4, "2"), ErrorCode.INVALID_REQUEST),
        (ConfigResource(4, "x"), ErrorCode.INVALID_REQUEST),
        (ConfigResource(32, ""), ErrorCode.INVALID_REQUEST),
        (ConfigResource(16, ""), ErrorCode.INVALID_REQUEST),
        (ConfigResource(7, "x"), ErrorCode.INVALID_REQUEST),
    ],
)
def test_describing_an_invalid_resource_is_refused(resource: ConfigResource, code: ErrorCode) -> None:
    with pytest.raises(KafkaError) as refusal:
        describe_config(of(), Cluster().image, resource)
    assert refusal.value.code == code


def test_secrets_and_unknown_settings_are_not_shown() -> None:
    config = of(some_plugin_password="secret")
    reported = {one.name: one for one in describe_config(config, Cluster().image, ConfigResource(4, "1"))}
    assert reported["some.plugin.password"].value is None
    assert reported["some.plugin.password"].is_sensitive
    assert reported["ssl.keystore.password"].is_sensitive
    assert reported["node.id"].read_only
    assert not reported["log.retention.ms"].read_only


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "0.5"),
        (1.0, "1.0"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (1e7, "1.0E7"),
        (12345678.5, "1.23456785E7"),
        (-2.5e-10, "-2.5E-10"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (0.0, "0.0"),
        (float("inf"), "Infinity"),
        (9999999.0, "9999999.0"),
    ],
)
def test_java_double_matches_javas_double_to_string(value: float, text: str) -> None:
    assert java_double(value) == text


# Properties files


def test_properties_files_are_parsed_as_by_java() -> None:
    text = "a=1\n  b : 2\nc 3\n! no\n# no\n\nd=x\\\n   y\\tz\ne\\=f=g\nh=\\u00e4\\\\\ni\nj==k\nlast=x\\"
    assert parse_properties(text) == {
        "a": "1",
        "b": "2",
        "c": "3",
        "d": "xy\tz",
        "e=f": "g",
        "h": "\u00e4\\",
        "i": "",
        "j": "=k",
        "last": "x",
    }
    assert parse_properties("a=1\r\nb=2\ra=3") == {"a": "3", "b": "2"}
    with pytest.raises(MalformedProperties, match="line 2"):
        parse_properties("a=1\nb=\\u12")


def test_authorizer_settings_without_an_authorizer_are_warned_about() -> None:
    own = {"super.users": "User:admin; User:CN=a,O=b", "allow.everyone.if.no.acl.found": " True "}
    assert BrokerConfig.of(log_dirs=["/data"], port=9092, settings={**ACLS, **own}).warnings == []
    alone = BrokerConfig.of(log_dirs=["/data"], port=9092, settings=own)
    assert alone.warnings == [f"{key} has no effect without authorizer.class.name" for key in own]
    authorizer = authorizer_of({**ACLS, **own})
    assert authorizer is not None
    assert authorizer.super_users == {"User:admin", "User:CN=a,O=b"}
    assert authorizer.allows_unlisted


def test_the_cache_of_topic_configs_is_bounded() -> None:
    cluster = Cluster()
    cluster.add_topic("t", [1])
    config = of()
    for number in range(3_000):
        cluster.apply([m.ConfigRecord(resource_type=2, resource_name="t", name="retention.ms", value=str(number))])
        assert config.topic_config(cluster.image, "t").retention_ms == number
    assert len(config._topic_configs) <= 1_000


def test_an_unreadable_topic_setting_does_not_affect_other_settings(caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster()
    cluster.add_topic("t", [1], retention_ms="soon", segment_ms="5")
    topic = of().topic_config(cluster.image, "t")
    assert (topic.retention_ms, topic.segment_ms) == (604_800_000, 5)
    assert "retention.ms" in caplog.text


def test_an_unreadable_broker_setting_has_its_default() -> None:
    cluster = Cluster()
    cluster.apply([m.ConfigRecord(resource_type=4, resource_name="", name="log.retention.ms", value="soon")])
    assert of().current("log.retention.ms", cluster.image) is None


@pytest.mark.parametrize("path", ["/da\0ta", "/data/\ud800", "/x" * 300, "/" + "x" * 5_000])
def test_a_log_directory_that_cannot_be_a_path_is_refused(path: str) -> None:
    with pytest.raises(InvalidConfig, match="is not a path"):
        BrokerConfig.of(log_dirs=[path], port=9092)
