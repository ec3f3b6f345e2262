"""`tailrace explain waiting`: what a running broker says of requests that wait, with real clients that wait."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from tests.support.command import tailrace as command
from tests.support.tailrace_process import TailraceProcess


def test_a_consumer_at_the_end_is_listed_with_its_partition_and_session(tmp_path: Path) -> None:
    with TailraceProcess(tmp_path / "data", "--metrics-port", "0") as broker:
        metrics = broker.ready_line.partition("metrics on ")[2].split("/metrics")[0]
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        producer.produce("orders", b"one")
        assert producer.flush(30) == 0
        settings = {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "g",
            "fetch.wait.max.ms": 20_000,
            "fetch.min.bytes": 7,
            "client.id": "kitchen-1",
        }
        consumer = Consumer(settings)
        consumer.assign([TopicPartition("orders", 0, 1)])
        consumer.poll(1)
        waiting = wait_for_fetch(metrics)
        (fetch,) = [one for one in waiting["operations"] if one["kind"] == "DelayedFetch"]
        assert fetch["minBytes"] == 7
        assert (fetch["clientId"], fetch["user"]) == ("kitchen-1", "User:ANONYMOUS")
        assert fetch["address"].startswith("127.0.0.1:")
        assert 0 <= fetch["waitedMs"] < 20_000
        assert 0 < fetch["deadlineInMs"] <= 20_000
        assert fetch["keys"] == ["orders-0"] or fetch["sessionId"] in [one["id"] for one in waiting["sessions"]]
        ran = command("explain", "waiting", "--metrics", metrics)
        assert ran.status == 0
        assert "DelayedFetch" in ran.out
        assert f"kitchen-1 User:ANONYMOUS {fetch['address']}" in ran.out
        consumer.close()


def wait_for_fetch(metrics: str) -> dict[str, Any]:
    """Return the state of the broker once a fetch waits in it."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        state: dict[str, Any] = command("explain", "waiting", "--metrics", metrics, "--json").json
        if any(one["kind"] == "DelayedFetch" for one in state["operations"]):
            return state
        time.sleep(0.1)
    raise AssertionError("no fetch waits")


def test_an_address_without_metrics_is_refused_in_one_sentence() -> None:
    ran = command("explain", "waiting", "--metrics", "127.0.0.1:1")
    assert ran.status == 2
    assert "was the broker started with --metrics-port?" in ran.err
