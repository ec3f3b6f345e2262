"""Faults: injected errors, delays and lost connections of a broker, for tests of clients.

A fault sits between the server and the broker and applies to requests of one API. The first fault that is not used up
takes the request:

    fail     respond with an error, without carrying the request out
    delay    carry the request out later, by the broker's clock
    drop     close the connection, before or after carrying the request out

Nodes of a cluster can be cut off. A node closes the connections of those that are cut off from it.

Faults and the broker belong to the thread of the loop; `Broker` in broker.py calls them there.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from tailrace.broker.broker import Broker
from tailrace.broker.requests.request_context import ConnectionContext, Reply
from tailrace.diagnostics.internal_errors import InternalErrors
from tailrace.metrics.families import Family
from tailrace.model.errors import ErrorCode
from tailrace.protocol.api_keys import ApiKey, apis
from tailrace.protocol.errors import ProtocolError
from tailrace.protocol.headers import read_request_header, write_response
from tailrace.protocol.messages import (
    CreateTopicsResponse,
    DeleteTopicsResponse,
    FetchResponse,
    ListOffsetsResponse,
    MetadataResponse,
    ProduceResponse,
)
from tailrace.protocol.registry import request_class, response_class
from tailrace.waiting.outbox import Outbox

_API_KEY: Final = struct.Struct(">h")


class FaultKind(Enum):
    FAIL = "fail"
    DELAY = "delay"
    DROP = "drop"
    DROP_ANSWER = "drop the answer"


@dataclass(slots=True, eq=False)
class Fault:
    """A fault for the next `times` requests of an API, or for all of them if `times` is None."""

    kind: FaultKind
    api_key: ApiKey
    error: ErrorCode = ErrorCode.NONE
    delay_ms: int = 0
    times: int | None = None
    hits: int = 0  # number of affected requests

    @property
    def is_over(self) -> bool:
        return self.times is not None and self.hits >= self.times


class FaultyBroker:
    """A wrapper around the broker that applies faults to its requests."""

    def __init__(self, broker: Broker, faults: Sequence[Fault], cut_off: Collection[str] = ()) -> None:
        """`faults` and `cut_off`, client ids whose connections are closed, may change while the broker runs."""
        self.broker = broker
        self._cut_off = cut_off
        self._senders: dict[int, str] = {}  # connection id → the client id of its first request
        self._faults = faults
        self._replies: list[Reply] = []
        self._delayed: list[tuple[int, bytes, ConnectionContext]] = []
        self._mute: set[int] = set()  # connections that are closed instead of sending the next response

    def handle(self, frame: memoryview, context: ConnectionContext, now_ms: int) -> bool:
        if self._is_cut_off(frame, context):
            self._replies.append(Reply(context.connection_id, None, close=True))
            return False
        fault = self._fault_for(frame) if self._faults else None
        if fault is None:
            self.broker.handle(frame, context, now_ms)
            return False
        fault.hits += 1
        if fault.kind is FaultKind.DELAY:
            self._delayed.append((now_ms + fault.delay_ms, bytes(frame), context))
        elif fault.kind is FaultKind.FAIL:
            self._replies.append(Reply(context.connection_id, fail_request(frame, fault.error)))
        elif fault.kind is FaultKind.DROP:
            self._replies.append(Reply(context.connection_id, None, close=True))
        else:
            self._mute.add(context.connection_id)
            self.broker.handle(frame, context, now_ms)
        return False  # responses are not deferred to the end of the round, because one may be dropped

    def _is_cut_off(self, frame: memoryview, context: ConnectionContext) -> bool:
        sender = self._senders.get(context.connection_id)
        if sender is None:
            try:
                sender = read_request_header(frame)[0].client_id or ""
            except ProtocolError:
                return False
            self._senders[context.connection_id] = sender
        return sender in self._cut_off

    def is_from(self, context: ConnectionContext, client_id: str) -> bool:
        """Return True if a connection belongs to a client."""
        return self._senders.get(context.connection_id) == client_id

    def handle_guarded(self, frame: memoryview, context: ConnectionContext, now_ms: int) -> bool:
        return self.broker.handle_guarded(frame, context, now_ms, self.handle)

    def _fault_for(self, frame: memoryview) -> Fault | None:
        if len(frame) < _API_KEY.size:
            return None
        (key,) = _API_KEY.unpack_from(frame)
        return next((fault for fault in self._faults if fault.api_key == key and not fault.is_over), None)

    def take_replies(self) -> Sequence[Reply]:
        replies = self.broker.take_replies()
        if self._mute:
            replies = [self._muted(reply) for reply in replies]
        if self._replies:
            replies, self._replies = [*replies, *self._replies], []
        return replies

    def _muted(self, reply: Reply) -> Reply:
        if reply.connection_id not in self._mute:
            return reply
        self._mute.discard(reply.connection_id)
        return Reply(reply.connection_id, None, close=True)

    def tick(self, now_ms: int) -> None:
        due = [delayed for delayed in self._delayed if delayed[0] <= now_ms]
        self._delayed = [delayed for delayed in self._delayed if delayed[0] > now_ms]
        for _, frame, context in due:
            self.broker.handle(memoryview(frame), context, now_ms)
        self.broker.tick(now_ms)

    def next_deadline_ms(self) -> int | None:
        deadlines = [delayed[0] for delayed in self._delayed]
        of_broker = self.broker.next_deadline_ms()
        return min([*deadlines, of_broker] if of_broker is not None else deadlines, default=None)

    @property
    def outbox(self) -> Outbox:
        return self.broker.outbox

    @property
    def internal_errors(self) -> InternalErrors:
        return self.broker.internal_errors

    def metric_families(self, now_ms: int) -> Iterable[Family]:
        return self.broker.metric_families(now_ms)

    def connection_hold_off_ms(self, host: str, now_ms: int) -> int:
        return self.broker.connection_hold_off_ms(host, now_ms)

    def not_ready_reason(self) -> str | None:
        return self.broker.not_ready_reason()

    def explain_fetch(self, query: Mapping[str, str], now_ms: int, answer: Callable[[dict[str, Any]], None]) -> None:
        self.broker.explain_fetch(query, now_ms, answer)

    def describe_waiting(self, now_ms: int) -> dict[str, Any]:
        return self.broker.describe_waiting(now_ms)

    def prepare_stop(self, now_ms: int, ready: Callable[[], None]) -> None:
        self.broker.prepare_stop(now_ms, ready)

    def connection_closed(self, connection_id: int, now_ms: int) -> None:
        self._delayed = [delayed for delayed in self._delayed if delayed[2].connection_id != connection_id]
        self._mute.discard(connection_id)
        self._senders.pop(connection_id, None)
        self.broker.connection_closed(connection_id, now_ms)

    def close(self, now_ms: int) -> None:
        self.broker.close(now_ms)


def api_named(name: str | int) -> ApiKey:
    """Return an API by its number or by its name in Kafka's documentation: Produce, Fetch, InitProducerId, …"""
    for api in apis():
        if name == api.key or (isinstance(name, str) and name.lower() == api.name.lower()):
            return api.key
    raise ValueError(f"there is no API {name!r}; use a name such as Produce, or its number")


