"""GetTelemetrySubscriptions and PushTelemetry, with the rules of Kafka's ClientMetricsManager."""

from __future__ import annotations

from typing import Any

import pytest

from tailrace.broker.broker import Broker
from tailrace.broker.metrics import client_telemetry
from tailrace.broker.metrics.client_telemetry import DECOMPRESSED_MAX, EXPIRY_MS, READS_MAX
from tailrace.broker.metrics.metrics_subscription import MetricsSubscription, requested_metrics
from tailrace.metadata.image.image import ResourceType
from tailrace.metrics.exposition import PROMETHEUS, pieces
from tailrace.metrics.scrape import Scrape
from tailrace.model.errors import ErrorCode
from tailrace.protocol.messages import (
    ApiVersionsRequest,
    GetTelemetrySubscriptionsRequest,
    IncrementalAlterConfigsRequest,
    PushTelemetryRequest,
)
from tailrace.records.batch import Codec
from tailrace.records.codecs.compression import compress
from tailrace.waiting.chore import Chore
from tests.support.memory_files import MemoryFiles
from tests.support.memory_node import NOW_MS, Client, start, with_request_work
from tests.support.otlp import gauge, metrics_data, point

ID = bytes(range(16))
INTERVAL_MS = 1_000
METRICS = metrics_data(gauge("g", point(5)))


def telemetric(files: MemoryFiles | None = None, **static: str) -> Broker:
    return start(files, {"telemetry.max.bytes": "1000", **static}, has_telemetry=True)


def subscribe(client: Client, name: str = "s", **settings: str | None) -> None:
    """Set and delete settings of a subscription: interval_ms is interval.ms."""
    request = IncrementalAlterConfigsRequest
    configs = [
        request.AlterableConfig(name=key.replace("_", "."), config_operation=int(text is None), value=text)
        for key, text in settings.items()
    ]
    resource = request.AlterConfigsResource(
        resource_type=ResourceType.CLIENT_METRICS, resource_name=name, configs=configs
    )
    (response,) = client.ask(request(resources=[resource]), 1).responses
    assert response.error_code == 0, response.error_message


@pytest.fixture
def broker() -> Broker:
    return telemetric()


@pytest.fixture
def client(broker: Broker) -> Client:
    client = Client(broker)
    subscribe(client, metrics="*", interval_ms=str(INTERVAL_MS))
    return client


def get(client: Client, instance_id: bytes = ID) -> Any:
    return client.ask(GetTelemetrySubscriptionsRequest(client_instance_id=instance_id), 0)


def push(client: Client, metrics: bytes = METRICS, **fields: Any) -> ErrorCode:
    """Push with the right subscription id unless another is given; the error of the response."""
    instance_id = fields.setdefault("client_instance_id", ID)
    if "subscription_id" not in fields:
        assert client.broker.services.telemetry is not None
        instance = client.broker.services.telemetry._instances.get(instance_id)
        fields["subscription_id"] = 0 if instance is None else instance.requested.subscription_id
    return ErrorCode(client.ask(PushTelemetryRequest(metrics=metrics, **fields), 0).error_code)


def exposed(client: Client) -> Scrape:
    return Scrape("".join(pieces(client.broker.metric_families(client.now_ms), PROMETHEUS)))


def test_the_apis_are_named_only_with_telemetry() -> None:
    request = ApiVersionsRequest(client_software_name="t", client_software_version="1")
    without, with_telemetry = (
        {row.api_key for row in Client(one).ask(request, 4).api_keys} for one in (start(), telemetric())
    )
    assert with_telemetry - without == {71, 72}
    assert len(without) == 75


def test_a_client_without_an_id_gets_one_and_its_subscription(client: Client) -> None:
    response = get(client, bytes(16))
    assert response.error_code == 0
    assert int.from_bytes(response.client_instance_id, "big") > 1_000_000  # what the broker was given for ids
    assert response.requested_metrics == ["*"]
    assert response.push_interval_ms == INTERVAL_MS
    assert response.accepted_compression_types == [4, 3, 1, 2]
    assert response.telemetry_max_bytes == 1000
    assert response.delta_temporality is False


def test_a_client_without_a_matching_subscription_gets_no_metrics_to_push(broker: Broker) -> None:
    client = Client(broker)
    subscribe(client, metrics="a", match="client_id=other")
    response = get(client)
    assert (response.requested_metrics, response.push_interval_ms) == ([], 300_000)


def test_matching_subscriptions_are_combined(broker: Broker) -> None:
    client = Client(broker, client_id="app-1")
    subscribe(client, "one", metrics="a.,b.", interval_ms="5000", match="client_id=app-.*")
    subscribe(client, "two", metrics="c.", interval_ms="2000", match="client_source_address=127.*,client_id=app-1")
    subscribe(client, "three", metrics="*", interval_ms="100", match="client_id=app-1,client_software_name=other")
    response = get(client)
    assert (sorted(response.requested_metrics), response.push_interval_ms) == (["a.", "b.", "c."], 2000)


