"""ServerMetrics: the metric families of the network layer and the process.

Times of requests are exported twice. Histograms in seconds have our own names; Prometheus computes any quantile over
any period from them. Summaries in milliseconds have the names of Kafka's dashboards and the quantiles of Kafka's
metrics, over the last minute or two.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from tailrace.metrics.families import (
    NO_LABELS,
    Family,
    Kind,
    Sample,
    counter,
    gauge,
    histogram_samples,
    summary_samples,
)
from tailrace.metrics.histogram import SECOND_NS, Histogram, RecentCounts, quantile
from tailrace.server.connections.connections import Connections
from tailrace.server.metrics.api_meter import ApiMeter
from tailrace.server.metrics.process_metrics import process_families
from tailrace.server.metrics.request_meter import VERSIONS_MAX, RequestMeter
from tailrace.server.metrics.statistics import ServerStatistics

QUANTILES: Final = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)
PHASES: Final = (  # our name, Kafka's name, description
    ("queue", "requestqueuetimems", "between reading a request and handing it over"),
    ("local", "localtimems", "in the broker"),
    ("remote", "remotetimems", "of waiting, for example for followers or new records"),
    ("response", "responsesendtimems", "until the socket took the reply"),
    ("throttle", "throttletimems", "of pauses that clients were throttled for"),
    ("total", "totaltimems", "from reading a request to sending the reply"),
)
_RARE: Final = ("queue", "remote", "throttle")  # times of about 0 are not counted in their histograms
SOFTWARES_MAX: Final = 50
_MS: Final = 1_000_000


class ServerMetrics:
    def __init__(self, meter: RequestMeter) -> None:
        self._meter = meter
        self._recent: dict[Histogram, RecentCounts] = {}
        self._share = _IdleShare()

    def families(self, statistics: ServerStatistics, connections: Connections, now_ms: int) -> Iterator[Family]:
        yield from self._requests(now_ms)
        yield from self._connections(statistics, connections)
        yield from self._loop(statistics)
        yield from process_families()

    # Requests

    def _requests(self, now_ms: int) -> Iterator[Family]:
        meters = list(self._meter.apis.values())
        prefix = "kafka_network_requestmetrics"
        yield Family(f"{prefix}_requests", Kind.COUNTER, "Requests, by API and version.", _versions(meters))
        yield Family(
            f"{prefix}_requestbytes",
            Kind.HISTOGRAM,
            "Bytes of requests.",
            [
                sample
                for one in meters
                for sample in histogram_samples(one.size_histogram(), {"request": one.name}, unit=1)
            ],
        )
        for phase, kafka, words in PHASES:
            yield Family(
                f"{prefix}_{kafka}",
                Kind.SUMMARY,
                f"Milliseconds {words}; quantiles of the last minute or two.",
                [sample for one in meters for sample in self._summary(one, phase, now_ms)],
            )
        yield Family(
            "tailrace_request_seconds",
            Kind.HISTOGRAM,
            "Time of requests in each phase, in seconds.",
            (sample for one in meters for phase, _, _ in PHASES for sample in _times(one, phase)),
        )

    def _summary(self, meter: ApiMeter, phase: str, now_ms: int) -> Iterable[Sample]:
        histogram: Histogram = getattr(meter, phase)
        counts = self._counts_lately(histogram, now_ms)
        zeros = 0
        if phase in _RARE:
            zeros = max(sum(self._counts_lately(meter.total, now_ms)) - sum(counts), 0)
        found = [(share, quantile((0, *histogram.bounds), (zeros, *counts), share)) for share in QUANTILES]
        quantiles = [(share, value / _MS) for share, value in found if value is not None]
        count = meter.total.count if phase in _RARE else histogram.count
        return summary_samples(quantiles, {"request": meter.name}, count=count, total=histogram.total / _MS)

    def _counts_lately(self, histogram: Histogram, now_ms: int) -> list[int]:
        recent = self._recent.get(histogram)
        if recent is None:
            recent = self._recent[histogram] = RecentCounts(histogram)
        return recent.counts(now_ms)

    # Connections

    def _connections(self, statistics: ServerStatistics, connections: Connections) -> Iterator[Family]:
        prefix = "kafka_server_socket_server_metrics"
        yield Family(
            f"{prefix}_connection_count",
            Kind.GAUGE,
            "Open connections.",
            _by_listener(connections),
        )
        yield Family(
            f"{prefix}_connections",
            Kind.GAUGE,
            "Open connections, by client software and version.",
            _softwares(connections),
        )
        yield counter(f"{prefix}_connection_creation", "Connections accepted.", statistics.accepted)
        yield Family(
            f"{prefix}_connection_close",
            Kind.COUNTER,
            "Connections closed, by reason.",
            [Sample({"reason": reason}, count) for reason, count in statistics.closed.items()],
        )
        yield counter(f"{prefix}_incoming_byte", "Bytes received from clients.", statistics.bytes_in)
        yield counter(f"{prefix}_outgoing_byte", "Bytes sent to clients.", statistics.bytes_out)
        yield counter(
            "tailrace_connections_refused",
            "Connections closed because their address had too many or opened them too fast.",
            statistics.refused,
        )
        for state, count in (
            ("waiting", statistics.waiting),
            ("writing", statistics.writing),
            ("throttled", statistics.throttled),
            ("muted", statistics.muted),
        ):
            yield gauge(f"tailrace_connections_{state}", f"Open connections that are {state}.", count)
        yield gauge(
            "tailrace_paused_listeners", "Listeners that accept no connections at present.", statistics.paused_listeners
        )
        yield gauge(
            "tailrace_response_pending_bytes",
            "Bytes of replies that sockets have not taken yet.",
            statistics.pending_bytes,
        )
        yield gauge(
            "tailrace_request_held_bytes",
            "Bytes of requests that are received but not handed over yet.",
            statistics.held_bytes,
        )

    # The loop

    def _loop(self, statistics: ServerStatistics) -> Iterator[Family]:
        meter = self._meter
        yield counter("tailrace_loop_passes", "Passes of the loop.", statistics.passes)
        yield counter(
            "tailrace_loop_busy_seconds", "Time that the loop has worked, in seconds.", meter.busy_ns / SECOND_NS
        )
        yield counter(
            "tailrace_loop_idle_seconds", "Time that the loop has waited, in seconds.", meter.idle_ns / SECOND_NS
        )
        # One loop does the work of Kafka's network threads and of its request handlers.
        share = self._share.recent(meter)
        for name in (
            "kafka_network_socketserver_networkprocessoravgidle_percent",
            "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
        ):
            yield gauge(name, "Share of time that the loop was idle since the last scrape, 0 to 1.", share)
        yield gauge(
            "tailrace_chores_unfinished", "Chores of other threads that are not finished.", statistics.chores_unfinished
        )
        yield counter("tailrace_chores_completed", "Chores completed by other threads.", statistics.chores_completed)
        yield counter("tailrace_chores_failed", "Chores that failed on other threads.", statistics.chores_failed)


class _IdleShare:
    """The idle share of the loop since the last call."""

    def __init__(self) -> None:
        self._idle_ns = self._busy_ns = 0
        self._share = 1.0

    def recent(self, meter: RequestMeter) -> float:
        idle_ns, busy_ns = meter.idle_ns - self._idle_ns, meter.busy_ns - self._busy_ns
        if idle_ns + busy_ns:
            self._share = idle_ns / (idle_ns + busy_ns)
            self._idle_ns, self._busy_ns = meter.idle_ns, meter.busy_ns
        return self._share


def _versions(meters: Iterable[ApiMeter]) -> Iterator[Sample]:
    for meter in meters:
        for number, version in meter.versions.items():
            label = str(number) if number < VERSIONS_MAX else "other"
            yield Sample({"request": meter.name, "version": label}, version.requests)


def _times(meter: ApiMeter, phase: str) -> Iterable[Sample]:
    histogram: Histogram = getattr(meter, phase)
    if phase in _RARE and not histogram.total:
        return ()  # an API that never waits needs no lines for that
    zeros = max(meter.total.count - histogram.count, 0) if phase in _RARE else 0
    return histogram_samples(histogram, {"request": meter.name, "phase": phase}, zeros=zeros)


def _by_listener(connections: Connections) -> Iterable[Sample]:
    counts = Counter(connection.context.listener for connection in connections)
    return [Sample({"listener": name}, count) for name, count in counts.items()] or [Sample(NO_LABELS, 0)]


def _softwares(connections: Connections) -> Iterable[Sample]:
    """Count clients by software and version. Clients choose these names, so their number is limited."""
    counts = Counter(
        (connection.context.software_name, connection.context.software_version) for connection in connections
    )
    shown = counts.most_common(SOFTWARES_MAX)
    rest = counts.total() - sum(count for _, count in shown)
    if rest:
        shown.append((("other", "other"), rest))
    return [
        Sample({"clientSoftwareName": name, "clientSoftwareVersion": version}, count)
        for (name, version), count in shown
    ]
