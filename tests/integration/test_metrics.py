"""Scrapes of a broker under load, compared with the requests and responses of real clients."""

from __future__ import annotations

import json
import threading
import urllib.request
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_prometheus

import tailrace
from tailrace.cli.main import main

RECORDS = 5_000
TRAFFIC = "kafka_server_brokertopicmetrics_"


def scrape(url: str, *, openmetrics: bool = False) -> dict[tuple[str, ...], float]:
    """Return samples by name and label values. Fail on duplicate or malformed series."""
    accept = "application/openmetrics-text" if openmetrics else "text/plain"
    with urllib.request.urlopen(urllib.request.Request(url, headers={"Accept": accept}), timeout=30) as answer:
        text = answer.read().decode()
    read: dict[tuple[str, ...], float] = {}
    for family in (parse_openmetrics if openmetrics else parse_prometheus)(text):
        for sample in family.samples:
            key = (sample.name, *sample.labels.values())
            assert key not in read, key
            read[key] = sample.value
    return read


@pytest.fixture(scope="module")
def broker() -> Iterator[tailrace.Broker]:
    with tailrace.Broker(config={"tailrace.metrics.port": 0}) as made:
        yield made


def consume(broker: tailrace.Broker, topic: str, partitions: int, count: int) -> int:
    """Return how many bytes of values were read."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "unused", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
    size = received = 0
    while received < count:
        messages = consumer.consume(count, 10)
        assert messages, "no further records arrived"
        assert not [one for one in messages if one.error()]
        received += len(messages)
        size += sum(len(one.value()) for one in messages)
    consumer.close()
    assert received == count
    return size


def test_counters_are_exact_while_a_broker_is_scraped(broker: tailrace.Broker) -> None:
    broker.create_topic("orders", 3)
    stop = threading.Event()
    seen: list[float] = []

    def scrape_on() -> None:
        while not stop.is_set():
            seen.append(scrape(broker.metrics).get((TRAFFIC + "messagesin_total", "orders"), 0.0))

    scraper = threading.Thread(target=scrape_on)
    scraper.start()
    try:
        producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 1, "batch.num.messages": 50})
        for sent in range(1, RECORDS + 1):
            producer.produce("orders", key=b"%d" % sent, value=b"x" * 100)
            if sent % 1_000 == 0:
                assert producer.flush(30) == 0
                assert scrape(broker.metrics)[TRAFFIC + "messagesin_total", "orders"] == sent
        size = consume(broker, "orders", 3, RECORDS)
    finally:
        stop.set()
        scraper.join()
    assert size == RECORDS * 100
    assert seen == sorted(seen)
    for openmetrics in (False, True):
        read = scrape(broker.metrics, openmetrics=openmetrics)
        assert read[TRAFFIC + "messagesin_total", "orders"] == RECORDS
        assert sum(read["kafka_log_log_logendoffset", "orders", str(number)] for number in range(3)) == RECORDS
        stored = sum(read["kafka_log_log_size", "orders", str(number)] for number in range(3))
        assert read[TRAFFIC + "bytesin_total", "orders"] == stored
        assert read[TRAFFIC + "bytesout_total", "orders"] >= stored
        produced = sum(
            value
            for key, value in read.items()
            if key[:2] == ("kafka_network_requestmetrics_requests_total", "Produce")
        )
        assert read["kafka_network_requestmetrics_totaltimems_count", "Produce"] == produced
        assert read["tailrace_request_seconds_count", "Produce", "total"] == produced
        assert read["tailrace_request_seconds_bucket", "Produce", "total", "+Inf"] == produced
        assert read[TRAFFIC + "totalproducerequests_total", "orders"] >= produced
        assert read["kafka_network_requestmetrics_errors_total", "Produce", "NONE"] >= produced


def test_the_series_of_a_deleted_topic_end(broker: tailrace.Broker) -> None:
    broker.create_topic("passing", 4)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce("passing", b"x")
    assert producer.flush(30) == 0
    assert [key for key in scrape(broker.metrics) if "passing" in key]
    assert main(["topics", "delete", "passing", "--bootstrap", broker.bootstrap]) == 0
    assert not [key for key in scrape(broker.metrics) if "passing" in key]


def test_top_shows_a_tailrace_broker_and_any_cluster(
    broker: tailrace.Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    broker.create_topic("shown", 2)
    assert main(["top", "--metrics", broker.metrics, "--once", "--json", "--interval", "0.1"]) == 0
    view = json.loads(capsys.readouterr().out)
    assert "shown" in {one["topic"] for one in view["topics"]}
    assert view["facts"]["version"] == tailrace.__version__
    assert main(["top", "--metrics", broker.metrics.removeprefix("http://").removesuffix("/metrics"), "--once"]) == 0
    assert "shown" in capsys.readouterr().out
    assert main(["top", "--bootstrap", broker.bootstrap, "--count", "2", "--json", "--interval", "0.1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [{one["topic"] for one in json.loads(line)["topics"]} >= {"shown"} for line in lines] == [True, True]


def test_top_reports_missing_metrics_in_one_sentence(
    broker: tailrace.Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["top", "--metrics", "127.0.0.1:1", "--once"]) == 2
    assert "--metrics-port" in capsys.readouterr().err
    assert main(["top", "--metrics", broker.metrics + "/none", "--once"]) == 2
    assert "404 Not Found" in capsys.readouterr().err
    assert main(["top", "--metrics", broker.bootstrap, "--once"]) == 2  # the port of Kafka's protocol
    error = capsys.readouterr().err
    assert "/metrics closed the connection without an HTTP response (was the broker started" in error


def test_metrics_are_served_only_with_a_metrics_port() -> None:
    with tailrace.Broker() as quiet, pytest.raises(ValueError, match=r"tailrace\.metrics\.port"):
        _ = quiet.metrics
