"""ClientSeries: the latest metrics that clients have pushed, as Prometheus families.

`org.apache.kafka.producer.record.send.total` becomes `tailrace_client_producer_record_send_total`, with the labels
client_id, client_instance_id and the attributes that the client sent. A push replaces the earlier series of its client.

Clients choose names and labels, so there are limits: SERIES_PER_CLIENT_MAX series per client and SERIES_MAX in total.
If a push exceeds the total, the clients whose last push is oldest are dropped.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from tailrace.metrics.families import Family, Kind, Sample
from tailrace.metrics.otlp import TEXT_LENGTH_MAX, Point, Points

SERIES_PER_CLIENT_MAX: Final = 500
SERIES_MAX: Final = 5_000
PREFIX: Final = "tailrace_client_"

_STANDARD_PREFIX: Final = "org.apache.kafka."  # the prefix of KIP-714's names
_OUTSIDE_NAME: Final = re.compile(r"[^a-zA-Z0-9_]")
_TOTALS: Final = re.compile(r"(_total)+\Z")  # the Prometheus format adds this ending to counters
# Control characters and ends of lines.
_UNPRINTABLE: Final = dict.fromkeys((*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029), "\N{REPLACEMENT CHARACTER}")
_HELP: Final = "Latest value that clients have pushed."

LabelPairs: TypeAlias = tuple[tuple[str, str], ...]


class Series(NamedTuple):
    name: str  # the family's name; a counter's has no _total
    kind: Kind
    labels: LabelPairs
    value: float
    is_delta: bool


class PushedSeries(NamedTuple):
    series: list[Series]
    skipped: int


def series_of(read: Points, client: Mapping[str, str]) -> PushedSeries:
    """Turn points into series with the labels of their client. The last of several equal series is kept."""
    own = {name: label_value(text) for name, text in client.items()}
    found: dict[tuple[str, LabelPairs], Series] = {}
    for point in read.points:
        series = _series(point, own)
        found[series.name, series.labels] = series
    return PushedSeries(list(found.values()), read.skipped)


def _series(point: Point, client: Mapping[str, str]) -> Series:
    labels = {_label_name(key): label_value(text) for key, text in point.attributes.items()}
    labels.update(client)
    name = _TOTALS.sub("", _OUTSIDE_NAME.sub("_", point.name.removeprefix(_STANDARD_PREFIX)))
    kind = Kind.COUNTER if point.is_counter else Kind.GAUGE
    return Series(PREFIX + name, kind, tuple(sorted(labels.items())), point.value, point.is_delta)


def _label_name(key: str) -> str:
    name = _OUTSIDE_NAME.sub("_", key)
    return f"attribute_{name}" if name[0].isdecimal() or name.startswith("__") else name


def label_value(text: str) -> str:
    """Return a text without line breaks and control characters, cut to TEXT_LENGTH_MAX."""
    text = text[:TEXT_LENGTH_MAX]
    return text if text.isprintable() else text.translate(_UNPRINTABLE)


class _NamedFamily:
    """The series of one metric name, by client instance."""

    __slots__ = ("by_client", "kind")

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.by_client: dict[bytes, list[Series]] = {}


class ClientSeries:
    def __init__(self) -> None:
        self.skipped = 0  # pushed points that are not exposed
        self.count = 0
        self._families: dict[str, _NamedFamily] = {}
        self._clients: dict[bytes, dict[tuple[str, LabelPairs], Series]] = {}  # in the order of their latest push

    def replace(self, client: bytes, pushed: PushedSeries) -> None:
        """Replace the series of a client instance. Delta values are added to the values that it pushed before."""
        before = self._clients.get(client, {})
        self.drop(client)
        kept: dict[tuple[str, LabelPairs], Series] = {}
        self.skipped += pushed.skipped
        for series in pushed.series:
            family = self._families.get(series.name) or _NamedFamily(series.kind)
            if family.kind is not series.kind or len(kept) >= SERIES_PER_CLIENT_MAX:
                self.skipped += 1
                continue
            self._families[series.name] = family
            key = (series.name, series.labels)
            if series.is_delta and key in before:
                value = series.value + before[key].value
                series = series._replace(value=value if math.isfinite(value) else series.value)
            kept[key] = series
            family.by_client.setdefault(client, []).append(series)
        self._clients[client] = kept
        self.count += len(kept)
        while self.count > SERIES_MAX:
            self.drop(next(iter(self._clients)))

    def drop(self, client: bytes) -> None:
        """Forget the series of a client instance."""
        series = self._clients.pop(client, {})
        self.count -= len(series)
        for name in {name for name, _ in series}:
            family = self._families[name]
            del family.by_client[client]
            if not family.by_client:
                del self._families[name]

    def families(self) -> Iterator[Family]:
        """Yield a family for each name. Clients may push between two families."""
        for name in sorted(self._families):
            family = self._families.get(name)
            if family is not None:
                yield Family(name, family.kind, _HELP, _samples(list(family.by_client.values())))


def _samples(clients: Sequence[Iterable[Series]]) -> Iterator[Sample]:
    for series in clients:
        for one in series:
            yield Sample(dict(one.labels), one.value)
