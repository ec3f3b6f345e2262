"""A fake cluster without sockets and without a real clock: handlers respond to requests, waiting advances the clock.

A handler gets a request and returns the response, SILENCE (no response, so that the client times out), HANG_UP (the
connection is closed), or bytes that are sent unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.network.address import Address
from tailrace.client.settings import ClientSettings
from tailrace.model.errors import ErrorCode
from tailrace.protocol.api_keys import ApiKey, api, apis
from tailrace.protocol.codegen.schema import Versions
from tailrace.protocol.framing import frame_length
from tailrace.protocol.headers import read_request_header, write_response
from tailrace.protocol.messages import ApiVersionsResponse, MetadataResponse
from tailrace.protocol.registry import request_class
from tests.support.frame_buffer import FrameBuffer

SILENCE = object()
HANG_UP = object()


class FakeClock:
    def __init__(self) -> None:
        self.now = 1000.0
        self.pauses: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


class Asked(NamedTuple):
    node_id: int
    api_key: ApiKey
    version: int
    message: Any


@dataclass
class FakeBroker:
    cluster: FakeCluster
    node_id: int
    address: Address
    is_up: bool = True
    versions: dict[int, Versions] = field(default_factory=lambda: {one.key: one.offered for one in apis()})
    handlers: dict[int, Callable[[Any, int], Any]] = field(default_factory=dict)
    connections: list[FakeSocket] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.handlers |= {ApiKey.API_VERSIONS: self.api_versions, ApiKey.METADATA: self.metadata}

    def stop(self) -> None:
        self.is_up = False
        for connection in self.connections:
            connection.is_ended = True

    def api_versions(self, request: Any, version: int) -> Any:
        keys = [
            ApiVersionsResponse.ApiVersion(api_key=key, min_version=one.low, max_version=one.high)
            for key, one in self.versions.items()
        ]
        if version not in self.versions[ApiKey.API_VERSIONS]:
            unsupported = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=keys)
            return b"\0\0\0\1" + unsupported.encode(0)
        return ApiVersionsResponse(api_keys=keys)

    def metadata(self, request: Any, version: int) -> MetadataResponse:
        return self.cluster.metadata(request)

    def answer(self, frame: bytes) -> tuple[Any, Any]:
        header, position = read_request_header(frame)
        kind = request_class(header.api_key)
        known = header.api_version in api(header.api_key).versions
        message = kind.decode(frame, header.api_version, position) if known else None
        if header.api_key not in (ApiKey.API_VERSIONS, ApiKey.METADATA):
            self.cluster.asked.append(Asked(self.node_id, ApiKey(header.api_key), header.api_version, message))
        return header, self.handlers[header.api_key](message, header.api_version)


class FakeSocket:
    def __init__(self, broker: FakeBroker, clock: FakeClock, chunk: int) -> None:
        self.broker = broker
        self.clock = clock
        self.frames = FrameBuffer()
        self.incoming = bytearray()
        self.is_ended = False
        self.is_closed = False
        self.timeout = 0.0
        self.chunk = chunk
        self.pieces: list[bytes] = []

    def sendall(self, data: Any) -> None:
        assert not self.is_closed
        if self.is_ended:
            raise BrokenPipeError(32, "Broken pipe")
        self.pieces.append(bytes(data))
        self.frames.receive(bytes(data))
        while (frame := self.frames.next_frame()) is not None:
            header, answer = self.broker.answer(frame)
            if answer is HANG_UP:
                self.is_ended = True
            elif isinstance(answer, bytes):
                self.incoming += frame_length([answer]) + answer
            elif answer is not SILENCE:
                parts = write_response(header.api_key, header.api_version, header.correlation_id, answer)
                self.incoming += frame_length(parts) + b"".join(parts)

    def recv_into(self, view: memoryview) -> int:
        assert not self.is_closed
        if not self.incoming:
            if self.is_ended:
                return 0
            self.clock.now += self.timeout
            raise TimeoutError
        count = min(len(view), len(self.incoming), self.chunk)
        view[:count] = self.incoming[:count]
        del self.incoming[:count]
        return count

    def settimeout(self, seconds: float) -> None:
        assert seconds > 0
        self.timeout = seconds

    def has_input(self) -> bool:
        return self.is_ended or bool(self.incoming)

    def close(self) -> None:
        self.is_closed = True


@dataclass
class FakeTopic:
    leaders: list[int]
    topic_id: bytes
    leader_epoch: int = 0
    error_code: int = 0


class FakeCluster:
    """A cluster of brokers 1, 2, … at ports 9001, 9002, …"""

    def __init__(self, brokers: int = 1, *, chunk: int = 1 << 30) -> None:
        self.clock = FakeClock()
        self.chunk = chunk
        self.brokers = {n: FakeBroker(self, n, Address("kafka", 9000 + n)) for n in range(1, brokers + 1)}
        self.topics: dict[str, FakeTopic] = {}
        self.controller = 1
        self.asked: list[Asked] = []
        self.metadata_requests = 0
        self.opened = 0

    @property
    def bootstrap(self) -> tuple[Address, ...]:
        return tuple(broker.address for broker in self.brokers.values())

    def add_topic(self, name: str, *leaders: int, has_id: bool = True) -> FakeTopic:
        self.topics[name] = FakeTopic(list(leaders), bytes([len(self.topics) + 1] * 16) if has_id else bytes(16))
        return self.topics[name]

    def handle(self, api_key: ApiKey, handler: Callable[[Any, int], Any]) -> None:
        """Set the handler of an API on every broker."""
        for broker in self.brokers.values():
            broker.handlers[api_key] = handler

    def client(self, bootstrap: str | tuple[Address, ...] | None = None, **settings: Any) -> ClusterClient:
        return ClusterClient(
            bootstrap or self.bootstrap, ClientSettings(**settings), open_socket=self.open_socket, clock=self.clock
        )

    def open_socket(self, address: Address, timeout_s: float) -> FakeSocket:
        for broker in self.brokers.values():
            if broker.address == address and broker.is_up:
                self.opened += 1
                broker.connections.append(FakeSocket(broker, self.clock, self.chunk))
                return broker.connections[-1]
        raise ConnectionRefusedError(111, "Connection refused")

    def metadata(self, request: Any) -> MetadataResponse:
        self.metadata_requests += 1
        names = self.topics if request.topics is None else [topic.name for topic in request.topics]
        brokers = [
            MetadataResponse.MetadataResponseBroker(node_id=one.node_id, host=one.address.host, port=one.address.port)
            for one in self.brokers.values()
            if one.is_up
        ]
        topics = [self._topic(name) for name in names]
        return MetadataResponse(brokers=brokers, controller_id=self.controller, cluster_id="fake", topics=topics)

    def _topic(self, name: str) -> MetadataResponse.MetadataResponseTopic:
        topic = self.topics.get(name)
        if topic is None or topic.error_code:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if topic is None else topic.error_code
            return MetadataResponse.MetadataResponseTopic(error_code=code, name=name)
        partitions = [
            MetadataResponse.MetadataResponsePartition(
                partition_index=index, leader_id=leader, leader_epoch=topic.leader_epoch, replica_nodes=[leader]
            )
            for index, leader in enumerate(topic.leaders)
        ]
        return MetadataResponse.MetadataResponseTopic(name=name, topic_id=topic.topic_id, partitions=partitions)
