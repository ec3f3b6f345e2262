"""The plan of a cluster on this machine: nodes, ports, settings, and what stays when it is started again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailrace.local_cluster.plan import CannotPlan, ClusterPlan, new_id, plan_cluster


def kept(plan: ClusterPlan) -> ClusterPlan:
    plan.directory.mkdir(exist_ok=True)
    plan.save()
    return plan


def test_three_brokers_and_a_controller_are_what_is_planned_without_a_word(tmp_path: Path) -> None:
    plan = plan_cluster(tmp_path)
    assert [(node.name, node.port) for node in plan.nodes] == [
        ("controller 3000", 9192),
        ("broker 1", 9092),
        ("broker 2", 9093),
        ("broker 3", 9094),
    ]
    assert plan.bootstrap == "127.0.0.1:9092,127.0.0.1:9093,127.0.0.1:9094"


@pytest.mark.parametrize(("brokers", "copies", "in_sync"), [(1, "1", "1"), (2, "2", "1"), (3, "3", "2"), (5, "3", "2")])
def test_copies_are_three_as_far_as_there_are_brokers(tmp_path: Path, brokers: int, copies: str, in_sync: str) -> None:
    plan = plan_cluster(tmp_path, brokers=brokers)
    for node in plan.nodes:
        assert node.settings["default.replication.factor"] == copies
        assert node.settings["min.insync.replicas"] == in_sync
    assert plan.brokers[0].settings["offsets.topic.replication.factor"] == copies


def test_a_setting_is_for_all_brokers_and_for_controllers_where_they_decide_by_it(tmp_path: Path) -> None:
    plan = plan_cluster(tmp_path, overrides={"num.partitions": "7", "log.retention.ms": "1000"})
    assert all(node.settings["num.partitions"] == "7" for node in plan.nodes)
    assert all(node.settings["log.retention.ms"] == "1000" for node in plan.brokers)
    assert all("log.retention.ms" not in node.settings for node in plan.controllers)


def test_a_setting_that_each_node_has_for_itself_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CannotPlan, match=r"-o node.id is not for all brokers"):
        plan_cluster(tmp_path, overrides={"node.id": "4"})


def test_started_again_it_is_the_same_cluster(tmp_path: Path) -> None:
    first = kept(plan_cluster(tmp_path, brokers=2, controllers=3, port=20_000))
    assert plan_cluster(tmp_path) == first
    assert first.initial_controllers.count("@127.0.0.1:2010") == 3


def test_brokers_may_come_and_go_and_move_and_controllers_stay(tmp_path: Path) -> None:
    first = kept(plan_cluster(tmp_path, brokers=2, port=20_000))
    grown = plan_cluster(tmp_path, brokers=4, port=30_000)
    assert [node.port for node in grown.brokers] == [30_000, 30_001, 30_002, 30_003]
    assert grown.controllers == first.controllers
    assert grown.cluster_id == first.cluster_id
    with pytest.raises(CannotPlan, match="has 1 controllers, not 3"):
        plan_cluster(tmp_path, controllers=3)


def test_what_the_cluster_keeps_is_not_changed_by_a_file(tmp_path: Path) -> None:
    kept(plan_cluster(tmp_path, overrides={"min.insync.replicas": "1"}))
    with pytest.raises(CannotPlan, match=r"tailrace configs set --broker default min\.insync\.replicas=2"):
        plan_cluster(tmp_path, overrides={"min.insync.replicas": "2"})


def test_ports_that_there_are_not_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CannotPlan, match="no room"):
        plan_cluster(tmp_path, port=65_500)
    with pytest.raises(CannotPlan, match=r"broker 101 and controller 3000 would both listen on 9192"):
        plan_cluster(tmp_path, brokers=101)


def test_a_damaged_plan_is_told(tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_text('{"clusterId": "x"')
    with pytest.raises(CannotPlan, match=r"cluster\.json is damaged"):
        plan_cluster(tmp_path)


def test_metrics_ports_follow_each_other(tmp_path: Path) -> None:
    plan = plan_cluster(tmp_path, metrics_port=9404)
    assert [node.settings["tailrace.metrics.port"] for node in plan.brokers] == ["9404", "9405", "9406"]


def test_an_id_is_never_taken_for_an_option() -> None:
    assert not any(new_id().startswith("-") for _ in range(500))
