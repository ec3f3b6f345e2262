"""The plan of a cluster on this machine: nodes, ports, settings, and the state for the next start."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tailrace.local_cluster.cluster_plan import CannotPlan, ClusterPlan, Controllers, new_id, plan_cluster


def kept(plan: ClusterPlan) -> ClusterPlan:
    plan.directory.mkdir(exist_ok=True)
    plan.save()
    return plan


def test_three_brokers_and_one_controller_are_the_default(tmp_path: Path) -> None:
    plan = plan_cluster(tmp_path)
    assert [(node.name, node.port) for node in plan.nodes] == [
        ("controller 3000", 9192),
        ("broker 1", 9092),
        ("broker 2", 9093),
        ("broker 3", 9094),
    ]
    assert plan.bootstrap == "127.0.0.1:9092,127.0.0.1:9093,127.0.0.1:9094"


@pytest.mark.parametrize(("brokers", "copies", "in_sync"), [(1, "1", "1"), (2, "2", "1"), (3, "3", "2"), (5, "3", "2")])
def test_the_replication_factor_is_three_or_the_number_of_brokers(
    tmp_path: Path, brokers: int, copies: str, in_sync: str
) -> None:
    plan = plan_cluster(tmp_path, brokers=brokers)
    for node in plan.nodes:
        assert node.settings["default.replication.factor"] == copies
        assert node.settings["min.insync.replicas"] == in_sync
    assert plan.brokers[0].settings["offsets.topic.replication.factor"] == copies


def test_a_setting_applies_to_all_brokers_and_to_controllers_that_use_it(tmp_path: Path) -> None:
    plan = plan_cluster(tmp_path, overrides={"num.partitions": "7", "log.retention.ms": "1000"})
    assert all(node.settings["num.partitions"] == "7" for node in plan.nodes)
    assert all(node.settings["log.retention.ms"] == "1000" for node in plan.brokers)
    assert all("log.retention.ms" not in node.settings for node in plan.controllers)


def test_a_setting_of_single_nodes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CannotPlan, match=r"^node.id cannot be set for all brokers"):
        plan_cluster(tmp_path, overrides={"node.id": "4"})


def test_a_second_plan_has_the_same_cluster_id_and_nodes(tmp_path: Path) -> None:
    first = kept(plan_cluster(tmp_path, brokers=2, controllers=Controllers.of(3), port=20_000))
    assert plan_cluster(tmp_path) == first
    assert first.initial_controllers.count("@127.0.0.1:2010") == 3


def test_brokers_can_be_added_removed_and_moved_but_not_controllers(tmp_path: Path) -> None:
    first = kept(plan_cluster(tmp_path, brokers=2, port=20_000))
    grown = plan_cluster(tmp_path, brokers=4, port=30_000)
    assert [node.port for node in grown.brokers] == [30_000, 30_001, 30_002, 30_003]
    assert grown.controllers == first.controllers
    assert grown.cluster_id == first.cluster_id
    with pytest.raises(CannotPlan, match="has one controller of Tailrace, not 3 controllers of Apache Kafka"):
        plan_cluster(tmp_path, controllers=Controllers.of("3"))


def test_the_kind_of_controllers_is_kept(tmp_path: Path) -> None:
    kept(plan_cluster(tmp_path, controllers=Controllers.of("kafka")))
    assert plan_cluster(tmp_path).has_kafka
    with pytest.raises(CannotPlan, match="has one controller of Apache Kafka, not one controller of Tailrace"):
        plan_cluster(tmp_path, controllers=Controllers.of("tailrace"))
    document = json.loads((tmp_path / "cluster.json").read_text())
    del document["controllerKind"]  # as it was written when all controllers were Apache Kafka's
    (tmp_path / "cluster.json").write_text(json.dumps(document))
    assert plan_cluster(tmp_path).has_kafka


@pytest.mark.parametrize("text", ["0", "-1", "three", ""])
def test_a_wrong_kind_of_controllers_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"neither tailrace, kafka, nor a number|must be at least 1"):
        Controllers.of(text)


def test_a_setting_that_the_controllers_store_is_refused_later(tmp_path: Path) -> None:
    kept(plan_cluster(tmp_path, overrides={"min.insync.replicas": "1"}))
    with pytest.raises(CannotPlan, match=r"tailrace configs set --broker default min\.insync\.replicas=2"):
        plan_cluster(tmp_path, overrides={"min.insync.replicas": "2"})


def test_invalid_or_colliding_ports_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CannotPlan, match="too few ports"):
        plan_cluster(tmp_path, port=65_500)
    with pytest.raises(CannotPlan, match=r"broker 101 and controller 3000 would both listen on port 9192"):
        plan_cluster(tmp_path, brokers=101)


def test_a_damaged_plan_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_text('{"clusterId": "x"')
    with pytest.raises(CannotPlan, match=r"cluster\.json is damaged"):
        plan_cluster(tmp_path)


def test_brokers_have_consecutive_metrics_ports(tmp_path: Path) -> None:
    plan = plan_cluster(tmp_path, metrics_port=9404)
    assert [node.settings["tailrace.metrics.port"] for node in plan.brokers] == ["9404", "9405", "9406"]


def test_an_id_never_starts_with_a_dash() -> None:
    assert not any(new_id().startswith("-") for _ in range(500))
