"""Config definitions, effective values, changes, and the extraction that keeps the facts true."""

from __future__ import annotations

from typing import Any

import pytest

from scripts.extract_configs import main as extract
from tailrace.metadata.controller.control_state import ApiError
from tailrace.metadata.decisions.config_changes import java_split, plan_alter_configs, plan_incremental_alter_configs
from tailrace.metadata.decisions.topic_names import name_problem
from tailrace.metadata.image.effective_config import ConfigSource, definition_for
from tailrace.metadata.image.features import BOOTSTRAP_LEVELS, loses_metadata
from tailrace.model.configs.config_definitions import definition, topic_synonyms
from tailrace.model.configs.topic_settings import parse_topic_config
from tailrace.model.errors import ErrorCode
from tailrace.model.topic_config import InvalidConfig, TopicConfig
from tailrace.protocol import messages as m
from tests.support.kafka_install import KafkaInstallation
from tests.unit.metadata.cluster import Cluster


@pytest.mark.kafka
def test_a_new_extraction_of_kafkas_configs_gives_the_stored_file(
    kafka: KafkaInstallation, capsys: pytest.CaptureFixture[str]
) -> None:
    assert extract(["--check"]) == 0
    assert "no change" in capsys.readouterr().out


def test_every_default_is_a_valid_value() -> None:
    checked = 0
    for section in ("topic", "broker", "group", "client_metrics", "client_quota", "ip_quota"):
        for key in definition(section).values():  # type: ignore[arg-type]
            if key.default is not None:
                key.parse(key.default)
                checked += 1
    assert checked > 300


def test_topic_config_agrees_with_kafkas_definitions() -> None:
    """The typed view has every key that Kafka's topics have, with the same default."""
    keys = {name: key.default for name, key in definition("topic").items() if not key.internal}
    for name, default in keys.items():
        assert parse_topic_config({name: default or ""}) == TopicConfig(), name


def test_topic_configs_have_the_same_broker_synonyms_as_in_kafka() -> None:
    for name, synonyms in topic_synonyms().items():
        assert name in definition("topic")
        for synonym, factor in synonyms:
            assert synonym in definition("broker")
            assert factor in (1, 60_000, 3_600_000)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("retention.ms", " 5 ", 5),
        ("retention.ms", "+5", 5),
        ("min.cleanable.dirty.ratio", ".5f", 0.5),
        ("min.cleanable.dirty.ratio", "1e-3", 0.001),
        ("preallocate", "TRUE", True),
        ("cleanup.policy", "compact , delete,compact", ("compact", "delete")),
        ("cleanup.policy", "", ()),
        ("leader.replication.throttled.replicas", "*", ("*",)),
        ("compression.type", " zstd ", "zstd"),
    ],
)
def test_values_are_read_as_java_reads_them(name: str, text: str, value: object) -> None:
    assert definition("topic")[name].parse(text) == value


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("retention.ms", "1_000"),
        ("retention.ms", "5.0"),
        ("retention.ms", "9223372036854775808"),
        ("retention.ms", "\u0665"),
        ("segment.bytes", "2147483648"),
        ("segment.bytes", "5"),
        ("min.cleanable.dirty.ratio", "NaN"),
        ("min.cleanable.dirty.ratio", "1.1"),
        ("min.cleanable.dirty.ratio", "0x1p-1"),
        ("preallocate", "yes"),
        ("cleanup.policy", "compact,"),
        ("cleanup.policy", "Compact"),
        ("compression.gzip.level", "0"),
        ("leader.replication.throttled.replicas", "0"),
    ],
)
def test_errors_of_invalid_values_name_the_config(name: str, text: str) -> None:
    with pytest.raises(InvalidConfig, match=name.replace(".", r"\.")):
        definition("topic")[name].parse(text)


def test_a_secret_is_not_shown_in_an_error() -> None:
    key = definition("broker")["ssl.keystore.password"]
    assert key.is_sensitive
    assert "geheim" not in str(key._invalid("geheim", "no"))


def test_a_resource_type_without_configs_has_no_definition() -> None:
    assert definition_for(2) is definition("topic")
    assert definition_for(8) is None
    assert definition_for(77) is None


@pytest.mark.parametrize(
    ("text", "parts"), [("a,b", ["a", "b"]), ("a,,", ["a"]), (",a", ["", "a"]), ("", [""]), (",", [])]
)
def test_lists_are_split_as_java_does(text: str, parts: list[str]) -> None:
    assert java_split(text) == parts


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "x" * 249, "__consumer_offsets", "..."])
def test_valid_topic_names_are_accepted(name: str) -> None:
    assert name_problem(name) is None


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a b", "\u00e4", "x" * 250, "a\n"])
def test_invalid_topic_names_are_refused(name: str) -> None:
    assert name_problem(name) is not None


# What counts


