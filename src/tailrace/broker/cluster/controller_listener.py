"""ControllerListener: the requests that arrive at the controller listener of this node.

    frame ──► dispatcher with the controller's table ──► handler
          └─► Envelope: the request inside, with the principal of the client that sent it to a broker ──► handler

Only a node with CLUSTER_ACTION on the cluster may send an Envelope. The request inside is authorized with its own
principal, and its response goes back in the Envelope's response.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from ipaddress import ip_address
from typing import Any, Final

from tailrace.broker.cluster.observer_fetch import METADATA_CHANGED
from tailrace.broker.dispatcher import Dispatcher
from tailrace.broker.requests.cluster.cluster_authorization import check_cluster
from tailrace.broker.requests.controller_table import CONTROLLER_TABLE, ENVELOPED
from tailrace.broker.requests.request_context import ConnectionContext, Request
from tailrace.broker.security.authorizer import Operation
from tailrace.broker.security.guard import SaslGuard
from tailrace.broker.services import Services
from tailrace.diagnostics.limited_log import LimitedLog
from tailrace.metadata.image.loader import Change
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol.api_keys import ApiKey, api
from tailrace.protocol.errors import ProtocolError
from tailrace.protocol.headers import RequestHeader, read_request_header, write_response
from tailrace.protocol.messages import DefaultPrincipalData, EnvelopeResponse
from tailrace.protocol.primitives import Buffer

_PRINCIPAL_VERSION: Final = 0
_VERSION_BYTES: Final = 2
_log = logging.getLogger(__name__)


def _as_it_is(_: int, __: int, message: Any) -> Any:
    return message


class ControllerListener:
    def __init__(self, services: Services, guard: Callable[[Services, Dispatcher], SaslGuard | None]) -> None:
        """`guard(services, dispatcher)` builds the guard of the controller listeners, if they authenticate."""
        self._services = replace(services, apis=CONTROLLER_TABLE)
        self._permissions = services.permissions
        self._replies = services.replies
        self._dispatcher = Dispatcher(self._services, _as_it_is, {ApiKey.ENVELOPE: self._unwrap})
        self._limited_log = LimitedLog(_log)
        self.guard = guard(self._services, self._dispatcher)
        services.events.metadata_changed.listen(self._metadata_changed)

    def _metadata_changed(self, _: Change, now_ms: int) -> None:
        """Send the change to the observers that wait for it."""
        self._services.purgatory.check(METADATA_CHANGED, now_ms)

    def handle(self, frame: Buffer, context: ConnectionContext, now_ms: int) -> bool:
        """Handle one frame (without its length prefix). Return False: the next frame waits for this reply."""
        if self._services.current_round.is_collecting:
            self._services.current_round.carry_out()
        self._dispatcher.handle_message(frame, context, now_ms)
        return False

    # Envelopes

    def _unwrap(self, request: Request, now_ms: int) -> None:
        """Handle an Envelope (key 58)."""
        check_cluster(request, Operation.CLUSTER_ACTION, permissions=self._permissions)
        try:
            header, context = self._opened(request)
        except (ProtocolError, UnicodeDecodeError) as error:
            self._limited_log.write(
                logging.WARNING, "envelope", now_ms, "a forwarded request cannot be read", error=error
            )
            raise KafkaError(ErrorCode.INVALID_REQUEST, "the request in the Envelope cannot be read") from error
        outer = request.without_body()

        def respond(response: Any, now_ms: int, throttle_ms: int, is_closed: bool) -> None:
            self._respond(outer, header, response, now_ms, throttle_ms)

        self._dispatcher.handle_message(request.body.request_data, context, now_ms, respond)

    def _opened(self, request: Request) -> tuple[RequestHeader, ConnectionContext]:
        """Return the header of the request inside, and its client."""
        body = request.body
        header, _ = read_request_header(body.request_data)
        row = CONTROLLER_TABLE.get(header.api_key)
        if row is None or header.api_key not in ENVELOPED:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"requests with API key {header.api_key} cannot be forwarded")
        if not row.min_version <= header.api_version <= row.max_version:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"{api(header.api_key).name} version {header.api_version} is not supported; the controller supports "
                f"{row.min_version} to {row.max_version}",
            )
        principal = _read_principal(body.request_principal)
        try:
            host = str(ip_address(bytes(body.client_host_address)))
        except ValueError as error:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"the client's address is invalid: {error}") from error
        sender = request.context
        return header, ConnectionContext(
            connection_id=sender.connection_id,
            listener=sender.listener,
            client_host=host,
            client_port=0,
            principal=f"{principal.type}:{principal.name}",
            has_token=principal.token_authenticated,
        )

    def _respond(self, outer: Request, header: RequestHeader, response: Any, now_ms: int, throttle_ms: int) -> None:
        """Send a response in an EnvelopeResponse. Without one, the handler has ended the request unanswered."""
        if response is None:
            self._replies.reply_nothing(outer, now_ms, close=True)
            return
        if throttle_ms and hasattr(response, "throttle_time_ms"):
            response.throttle_time_ms = throttle_ms
        parts: list[Any] = write_response(header.api_key, header.api_version, header.correlation_id, response)
        self._replies.answer(outer, EnvelopeResponse(response_data=b"".join(parts)), now_ms)


def _read_principal(data: Buffer | None) -> DefaultPrincipalData:
    """Decode a principal as Kafka's DefaultKafkaPrincipalBuilder encodes it."""
    try:
        if data is None or int.from_bytes(data[:_VERSION_BYTES], "big") != _PRINCIPAL_VERSION:
            raise ProtocolError("unknown version of a principal")
        principal: DefaultPrincipalData
        principal, _ = DefaultPrincipalData.read(data, _PRINCIPAL_VERSION, _VERSION_BYTES)
    except ProtocolError as error:
        reason = f"the principal in the Envelope cannot be read: {error}"
        raise KafkaError(ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE, reason) from error
    return principal
