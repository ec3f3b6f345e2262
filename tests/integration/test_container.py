"""The entry point of the container image, without a container engine: variables, start scripts, health, stop."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tailrace.cli.serving.container import main, serve_arguments, settings_of
from tests.support.command import tailrace, unchanged_process

ROOT = Path(__file__).parents[2]
CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"
# The script that testcontainers-python 4.15 writes for KafkaContainer().with_kraft(), and its variables.
KRAFT = """#!/bin/bash

    sed -i '/KAFKA_ZOOKEEPER_CONNECT/d' /etc/confluent/docker/configure
    echo 'kafka-storage format --ignore-formatted -t {cluster}' >> /etc/confluent/docker/configure

export KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://127.0.0.1:{port},BROKER://127.0.0.1:{inner}
. /etc/confluent/docker/bash-config
/etc/confluent/docker/configure
/etc/confluent/docker/launch
"""
# The same without with_kraft(), for images with ZooKeeper.
ZOOKEEPER = """#!/bin/bash

    echo 'clientPort=2181' > zookeeper.properties
    zookeeper-server-start zookeeper.properties &
    export KAFKA_ZOOKEEPER_CONNECT='localhost:2181'

export KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://127.0.0.1:{port},BROKER://127.0.0.1:{inner}
. /etc/confluent/docker/bash-config
/etc/confluent/docker/configure
/etc/confluent/docker/launch
"""
# The script of Testcontainers in other languages, for the image apache/kafka.
APACHE = """#!/bin/bash
export KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://127.0.0.1:{port},BROKER://127.0.0.1:{inner}
/etc/kafka/docker/run
"""
AWAITED = {
    KRAFT: r".*Kafka Server started.*",
    ZOOKEEPER: r".*\[KafkaServer id=\d+\] started.*",
    APACHE: r".*Transitioning from RECOVERY to RUNNING.*",
}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as one:
        return int(one.getsockname()[1])


def variables(port: int, inner: int, *, kraft: bool) -> dict[str, str]:
    listeners, protocols = (
        f"PLAINTEXT://0.0.0.0:{port},BROKER://0.0.0.0:{inner}",
        "BROKER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    )
    found = {
        "KAFKA_LISTENERS": listeners,
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": protocols,
        "KAFKA_INTER_BROKER_LISTENER_NAME": "BROKER",
        "KAFKA_BROKER_ID": "1",
        "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
        "KAFKA_OFFSETS_TOPIC_NUM_PARTITIONS": "1",
        "KAFKA_LOG_FLUSH_INTERVAL_MESSAGES": "10000000",
        "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
    }
    if kraft:
        found |= {
            "CLUSTER_ID": CLUSTER_ID,
            "KAFKA_NODE_ID": "1",
            "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": f"{protocols},CONTROLLER:PLAINTEXT",
            "KAFKA_LISTENERS": f"{listeners},CONTROLLER://0.0.0.0:{free_port()}",
            "KAFKA_PROCESS_ROLES": "broker,controller",
            "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:9094",
            "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
        }
    return found


@contextmanager
def started(command: list[str], environment: dict[str, str], wait_for: str, directory: Path) -> Iterator[list[str]]:
    """Run a command until a line of its output matches; yield the lines up to there. Stop it with SIGTERM."""
    own = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT / "src")}
    process = subprocess.Popen(
        command, cwd=directory, env={**own, **environment}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert process.stdout is not None
    lines: list[str] = []
    try:
        for line in process.stdout:
            lines.append(line)
            if re.match(wait_for, line):
                break
        else:
            pytest.fail("".join(lines))
        yield lines
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert process.returncode == 0


@pytest.mark.parametrize("script", [KRAFT, ZOOKEEPER, APACHE], ids=["kraft", "zookeeper", "apache"])
def test_testcontainers_starts_the_image_with_its_own_script(script: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "container" / "etc", tmp_path / "etc")
    port, inner, metrics = free_port(), free_port(), free_port()
    text = script.format(cluster=CLUSTER_ID, port=port, inner=inner).replace("/etc/", f"{tmp_path}/etc/")
    last = text.strip().rpartition("\n")
    (tmp_path / "tc-start.sh").write_text(f"{last[0]}\nexec {last[2]}\n")  # so that this test's SIGTERM arrives
    environment = variables(port, inner, kraft=script is not ZOOKEEPER)
    environment |= {"KAFKA_LOG_DIRS": str(tmp_path / "data"), "KAFKA_TAILRACE_METRICS_PORT": str(metrics)}
    with started(["sh", str(tmp_path / "tc-start.sh")], environment, AWAITED[script], tmp_path):
        at = ("--bootstrap", f"127.0.0.1:{port}")
        assert tailrace("topics", "create", "orders", *at).status == 0
        assert "orders" in tailrace("topics", "list", *at).out
        assert main(["health"], environment) == 0
    if script is not ZOOKEEPER:
        assert f"cluster.id={CLUSTER_ID}" in (tmp_path / "data" / "meta.properties").read_text()
    assert main(["health"], environment) == 2


def test_variables_are_named_like_those_of_kafkas_image() -> None:
    environment = {
        "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://a:1",
        "KAFKA_LOG_DIRS": "/d",
        "KAFKA_SOME__NAME___WITH_ALL": "x",
        "KAFKA_HEAP_OPTS": "-Xmx1G",
        "KAFKA_ZOOKEEPER_CONNECT": "zookeeper:2181",
        "CLUSTER_ID": CLUSTER_ID,
        "HOME": "/root",
    }
    assert settings_of(environment) == {
        "advertised.listeners": "PLAINTEXT://a:1",
        "log.dirs": "/d",
        "some_name-with.all": "x",
    }


def test_without_variables_the_broker_is_reached_as_localhost(tmp_path: Path) -> None:
    arguments = serve_arguments({}, str(tmp_path / "absent"))
    assert "advertised.listeners=PLAINTEXT://localhost:9092" in arguments
    assert "log.dirs=/var/lib/kafka/data" in arguments
    (tmp_path / "server.properties").write_text(f"log.dirs={tmp_path}/data\n")
    mounted = serve_arguments({"KAFKA_LISTENERS": "PLAINTEXT://:1"}, str(tmp_path / "server.properties"))
    assert "listeners=PLAINTEXT://:1" in mounted
    assert not any(one.startswith("log.dirs=") for one in mounted)


@pytest.mark.parametrize(
    ("arguments", "environment", "sentence"),
    [
        (["nonsense"], {}, "nonsense is not an argument of the container"),
        ([], {"KAFKA_LOG4J_ROOT_LOGLEVEL": "LOUD"}, "KAFKA_LOG4J_ROOT_LOGLEVEL=LOUD is not one of"),
        ([], {"CLUSTER_ID": "-too short"}, "'-too short' is not a cluster id"),
        ([], {"KAFKA_LISTENERS": "nonsense"}, "nonsense"),
    ],
    ids=str,
)
def test_wrong_input_is_refused_in_one_sentence(
    arguments: list[str],
    environment: dict[str, str],
    sentence: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    data = tmp_path / "data"
    with unchanged_process():
        assert main(arguments, {"KAFKA_LOG_DIRS": str(data), **environment}, str(tmp_path / "absent")) == 2
    captured = capfd.readouterr()
    assert sentence in captured.err.splitlines()[-1]
    assert captured.out == ""
    assert not data.exists()
