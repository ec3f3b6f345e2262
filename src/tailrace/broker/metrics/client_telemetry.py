"""ClientTelemetry: the clients that push their metrics (KIP-714), with their subscriptions and their last requests.

A client gets its subscription (GetTelemetrySubscriptions), then pushes once per interval (PushTelemetry). It has the
same instance id on every broker. The rules are those of Kafka's ClientMetricsManager:

    get    once per interval, or after UNKNOWN_SUBSCRIPTION_ID or UNSUPPORTED_COMPRESSION_TYPE
    push   once after each get, then once per interval; a terminating client may push once more at any time

An instance expires, with its series, after three intervals without a request (at least EXPIRY_MS). A terminated
instance expires after EXPIRY_MS, so Prometheus can still scrape its last push. If there are more than INSTANCES_MAX
instances, the one with the oldest request is dropped. docs/decisions/0033-client-telemetry.md explains the limits.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Final
from uuid import UUID

from tailrace.broker.metrics.client_series import SERIES_PER_CLIENT_MAX, ClientSeries, PushedSeries, series_of
from tailrace.broker.metrics.metrics_subscription import (
    MATCHED_LENGTH_MAX,
    MetricsSubscription,
    RequestedMetrics,
    requested_metrics,
)
from tailrace.broker.requests.request_context import Request
from tailrace.metadata.image.image import MetadataImage, ResourceType
from tailrace.metrics.families import Family, counter, gauge
from tailrace.metrics.otlp import MalformedMetricsData, read_points
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicId
from tailrace.model.java.java_order import hash_map_order
from tailrace.model.patterns import UnusablePattern
from tailrace.model.topic_config import InvalidConfig
from tailrace.records.batch import Codec
from tailrace.records.codecs.decompression import DecompressedTooLarge, DecompressionFailed, decompress

INSTANCES_MAX: Final = 4_096
EXPIRY_MS: Final = 60_000
DECOMPRESSED_MAX: Final = 4 << 20
# Pushes whose metrics are being decoded or wait to be decoded. Their chores share a queue with Produce requests.
READS_MAX: Final = 4
ACCEPTED_CODECS: Final = (Codec.ZSTD, Codec.LZ4, Codec.GZIP, Codec.SNAPPY)  # the best first

_EXPIRY_CHECK_MS: Final = 10_000
_NEVER: Final = -(1 << 62)
_ZERO_ID: Final = bytes(16)
_RESERVED_IDS: Final = (_ZERO_ID, (1).to_bytes(16, "big"))

_log = logging.getLogger(__name__)


class ClientInstance:
    """A client, by its instance id."""

    __slots__ = ("expires_ms", "id", "labels", "last_error", "last_get_ms", "last_push_ms", "properties", "requested",
                 "terminating", "version")  # fmt: skip

    def __init__(self, instance_id: bytes, properties: Mapping[str, str]) -> None:
        self.id = instance_id
        self.properties = properties  # matched by subscriptions
        self.labels = {name: properties.get(name, "") for name in ("client_id", "client_instance_id")}
        self.expires_ms = 0

    def subscribe(self, requested: RequestedMetrics, version: int) -> None:
        """Start a new subscription."""
        self.requested = requested
        self.version = version
        self.last_get_ms = self.last_push_ms = _NEVER
        self.terminating = False
        self.last_error = ErrorCode.NONE

    def may_get(self, now_ms: int) -> bool:
        """Return True if the client may get its subscription now. The time of an early get after an error is not
        noted."""
        if now_ms - max(self.last_get_ms, self.last_push_ms) >= self.requested.interval_ms:
            self.last_get_ms = now_ms
            return True
        return self.last_error in (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)

    def may_push(self, now_ms: int) -> bool:
        """Return True, and note the time, if the client may push now."""
        is_first = self.last_get_ms > self.last_push_ms
        if is_first or now_ms - self.last_push_ms >= self.requested.interval_ms:
            self.last_push_ms = now_ms
            return True
        return False


class ClientTelemetry:
    def __init__(self, max_bytes: int, new_id: Callable[[], bytes]) -> None:
        self.max_bytes = max_bytes
        self.series = ClientSeries()
        self._new_id = new_id
        self._subscriptions: dict[str, MetricsSubscription] = {}
        self._version = 0  # increases when a subscription changes
        self._instances: dict[bytes, ClientInstance] = {}  # in the order of their last request
        self._next_check_ms = 0

    def start(self, image: MetadataImage) -> None:
        """Read the subscriptions of the first metadata image."""
        for resource, settings in image.configs.items():
            if resource.type == ResourceType.CLIENT_METRICS:
                self.change_subscription(resource.name, settings)

    def change_subscription(self, name: str, settings: Mapping[str, str]) -> None:
        """Apply the settings of a subscription. A subscription without settings is removed."""
        self._version += 1
        self._subscriptions.pop(name, None)
        if settings:
            try:
                self._subscriptions[name] = MetricsSubscription.of(settings)
            except (UnusablePattern, InvalidConfig) as error:
                _log.warning("metrics subscription %s is ignored: %s", name, error)

    # Requests

    def get(self, request: Request, now_ms: int) -> ClientInstance | ErrorCode:
        """Return the instance with its subscription, or the error to respond with."""
        instance_id = request.body.client_instance_id
        if instance_id == _ZERO_ID:
            instance_id = self._new_id()
        instance = self._instance(instance_id, request, now_ms)
        if not instance.may_get(now_ms):
            return ErrorCode.THROTTLING_QUOTA_EXCEEDED
        instance.last_error = ErrorCode.NONE
        return instance

    def begin_push(self, request: Request, now_ms: int) -> ClientInstance | ErrorCode:
        """Return the instance that pushes, or the error to respond with. The metrics are not read yet."""
        body = request.body
        if body.client_instance_id in _RESERVED_IDS:
            return ErrorCode.INVALID_REQUEST
        instance = self._instance(body.client_instance_id, request, now_ms)
        error = self._push_error(instance, request, now_ms)
        instance.terminating = body.terminating
        instance.last_error = error
        if body.terminating:
            instance.expires_ms = now_ms + EXPIRY_MS
        return instance if error is ErrorCode.NONE else error

    def _push_error(self, instance: ClientInstance, request: Request, now_ms: int) -> ErrorCode:
        body = request.body
        if instance.terminating:
            return ErrorCode.INVALID_REQUEST
        if not instance.may_push(now_ms) and not body.terminating:
            return ErrorCode.THROTTLING_QUOTA_EXCEEDED
        if body.subscription_id != instance.requested.subscription_id:
            return ErrorCode.UNKNOWN_SUBSCRIPTION_ID
        if body.compression_type not in list(Codec):
            return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        if len(body.metrics) > self.max_bytes:
            return ErrorCode.TELEMETRY_TOO_LARGE
        return ErrorCode.NONE

    def end_push(self, instance: ClientInstance, result: PushedSeries | ErrorCode) -> ErrorCode:
        """Expose the pushed series. Return the error to respond with."""
        if isinstance(result, ErrorCode):
            instance.last_error = result
            return result
        if self._instances.get(instance.id) is instance:
            self.series.replace(instance.id, result)
        return ErrorCode.NONE

    # Instances

    def _instance(self, instance_id: bytes, request: Request, now_ms: int) -> ClientInstance:
        """Return the instance with this id, and note that it is the most recent one. Create it if it is unknown."""
        self._expire(now_ms)
        instance = self._instances.pop(instance_id, None)
        if instance is None:
            if len(self._instances) >= INSTANCES_MAX:
                self._drop_instance(next(iter(self._instances)))
            instance = ClientInstance(instance_id, _properties(instance_id, request))
            instance.version = -1
        self._instances[instance_id] = instance
        if instance.version != self._version:
            names = hash_map_order(self._subscriptions)  # the order in which Kafka's map lists them
            found = [one for one in map(self._subscriptions.__getitem__, names) if one.matches(instance.properties)]
            instance.subscribe(requested_metrics(found, instance_id), self._version)
        instance.expires_ms = now_ms + max(EXPIRY_MS, 3 * instance.requested.interval_ms)
        return instance

    def _drop_instance(self, instance_id: bytes) -> None:
        del self._instances[instance_id]
        self.series.drop(instance_id)

    def _expire(self, now_ms: int) -> None:
        if now_ms < self._next_check_ms:
            return
        self._next_check_ms = now_ms + _EXPIRY_CHECK_MS
        for instance_id in [one.id for one in self._instances.values() if one.expires_ms <= now_ms]:
            self._drop_instance(instance_id)

    def families(self, now_ms: int) -> Iterator[Family]:
        """Yield the pushed metrics, and metrics about them."""
        self._expire(now_ms)
        yield gauge(
            "kafka_server_client_metrics_instance_count",
            "Clients that recently got a metrics subscription or pushed metrics.",
            len(self._instances),
        )
        yield gauge("tailrace_telemetry_series", "Series that clients have pushed.", self.series.count)
        yield counter(
            "tailrace_telemetry_skipped_points",
            "Pushed data points that are not exposed: histograms, and points above a limit.",
            self.series.skipped,
        )
        yield from self.series.families()


def _properties(instance_id: bytes, request: Request) -> dict[str, str]:
    """Return the properties that subscriptions match. Each value is cut after MATCHED_LENGTH_MAX + 1 characters,
    because no pattern matches longer values."""
    context = request.context
    found = {
        "client_instance_id": str(TopicId(UUID(bytes=instance_id))),
        "client_id": request.client_id,
        "client_software_name": context.software_name,
        "client_software_version": context.software_version,
        "client_source_address": context.client_host,
        "client_source_port": str(context.client_port),
    }
    return {name: text[: MATCHED_LENGTH_MAX + 1] for name, text in found.items() if text is not None}


def read_pushed(codec: int, metrics: bytes, labels: Mapping[str, str]) -> PushedSeries | ErrorCode:
    """Decode pushed metrics, on any thread. Return the series, or the error to respond with."""
    try:
        data = decompress(Codec(codec), metrics, max_size=DECOMPRESSED_MAX)
        return series_of(read_points(data, SERIES_PER_CLIENT_MAX), labels)
    except DecompressedTooLarge:
        return ErrorCode.TELEMETRY_TOO_LARGE
    except (DecompressionFailed, MalformedMetricsData):
        return ErrorCode.INVALID_RECORD