def error_named(name: str | int) -> ErrorCode:
    """Return an error by its code or its name in Kafka's documentation: NOT_LEADER_OR_FOLLOWER, …"""
    try:
        return ErrorCode[name.upper()] if isinstance(name, str) else ErrorCode(name)
    except (KeyError, ValueError):
        raise ValueError(
            f"there is no error {name!r}; use a name such as NOT_LEADER_OR_FOLLOWER, or its code"
        ) from None


def can_fail(key: ApiKey) -> bool:
    """Return True if a response with an error code can be built for the API."""
    return key in _FAILURES or hasattr(response_class(key)(), "error_code")


def fail_request(frame: memoryview, error: ErrorCode) -> list[Any]:
    """Return a response that refuses a request, with the error code in the fields that clients of the API check."""
    header, position = read_request_header(frame)
    body, _ = request_class(header.api_key).read(frame, header.api_version, position)
    build = _FAILURES.get(ApiKey(header.api_key))
    response: Any = build(body, error) if build is not None else response_class(header.api_key)()
    if hasattr(response, "error_code"):
        response.error_code = error
    return write_response(header.api_key, header.api_version, header.correlation_id, response)


def _fail_produce(body: Any, error: ErrorCode) -> ProduceResponse:
    def partitions(topic: Any) -> Iterable[ProduceResponse.PartitionProduceResponse]:
        for partition in topic.partition_data:
            yield ProduceResponse.PartitionProduceResponse(
                index=partition.index, error_code=error, base_offset=-1, log_append_time_ms=-1, log_start_offset=-1
            )

    return ProduceResponse(
        responses=[
            ProduceResponse.TopicProduceResponse(
                name=topic.name, topic_id=topic.topic_id, partition_responses=list(partitions(topic))
            )
            for topic in body.topic_data
        ]
    )


