"""ServerMeasures: what the network layer and the process measure, as families of samples.

Times of requests are told twice: as histograms in seconds under our own name, from which Prometheus makes any quantile
over any time, and as summaries in milliseconds under the names of Kafka's dashboards, with the quantiles that Kafka's
have, of the last minute or two.
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
from tailrace.metrics.histogram import SECOND_NS, Histogram, Lately, quantile
from tailrace.server.connections.connections import Connections
from tailrace.server.metrics.api_meter import ApiMeter
from tailrace.server.metrics.process_measures import process_families
from tailrace.server.metrics.request_meter import VERSIONS_MAX, RequestMeter
from tailrace.server.metrics.statistics import ServerStatistics

QUANTILES: Final = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)
PHASES: Final = (  # ours, Kafka's, what it is
    ("queue", "requestqueuetimems", "between being read and being handed over"),
    ("local", "localtimems", "with the broker"),
    ("remote", "remotetimems", "waiting for others"),
    ("response", "responsesendtimems", "until the socket took the reply"),
    ("throttle", "throttletimems", "that clients were told to pause"),
    ("total", "totaltimems", "from being read to the reply being sent"),
)
_RARE: Final = ("queue", "remote", "throttle")  # what is 0, or next to it, is not in their histograms
SOFTWARES_MAX: Final = 50
_MS: Final = 1_000_000


class ServerMeasures:
    def __init__(self, meter: RequestMeter) -> None:
        self._meter = meter
        self._lately: dict[Histogram, Lately] = {}
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
            "Where requests spend their time.",
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
        lately = self._lately.get(histogram)
        if lately is None:
            lately = self._lately[histogram] = Lately(histogram)
        return lately.counts(now_ms)

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
            f"{prefix}_connections", Kind.GAUGE, "Open connections, by what clients are.", _softwares(connections)
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
            "Connections closed since an address had too many or opened them too fast.",
            statistics.refused,
        )
        for state, count in (
            ("waiting", statistics.waiting),
            ("writing", statistics.writing),
            ("throttled", statistics.throttled),
            ("muted", statistics.muted),
        ):
            yield gauge(f"tailrace_connections_{state}", f"Open connections that are {state}.", count)
        yield gauge("tailrace_paused_listeners", "Listeners that accept nothing for now.", statistics.paused_listeners)
        yield gauge("tailrace_response_pending_bytes", "Bytes that sockets have yet to take.", statistics.pending_bytes)
        yield gauge("tailrace_request_held_bytes", "Bytes received and not handed over.", statistics.held_bytes)

    # The loop

    def _loop(self, statistics: ServerStatistics) -> Iterator[Family]:
        meter = self._meter
        yield counter("tailrace_loop_passes", "Passes of the loop.", statistics.passes)
        yield counter("tailrace_loop_busy_seconds", "Time that the loop has worked.", meter.busy_ns / SECOND_NS)
        yield counter("tailrace_loop_idle_seconds", "Time that the loop has waited.", meter.idle_ns / SECOND_NS)
        # One loop does the work of Kafka's network threads and of its request handlers.
        share = self._share.lately(meter)
        for name in (
            "kafka_network_socketserver_networkprocessoravgidle_percent",
            "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
        ):
            yield gauge(name, "Share of its time that the loop waits, 0 to 1, since the last scrape.", share)
        yield gauge(
            "tailrace_chores_unfinished", "Work handed to other threads and not done.", statistics.chores_unfinished
        )
        yield counter("tailrace_chores_completed", "Work done by other threads.", statistics.chores_completed)
        yield counter("tailrace_chores_failed", "Work that failed there.", statistics.chores_failed)


class _IdleShare:
    """How idle the loop was since it was last asked."""

    def __init__(self) -> None:
        self._idle_ns = self._busy_ns = 0
        self._share = 1.0

    def lately(self, meter: RequestMeter) -> float:
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
        return ()  # an API that never waits has no need of so many lines to say so
    zeros = max(meter.total.count - histogram.count, 0) if phase in _RARE else 0
    return histogram_samples(histogram, {"request": meter.name, "phase": phase}, zeros=zeros)


def _by_listener(connections: Connections) -> Iterable[Sample]:
    counts = Counter(connection.context.listener for connection in connections)
    return [Sample({"listener": name}, count) for name, count in counts.items()] or [Sample(NO_LABELS, 0)]


def _softwares(connections: Connections) -> Iterable[Sample]:
    """Names that clients choose: no more of them than somebody can read."""
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
