from __future__ import annotations

import pytest

from tailrace.client.errors import (
    AnswerTimedOut,
    ConnectionLost,
    InvalidAnswer,
    Unreachable,
    UnsupportedByBroker,
    UnsupportedSecurity,
)
from tailrace.client.network.address import Address
from tailrace.client.network.connection import Connection
from tailrace.client.settings import ClientSettings
from tailrace.protocol.api_keys import ApiKey, api
from tailrace.protocol.codegen.schema import Versions
from tailrace.protocol.messages import (
    DescribeClusterRequest,
    DescribeClusterResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    ProduceRequest,
)
from tests.unit.client.fakes import HANG_UP, SILENCE, FakeCluster


def connect(cluster: FakeCluster) -> Connection:
    return Connection(cluster.bootstrap[0], ClientSettings(), open_socket=cluster.open_socket, clock=cluster.clock)


def describe(request: object, version: int) -> DescribeClusterResponse:
    return DescribeClusterResponse(cluster_id=f"asked in version {version}")


@pytest.fixture
def cluster() -> FakeCluster:
    cluster = FakeCluster()
    cluster.handle(ApiKey.DESCRIBE_CLUSTER, describe)
    return cluster


def test_a_request_uses_the_highest_common_version(cluster: FakeCluster) -> None:
    newest = api(ApiKey.DESCRIBE_CLUSTER).offered.high
    assert connect(cluster).request(DescribeClusterRequest()).cluster_id == f"asked in version {newest}"
    cluster.brokers[1].versions[ApiKey.DESCRIBE_CLUSTER] = Versions(0, 1)
    assert connect(cluster).request(DescribeClusterRequest()).cluster_id == "asked in version 1"
    cluster.brokers[1].versions[ApiKey.DESCRIBE_CLUSTER] = Versions(0, 99)
    assert connect(cluster).request(DescribeClusterRequest()).cluster_id == f"asked in version {newest}"
    assert connect(cluster).request(DescribeClusterRequest(), version_max=0).cluster_id == "asked in version 0"


def test_a_host_that_cannot_be_a_name_is_unreachable() -> None:
    for host in ("x" * 64, "a..b"):
        with pytest.raises(Unreachable, match="the host name is invalid"):
            Connection(Address(host, 9092), ClientSettings())


def test_an_unstable_version_is_not_used() -> None:
    connection = connect(FakeCluster())
    connection.broker_versions[ApiKey.INIT_PRODUCER_ID] = Versions(0, 99)
    assert connection.version(ApiKey.INIT_PRODUCER_ID) == api(ApiKey.INIT_PRODUCER_ID).versions.high - 1


def test_an_api_that_the_broker_lacks_is_reported(cluster: FakeCluster) -> None:
    cluster.brokers[1].versions[ApiKey.DESCRIBE_CLUSTER] = Versions(0, 1)
    del cluster.brokers[1].versions[ApiKey.FETCH]
    connection = connect(cluster)
    with pytest.raises(UnsupportedByBroker, match="kafka:9001 does not support Fetch requests"):
        connection.version(ApiKey.FETCH)
    with pytest.raises(UnsupportedByBroker, match="kafka:9001 supports DescribeCluster versions 0-1; 2 is required"):
        connection.request(DescribeClusterRequest(), version_min=2)
    # A field that the version lacks must not be dropped silently.
    with pytest.raises(UnsupportedByBroker, match="DescribeCluster"):
        connection.request(DescribeClusterRequest(include_fenced_brokers=True))
    assert connection.request(DescribeClusterRequest()).cluster_id == "asked in version 1"


def test_api_versions_is_repeated_in_a_version_of_the_broker(cluster: FakeCluster) -> None:
    cluster.brokers[1].versions[ApiKey.API_VERSIONS] = Versions(0, 2)
    assert connect(cluster).broker_versions[ApiKey.API_VERSIONS].high == 2


def test_api_versions_falls_back_to_version_0(cluster: FakeCluster) -> None:
    asked = []
    broker = cluster.brokers[1]

    def api_versions(request: object, version: int) -> object:
        asked.append(version)
        return b"\0\0\0\1" + b"\0\x23" + b"\0\0\0\0" if version else broker.api_versions(request, version)

    broker.handlers[ApiKey.API_VERSIONS] = api_versions
    assert connect(cluster).request(DescribeClusterRequest()).cluster_id
    assert asked == [api(ApiKey.API_VERSIONS).offered.high, 0]


def test_a_response_may_arrive_in_pieces() -> None:
    cluster = FakeCluster(chunk=3)
    cluster.handle(ApiKey.DESCRIBE_CLUSTER, describe)
    assert connect(cluster).request(DescribeClusterRequest()).cluster_id == "asked in version 2"


def test_a_refused_connection_is_reported() -> None:
    cluster = FakeCluster()
    cluster.brokers[1].is_up = False
    with pytest.raises(Unreachable, match="no broker can be reached at kafka:9001: connection refused"):
        connect(cluster)