def test_a_topics_own_setting_wins_then_the_broker_then_the_cluster_then_the_file() -> None:
    cluster = Cluster(static={"log.retention.hours": "2", "log.retention.minutes": "7"})
    cluster.add_topic("t", [1])

    def reported() -> tuple[str | None, ConfigSource]:
        entry = cluster.configs.topic_entry(cluster.image, cluster.image.topic_config("t"), "retention.ms")
        return entry.value, entry.source

    assert reported() == ("420000", ConfigSource.STATIC_BROKER_CONFIG), "minutes come before hours"
    config = m.ConfigRecord
    cluster.apply([config(resource_type=4, resource_name="", name="log.retention.ms", value="1000")])
    assert reported() == ("1000", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG)
    cluster.apply([config(resource_type=4, resource_name="1", name="log.retention.ms", value="2000")])
    assert reported() == ("2000", ConfigSource.DYNAMIC_BROKER_CONFIG)
    cluster.apply([config(resource_type=4, resource_name="2", name="log.retention.ms", value="2500")])
    assert reported() == ("2000", ConfigSource.DYNAMIC_BROKER_CONFIG), "another broker's does not count"
    cluster.apply([config(resource_type=2, resource_name="t", name="retention.ms", value="3000")])
    assert reported() == ("3000", ConfigSource.DYNAMIC_TOPIC_CONFIG)
    assert Cluster().configs.topic_entry(cluster.image, {}, "segment.ms").source == ConfigSource.DEFAULT_CONFIG


def test_negative_retention_hours_mean_unlimited() -> None:
    cluster = Cluster(static={"log.retention.hours": "-1"})
    assert cluster.configs.topic_entry(cluster.image, {}, "retention.ms").value == "-1"


# Changes


def change(cluster: Cluster, kind: int, name: str, key: str, operation: int, value: str | None, **options: Any) -> int:
    request = m.IncrementalAlterConfigsRequest
    config = request.AlterableConfig(name=key, config_operation=operation, value=value)
    resource = request.AlterConfigsResource(resource_type=kind, resource_name=name, configs=[config])
    answer = cluster.carry_out(plan_incremental_alter_configs(cluster.state, request(resources=[resource]), **options))
    code: int = answer.responses[0].error_code
    return code


def test_only_changed_configs_are_written_except_for_brokers() -> None:
    cluster = Cluster()
    cluster.add_topic("t", [1], retention_ms="5")
    request = m.IncrementalAlterConfigsRequest
    config = request.AlterableConfig(name="retention.ms", value="5")
    resource = request.AlterConfigsResource(resource_type=2, resource_name="t", configs=[config])
    assert not plan_incremental_alter_configs(cluster.state, request(resources=[resource])).records
    for _ in range(2):
        config = request.AlterableConfig(name="log.retention.ms", value="5")
        resource = request.AlterConfigsResource(resource_type=4, resource_name="", configs=[config])
        plan = plan_incremental_alter_configs(cluster.state, request(resources=[resource]))
        assert len(plan.records) == 1
        cluster.apply(plan.records)


def test_changing_min_insync_replicas_clears_the_elr() -> None:
    cluster = Cluster()
    cluster.add_topic("t", [1, 2])
    topic_id = cluster.image.topics["t"].id
    cluster.apply([m.PartitionChangeRecord(topic_id=topic_id, partition_id=0, isr=[1], eligible_leader_replicas=[2])])
    assert change(cluster, 2, "t", "min.insync.replicas", 0, "1") == 0
    assert cluster.partition().elr == ()
    levels = {name: level for name, level in BOOTSTRAP_LEVELS.items() if not name.startswith("eligible")}
    without = Cluster(levels=levels)
    assert change(without, 4, "1", "min.insync.replicas", 0, "2") == 0, "without ELR brokers may differ"


def test_the_broker_and_the_authorizer_can_refuse_a_config() -> None:
    cluster = Cluster()
    asked: list[tuple[dict[str, str], bool]] = []
    options: Any = {"check_broker": lambda settings, one: asked.append((dict(settings), one))}
    assert change(cluster, 4, "1", "log.retention.ms", 0, "5", **options) == 0
    assert change(cluster, 4, "", "log.retention.ms", 0, "6", **options) == 0
    assert asked == [({"log.retention.ms": "5"}, True), ({"log.retention.ms": "6"}, False)]
    refused = ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "no")
    assert change(cluster, 4, "", "log.retention.ms", 0, "7", may_alter=lambda _: refused) == refused.code


def test_alter_configs_removes_configs_that_it_does_not_list() -> None:
    cluster = Cluster()
    cluster.add_topic("t", [1], retention_ms="5", segment_ms="6")
    request = m.AlterConfigsRequest
    config = request.AlterableConfig(name="segment.ms", value="7")
    resource = request.AlterConfigsResource(resource_type=2, resource_name="t", configs=[config])
    cluster.carry_out(plan_alter_configs(cluster.state, request(resources=[resource])))
    assert cluster.image.topic_config("t") == {"segment.ms": "7"}


def test_a_downgrade_past_a_metadata_version_that_changed_records_is_refused() -> None:
    assert loses_metadata(30, 29)
    assert not loses_metadata(29, 23)
    assert loses_metadata(29, 22)
    assert not loses_metadata(22, 17)
