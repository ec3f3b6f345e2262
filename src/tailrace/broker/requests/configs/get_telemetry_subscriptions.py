"""GetTelemetrySubscriptions (key 71), version 0. Supported with `tailrace.telemetry.enable=true`.

Behaviour
    Returns the metrics that a client should push, the interval and the codecs. A client without an instance id gets
    one. A second request in an interval gets THROTTLING_QUOTA_EXCEEDED (`client_telemetry.py` has the rules).
    Clients push sums as totals, as Prometheus needs them. Kafka's brokers request deltas.
"""

from __future__ import annotations

from tailrace.broker.metrics.client_telemetry import ACCEPTED_CODECS, ClientTelemetry
from tailrace.broker.requests.request_context import Request
from tailrace.model.errors import ErrorCode
from tailrace.protocol.messages import GetTelemetrySubscriptionsResponse


def handle(request: Request, now_ms: int, *, telemetry: ClientTelemetry) -> GetTelemetrySubscriptionsResponse:
    instance = telemetry.get(request, now_ms)
    if isinstance(instance, ErrorCode):
        return GetTelemetrySubscriptionsResponse(error_code=instance)
    requested = instance.requested
    return GetTelemetrySubscriptionsResponse(
        client_instance_id=instance.id,
        subscription_id=requested.subscription_id,
        accepted_compression_types=list(ACCEPTED_CODECS),
        push_interval_ms=requested.interval_ms,
        telemetry_max_bytes=telemetry.max_bytes,
        delta_temporality=False,
        requested_metrics=requested.names,
    )
