"""A running broker explains a fetch, over HTTP and on the command line."""

from __future__ import annotations

import json
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer

import tailrace
from tailrace.cli.main import main
from tailrace.cli.serving.explain_fetch import read_of
from tailrace.fetch.explain import as_plain


@pytest.fixture(scope="module")
def broker() -> Iterator[tailrace.Broker]:
    with tailrace.Broker(config={"tailrace.metrics.port": 0}) as made:
        made.create_topic("orders", 1, {"index.interval.bytes": 500})
        produce(made, 300)
        yield made


def produce(broker: tailrace.Broker, count: int) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "batch.num.messages": 10})
    for _ in range(count):
        producer.produce("orders", b"x" * 100)
    assert producer.flush(30) == 0


def explain(broker: tailrace.Broker, query: str) -> Any:
    url = broker.metrics.replace("/metrics", f"/explain/fetch?{query}")
    with urllib.request.urlopen(url, timeout=30) as answer:
        return json.load(answer)


def test_every_step_of_a_fetch_is_explained(broker: tailrace.Broker) -> None:
    walk = explain(broker, "topic=orders&offset=123&partition_max_bytes=3000&isolation=read_committed")
    assert (walk["session"]["kind"], walk["authorizer"], walk["waited_ms"]) == ("sessionless", None, None)
    (one,) = walk["partitions"]
    assert (one["role"], one["error"], one["aborted"]) == ("leader", "NONE", [])
    assert (one["budget"]["share"], one["budget"]["taken"]) == (3_000, walk["size"])
    read = one["read"]
    assert read["bounds"]["bound"] == read["bounds"]["last_stable_offset"] == 300
    assert len(read["walks"][0]["search"]["probes"]) > 2
    assert read["walks"][0]["walked"][-1]["base_offset"] <= 123 <= read["walks"][0]["walked"][-1]["last_offset"]
    assert read["slice"]["size"] == walk["size"]
    assert as_plain(read_of(read)) == {**read, "result": None}


def test_the_explanation_of_a_waiting_fetch_names_its_wake_up(broker: tailrace.Broker) -> None:
    walks: list[Any] = []
    end = explain(broker, "topic=orders&offset=0")["partitions"][0]["read"]["bounds"]["log_end_offset"]
    waiting = threading.Thread(
        target=lambda: walks.append(explain(broker, f"topic=orders&offset={end}&max_wait_ms=30000"))
    )
    waiting.start()
    give_up = time.monotonic() + 20
    while 'purgatorysize{delayedOperation="Fetch"} 1' not in metrics(broker):
        assert time.monotonic() < give_up
    produce(broker, 1)
    waiting.join(30)
    (walk,) = walks
    assert (walk["woken_by"], walk["reason"]) == ("orders-0", "Case G: min_bytes have arrived")
    assert 0 <= walk["waited_ms"] < 30_000


def test_a_waiting_explanation_is_dropped_if_the_client_disconnects(broker: tailrace.Broker) -> None:
    place = broker.metrics.removeprefix("http://").removesuffix("/metrics").split(":")
    for _ in range(10):
        with socket.create_connection((place[0], int(place[1])), timeout=20) as client:
            client.sendall(b"GET /explain/fetch?topic=orders&offset=999&max_wait_ms=50 HTTP/1.1\r\n\r\n")
    assert explain(broker, "topic=orders&offset=1")["size"] > 0


def metrics(broker: tailrace.Broker) -> str:
    with urllib.request.urlopen(broker.metrics, timeout=30) as answer:
        text: str = answer.read().decode()
        return text


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("topic=orders", "needs a topic and an offset"),
        ("topic=orders&offset=x", "offset is 'x'; it must be a number from 0"),
        ("topic=orders&offset=-1", "offset is '-1'; it must be a number from 0"),
        ("topic=orders&offset=1&max_wait_ms=60001", "max_wait_ms is '60001'; it must be a number from 0 to 60000"),
        ("topic=orders&offset=1&isolation=none", "isolation must be read_uncommitted or read_committed"),
        ("topic=orders&offset=1&colour=red", "unknown parameters: colour"),
    ],
)
def test_a_malformed_query_is_refused_in_a_sentence(broker: tailrace.Broker, query: str, why: str) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        explain(broker, query)
    assert refused.value.code == 400
    assert why in json.load(refused.value)["error"]


def test_explain_fetch_prints_the_steps(broker: tailrace.Broker, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["explain", "fetch", "orders", "--metrics", broker.metrics]
    assert main([*asked, "--offset", "123", "--isolation", "read_committed"]) == 0
    text = capsys.readouterr().out
    for step in (
        "Session",
        "Authorization",
        "Waiting",
        "Budget",
        "Bounds",
        "Segment",
        "Offset index",
        "Slice",
        "Aborted",
    ):
        assert f" {step} " in text
    assert main([*asked, "--offset", "123", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["partitions"][0]["fetch_offset"] == 123
    assert main([*asked, "--offset", "99999"]) == 1
    assert "OFFSET_OUT_OF_RANGE" in capsys.readouterr().out
    assert main(["explain", "fetch", "nowhere", "--metrics", broker.metrics, "--offset", "0"]) == 1
    assert "nowhere-0: UNKNOWN_TOPIC_OR_PARTITION" in capsys.readouterr().out