def test_a_missing_response_times_out_and_closes_the_connection(cluster: FakeCluster) -> None:
    cluster.handle(ApiKey.DESCRIBE_CLUSTER, lambda request, version: SILENCE)
    connection = connect(cluster)
    began = cluster.clock.now
    with pytest.raises(AnswerTimedOut, match=r"kafka:9001 did not answer DescribeCluster within 2\.5 s"):
        connection.request(DescribeClusterRequest(), timeout_s=2.5)
    assert cluster.clock.now == began + 2.5
    with pytest.raises(ConnectionLost, match="closed"):
        connection.request(DescribeClusterRequest())
    assert cluster.brokers[1].connections[0].is_closed


def test_a_connection_closed_by_the_broker_is_reported(cluster: FakeCluster) -> None:
    cluster.handle(ApiKey.DESCRIBE_CLUSTER, lambda request, version: HANG_UP)
    connection = connect(cluster)
    with pytest.raises(ConnectionLost, match="DescribeCluster: the broker closed the connection"):
        connection.request(DescribeClusterRequest())
    assert not connection.is_usable


def test_a_connection_that_ended_while_idle_is_not_usable(cluster: FakeCluster) -> None:
    connection = connect(cluster)
    assert connection.is_usable
    cluster.brokers[1].connections[0].is_ended = True
    assert not connection.is_usable
    with pytest.raises(ConnectionLost, match="broken pipe"):
        connection.request(DescribeClusterRequest())


def test_a_response_with_a_wrong_correlation_id_is_refused(cluster: FakeCluster) -> None:
    cluster.handle(ApiKey.DESCRIBE_CLUSTER, lambda request, version: b"\0\0\0\7\0")
    connection = connect(cluster)
    with pytest.raises(InvalidAnswer, match="sent a response to request 7 instead of 2 "):
        connection.request(DescribeClusterRequest())
    assert not connection.is_usable


def test_a_malformed_response_is_refused(cluster: FakeCluster) -> None:
    cluster.handle(ApiKey.DESCRIBE_CLUSTER, lambda request, version: b"\0\0\0\2\0\0\0")
    with pytest.raises(InvalidAnswer, match="DescribeClusterResponse"):
        connect(cluster).request(DescribeClusterRequest())
    cluster.handle(ApiKey.DESCRIBE_CLUSTER, lambda request, version: b"\0\0\0\2")
    with pytest.raises(InvalidAnswer, match="response header"):
        connect(cluster).request(DescribeClusterRequest())


@pytest.mark.parametrize(
    ("first_bytes", "error", "words"),
    [
        (b"HTTP/1.1 400 Bad Request", InvalidAnswer, "is an HTTP server, not a Kafka broker"),
        (b"\x15\x03\x03\x00\x02\x02\x0a", UnsupportedSecurity, "uses TLS"),
        (b"\x00\x00\x00\x00", InvalidAnswer, "is it a Kafka broker"),
        (b"\xff\xff\xff\xff", InvalidAnswer, "is it a Kafka broker"),
    ],
)
def test_a_server_that_is_not_a_kafka_broker_is_reported(
    first_bytes: bytes, error: type[Exception], words: str
) -> None:
    cluster = FakeCluster()

    def no_frame(request: object, version: int) -> object:
        cluster.brokers[1].connections[-1].incoming += first_bytes
        return SILENCE

    cluster.handle(ApiKey.API_VERSIONS, no_frame)
    with pytest.raises(error, match=words):
        connect(cluster)


def test_a_response_that_ends_after_its_header_is_malformed(cluster: FakeCluster) -> None:
    cluster.handle(ApiKey.API_VERSIONS, lambda request, version: b"\0\0\0\1")
    with pytest.raises(InvalidAnswer, match="cannot be decoded"):
        connect(cluster)


def test_several_requests_may_be_in_flight(cluster: FakeCluster) -> None:
    cluster.handle(ApiKey.INIT_PRODUCER_ID, lambda request, version: InitProducerIdResponse(producer_id=7))
    connection = connect(cluster)
    first = connection.send(DescribeClusterRequest())
    second = connection.send(InitProducerIdRequest(transactional_id=None))
    assert not connection.is_usable
    assert connection.receive(first).cluster_id == "asked in version 2"
    assert connection.receive(second).producer_id == 7
    assert connection.is_usable


def test_a_request_without_a_response_is_not_waited_for(cluster: FakeCluster) -> None:
    cluster.handle(ApiKey.PRODUCE, lambda request, version: SILENCE)
    connection = connect(cluster)
    connection.send_unanswered(ProduceRequest(acks=0))
    assert connection.is_usable
    assert connection.request(DescribeClusterRequest()).cluster_id == "asked in version 2"


def test_large_parts_are_sent_without_copying(cluster: FakeCluster) -> None:
    cluster.handle(ApiKey.PRODUCE, lambda request, version: SILENCE)
    connection = connect(cluster)
    records = memoryview(bytes(range(256)) * 400)
    data = ProduceRequest.PartitionProduceData(index=3, records=records)
    topic = ProduceRequest.TopicProduceData(name="t", topic_id=bytes(16), partition_data=[data])
    connection.send_unanswered(ProduceRequest(acks=0, topic_data=[topic]))
    assert cluster.brokers[1].connections[0].pieces[-2] == records
    assert cluster.asked[-1].message.topic_data[0].partition_data[0].records == records
