"""`tailrace cluster up`: a cluster starts, keeps its data over restarts, reports dead nodes, and stops in order."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.cluster_command import ClusterCommand
from tests.support.command import tailrace
from tests.support.kafka_install import KafkaInstallation


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def wait_until_reported(cluster: ClusterCommand, words: str) -> None:
    deadline = time.monotonic() + 60
    while words not in cluster.errors:
        assert time.monotonic() < deadline, cluster.errors
        time.sleep(0.05)


@pytest.mark.parametrize("kind", ["tailrace", pytest.param("kafka", marks=[pytest.mark.kafka, pytest.mark.slow])])
def test_a_restarted_cluster_has_its_old_data(kind: str, tmp_path: Path) -> None:
    with ClusterCommand(tmp_path / "cluster", "--controllers", kind, "-o", "num.partitions=6") as cluster:
        where = ["--bootstrap", cluster.bootstrap]
        assert "6 partitions and 3 replicas" in tailrace("topics", "create", "orders", *where).out
        produce = [sys.executable, "-m", "tailrace", "produce", "orders", *where]
        subprocess.run(produce, input="one\ntwo\nthree\n", text=True, check=True, capture_output=True)
        pids = [one["pid"] for one in cluster.reported["nodes"]]
        assert len(pids) == 4
        assert cluster.stop(signal.SIGINT) == 0
        assert not any(map(is_running, pids))
        steps = [line for line in cluster.errors.splitlines() if "stopping" in line]
        assert steps == ["tailrace: stopping broker 1, broker 2, broker 3", "tailrace: stopping controller 3000"]
        assert "killing" not in cluster.errors
        for one in cluster.reported["nodes"]:
            if one["role"] == "broker":
                assert Path(one["data"], ".kafka_cleanshutdown").exists()

        cluster.start()
        output = tailrace("consume", "orders", "--max", "3", "--json", *where)
        assert sorted(one["value"] for one in output.json_lines) == ["one", "three", "two"]
        assert "formatting" not in cluster.errors


@pytest.mark.slow
def test_a_killed_broker_is_reported_and_can_be_restarted(tmp_path: Path) -> None:
    with ClusterCommand(tmp_path / "cluster", "--brokers", "2") as cluster:
        os.kill(cluster.node("broker", 2)["pid"], signal.SIGKILL)
        wait_until_reported(cluster, f"broker 2 (pid {cluster.node('broker', 2)['pid']}) was killed by SIGKILL")
        assert f"tailrace serve --config {cluster.node('broker', 2)['config']}" in cluster.errors
        assert tailrace("topics", "list", "--bootstrap", cluster.node("broker", 1)["address"]).status == 0
        os.kill(cluster.node("broker", 1)["pid"], signal.SIGKILL)
        assert cluster.wait() == 1
        assert "all brokers have ended" in cluster.errors
        assert not is_running(cluster.node("controller", 3000)["pid"])


@pytest.mark.kafka
@pytest.mark.slow
def test_three_controllers_make_a_quorum(kafka: KafkaInstallation, tmp_path: Path) -> None:
    with ClusterCommand(tmp_path / "cluster", "--brokers", "1", "--controllers", "3") as cluster:
        output = kafka.tool(
            "org.apache.kafka.tools.MetadataQuorumCommand",
            *("--bootstrap-server", cluster.bootstrap, "describe", "--replication"),
        )
        rows = [line.split() for line in output.splitlines()[1:]]
        assert sorted(row[0] for row in rows) == ["1", "3000", "3001", "3002"]
        assert cluster.stop() == 0


@pytest.mark.slow
def test_a_second_start_is_refused_and_nodes_survive_a_killed_parent(tmp_path: Path) -> None:
    with ClusterCommand(tmp_path / "cluster", "--brokers", "1") as cluster:
        again = tailrace("cluster", "up", "--data", str(cluster.data))
        pids = " ".join(str(one["pid"]) for one in cluster.reported["nodes"])
        assert (again.status, again.err.splitlines()[-1]) == (
            2,
            f"tailrace: the cluster in {cluster.data} is running already (pids {pids})",
        )
        assert cluster.stop(signal.SIGKILL) == -signal.SIGKILL
        again = tailrace("cluster", "up", "--data", str(cluster.data))
        assert "is running already" in again.err


@pytest.mark.slow
def test_a_start_can_be_stopped(tmp_path: Path) -> None:
    cluster = ClusterCommand(tmp_path / "cluster", "--brokers", "1").launch()
    wait_until_reported(cluster, "starting controller 3000")
    assert cluster.stop(signal.SIGINT) == 0
    pid = int(cluster.errors.partition("(pid ")[2].partition(")")[0])
    assert not is_running(pid)
    assert cluster.start().stop() == 0  # the first attempt left nothing that prevents this start


@pytest.mark.slow
def test_the_reason_of_a_failed_start_is_reported(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        output = tailrace("cluster", "up", "--data", str(tmp_path / "a"), "--port", str(port), "--brokers", "1")
        assert output.status == 2
        assert f"broker 1 cannot listen on 127.0.0.1:{port}" in output.err
    cluster = ClusterCommand(tmp_path / "b", "--brokers", "1", "-o", "num.partitions=none").launch()
    assert cluster.wait() == 2
    assert "num.partitions" in cluster.errors
    assert "starting" not in cluster.errors
    (tmp_path / "c" / "broker-1").mkdir(parents=True)
    (tmp_path / "c" / "broker-1" / "data").write_text("no folder")
    damaged = ClusterCommand(tmp_path / "c", "--brokers", "1").launch()
    assert damaged.wait() == 2
    assert (
        f"broker 1 ended with status 2; its log is {tmp_path}/c/broker-1/broker.log; its last lines:" in damaged.errors
    )
    assert damaged.errors.index("stopping controller 3000") < damaged.errors.index("broker 1 ended")
