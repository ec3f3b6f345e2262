"""Parts of the orders example without Spark: the shop's events, the feeder that resumes, and the checker."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

import tailrace
from examples.orders import checker
from examples.orders.checker import Verdict, check_revenue, progress_of, values_of
from examples.orders.display import Display, Picture, QueryState
from examples.orders.events import LATE_BY_MS, ORDERS, PAYMENTS, arrivals
from examples.orders.expected import PAYMENT_TIME_MS, Revenue, expect
from examples.orders.feeder import Feeder, create_topics, feed, send
from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.producing.producer import BatchProducer
from tailrace.model.ids import TopicPartition
from tests.support.batches import batch


@pytest.fixture
def cluster() -> Iterator[ClusterClient]:
    with tailrace.Broker() as broker, ClusterClient(broker.bootstrap) as cluster:
        create_topics(cluster, ORDERS, PAYMENTS, "revenue")
        yield cluster


def test_the_same_seed_gives_the_same_events() -> None:
    assert list(islice(arrivals(7), 500)) == list(islice(arrivals(7), 500))
    assert list(islice(arrivals(7), 500)) != list(islice(arrivals(8), 500))


def test_events_are_late_and_duplicated_only_within_the_documented_bounds() -> None:
    events = list(islice(arrivals(7), 12_000))
    counts = Counter(event.value for event in events)
    assert 0.02 < sum(count > 1 for count in counts.values()) / len(counts) < 0.04
    latest, late = 0, []
    for event in events:
        latest = max(latest, event.time_ms)
        late.append(latest - event.time_ms)
    assert 30_000 < max(late) <= LATE_BY_MS


def test_an_order_in_seven_is_not_paid() -> None:
    events = list(islice(arrivals(7), 12_000))
    expected = expect(*([e.value for e in events if e.topic == topic] for topic in (ORDERS, PAYMENTS)))
    latest = max(event.time_ms for event in events)
    old = [one for one in expected.settled.values() if one.ordered_ms < latest - PAYMENT_TIME_MS - LATE_BY_MS]
    assert len(old) > 4_000
    assert 0.12 < sum(one.payment_id is None for one in old) / len(old) < 0.17


def test_feeding_resumes_at_the_end_of_the_topics(cluster: ClusterClient) -> None:
    feed(cluster, seed=7, count=130)
    feed(cluster, seed=7, count=270)
    written = sorted([*values_of(cluster, ORDERS), *values_of(cluster, PAYMENTS)])
    assert written == sorted(event.value for event in islice(arrivals(7), 400))


def test_a_feeder_that_stopped_between_two_partitions_leaves_no_gap(cluster: ClusterClient) -> None:
    """A request may be written in one partition and not in another: the missing events are written first."""
    feed(cluster, seed=7, count=300)
    arrived = [event for event in islice(arrivals(7), 300, 350) if event.topic == PAYMENTS]
    assert 5 < len(arrived) < 45
    send(BatchProducer(cluster), arrived)
    feed(cluster, seed=7, count=100 - len(arrived))
    written = sorted([*values_of(cluster, ORDERS), *values_of(cluster, PAYMENTS)])
    assert written == sorted(event.value for event in islice(arrivals(7), 400))


def test_the_feeder_keeps_its_rate_limit_and_stops_on_request(cluster: ClusterClient) -> None:
    feeder = Feeder(str(cluster.bootstrap[0]), seed=7, rate=2_000, limit=150)
    feeder.start()
    while feeder.sent < 150 and feeder.failure is None:
        feeder.join(0.01)
    feeder.join(0.2)
    assert feeder.sent == 150
    feeder.limit = None
    while feeder.sent < 250 and feeder.failure is None:
        feeder.join(0.01)
    feeder.end()
    assert feeder.failure is None
    assert len(list(values_of(cluster, ORDERS))) + len(list(values_of(cluster, PAYMENTS))) == feeder.sent


def a_checkpoint(path: Path, offsets: dict[str, dict[str, int]], watermark_ms: int) -> None:
    for folder in ("commits", "offsets"):
        (path / folder).mkdir(parents=True)
    (path / "commits" / "3").write_text("v1\n{}")
    sources = [json.dumps({topic: parts}) for topic, parts in offsets.items()]
    (path / "offsets" / "3").write_text("\n".join(["v1", json.dumps({"batchWatermarkMs": watermark_ms}), *sources]))
    (path / "offsets" / "4").write_text("v1\n")  # planned, but not committed


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda rows: rows, None),
        (lambda rows: [*rows, rows[0]], "1 twice"),
        (lambda rows: rows[1:], "1 missing"),
        (lambda rows: [(rows[0][0], Revenue(1, 1, 1)), *rows[1:]], "1 wrong"),
    ],
    ids=["right", "twice", "missing", "wrong"],
)
def test_the_checker_reports_each_kind_of_wrong_result(
    cluster: ClusterClient, tmp_path: Path, change, complaint
) -> None:  # type: ignore[no-untyped-def]
    feed(cluster, seed=7, count=4_000)
    ends = {topic: {str(n): 0 for n in range(2)} for topic in (ORDERS, PAYMENTS)}
    for topic, parts in ends.items():
        for number in parts:
            partition = TopicPartition(topic, int(number))
            parts[number] = checker.latest_offsets(cluster, [partition])[partition]
    expected = expect(values_of(cluster, ORDERS), values_of(cluster, PAYMENTS))
    watermark = max(one.ordered_ms for one in expected.settled.values()) - 180_000
    a_checkpoint(checker.checkpoint(tmp_path, "revenue"), ends, watermark)
    final = sorted((key, expected.revenue[key]) for key in expected.final_by(watermark))
    assert len(final) > 5
    values = [
        json.dumps({"window_ms": start, "country": country, **one._asdict()}).encode()
        for (start, country), one in change(final)
    ]
    BatchProducer(cluster).send({TopicPartition("revenue", 0): batch(*((b"k", value) for value in values))})
    verdict = check_revenue(cluster, tmp_path)
    assert verdict.is_right == (complaint is None)
    assert complaint is None or complaint in str(verdict)


def test_the_checker_reports_nothing_before_the_pipeline_has_run(tmp_path: Path) -> None:
    assert progress_of(tmp_path) == ({}, 0)
    assert Verdict("settled").is_right


def test_the_display_shows_the_state_in_a_line_or_a_picture(capsys: pytest.CaptureFixture[str]) -> None:
    state = QueryState("revenue", batch=4, rows=100, lag=7, watermark="2025-01-01 00:10:00")
    results = {(1_735_689_600_000, "KE"): Revenue(9, 7, 12_345)}
    picture = Picture(12.0, 18.0, "localhost:9092", [("orders", 1_200)], 1_735_689_660_000, [state], results)
    Display(live=False).show(picture)
    Display(live=True).show(picture)
    line, *lines = capsys.readouterr().out.splitlines()
    assert line == "   12 s  orders 1,200 (0/s)  |  revenue batch 4 lag 7 (0 ms)"
    text = "\n".join(lines)
    assert "2025-01-01 00:00   KE            9     7   123.45" in text
    assert "18 s left" in text
