"""PushTelemetry (key 72), version 0. Supported with `tailrace.telemetry.enable=true`.

Behaviour
    Receives the metrics of a client, a compressed OTLP message, and exposes their latest values at /metrics. A chore
    decompresses and decodes them (`request_work.py`). Errors:

    INVALID_REQUEST               a reserved instance id, or a push after the last one of a terminating client
    THROTTLING_QUOTA_EXCEEDED     a second push in an interval, or READS_MAX pushes are already being decoded
    UNKNOWN_SUBSCRIPTION_ID       the subscriptions have changed
    UNSUPPORTED_COMPRESSION_TYPE  an unknown codec
    TELEMETRY_TOO_LARGE           more than `telemetry.max.bytes`, or more than 4 MB decompressed
    INVALID_RECORD                the metrics cannot be decoded
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
