"""ShareStatePeers: sends operations on share group state to the brokers that coordinate it.

There is at most one request in flight per broker, kind of operation and group. Operations that arrive meanwhile are
sent together in one request after the response.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from tailrace.broker.cluster.transaction_peers import peer_of
from tailrace.broker.shares.state_operations import StateOperation, request_of
from tailrace.coordinator.runtime import Answer, Refuse
from tailrace.metadata.image.image import MetadataImage
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import BrokerId
from tailrace.shares.state.persisted_state import SharePartitionKey
from tailrace.waiting.outbox import Failure, Outbox

CHANNEL: Final = "share-state"
_CODES: Final = {
    Failure.UNREACHABLE: ErrorCode.NETWORK_EXCEPTION,
    Failure.LOST: ErrorCode.NETWORK_EXCEPTION,
    Failure.TIMED_OUT: ErrorCode.REQUEST_TIMED_OUT,
    Failure.UNSUPPORTED: ErrorCode.UNSUPPORTED_VERSION,
    Failure.UNREADABLE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


class _Route(NamedTuple):
    broker_id: BrokerId
    kind: type
    group_id: str


class _Sent(NamedTuple):
    key: SharePartitionKey
    operation: StateOperation[Any]
    answer: Answer[Any]
    refuse: Refuse


class ShareStatePeers:
    def __init__(
        self, outbox: Outbox, image: Callable[[], MetadataImage], *, listener: str, node_id: BrokerId, timeout_ms: int
    ) -> None:
        self.node_id = node_id
        self._outbox = outbox
        self._image = image
        self._listener = listener
        self._timeout_ms = timeout_ms
        self._waiting: dict[_Route, list[_Sent]] = {}  # operations that wait for the request in flight

    def ask(
        self,
        broker_id: BrokerId,
        key: SharePartitionKey,
        operation: StateOperation[Any],
        answer: Answer[Any],
        refuse: Refuse,
        now_ms: int,
    ) -> None:
        route, sent = _Route(broker_id, type(operation), key.group_id), _Sent(key, operation, answer, refuse)
        waiting = self._waiting.get(route)
        if waiting is None:
            self._send(route, [sent], now_ms)
        else:
            waiting.append(sent)

    def _send(self, route: _Route, sent: list[_Sent], now_ms: int) -> None:
        peer = peer_of(self._image(), route.broker_id, self._listener, CHANNEL)
        if peer is None:
            _refuse_all(sent, KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"broker {route.broker_id}"), now_ms)
            return
        self._waiting[route] = []

        def answered(response: Any, now_ms: int) -> None:
            self._send_waiting(route, now_ms)
            results = {(topic.topic_id, one.partition): one for topic in response.results for one in topic.partitions}
            for one in sent:
                _respond(one, results.get((one.key.topic_id, one.key.partition)), now_ms)

        def failed(failure: Failure, now_ms: int) -> None:
            self._send_waiting(route, now_ms)
            _refuse_all(sent, KafkaError(_CODES[failure], f"broker {route.broker_id}: {failure.value}"), now_ms)

        body = request_of(route.group_id, ((one.key, one.operation) for one in sent))
        self._outbox.send(peer, body, answered, failed, timeout_ms=self._timeout_ms)

    def _send_waiting(self, route: _Route, now_ms: int) -> None:
        waiting = self._waiting.pop(route)
        if waiting:
            self._send(route, waiting, now_ms)


def _respond(sent: _Sent, result: Any, now_ms: int) -> None:
    if result is None:
        sent.refuse(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"the response has no result for {sent.key}"), now_ms)
    elif result.error_code:
        sent.refuse(KafkaError(ErrorCode(result.error_code), result.error_message or ""), now_ms)
    else:
        sent.answer(sent.operation.result_of(result), now_ms)


def _refuse_all(sent: list[_Sent], error: KafkaError, now_ms: int) -> None:
    for one in sent:
        one.refuse(error, now_ms)