def _fail_fetch(body: Any, error: ErrorCode) -> FetchResponse:
    def partitions(topic: Any) -> Iterable[FetchResponse.PartitionData]:
        for partition in topic.partitions:
            yield FetchResponse.PartitionData(
                partition_index=partition.partition, error_code=error, high_watermark=-1, records=b""
            )

    return FetchResponse(
        responses=[
            FetchResponse.FetchableTopicResponse(
                topic=topic.topic, topic_id=topic.topic_id, partitions=list(partitions(topic))
            )
            for topic in body.topics
        ]
    )


def _fail_list_offsets(body: Any, error: ErrorCode) -> ListOffsetsResponse:
    def partitions(topic: Any) -> Iterable[ListOffsetsResponse.ListOffsetsPartitionResponse]:
        for partition in topic.partitions:
            yield ListOffsetsResponse.ListOffsetsPartitionResponse(
                partition_index=partition.partition_index, error_code=error, timestamp=-1, offset=-1
            )

    return ListOffsetsResponse(
        topics=[
            ListOffsetsResponse.ListOffsetsTopicResponse(name=topic.name, partitions=list(partitions(topic)))
            for topic in body.topics
        ]
    )


def _fail_metadata(body: Any, error: ErrorCode) -> MetadataResponse:
    topics = [
        MetadataResponse.MetadataResponseTopic(name=topic.name or "", topic_id=topic.topic_id, error_code=error)
        for topic in body.topics or ()
    ]
    return MetadataResponse(topics=topics, controller_id=-1)


def _fail_create_topics(body: Any, error: ErrorCode) -> CreateTopicsResponse:
    results = [
        CreateTopicsResponse.CreatableTopicResult(name=topic.name, error_code=error, error_message=error.name)
        for topic in body.topics
    ]
    return CreateTopicsResponse(topics=results)


def _fail_delete_topics(body: Any, error: ErrorCode) -> DeleteTopicsResponse:
    asked = [(topic.name, topic.topic_id) for topic in body.topics] + [(name, bytes(16)) for name in body.topic_names]
    results = [
        DeleteTopicsResponse.DeletableTopicResult(name=name, topic_id=topic_id, error_code=error)
        for name, topic_id in asked
    ]
    return DeleteTopicsResponse(responses=results)


_FAILURES: Final[dict[ApiKey, Callable[[Any, ErrorCode], Any]]] = {
    ApiKey.PRODUCE: _fail_produce,
    ApiKey.FETCH: _fail_fetch,
    ApiKey.LIST_OFFSETS: _fail_list_offsets,
    ApiKey.METADATA: _fail_metadata,
    ApiKey.CREATE_TOPICS: _fail_create_topics,
    ApiKey.DELETE_TOPICS: _fail_delete_topics,
}