def test_the_subscription_id_follows_from_metrics_interval_and_instance(broker: Broker) -> None:
    client = Client(broker)
    assert get(client).subscription_id == requested_metrics([], ID).subscription_id
    other = ID[::-1]
    assert get(client, other).subscription_id == requested_metrics([], other).subscription_id
    subscribe(client, metrics="a", interval_ms="5000")
    wanted = requested_metrics([MetricsSubscription(("a",), 5_000, {})], ID)
    assert get(client).subscription_id == wanted.subscription_id != requested_metrics([], ID).subscription_id


def test_properties_of_a_client_are_kept_only_as_far_as_they_can_match(broker: Broker) -> None:
    get(Client(broker, client_id="x" * 30_000))
    assert broker.services.telemetry is not None
    (instance,) = broker.services.telemetry._instances.values()
    assert instance.properties["client_id"] == "x" * 250


def test_subscriptions_are_read_at_a_start() -> None:
    files = MemoryFiles()
    broker = telemetric(files)
    subscribe(Client(broker), metrics="x", interval_ms="200")
    broker.close(NOW_MS)
    assert get(Client(telemetric(files))).requested_metrics == ["x"]


def test_a_pattern_that_re2_refuses_matches_no_client_and_is_logged(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    client = Client(broker)
    subscribe(client, "odd", metrics="a", match="client_id=(?!x).*")
    assert get(client).requested_metrics == []
    assert "metrics subscription odd is ignored: pattern '(?!x).*': invalid perl operator" in caplog.text


def test_a_long_client_id_matches_no_pattern(broker: Broker) -> None:
    subscribe(Client(broker), metrics="a", match="client_id=.*")
    assert get(Client(broker, client_id="x" * 249)).requested_metrics == ["a"]
    assert get(Client(broker, client_id="x" * 250), bytes(16)).requested_metrics == []
    assert get(Client(broker, client_id=None), bytes(16)).requested_metrics == []


def test_a_second_get_in_an_interval_is_throttled(client: Client) -> None:
    assert get(client).error_code == 0
    response = get(client)
    assert (response.error_code, response.client_instance_id) == (ErrorCode.THROTTLING_QUOTA_EXCEEDED, bytes(16))
    client.now_ms += INTERVAL_MS
    assert get(client).error_code == 0


def test_a_push_is_exposed(client: Client) -> None:
    get(client)
    assert push(client) is ErrorCode.NONE
    (sample,) = exposed(client).samples("tailrace_client_g")
    assert sample.labels == {"client_id": "test", "client_instance_id": "AAECAwQFBgcICQoLDA0ODw"}
    assert sample.value == 5
    assert exposed(client).value("kafka_server_client_metrics_instance_count") == 1
    assert exposed(client).value("tailrace_telemetry_series") == 1


@pytest.mark.parametrize("codec", Codec)
def test_pushes_of_every_codec_are_read(client: Client, codec: Codec) -> None:
    get(client)
    assert push(client, compress(codec, METRICS), compression_type=codec) is ErrorCode.NONE
    assert exposed(client).sum("tailrace_client_g") == 5


def test_a_push_without_metrics_is_accepted(client: Client) -> None:
    get(client)
    assert push(client, b"") is ErrorCode.NONE


def test_a_client_may_push_once_in_an_interval_and_once_after_each_get(client: Client) -> None:
    get(client)
    assert push(client) is ErrorCode.NONE
    assert push(client) is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    client.now_ms += INTERVAL_MS
    assert push(client) is ErrorCode.NONE
    client.now_ms += INTERVAL_MS - 1
    assert push(client) is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    client.now_ms += 1
    get(client)
    client.now_ms += 1
    assert push(client) is ErrorCode.NONE


def test_a_terminating_client_may_push_once_more(client: Client) -> None:
    get(client)
    assert push(client) is ErrorCode.NONE
    assert push(client, terminating=True) is ErrorCode.NONE
    client.now_ms += INTERVAL_MS
    assert push(client, terminating=True) is ErrorCode.INVALID_REQUEST


def test_a_changed_subscription_is_unknown_until_the_client_asks_again(client: Client) -> None:
    response = get(client)
    subscribe(client, metrics="other")
    old = response.subscription_id
    assert push(client, subscription_id=old) is ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    again = get(client)
    assert again.error_code == 0
    assert again.subscription_id != old
    assert again.requested_metrics == ["other"]
    subscribe(client, metrics=None, interval_ms=None)
    client.now_ms += 1
    assert get(client).requested_metrics == []


def test_other_configs_change_no_subscription(client: Client) -> None:
    get(client)
    request = IncrementalAlterConfigsRequest
    config = request.AlterableConfig(name="message.max.bytes", config_operation=0, value="1000000")
    broker_wide = request.AlterConfigsResource(resource_type=ResourceType.BROKER, resource_name="", configs=[config])
    client.ask(request(resources=[broker_wide]), 1)
    assert get(client).error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED


@pytest.mark.parametrize("instance_id", [bytes(16), (1).to_bytes(16, "big")])
def test_reserved_ids_may_not_push(client: Client, instance_id: bytes) -> None:
    assert push(client, client_instance_id=instance_id) is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("codec", [5, 127, -1])
def test_an_unknown_codec_is_refused_and_lets_the_client_ask_again(client: Client, codec: int) -> None:
    get(client)
    assert push(client, compression_type=codec) is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert get(client).error_code == 0


def test_a_push_above_telemetry_max_bytes_is_too_large(client: Client) -> None:
    get(client)
    assert push(client, bytes(1001)) is ErrorCode.TELEMETRY_TOO_LARGE


def test_a_push_that_decompresses_to_too_much_is_too_large(client: Client) -> None:
    get(client)
    bomb = compress(Codec.ZSTD, bytes(DECOMPRESSED_MAX + 1))
    assert len(bomb) < 1000
    assert push(client, bomb, compression_type=Codec.ZSTD) is ErrorCode.TELEMETRY_TOO_LARGE


@pytest.mark.parametrize(("metrics", "codec"), [(b"\xff\xff", 0), (b"not gzip", 1), (b"", 0)])
def test_metrics_that_cannot_be_read_are_invalid_records(client: Client, metrics: bytes, codec: int) -> None:
    get(client)
    expected = ErrorCode.INVALID_RECORD if metrics else ErrorCode.NONE
    assert push(client, metrics, compression_type=codec) is expected
    client.now_ms += INTERVAL_MS
    assert push(client) is ErrorCode.NONE


def test_instances_expire_with_their_series(client: Client) -> None:
    get(client)
    push(client)
    client.now_ms += EXPIRY_MS - 1
    assert exposed(client).sum("tailrace_client_g") == 5
    client.now_ms += 10_001
    assert exposed(client).value("kafka_server_client_metrics_instance_count") == 0
    assert exposed(client).sum("tailrace_client_g") == 0


def test_a_slow_client_is_kept_for_three_intervals_but_not_after_its_end(client: Client) -> None:
    subscribe(client, interval_ms="3600000")
    assert get(client).push_interval_ms == 300_000  # a subscription can only shorten the default, as in Kafka
    push(client)
    client.now_ms += 3 * 300_000 - 1
    assert exposed(client).sum("tailrace_client_g") == 5
    assert push(client, terminating=True) is ErrorCode.NONE
    client.now_ms += EXPIRY_MS + 10_000
    assert exposed(client).sum("tailrace_client_g") == 0


def test_the_least_recent_instance_makes_room(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_telemetry, "INSTANCES_MAX", 3)
    get(client)
    push(client)
    for _ in range(2):
        get(client, bytes(16))
    get(client)  # throttled, but recent
    get(client, bytes(16))
    assert exposed(client).value("kafka_server_client_metrics_instance_count") == 3
    assert exposed(client).sum("tailrace_client_g") == 5
    for _ in range(3):
        get(client, bytes(16))
    assert exposed(client).sum("tailrace_client_g") == 0
    assert get(client).error_code == 0


def test_the_number_of_pushes_that_are_read_in_parallel_is_limited(broker: Broker) -> None:
    chores: list[Chore] = []
    broker = with_request_work(broker, chores.append)
    clients = [Client(broker, connection_id=number) for number in range(READS_MAX + 1)]
    ids = [bytes([number + 2]) * 16 for number in range(READS_MAX + 1)]
    requests = [
        PushTelemetryRequest(
            client_instance_id=one, subscription_id=requested_metrics([], one).subscription_id, metrics=METRICS
        )
        for one in ids
    ]
    for client, request in zip(clients[:-1], requests, strict=False):
        assert client.send(request, 0) == []
    last = clients[-1]
    assert last.ask(requests[-1], 0).error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    broker.connection_closed(clients[READS_MAX - 1].context.connection_id, NOW_MS)
    assert last.send(requests[-1], 0) == []
    while chores:
        chore = chores.pop(0)
        chore.apply(chore.run(), NOW_MS)
    replies = broker.take_replies()
    assert {reply.connection_id for reply in replies} == {*range(READS_MAX - 1), READS_MAX}
    assert {last.decode(reply, 72, 0).error_code for reply in replies} == {0}
    assert exposed(last).sum("tailrace_client_g") == 5 * READS_MAX


def test_a_push_of_an_instance_that_is_dropped_meanwhile_is_not_exposed(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    chores: list[Chore] = []
    broker = with_request_work(broker, chores.append)
    monkeypatch.setattr(client_telemetry, "INSTANCES_MAX", 1)
    client, other = Client(broker), Client(broker, connection_id=2)
    right = get(client).subscription_id
    assert client.send(PushTelemetryRequest(client_instance_id=ID, subscription_id=right, metrics=METRICS), 0) == []
    get(other, bytes(16))
    (chore,) = chores
    chore.apply(chore.run(), NOW_MS)
    (reply,) = broker.take_replies()
    assert client.decode(reply, 72, 0).error_code == 0
    assert exposed(client).value("tailrace_telemetry_series") == 0
