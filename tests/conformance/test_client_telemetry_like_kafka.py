"""Telemetry requests get the same responses from Kafka with a receiver and from Tailrace."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tailrace.protocol.messages import (
    GetTelemetrySubscriptionsRequest,
    IncrementalAlterConfigsRequest,
    PushTelemetryRequest,
)
from tailrace.records.batch import Codec
from tailrace.records.codecs.compression import compress
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_controllers import KafkaControllers
from tests.support.kafka_install import KafkaInstallation
from tests.support.kraft_broker import kraft_broker
from tests.support.otlp import gauge, metrics_data, point
from tests.support.raw_client import RawClient
from tests.support.tailrace_process import TailraceProcess

pytestmark = pytest.mark.kafka

ID = bytes(range(16))
INTERVAL_S = 1.5
METRICS = metrics_data(gauge("g", point(5)))
LAG_S = 10  # a broker learns of a change a moment after the controller made it


class Twins:
    """A connection to each broker; each request goes to both."""

    def __init__(self, *clients: RawClient) -> None:
        self.clients = clients

    def alter(self, name: str, **settings: str | None) -> None:
        request = IncrementalAlterConfigsRequest
        configs = [
            request.AlterableConfig(name=key.replace("_", "."), config_operation=int(text is None), value=text)
            for key, text in settings.items()
        ]
        resource = request.AlterConfigsResource(resource_type=16, resource_name=name, configs=configs)
        for client in self.clients:
            assert client.ask(request(resources=[resource]), 1).responses[0].error_code == 0

    def get(self, instance_id: bytes = ID) -> Any:
        """Return the response that both give, without the temporality."""
        found = []
        for client in self.clients:
            response = client.ask(GetTelemetrySubscriptionsRequest(client_instance_id=instance_id), 0)
            response.delta_temporality = None  # we request totals, Kafka requests deltas
            found.append(response)
        assert repr(found[0]) == repr(found[1])
        return found[0]

    def get_new(self, instance_id: bytes, metrics: set[str]) -> Any:
        """Like `get`, after both have applied a change. Each id is used once, because its next request would be
        throttled.
        """
        deadline = time.monotonic() + LAG_S
        while True:
            instance_id = (int.from_bytes(instance_id, "big") + 1).to_bytes(16, "big")
            received = [
                set(one.ask(GetTelemetrySubscriptionsRequest(client_instance_id=instance_id), 0).requested_metrics)
                for one in self.clients
            ]
            if received == [metrics, metrics]:
                return self.get((int.from_bytes(instance_id, "big") + 1_000).to_bytes(16, "big"))
            assert time.monotonic() < deadline, received
            time.sleep(0.1)

    def push(self, subscription_id: int, instance_id: bytes = ID, metrics: bytes = METRICS, **fields: Any) -> int:
        """Return the error code of both responses."""
        request = PushTelemetryRequest(
            client_instance_id=instance_id, subscription_id=subscription_id, metrics=metrics, **fields
        )
        ours, kafka = (client.ask(request, 0).error_code for client in self.clients)
        assert ours == kafka
        return int(ours)


@pytest.fixture(scope="module", params=["alone", pytest.param("below a controller", marks=pytest.mark.slow)])
def brokers(
    request: pytest.FixtureRequest, kafka: KafkaInstallation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, str]]:
    directory = tmp_path_factory.mktemp("telemetry")
    size = {"telemetry.max.bytes": "2000"}
    theirs = KafkaBroker(
        kafka,
        directory / "kafka",
        properties={"metric.reporters": "TelemetryReceiver", **size},
        classes=kafka.compiled_classes(),
    )
    settings = {"tailrace.telemetry.enable": "true", "tailrace.metrics.port": "0", **size}
    with ExitStack() as stack:
        stack.enter_context(theirs)
        if request.param == "alone":
            options = [word for key, text in settings.items() for word in ("-o", f"{key}={text}")]
            ours = TailraceProcess(directory / "ours" / "data", *options)
        else:
            controllers = stack.enter_context(KafkaControllers(kafka, directory))
            ours = kraft_broker(controllers, directory / "ours" / "data", settings=settings)
        stack.enter_context(ours)
        yield ours.bootstrap, theirs.bootstrap


@pytest.fixture
def twins(brokers: tuple[str, str]) -> Iterator[Twins]:
    with ExitStack() as stack:
        yield Twins(*(stack.enter_context(RawClient(one, client_id="app-1")) for one in brokers))


def test_matching_subscriptions_are_joined_as_in_kafka(twins: Twins) -> None:
    names = {f"org.apache.kafka.producer.{one}" for one in ("a", "node.request", "bytes", "x.y.z", "record.send")}
    twins.alter("one", metrics=",".join(sorted(names)), interval_ms="7000", match="client_id=app-.*")
    twins.alter("two", metrics="other.,more.,again.", interval_ms="100", match="client_id=another")
    twins.alter("three", metrics="other.,more.,again.", interval_ms="4000", match="client_source_address=127.*")
    joined = twins.get_new(b"a" * 16, names | {"other.", "more.", "again."})
    assert joined.push_interval_ms == 4000
    twins.alter("four", metrics="*", match="client_software_name=unknown,client_id=.*")
    assert twins.get_new(b"b" * 16, {"*"}).push_interval_ms == 4000
    for name in ("one", "two", "three", "four"):
        twins.alter(name, metrics=None, interval_ms=None, match=None)
    assert twins.get_new(b"c" * 16, set()).push_interval_ms == 300_000


def test_invalid_telemetry_requests_are_refused_as_by_kafka(twins: Twins) -> None:
    twins.alter("all", metrics="*", interval_ms=str(int(INTERVAL_S * 1000)))
    twins.get_new(b"d" * 16, {"*"})
    right = twins.get().subscription_id
    assert twins.get().error_code == 89  # throttled
    assert twins.push(right) == 0
    assert twins.push(right) == 89
    time.sleep(INTERVAL_S)
    assert twins.push(right + 1) == 117  # unknown subscription
    assert twins.get().error_code == 0
    assert twins.push(right, bytes(16)) == 42  # a reserved id
    assert twins.push(right, (1).to_bytes(16, "big")) == 42
    assert twins.push(right, terminating=True) == 0
    time.sleep(INTERVAL_S)
    assert twins.push(right, terminating=True) == 42
    assert twins.push(right) == 42
    assert twins.push(right) == 0  # the refused push has cleared the mark
    twins.alter("all", metrics=None, interval_ms=None)


def test_metrics_are_accepted_and_refused_as_by_kafka(twins: Twins) -> None:
    twins.get_new(b"e" * 16, set())  # the subscriptions of other tests are deleted
    ids = (bytes([one]) * 16 for one in range(1, 90))

    def push(metrics: bytes, codec: int) -> int:
        """Push as a new client instance."""
        instance_id = next(ids)
        right = twins.get(instance_id).subscription_id
        return twins.push(right, instance_id, metrics, compression_type=codec)

    assert [push(compress(codec, METRICS), codec) for codec in Codec] == [0] * 5
    assert push(METRICS, 5) == 76
    assert push(METRICS, -1) == 76
    assert push(bytes(2001), 0) == 118
    assert push(b"", 0) == 0
    assert push(b"\xff\xff\xff", 0) == 87
    assert push(b"not zstd", 4) == 87
