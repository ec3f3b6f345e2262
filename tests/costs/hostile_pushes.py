"""PushTelemetry requests that cost more to read than to send: bombs, many fields, many labels."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final

from tailrace.broker.metrics.metrics_subscription import requested_metrics
from tailrace.protocol.api_keys import ApiKey
from tailrace.records.batch import Codec
from tailrace.records.codecs.compression import compress
from tests.costs.recipe import Recipe
from tests.costs.values import Kind
from tests.support.otlp import attribute, flag, gauge, message, metrics_data, point, varint

_ID: Final = bytes(range(16))
_MAKERS: Final[dict[str, Callable[[], bytes]]] = {
    "a zstd bomb": lambda: bytes(99_000_000),
    "millions of fields": lambda: flag(9, 1) * 2_000_000,
    "empty points": lambda: metrics_data(gauge("g", *[message(1, b"")] * 12_000)),
    "long numbers": lambda: metrics_data(gauge("g", (varint(9 << 3) + b"\xff" * 9 + b"\x01") * 22_000)),
    "many resources": lambda: message(1, message(1, attribute(1, "k", message(1, b"v")))) * 3_000,
    "many labels": lambda: metrics_data(
        *[
            gauge(f"{one}" + "x" * 240, point(one, {f"{key}" + "é" * 100: "\x01" * 120 for key in range(7)}))
            for one in range(500)
        ]
    ),
}
HOSTILE_PUSHES: Final = tuple(_MAKERS)


@cache
def hostile_push(name: str) -> Recipe:
    """Return the push of this name, from a client whose subscription id is right."""
    values = (
        ("client_instance_id", _ID),
        ("subscription_id", requested_metrics([], _ID).subscription_id),
        ("compression_type", Codec.ZSTD),
        ("metrics", compress(Codec.ZSTD, _MAKERS[name]())),
    )
    return Recipe(ApiKey.PUSH_TELEMETRY, 0, Kind.SAME, values=values, note=name)
