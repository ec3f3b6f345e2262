"""ShareStatePeers: questions about share groups' state, sent to the brokers that keep it.

Those of one kind and one group that come while others are on their way to the same broker leave together, when the
answer to these is there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from tailrace.broker.cluster.transaction_peers import peer_of
from tailrace.broker.shares.share_questions import Question, request_of
from tailrace.coordinator.runtime import Answer, Refuse
from tailrace.metadata.image.image import MetadataImage
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import BrokerId
from tailrace.shares.state.share_state_coordinator import SharePartitionKey
from tailrace.waiting.outbox import Failure, Outbox

CHANNEL: Final = "share-state"
_CODES: Final = {
    Failure.UNREACHABLE: ErrorCode.NETWORK_EXCEPTION,
    Failure.LOST: ErrorCode.NETWORK_EXCEPTION,
    Failure.TIMED_OUT: ErrorCode.REQUEST_TIMED_OUT,
    Failure.UNSUPPORTED: ErrorCode.UNSUPPORTED_VERSION,
    Failure.UNREADABLE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


class _Way(NamedTuple):
    broker_id: BrokerId
    kind: type
    group_id: str


class _Sent(NamedTuple):
    key: SharePartitionKey
    question: Question[Any]
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
        self._waiting: dict[_Way, list[_Sent]] = {}  # behind what is on its way

    def ask(
        self,
        broker_id: BrokerId,
        key: SharePartitionKey,
        question: Question[Any],
        answer: Answer[Any],
        refuse: Refuse,
        now_ms: int,
    ) -> None:
        way, sent = _Way(broker_id, type(question), key.group_id), _Sent(key, question, answer, refuse)
        waiting = self._waiting.get(way)
        if waiting is None:
            self._send(way, [sent], now_ms)
        else:
            waiting.append(sent)

    def _send(self, way: _Way, sent: list[_Sent], now_ms: int) -> None:
        peer = peer_of(self._image(), way.broker_id, self._listener, CHANNEL)
        if peer is None:
            _refuse_all(sent, KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"broker {way.broker_id}"), now_ms)
            return
        self._waiting[way] = []

        def answered(response: Any, now_ms: int) -> None:
            self._go_on(way, now_ms)
            told = {(topic.topic_id, one.partition): one for topic in response.results for one in topic.partitions}
            for one in sent:
                _respond(one, told.get((one.key.topic_id, one.key.partition)), now_ms)

        def failed(failure: Failure, now_ms: int) -> None:
            self._go_on(way, now_ms)
            _refuse_all(sent, KafkaError(_CODES[failure], f"broker {way.broker_id}: {failure.value}"), now_ms)

        body = request_of(way.group_id, ((one.key, one.question) for one in sent))
        self._outbox.send(peer, body, answered, failed, timeout_ms=self._timeout_ms)

    def _go_on(self, way: _Way, now_ms: int) -> None:
        waiting = self._waiting.pop(way)
        if waiting:
            self._send(way, waiting, now_ms)


def _respond(sent: _Sent, result: Any, now_ms: int) -> None:
    if result is None:
        sent.refuse(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"the answer has nothing of {sent.key}"), now_ms)
    elif result.error_code:
        sent.refuse(KafkaError(ErrorCode(result.error_code), result.error_message or ""), now_ms)
    else:
        sent.answer(sent.question.told(result), now_ms)


def _refuse_all(sent: list[_Sent], error: KafkaError, now_ms: int) -> None:
    for one in sent:
        one.refuse(error, now_ms)
