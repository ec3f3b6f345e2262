"""Broker: requests in, replies out. Nothing here knows a socket, a thread or a clock.

    handle(frame, context, now_ms)    a client's request; its reply may be there at once, or come later
    tick(now_ms)                      deadlines pass, housekeeping that is due is done
    take_replies()                    what there is to send

A client's bad input costs that client its connection at most: `handle` never raises for it.
"""

from __future__ import annotations

import logging
from typing import Any

from tailrace.broker.api_table import API_TABLE, Handler
from tailrace.broker.request_context import ConnectionContext, Reply, Request
from tailrace.model.errors import KafkaError
from tailrace.protocol.api_keys import ApiKey
from tailrace.protocol.errors import ProtocolError
from tailrace.protocol.headers import RequestHeader, read_request_header, write_response
from tailrace.protocol.primitives import Buffer
from tailrace.protocol.registry import request_class, response_class

_log = logging.getLogger(__name__)


class Broker:
    def __init__(self) -> None:
        self._handlers: dict[int, Handler] = {}
        self._replies: list[Reply] = []

    # Requests

    def handle(self, frame: Buffer, context: ConnectionContext, now_ms: int) -> None:
        """Take one request, without the size in front of it."""
        try:
            header, position = read_request_header(frame)
            row = API_TABLE.get(header.api_key)
            if row is None or not row.min_version <= header.api_version <= row.max_version:
                self._refuse_version(header, context)
                return
            body, _ = request_class(header.api_key).read(frame, header.api_version, position)
        except ProtocolError as error:
            _log.info("connection of %s closed: %s", context.client_host, error)
            self._replies.append(Reply(context.connection_id, None, close=True))
            return
        request = Request(
            context, header.api_key, header.api_version, header.correlation_id, header.client_id, body, now_ms
        )
        handler = self._handlers.get(header.api_key)
        if handler is None:
            handler = self._handlers[header.api_key] = row.load()
        try:
            response = handler(self, request, now_ms)
        except KafkaError as error:
            self._reply_error(request, error)
            return
        if response is not None:
            self.reply(request, response)

    def _refuse_version(self, header: RequestHeader, context: ConnectionContext) -> None:
        """Only ApiVersions is answered in a version that we do not have, so that the client can find one we do."""
        if header.api_key != ApiKey.API_VERSIONS:
            _log.info(
                "connection of %s closed: API %d version %d is not served",
                context.client_host,
                header.api_key,
                header.api_version,
            )
            self._replies.append(Reply(context.connection_id, None, close=True))
            return
        from tailrace.broker.apis.api_versions import unsupported_version

        parts = write_response(header.api_key, 0, header.correlation_id, unsupported_version())
        self._replies.append(Reply(context.connection_id, parts))

    def _reply_error(self, request: Request, error: KafkaError) -> None:
        """A refusal of the whole request, where the API has a place for one."""
        response = response_class(request.api_key)()
        if not hasattr(response, "error_code"):
            raise error
        response.error_code = error.code
        if hasattr(response, "error_message"):
            response.error_message = str(error)
        self.reply(request, response)

    # Replies

    def reply(self, request: Request, response: Any, throttle_ms: int = 0) -> None:
        """Answer a request, now or later."""
        parts = write_response(request.api_key, request.version, request.correlation_id, response)
        self._replies.append(Reply(request.context.connection_id, parts, throttle_ms))

    def reply_nothing(self, request: Request, *, close: bool = False) -> None:
        """The request wants no answer; the connection may go on, or has to be closed to tell the client something."""
        self._replies.append(Reply(request.context.connection_id, None, close=close))

    def take_replies(self) -> list[Reply]:
        replies, self._replies = self._replies, []
        return replies

    # Time

    def tick(self, now_ms: int) -> None:
        """Do what is due."""

    def next_deadline_ms(self) -> int | None:
        return None

    def connection_closed(self, connection_id: int) -> None:
        """The client is gone; what it waited for need not be answered."""
