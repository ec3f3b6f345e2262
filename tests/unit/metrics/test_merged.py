"""The metrics of several processes as one page."""

from __future__ import annotations

import pytest

from tailrace.metrics.exposition import OPENMETRICS, PROMETHEUS, pieces
from tailrace.metrics.families import Family, Kind, Sample, counter, gauge, histogram_samples
from tailrace.metrics.histogram import Histogram
from tailrace.metrics.merged import merged
from tailrace.metrics.scrape import MalformedMetrics, Scrape


def page(requests: int, *more: Family) -> str:
    times = Histogram([1_000_000_000])
    times.add(2_000_000_000)
    families = [
        counter("requests", "Requests so far.", requests),
        gauge("memory_bytes", "Memory of the process.", 1.5),
        Family("build", Kind.INFO, "Version.", [Sample({"version": "1"}, 1)]),
        Family("times", Kind.HISTOGRAM, "Times.", histogram_samples(times, {"request": 'a"b'})),
        *more,
    ]
    return "".join(pieces(families, OPENMETRICS))


def test_each_sample_gets_the_label_of_its_process() -> None:
    text = "".join(pieces(merged({"1": page(3), "2": page(4)}, "shard"), PROMETHEUS))
    scrape = Scrape(text)
    assert scrape.by("requests_total", "shard") == {"1": 3.0, "2": 4.0}
    assert scrape.by("memory_bytes", "shard") == {"1": 1.5, "2": 1.5}
    assert scrape.by("build_info", "shard", version="1") == {"1": 1.0, "2": 1.0}
    assert scrape.sum("times_bucket", shard="2", le="+Inf", request='a"b') == 1.0
    assert scrape.sum("times_count") == 2.0


def test_a_family_is_declared_once_and_its_samples_are_together() -> None:
    only = gauge("only_here", "A gauge that one process has.", 7)
    for kind in (PROMETHEUS, OPENMETRICS):
        lines = "".join(pieces(merged({"1": page(3), "2": page(4, only)}, "shard"), kind)).splitlines()
        declared = [line.split()[2] for line in lines if line.startswith("# TYPE")]
        assert len(declared) == len(set(declared)) == 5
        owners = [line.partition("{")[0] for line in lines if not line.startswith("#")]
        assert [one for number, one in enumerate(owners) if one == "requests_total"] == ["requests_total"] * 2
        assert owners.index("requests_total") + 1 == len(owners) - owners[::-1].index("requests_total") - 1
    assert lines[-1] == "# EOF"


def test_whole_numbers_stay_whole() -> None:
    text = "".join(pieces(merged({"1": page(12)}, "shard"), PROMETHEUS))
    assert 'requests_total{shard="1"} 12\n' in text


@pytest.mark.parametrize("text", ["a 1\n", "# TYPE a gauge\na b\n"])
def test_a_page_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(MalformedMetrics):
        "".join(pieces(merged({"1": text}, "shard"), PROMETHEUS))


def test_sums_without_a_label_keep_the_other_labels() -> None:
    whole = Scrape(
        'a{shard="1",topic="x"} 1\na{shard="2",topic="x"} 2\na{shard="2",topic="y"} 4\nb{shard="1"} 8\nc 3\n'
    )
    found = whole.without("shard")
    assert found.by("a", "topic") == {"x": 3.0, "y": 4.0}
    assert (found.value("b"), found.value("c")) == (8.0, 3.0)
