"""MetricsSubscription: the metrics that matching clients push, and the interval (KIP-714).

Subscriptions are config resources of the type CLIENT_METRICS:

    metrics       prefixes of metric names; "*" means all
    interval.ms   time between two pushes
    match         property=pattern, …; a client must match all of them. Without a pattern, every client matches

Clients choose the text that is matched, so patterns are compiled with RE2, whose run time is linear in the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from tailrace.model.configs.config_definitions import definition
from tailrace.model.java.java_hash import to_int32
from tailrace.model.java.java_order import hash_map_order
from tailrace.model.patterns import Pattern, UnusablePattern, compile_pattern
from tailrace.records.codecs.crc32c import crc32c

ALL_METRICS: Final = "*"
DEFAULT_INTERVAL_MS: Final = 300_000
MATCHED_LENGTH_MAX: Final = 249  # a longer property of a client matches no pattern


class MetricsSubscription(NamedTuple):
    metrics: tuple[str, ...]
    interval_ms: int
    patterns: Mapping[str, Pattern]  # by the client's property

    @classmethod
    def of(cls, settings: Mapping[str, str]) -> MetricsSubscription:
        """Read the settings of a config resource. Raise UnusablePattern if RE2 cannot compile a pattern."""
        keys = definition("client_metrics")
        values: dict[str, Any] = {name: key.parse(settings.get(name, key.default)) for name, key in keys.items()}
        patterns = {}
        for entry in values["match"] or ():
            name, _, pattern = entry.rstrip("=").partition("=")
            try:
                patterns[name.strip()] = compile_pattern(pattern.strip())
            except UnusablePattern as error:
                raise UnusablePattern(f"pattern {pattern.strip()!r}: {error}") from error
        return cls(tuple(values["metrics"] or ()), values["interval.ms"], patterns)

    def matches(self, client: Mapping[str, str]) -> bool:
        """Return True if the properties of a client match."""
        for name, pattern in self.patterns.items():
            text = client.get(name)
            if text is None or len(text) > MATCHED_LENGTH_MAX or not pattern.matches(text):
                return False
        return True


class RequestedMetrics(NamedTuple):
    """The metrics that one client pushes."""

    names: list[str]
    interval_ms: int
    subscription_id: int


def requested_metrics(subscriptions: Iterable[MetricsSubscription], instance_id: bytes) -> RequestedMetrics:
    """Join the subscriptions that a client matches. The id and the order are the same as on Kafka's brokers."""
    names: dict[str, None] = {}
    interval_ms = DEFAULT_INTERVAL_MS
    for one in subscriptions:
        names.update(dict.fromkeys(one.metrics))
        interval_ms = min(interval_ms, one.interval_ms)
    ordered = [ALL_METRICS] if ALL_METRICS in names else hash_map_order(names)
    checksum = crc32c(f"[{', '.join(ordered)}]{interval_ms}".encode())
    return RequestedMetrics(ordered, interval_ms, to_int32(checksum ^ _uuid_hash(instance_id)))


def _uuid_hash(uuid: bytes) -> int:
    """Return Java's hash code of a UUID as an unsigned number."""
    bits = int.from_bytes(uuid[:8], "big") ^ int.from_bytes(uuid[8:], "big")
    return (bits >> 32 ^ bits) & 0xFFFF_FFFF
