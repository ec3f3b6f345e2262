"""PushTelemetry (key 72), version 0. Served with `tailrace.telemetry.enable=true`.

Behaviour
    Takes the metrics of a client, a compressed OTLP message, and exposes their latest values at /metrics. They are
    decompressed and read beside the loop (`request_work.py`).
    INVALID_REQUEST for a reserved instance id or after the last push of a terminating client,
    THROTTLING_QUOTA_EXCEEDED for two pushes in an interval, or while READS_MAX pushes of others are read;
    UNKNOWN_SUBSCRIPTION_ID after a change of subscriptions,
    UNSUPPORTED_COMPRESSION_TYPE, TELEMETRY_TOO_LARGE above `telemetry.max.bytes` or 4 MB decompressed, and
    INVALID_RECORD for metrics that cannot be read.
Not implemented
    histograms and summaries: they are skipped and counted; clients of Kafka send gauges and sums
"""

from __future__ import annotations

from functools import partial
from typing import Any

from tailrace.broker.handling.request_work import RequestWork
from tailrace.broker.metrics.client_telemetry import READS_MAX, ClientTelemetry, read_pushed
from tailrace.broker.replies import Replies
from tailrace.broker.requests.request_context import Request
from tailrace.model.errors import ErrorCode
from tailrace.protocol.api_keys import ApiKey
from tailrace.protocol.messages import PushTelemetryResponse


def handle(
    request: Request, now_ms: int, *, replies: Replies, request_work: RequestWork, telemetry: ClientTelemetry
) -> PushTelemetryResponse | None:
    if request_work.count(ApiKey.PUSH_TELEMETRY) >= READS_MAX:
        return PushTelemetryResponse(error_code=ErrorCode.THROTTLING_QUOTA_EXCEEDED)
    instance = telemetry.begin_push(request, now_ms)
    if isinstance(instance, ErrorCode):
        return PushTelemetryResponse(error_code=instance)
    body = request.body
    if not body.metrics:
        return PushTelemetryResponse()

    def resume(results: list[Any], now_ms: int) -> None:
        replies.answer(request, PushTelemetryResponse(error_code=telemetry.end_push(instance, results[0])), now_ms)

    read = partial(read_pushed, body.compression_type, bytes(body.metrics), instance.labels)
    request_work.start(request, [read], resume)
    return None
