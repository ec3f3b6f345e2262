"""`tailrace top` computes rates from two readings."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from tailrace.cli.serving.top_reading import Reading, TopicReading, read_metrics
from tailrace.cli.serving.top_view import compare, show
from tailrace.metrics.scrape import MalformedMetrics, Scrape

BEFORE = """\
# HELP kafka_server_brokertopicmetrics_messagesin_total Records.
# TYPE kafka_server_brokertopicmetrics_messagesin_total counter
kafka_server_brokertopicmetrics_messagesin_total 100
kafka_server_brokertopicmetrics_messagesin_total{topic="orders"} 90
kafka_server_brokertopicmetrics_messagesin_total{topic="quiet"} 10
kafka_server_brokertopicmetrics_bytesin_total 1000
kafka_server_brokertopicmetrics_bytesin_total{topic="orders"} 900
kafka_server_brokertopicmetrics_bytesin_total{topic="quiet"} 100
kafka_server_brokertopicmetrics_bytesout_total 0
kafka_server_brokertopicmetrics_bytesout_total{topic="orders"} 0
kafka_log_log_size{topic="orders",partition="0"} 500
kafka_log_log_size{topic="orders",partition="1"} 400
kafka_network_requestmetrics_requests_total{request="Fetch",version="12"} 10
kafka_network_requestmetrics_requests_total{request="Fetch",version="17"} 10
kafka_network_requestmetrics_requests_total{request="Metadata",version="12"} 5
kafka_network_requestmetrics_errors_total{request="Fetch",error="NONE"} 20
tailrace_request_seconds_bucket{request="Fetch",phase="total",le="0.001"} 20
tailrace_request_seconds_bucket{request="Fetch",phase="total",le="0.01"} 20
tailrace_request_seconds_bucket{request="Fetch",phase="total",le="+Inf"} 20
tailrace_request_seconds_sum{request="Fetch",phase="local"} 1.0
tailrace_loop_idle_seconds_total 5.0
process_cpu_seconds_total 1.0
process_start_time_seconds 940.0
"""
AFTER = """\
kafka_server_brokertopicmetrics_messagesin_total 300
kafka_server_brokertopicmetrics_messagesin_total{topic="orders"} 290
kafka_server_brokertopicmetrics_messagesin_total{topic="quiet"} 10
kafka_server_brokertopicmetrics_bytesin_total 5000
kafka_server_brokertopicmetrics_bytesin_total{topic="orders"} 4900
kafka_server_brokertopicmetrics_bytesin_total{topic="quiet"} 100
kafka_server_brokertopicmetrics_bytesout_total 2000
kafka_server_brokertopicmetrics_bytesout_total{topic="orders"} 2000
kafka_log_log_size{topic="orders",partition="0"} 2500
kafka_log_log_size{topic="orders",partition="1"} 2400
kafka_network_requestmetrics_requests_total{request="Fetch",version="12"} 10
kafka_network_requestmetrics_requests_total{request="Fetch",version="17"} 110
kafka_network_requestmetrics_requests_total{request="Metadata",version="12"} 5
kafka_network_requestmetrics_errors_total{request="Fetch",error="NONE"} 116
kafka_network_requestmetrics_errors_total{request="Fetch",error="OFFSET_OUT_OF_RANGE"} 4
tailrace_request_seconds_bucket{request="Fetch",phase="total",le="0.001"} 70
tailrace_request_seconds_bucket{request="Fetch",phase="total",le="0.01"} 120
tailrace_request_seconds_bucket{request="Fetch",phase="total",le="+Inf"} 120
tailrace_request_seconds_sum{request="Fetch",phase="local"} 1.05
tailrace_loop_idle_seconds_total 6.5
process_cpu_seconds_total 1.4
process_start_time_seconds 940.0
"""


def views() -> dict[str, object]:
    before = read_metrics(Scrape(BEFORE), "here:9404", 1_000.0)
    return compare(before, read_metrics(Scrape(AFTER), "here:9404", 1_002.0))


def test_rates_are_differences_divided_by_the_interval() -> None:
    view = views()
    assert view["rates"] == {
        "messages_in_per_s": 100.0,
        "bytes_in_per_s": 2_000.0,
        "bytes_out_per_s": 1_000.0,
        "requests_per_s": 50.0,
    }
    facts = view["facts"]
    assert isinstance(facts, dict)
    assert facts["loop_busy"] == pytest.approx(0.25)
    assert facts["cpu"] == pytest.approx(0.2)
    assert facts["uptime_s"] == 62.0


def test_apis_have_rates_errors_and_quantiles_of_the_interval() -> None:
    apis = views()["apis"]
    assert isinstance(apis, list)
    fetch, metadata = apis
    assert (fetch["api"], fetch["requests_per_s"], fetch["errors_per_s"], fetch["requests"]) == ("Fetch", 50, 2, 120)
    assert fetch["p50_ms"] == pytest.approx(1.0)
    assert fetch["p99_ms"] == pytest.approx(9.82)
    assert fetch["local_ms"] == pytest.approx(0.5)
    assert (metadata["api"], metadata["p99_ms"], metadata["local_ms"]) == ("Metadata", None, None)


def test_the_busiest_topic_is_listed_first() -> None:
    topics = views()["topics"]
    assert isinstance(topics, list)
    assert [one["topic"] for one in topics] == ["orders", "quiet"]
    assert topics[0] == {
        "topic": "orders",
        "partitions": 2,
        "size_bytes": 4_900,
        "messages_in_per_s": 100.0,
        "bytes_in_per_s": 2_000.0,
        "bytes_out_per_s": 1_000.0,
    }


def test_rates_are_not_negative_after_a_restart_of_the_broker() -> None:
    before = read_metrics(Scrape(AFTER), "here", 1_000.0)
    view = compare(before, read_metrics(Scrape(BEFORE), "here", 1_002.0))
    assert min(view["rates"].values()) == 0
    assert all(api["requests_per_s"] >= 0 for api in view["apis"])


def test_a_new_topic_has_no_rate_yet() -> None:
    facts = {"cluster_id": "c", "brokers": 1, "controller": 1, "topics": 1, "partitions": 1}
    facts |= {"under_replicated": 0, "offline": 0}
    counters = {"messages_in": 0.0, "bytes_in": 0.0}
    before = Reading(0.0, "kafka:9092", dict(facts), dict(counters))
    topic = TopicReading(partitions=1, size=10**9, messages=10**6, bytes_in=10**9)
    view = compare(before, Reading(1.0, "kafka:9092", dict(facts), dict(counters), topics={"t": topic}))
    assert (view["topics"][0]["messages_in_per_s"], view["topics"][0]["bytes_in_per_s"]) == (0, 0)
    assert show(view, "12:00:00")[1:3] == [
        "cluster c   1 broker   controller 1",
        "1 topic   1 partition   0 under-replicated   0 offline",
    ]


def test_output_is_limited_to_the_height_of_the_screen() -> None:
    now = read_metrics(Scrape(AFTER), "here", 1_002.0)
    now.topics.update({f"topic-{number:03d}": TopicReading() for number in range(100)})
    lines = show(compare(now, now), "12:00:00", height=24)
    assert len(lines) <= 24
    assert lines[-1].startswith("… and ")
    assert len(show(compare(now, now), "12:00:00")) > 100


def test_escaped_labels_of_metrics_are_unescaped() -> None:
    scrape = Scrape('a{x="1,2\\"}",y="back\\\\slash\\nline"} 1.5\na 2\n')
    assert [(dict(one.labels), one.value) for one in scrape.samples("a")] == [
        ({"x": '1,2"}', "y": "back\\slash\nline"}, 1.5),
        ({}, 2.0),
    ]
    assert scrape.value("a") == 2
    with pytest.raises(MalformedMetrics):
        Scrape("<html>")


def test_throttled_clients_are_shown_with_their_quota_rate_and_pause() -> None:
    labels = 'user="ada",client_id="loader"'
    text = (
        AFTER + f"kafka_server_produce_byte_rate{{{labels}}} 2048\nkafka_server_produce_throttle_time{{{labels}}} 250\n"
    )
    now = read_metrics(Scrape(text), "here", 1_002.0)
    view = compare(now, now)
    assert view["throttled"] == [
        {"user": "ada", "client_id": "loader", "quota": "produce", "rate": 2048.0, "pause_ms": 250.0}
    ]
    heads, row = next(
        (line.split(), follower.split()) for line, follower in pairwise(show(view, "12:00:00")) if "THROTTLED" in line
    )
    assert heads[-2:] == ["PAUSE", "MS"]
    assert row == ["ada", "loader", "produce", "2.0", "KB/s", "250"]


def test_the_shards_of_a_node_are_shown_as_one() -> None:
    def page(text: str) -> str:
        shards = [re.sub(r"^(\w+)(?:{(.*)})? ", rf'\1{{\2,shard="{one}"}} ', text, flags=re.M) for one in "12"]
        return "tailrace_shards 2\n" + "".join(shards).replace("{,", "{")

    now = read_metrics(Scrape(page(AFTER)), "here", 1_002.0)
    alone = read_metrics(Scrape(AFTER), "here", 1_002.0)
    assert now.facts["shards"] == 2
    assert now.facts["uptime_s"] == alone.facts["uptime_s"]
    assert now.facts["topics"] == alone.facts["topics"]
    assert now.facts["connections"] == 2 * alone.facts["connections"]
    assert now.counters["bytes_in"] == 2 * alone.counters["bytes_in"]
    assert now.apis["Fetch"].requests == 2 * alone.apis["Fetch"].requests
    before = read_metrics(Scrape(page(BEFORE)), "here", 1_000.0)
    view = compare(before, now)
    assert view["facts"]["loop_busy"] == compare(read_metrics(Scrape(BEFORE), "", 1_000.0), alone)["facts"]["loop_busy"]
    assert "2 shards" in show(view, "12:00:00")[1]
