"""Forwarding: forwards requests to the controller, if the controller is another node.

A client's request is sent in an Envelope with its header, its principal and its address, because the controller
authorizes it. The response goes back to the client unchanged. If controllers no longer support the client's version,
the request is sent in the oldest version that they support, and the response is encoded in the client's version.

Topics that the broker needs itself are created in the same way: the topics of the coordinators, and topics that are
created on first use. There is at most one request per topic at a time. The client that needs the topic has to retry.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from ipaddress import ip_address
from typing import Any, Final

from tailrace.broker.replies import Replies
from tailrace.broker.requests.request_context import Request
from tailrace.diagnostics.limited_log import LimitedLog
from tailrace.metadata.controller.remote_controller import FORWARDING, RemoteController
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol.api_keys import ApiKey, api
from tailrace.protocol.errors import ProtocolError
from tailrace.protocol.headers import RequestHeader, read_response_header, write_request_header
from tailrace.protocol.message import Message
from tailrace.protocol.messages import CreateTopicsRequest, DefaultPrincipalData
from tailrace.protocol.registry import response_class
from tailrace.waiting.outbox import Failure

# APIs that are forwarded without a handler. AlterConfigs, IncrementalAlterConfigs and requests about delegation tokens
# are forwarded too, but their handlers check them first.
FORWARDED_UNCHECKED: Final = frozenset(
    {
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.ELECT_LEADERS,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        ApiKey.ALTER_CLIENT_QUOTAS,
        ApiKey.UPDATE_FEATURES,
        ApiKey.UNREGISTER_BROKER,
        ApiKey.DESCRIBE_QUORUM,
        ApiKey.CREATE_ACLS,
        ApiKey.DELETE_ACLS,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        ApiKey.ADD_RAFT_VOTER,
        ApiKey.REMOVE_RAFT_VOTER,
    }
)
_PRINCIPAL_VERSION: Final = 0
_log = logging.getLogger(__name__)


def _as_it_is(_: Any) -> None:
    """Leave a response as it is."""


class Forwarding:
    def __init__(self, replies: Replies, controller: RemoteController, *, timeout_ms: int) -> None:
        self._replies = replies
        self._controller = controller
        self._timeout_ms = timeout_ms  # of CreateTopics
        self._limited_log = LimitedLog(_log)
        self._being_made: set[str] = set()  # topics whose creation was requested

    def _warn(self, event: str, now_ms: int, **about: str) -> None:
        self._limited_log.write(logging.WARNING, event, now_ms, event, trace=None, **about)

    # Requests of clients

    def forward(self, request: Request, now_ms: int, complete: Callable[[Any], None] = _as_it_is) -> None:
        """Send a request to the controller, and its response to the client. `complete` may add to the response."""
        version = max(request.version, api(request.api_key).offered.low)
        header = RequestHeader(request.api_key, version, request.correlation_id, request.client_id)
        asked = request.without_body()

        def answered(response: Any, now_ms: int) -> None:
            self._answer(asked, version, response, complete, now_ms)

        def failed(failure: Failure, now_ms: int) -> None:
            self._warn("a request could not be forwarded", now_ms, api=api(asked.api_key).name, error=failure.value)
            self._refuse(asked, ErrorCode.REQUEST_TIMED_OUT, now_ms)

        self._controller.forward(
            _encoded(header, request.body),
            serialized_principal(request.context.principal, has_token=request.context.has_token),
            ip_address(request.context.client_host).packed,
            answered,
            failed,
            now_ms,
        )

    def _answer(
        self, request: Request, version: int, envelope: Any, complete: Callable[[Any], None], now_ms: int
    ) -> None:
        if envelope.error_code or envelope.response_data is None:
            code = ErrorCode(envelope.error_code).name
            self._warn("the controller refused a forwarded request", now_ms, api=api(request.api_key).name, error=code)
            self._refuse(request, ErrorCode.UNKNOWN_SERVER_ERROR, now_ms)
            return
        data = envelope.response_data
        try:
            _, position = read_response_header(request.api_key, version, data)
            response: Any = response_class(request.api_key).decode(data, version, position)
        except ProtocolError as error:
            _log.error("the controller's response to a forwarded request cannot be decoded: %s", error)
            self._refuse(request, ErrorCode.UNKNOWN_SERVER_ERROR, now_ms)
            return
        complete(response)
        self._replies.answer(request, response, now_ms, getattr(response, "throttle_time_ms", 0))

    def _refuse(self, request: Request, code: ErrorCode, now_ms: int) -> None:
        """Send an error in the response's top-level error code. Close the connection if the API has no such field."""
        response: Any = response_class(request.api_key)()
        if hasattr(response, "error_code"):
            response.error_code = code
            self._replies.answer(request, response, now_ms)
        else:
            self._replies.reply_nothing(request, now_ms, close=True)

    # Topics that the broker needs

    def make_topic(self, topic: CreateTopicsRequest.CreatableTopic, request: Request | None, now_ms: int) -> None:
        """Request the creation of a topic, with the principal of the client that needs it or of this broker."""
        name = topic.name
        if name in self._being_made:
            return
        self._being_made.add(name)
        body = CreateTopicsRequest(topics=[topic], timeout_ms=self._timeout_ms)

        def answered(response: Any, now_ms: int) -> None:
            self._being_made.discard(name)
            result = response.topics[0]
            if result.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                code = ErrorCode(result.error_code).name
                self._warn(
                    "a topic could not be created", now_ms, topic=name, error=f"{code} {result.error_message or ''}"
                )

        def envelope_answered(envelope: Any, now_ms: int) -> None:
            if envelope.error_code or envelope.response_data is None:
                failed(Failure.UNREADABLE, now_ms)
                return
            data = envelope.response_data
            _, position = read_response_header(ApiKey.CREATE_TOPICS, version, data)
            answered(response_class(ApiKey.CREATE_TOPICS).decode(data, version, position), now_ms)

        def failed(failure: Failure, now_ms: int) -> None:
            self._being_made.discard(name)
            self._warn("a topic could not be created", now_ms, topic=name, error=failure.value)

        version = api(ApiKey.CREATE_TOPICS).offered.high
        if request is None:
            self._controller.ask(FORWARDING, body, answered, failed, now_ms)
            return
        header = RequestHeader(ApiKey.CREATE_TOPICS, version, request.correlation_id, request.client_id)
        self._controller.forward(
            _encoded(header, body),
            serialized_principal(request.context.principal, has_token=request.context.has_token),
            ip_address(request.context.client_host).packed,
            envelope_answered,
            failed,
            now_ms,
        )


def serialized_principal(principal: str, *, has_token: bool = False) -> bytes:
    """Encode a principal as Kafka's DefaultKafkaPrincipalBuilder does."""
    kind, _, name = principal.partition(":")
    parts: list[Any] = [_PRINCIPAL_VERSION.to_bytes(2, "big")]
    DefaultPrincipalData(type=kind, name=name, token_authenticated=has_token).write(parts, _PRINCIPAL_VERSION)
    return b"".join(parts)


def _encoded(header: RequestHeader, body: Message) -> bytes:
    parts: list[Any] = [write_request_header(header)]
    try:
        body.write(parts, header.api_version)
    except ProtocolError as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from error
    return b"".join(parts)
