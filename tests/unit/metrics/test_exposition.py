"""The exposition text, parsed by Prometheus' own parsers."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_prometheus

from tailrace.metrics.exposition import OPENMETRICS, PROMETHEUS, content_type, pieces
from tailrace.metrics.families import Family, Kind, Sample, counter, gauge, histogram_samples, summary_samples
from tailrace.metrics.histogram import Histogram

PARSERS = {PROMETHEUS: parse_prometheus, OPENMETRICS: parse_openmetrics}
ODD = 'a "quoted" back\\slash,\nnew line, {brace} ünïcode'


def families() -> list[Family]:
    histogram = Histogram((1_000_000, 2_000_000))
    for value in (5, 1_500_000, 3_000_000):
        histogram.add(value)
    return [
        counter("requests", "How many.", 7),
        gauge("level", "A number with a fraction.", 0.25),
        Family("topics", Kind.GAUGE, "Odd labels.", [Sample({"topic": ODD, "partition": "0"}, 3)]),
        Family(
            "waits_seconds", Kind.HISTOGRAM, "Times.", list(histogram_samples(histogram, {"api": "Fetch"}, zeros=2))
        ),
        Family("old_ms", Kind.SUMMARY, "Quantiles.", list(summary_samples([(0.5, 1.25)], {}, count=4, total=9.0))),
        Family("build", Kind.INFO, "Build information.", [Sample({"version": "1"}, 1)]),
        Family("none", Kind.GAUGE, "No samples at all.", []),
    ]


@pytest.mark.parametrize("kind", PARSERS)
def test_prometheus_own_parser_reads_the_same_samples(kind: str) -> None:
    text = "".join(pieces(families(), kind))
    read = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in PARSERS[kind](text)
        for sample in family.samples
    }
    fetch = ("api", "Fetch")
    assert read == {
        ("requests_total",): 7,
        ("level",): 0.25,
        ("topics", ("partition", "0"), ("topic", ODD)): 3,
        ("waits_seconds_bucket", fetch, ("le", "0.001")): 3,
        ("waits_seconds_bucket", fetch, ("le", "0.002")): 4,
        ("waits_seconds_bucket", fetch, ("le", "+Inf")): 5,
        ("waits_seconds_sum", fetch): 0.004500005,
        ("waits_seconds_count", fetch): 5,
        ("old_ms", ("quantile", "0.5")): 1.25,
        ("old_ms_sum",): 9,
        ("old_ms_count",): 4,
        ("build_info", ("version", "1")): 1,
    }


@pytest.mark.parametrize("kind", PARSERS)
def test_the_text_declares_the_kind_of_every_family(kind: str) -> None:
    types = {family.name: family.type for family in PARSERS[kind]("".join(pieces(families(), kind)))}
    assert (types["requests"], types["waits_seconds"], types["old_ms"]) == ("counter", "histogram", "summary")


def test_a_large_family_is_written_in_pieces() -> None:
    made = 0

    def samples() -> Iterable[Sample]:
        nonlocal made
        for number in range(10_000):
            made += 1
            yield Sample({"partition": str(number)}, number)

    parts = pieces([Family("size", Kind.GAUGE, "Bytes.", samples())], PROMETHEUS)
    assert len(next(parts).splitlines()) == made + 2 < 300
    rest = sum(len(part.splitlines()) for part in parts)
    assert rest + 250 == 10_002


def test_openmetrics_is_used_if_the_accept_header_names_it() -> None:
    asked = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1"
    assert content_type(asked) == OPENMETRICS
    assert content_type("*/*") == content_type("") == PROMETHEUS
