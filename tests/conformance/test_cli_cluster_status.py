"""`tailrace cluster status` with a standalone broker, of Apache Kafka and of Tailrace."""

from __future__ import annotations

from pathlib import Path

from tests.support.command import tailrace


def test_a_standalone_broker_is_healthy(bootstrap: str, topic: str) -> None:
    assert tailrace("topics", "create", topic, "--partitions", 3, "--bootstrap", bootstrap).status == 0
    output = tailrace("cluster", "status", "--all", "--json", "--bootstrap", bootstrap)
    assert (output.status, output.json["healthy"], output.json["problems"]) == (0, True, [])
    (broker,) = output.json["brokers"]
    assert (broker["address"], broker["fenced"], broker["outOfSync"]) == (bootstrap, False, 0)
    assert all(one["error"] is None and Path(one["path"]).is_absolute() for one in broker["logDirs"])
    assert broker["leaders"] == broker["replicas"] == output.json["counts"]["partitions"]
    quorum = output.json["quorum"]
    assert [one["id"] for one in quorum["voters"]] == [quorum["leader"]]
    ours = [one for one in output.json["partitions"] if one["topic"] == topic]
    assert [(one["partition"], one["isr"], one["lag"]) for one in ours] == [(n, [broker["id"]], {}) for n in range(3)]


def test_the_table_shows_a_healthy_broker(bootstrap: str, topic: str) -> None:
    tailrace("topics", "create", topic, "--bootstrap", bootstrap)
    output = tailrace("cluster", "status", "--all", "--wait", 30, "--brokers", 1, "--bootstrap", bootstrap)
    assert output.status == 0
    assert "  healthy" in output.lines
    (row,) = [line.split() for line in output.lines if line.startswith(f"{topic}-0 ")]
    assert row[-2:] == ["in", "sync"]


def test_fewer_brokers_than_expected_are_a_problem(bootstrap: str) -> None:
    output = tailrace("cluster", "status", "--brokers", 2, "--wait", 0.1, "--bootstrap", bootstrap)
    assert output.status == 1
    assert "  ! active brokers: 1, expected: 2" in output.lines


def test_an_unreachable_cluster_has_status_2() -> None:
    output = tailrace("cluster", "status", "--bootstrap", "127.0.0.1:1", "--timeout", 1)
    assert (output.status, output.out) == (2, "")
    assert "no broker can be reached" in output.err
