"""`tailrace serve --shards N`: several broker processes behind one command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tailrace.metrics.scrape import Scrape
from tests.integration.test_serve import refused
from tests.support.cluster_command import free_ports
from tests.support.command import tailrace
from tests.support.tailrace_process import TailraceProcess

WAIT_S = 60.0
READY_S = 120.0  # the first start compiles the modules, in all shards at once


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@contextmanager
def node(data: Path, shards: int | str, *options: str, port: int | None = None) -> Iterator[TailraceProcess]:
    process = TailraceProcess(data, "--shards", str(shards), *options, port=port or free_ports(8))
    process.ready_timeout_s = READY_S
    with process:
        yield process


def children(process: TailraceProcess) -> dict[int, int]:
    """Return the process ids of the shards, by number."""
    assert process.process is not None
    pid = process.process.pid
    found = {}
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        words = Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
        if b"tailrace.cli.serving.shard_process" in words:
            found[int(words[-2])] = int(child)
    return found


def create(process: TailraceProcess, topic: str, partitions: int) -> None:
    assert tailrace("topics", "create", topic, "--partitions", partitions, "-b", process.bootstrap).status == 0


def leaders(process: TailraceProcess, topic: str) -> Counter[int]:
    """Return how many partitions each shard leads, or nothing while the first shard cannot be reached."""
    state = tailrace("cluster", "status", "--topic", topic, "--json", "-b", process.bootstrap)
    return Counter(one["leader"] for one in state.json["partitions"]) if state.status < 2 else Counter()


def write(process: TailraceProcess, topic: str, values: range) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": process.bootstrap, "enable.idempotence": True})
    for value in values:
        producer.produce(topic, str(value), key=str(value))
    assert producer.flush(30) == 0


def read(process: TailraceProcess, topic: str, count: int, group: str) -> list[int]:
    kafka = pytest.importorskip("kafka")
    consumer = kafka.KafkaConsumer(
        topic, bootstrap_servers=process.bootstrap, group_id=group, auto_offset_reset="earliest",
        consumer_timeout_ms=30_000,
    )  # fmt: skip
    found: list[int] = []
    try:
        for record in consumer:
            found.append(int(record.value))
            if len(found) == count:
                break
        consumer.commit()
    finally:
        consumer.close()
    return sorted(found)


def get(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=30) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@pytest.mark.slow
def test_clients_are_spread_over_shards_and_a_killed_shard_comes_back(tmp_path: Path) -> None:
    metrics = free_ports(1)
    with node(tmp_path / "data", 2, "--metrics-port", str(metrics), "--log-level", "info") as process:
        first, second = process.port, process.port + 1
        listeners = f"PLAINTEXT://127.0.0.1:{first}, PLAINTEXT://127.0.0.1:{second}"
        page = f"http://127.0.0.1:{metrics}"
        assert process.ready_line.startswith(
            f"tailrace serves {listeners}, metrics on {page}/metrics, from {process.data} (2 shards, "
        )
        create(process, "orders", 6)
        assert leaders(process, "orders") == {1: 3, 2: 3}
        write(process, "orders", range(1_000))
        assert read(process, "orders", 1_000, "readers") == list(range(1_000))
        assert set(leaders(process, "__consumer_offsets")) == {1, 2}

        # Metrics and health of the whole
        scrape = Scrape(get(f"{page}/metrics")[1])
        shares = scrape.by("kafka_server_brokertopicmetrics_messagesin_total", "shard", topic="orders")
        assert sum(shares.values()) == 1_000
        assert all(shares[one] > 0 for one in "12")
        assert get(f"{page}/readyz") == (200, "ready\n")
        top = tailrace("top", "--metrics", page, "--once", "--json", "--interval", "0.1").json
        assert (top["facts"]["shards"], top["facts"]["topics"]) == (2, 2)

        # A shard is killed while the other serves on
        killed = children(process)[2]
        os.kill(killed, signal.SIGKILL)
        wait_until(lambda: children(process).get(2, killed) != killed)
        wait_until(lambda: get(f"{page}/readyz")[0] == 200)
        wait_until(lambda: leaders(process, "orders") == {1: 3, 2: 3})
        write(process, "orders", range(1_000, 1_100))
        assert read(process, "orders", 1_100, "others") == list(range(1_100))
        assert Scrape(get(f"{page}/metrics")[1]).by("tailrace_shard_restarts_total", "shard") == {"1": 0, "2": 1}
        assert "a shard has ended and is restarted: its process was killed by SIGKILL shard=2" in process.errors
        assert "broker fenced: its process has ended shard=1 broker=2" in process.errors

        shards = children(process)
        assert process.stop() == 0
        assert not any(Path(f"/proc/{pid}").exists() for pid in shards.values())
        stopped = [line for line in process.errors.splitlines() if "broker stopped cleanly" in line]
        assert [line.rpartition("=")[2] for line in stopped] == ["2", "1"]
        assert all((process.data / f"shard{one}" / ".kafka_cleanshutdown").exists() for one in (1, 2))


@pytest.mark.slow
def test_a_single_broker_grows_to_shards_which_cannot_shrink(tmp_path: Path) -> None:
    data, port = tmp_path / "data", free_ports(8)
    with TailraceProcess(data, port=port) as single:
        create(single, "old", 4)
        write(single, "old", range(400))
        assert single.stop() == 0
    with node(data, 2, port=port) as process:
        assert leaders(process, "old") == {1: 4}
        create(process, "new", 4)
        assert leaders(process, "new") == {1: 2, 2: 2}
        planned = tailrace("shards", "rebalance", "--dry-run", "--json", "-b", process.bootstrap).json
        assert planned["dryRun"]
        moved = tailrace("shards", "rebalance", "--wait", "60", "--json", "-b", process.bootstrap)
        assert moved.status == 0, moved.err
        assert moved.json["moves"] == planned["moves"]
        assert moved.json["finished"]
        wait_until(lambda: leaders(process, "old") == {1: 2, 2: 2})
        assert leaders(process, "new") == {1: 2, 2: 2}
        assert read(process, "old", 400, "readers") == list(range(400))
        assert "1 node with 2 shards" in tailrace("cluster", "status", "-b", process.bootstrap).out
        assert process.stop() == 0
    sentence = f"tailrace: {data} has the data of 2 shards: start it with --shards 2, or more."
    assert refused("--data", data, "--port", 0).startswith(sentence)
    assert refused("--data", data, "--port", 0, "--shards", 1).startswith(sentence)
    with node(data, 3, port=port) as process:
        assert read(process, "old", 400, "readers-2") == list(range(400))
        assert process.stop() == 0
    listed = tailrace("log", "ls", data, "--json").json
    assert Counter(one["name"].rpartition("-")[0] for one in listed["partitions"])["old"] >= 4
    assert refused("--data", data, "--port", 0, "--shards", 2).startswith(
        f"tailrace: {data} has the data of 3 shards: start it with --shards 3, or more."
    )


def test_a_shard_that_cannot_start_is_named(tmp_path: Path) -> None:
    port = free_ports(8)
    with TailraceProcess(tmp_path / "other", port=port + 1):
        output = refused("--data", tmp_path / "data", "--port", port, "--shards", 2, "--log-level", "error")
    assert output.splitlines()[-1] == (
        f"tailrace: shard 2 cannot start: cannot listen on PLAINTEXT://127.0.0.1:{port + 1}: Address already in use "
        "(choose another port)"
    )


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--shards", "0"], "'0' is not a whole number of at least 1"),
        (["-o", "tailrace.shards=many"], "tailrace.shards: 'many' is neither a whole number nor auto"),
        (["--shards", "2", "-o", "tailrace.shards=2"], "--shards and -o tailrace.shards set the same property"),
        (["--shards", "2", "-o", "process.roles=broker"], "process.roles: a node with several shards is broker and"),
    ],
)
def test_wrong_options_are_refused(options: list[str], sentence: str, tmp_path: Path) -> None:
    output = refused("--data", tmp_path / "data", "--port", 0, *options)
    assert sentence in output
    assert not (tmp_path / "data").exists()


def test_shards_stop_when_their_parent_is_killed(tmp_path: Path) -> None:
    with node(tmp_path / "data", 2) as process:
        shards = children(process)
        process.kill()
        wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in shards.values()))
    assert all((tmp_path / "data" / f"shard{one}" / ".kafka_cleanshutdown").exists() for one in (1, 2))


@pytest.mark.slow
def test_a_killed_controller_comes_back_while_the_other_shard_serves(tmp_path: Path) -> None:
    with node(tmp_path / "data", 2) as process:
        create(process, "orders", 2)
        write(process, "orders", range(100))
        killed = children(process)[1]
        os.kill(killed, signal.SIGKILL)
        wait_until(lambda: children(process).get(1, killed) != killed)
        wait_until(lambda: leaders(process, "orders") == {1: 1, 2: 1})
        create(process, "more", 4)
        wait_until(lambda: leaders(process, "more") == {1: 2, 2: 2})
        assert read(process, "orders", 100, "readers") == list(range(100))
        assert process.stop() == 0


def test_other_users_of_the_machine_cannot_use_the_listeners_between_shards(tmp_path: Path) -> None:
    with node(tmp_path / "data", 2, "--log-level", "info", "--log-format", "json") as process:
        lines = [json.loads(line) for line in process.errors.splitlines()]
        served = [one["listeners"] for one in lines if one["message"] == "clients can connect"]
        internal = [one for text in served for one in text.split(", ") if not one.startswith("PLAINTEXT")]
        assert sorted(one.partition("://")[0] for one in internal) == ["SHARDS", "SHARDS", "SHARD_CONTROLLER"]
        for one in internal:
            assert "://127.0.0.1:" in one
            address = one.partition("://")[2]
            asked = tailrace("cluster", "status", "-b", address, "--timeout", "3")
            assert asked.status == 2, asked
        words = Path(f"/proc/{children(process)[2]}/cmdline").read_bytes()
        assert b"password" not in words
        for path in process.data.rglob("*"):
            assert not path.is_file() or b"tailrace-shard-" not in path.read_bytes(), path
        assert process.stop() == 0
        lines = [json.loads(line) for line in process.errors.splitlines()]  # nothing but log lines, also at the end
        assert not [one for one in lines if one["level"] != "info" and one["logger"] == "tailrace.shards"]


@pytest.mark.slow
def test_a_secured_node_with_acls_has_shards(tmp_path: Path) -> None:
    jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_admin="secret";'
    port = free_ports(8)
    settings = {
        "listeners": f"SASL_PLAINTEXT://127.0.0.1:{port}",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": jaas,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin",
    }
    options = [word for key, text in settings.items() for word in ("-o", f"{key}={text}")]
    login = ["-X", "security.protocol=SASL_PLAINTEXT", "-X", "sasl.mechanism=PLAIN", "-X", "sasl.username=admin"]
    login += ["-X", "sasl.password=secret"]
    with node(tmp_path / "data", 2, *options, port=port) as process:
        where = ["-b", process.bootstrap, *login]
        assert tailrace("topics", "create", "orders", "--partitions", "4", *where).status == 0
        produce = [sys.executable, "-m", "tailrace", "produce", "orders", *where]
        subprocess.run(produce, input="one\ntwo\n", text=True, check=True, capture_output=True)
        assert len(tailrace("consume", "orders", "--max", "2", *where).lines) == 2
        assert tailrace("shards", "rebalance", "--wait", "30", *where).status == 0
        assert process.stop() == 0
