"""The series of clients: names, labels, limits."""

from __future__ import annotations

from typing import Any

import pytest

from tailrace.broker.metrics import client_series
from tailrace.broker.metrics.client_series import ClientSeries, series_of
from tailrace.metrics.exposition import OPENMETRICS, PROMETHEUS, pieces
from tailrace.metrics.otlp import Point, Points
from tailrace.metrics.scrape import Scrape

CLIENT = {"client_id": "c", "client_instance_id": "i"}


def gauge(name: str, value: float = 1, **attributes: str) -> Point:
    return Point(name, attributes, value, is_counter=False, is_delta=False)


def total(name: str, value: float = 1, *, is_delta: bool = False) -> Point:
    return Point(name, {}, value, is_counter=True, is_delta=is_delta)


def push(series: ClientSeries, *points: Point, client: str = "i", skipped: int = 0) -> None:
    labels = {"client_id": "c", "client_instance_id": client}
    series.replace(client.encode(), series_of(Points(list(points), skipped), labels))


def text(series: ClientSeries, kind: str = PROMETHEUS) -> str:
    return "".join(pieces(series.families(), kind))


def names(series: ClientSeries) -> list[str]:
    return [family.name for family in series.families()]


def test_names_and_labels_follow_prometheus() -> None:
    series = ClientSeries()
    push(
        series,
        total("org.apache.kafka.producer.record.send.total", 5),
        gauge("my-app.queue/size", 2, **{"node.id": "1"}),
    )
    assert [line for line in text(series).splitlines() if line[0] != "#"] == [
        'tailrace_client_my_app_queue_size{client_id="c",client_instance_id="i",node_id="1"} 2',
        'tailrace_client_producer_record_send_total{client_id="c",client_instance_id="i"} 5',
    ]
    assert "# TYPE tailrace_client_producer_record_send_total counter" in text(series)
    assert "# TYPE tailrace_client_producer_record_send counter" in text(series, OPENMETRICS)
    assert "# TYPE tailrace_client_my_app_queue_size gauge" in text(series)


def test_hostile_label_names_and_values_are_escaped() -> None:
    series = ClientSeries()
    attributes = {'a"b': 'x"} 1\nfake 2\\', "client_id": "another", "__name__": "n", "1": "one", "long": "v" * 999}
    push(series, gauge("g", 1, **attributes), gauge('n{x="y"} 1\nother', 1))
    scrape = Scrape(text(series))
    (sample,) = scrape.samples("tailrace_client_g")
    assert sample.labels == {
        **CLIENT,
        "a_b": 'x"} 1\N{REPLACEMENT CHARACTER}fake 2\\',
        "attribute___name__": "n",
        "attribute_1": "one",
        "long": "v" * 128,
    }
    assert len(list(scrape.samples("tailrace_client_n_x__y___1_other"))) == 1


def test_a_push_replaces_the_series_of_its_client() -> None:
    series = ClientSeries()
    push(series, gauge("a"), gauge("b"))
    push(series, gauge("b", 2))
    assert names(series) == ["tailrace_client_b"]
    assert series.count == 1
    series.drop(b"i")
    series.drop(b"i")
    assert (names(series), series.count) == ([], 0)


def test_delta_values_are_added_up() -> None:
    series = ClientSeries()
    for value in (5, 2, 0.5):
        push(series, total("n", value, is_delta=True))
    assert Scrape(text(series)).sum("tailrace_client_n_total") == 7.5
    for _ in range(3):
        push(series, total("n", 1e308, is_delta=True))
    assert Scrape(text(series)).sum("tailrace_client_n_total") == 1e308


def test_equal_series_are_exposed_once() -> None:
    series = ClientSeries()
    push(series, gauge("a.b", 1), gauge("a_b", 2), gauge("a_b_total_total", 3))
    assert [sample.value for sample in Scrape(text(series)).samples("tailrace_client_a_b")] == [3]
    assert [sample.value for sample in Scrape(text(series)).samples("tailrace_client_a_b_total")] == []


def test_a_name_has_the_kind_of_its_first_series() -> None:
    series = ClientSeries()
    push(series, total("n.total"), client="1")
    push(series, gauge("n"), client="2", skipped=4)
    assert (series.count, series.skipped) == (1, 5)
    series.drop(b"1")
    push(series, gauge("n"), client="2")
    assert [family.kind.value for family in series.families()] == ["gauge"]


def test_series_of_a_client_and_in_total_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_series, "SERIES_PER_CLIENT_MAX", 4)
    monkeypatch.setattr(client_series, "SERIES_MAX", 10)
    series = ClientSeries()
    many = [gauge(f"m{one}") for one in range(6)]
    for client in "123":
        push(series, *many, client=client)
    assert (series.count, series.skipped) == (8, 6)
    clients: Any = Scrape(text(series)).by("tailrace_client_m0", "client_instance_id")
    assert sorted(clients) == ["2", "3"]
    push(series, *many, client="2")
    push(series, *many, client="4")
    assert sorted(Scrape(text(series)).by("tailrace_client_m0", "client_instance_id")) == ["2", "4"]


def test_clients_may_push_while_families_are_written() -> None:
    series = ClientSeries()
    push(series, gauge("a"), gauge("b"), gauge("c"))
    families = series.families()
    first = next(families)
    push(series, gauge("c", 2))
    assert len(list(first.samples)) == 1
    assert [(one.name, [sample.value for sample in one.samples]) for one in families] == [("tailrace_client_c", [2])]
