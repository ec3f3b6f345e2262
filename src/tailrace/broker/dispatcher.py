"""Dispatcher: sends each frame to its handler, or forwards it to the controller.

    header ──► API and version ──► body ──► forwarded to the controller, or handled

The body is decoded here, or by a chore on a worker thread if it is large. A request is handled at once, in pieces, or
as steps that can pause.

Invalid input never raises from a method here. At worst, its client loses the connection.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Any, Final

from tailrace.broker.cluster.forwarding import FORWARDED_UNCHECKED
from tailrace.broker.handling.flat_requests import flattened, read_flat
from tailrace.broker.handling.handler_binding import Handler
from tailrace.broker.handling.request_decoder import RequestDecoder, request_of
from tailrace.broker.handling.request_pieces import CUTS, cut_of, handle_in_pieces
from tailrace.broker.requests.request_context import ConnectionContext, Request, Respond
from tailrace.broker.services import Services
from tailrace.model.errors import KafkaError
from tailrace.protocol.api_keys import ApiKey
from tailrace.protocol.errors import ProtocolError
from tailrace.protocol.headers import read_request_header
from tailrace.protocol.primitives import Buffer

_PRODUCE: Final = int(ApiKey.PRODUCE)


class Dispatcher:
    def __init__(
        self,
        services: Services,
        flattened: Callable[[int, int, Any], Any] = flattened,
        handlers: Mapping[int, Handler] | None = None,
    ) -> None:
        """`flattened` converts a message to the body that its handler takes. `handlers` are those of APIs whose
        handlers need more than services."""
        self._services = services
        self._apis = services.apis
        self._throttling = services.throttling
        self._round = services.current_round
        self._appends = services.appends
        self._replies = services.replies
        self._refusals = services.refusals
        self._long_requests = services.long_requests
        self._forwarding = services.forwarding
        self._decoder = RequestDecoder(services.replies, services.refusals, services.chores, flattened, self.dispatch)
        self._handlers: dict[int, Handler] = dict(handlers or {})

    def handle(self, frame: Buffer, context: ConnectionContext, now_ms: int) -> bool:
        """Handle one frame (without its length prefix).

        Return True if the connection may hand over its next frame before this reply is taken.
        """
        appends = self._appends
        key = frame[1] if len(frame) > 1 and not frame[0] else -1
        is_produce = key == _PRODUCE
        if not is_produce:
            if self._round.is_collecting:
                self._round.carry_out()
            if appends.is_in_line(context.connection_id):
                held = memoryview(bytearray(frame))
                appends.hold(context.connection_id, lambda now_ms: self.handle(held, context, now_ms))
                return False
        added = appends.count
        request = read_flat(frame, key, context, now_ms)
        if request is None:
            self.handle_message(frame, context, now_ms)
        else:
            self.dispatch(request, now_ms)
        return is_produce and appends.count > added and appends.room > 0

    def handle_message(
        self, frame: Buffer, context: ConnectionContext, now_ms: int, respond: Respond | None = None
    ) -> None:
        """Decode a request as a message and handle it. `respond` gets the response, which is sent without it."""
        try:
            header, position = read_request_header(frame)
            row = self._apis.get(header.api_key)
            if row is None or not row.min_version <= header.api_version <= row.max_version:
                self._refusals.version(header, context, now_ms)
                return
            body = self._decoder.decode(frame, header, position, context, respond)
        except ProtocolError as error:
            self._refusals.malformed(context, error, now_ms)
            return
        if body is not None:
            self.dispatch(request_of(header, context, body, now_ms, len(frame), respond), now_ms)

    def dispatch(self, request: Request, now_ms: int) -> None:
        """Pass a decoded request to its handler, or forward it to the controller."""
        key = request.api_key
        if self._forwarding is not None and key in FORWARDED_UNCHECKED:
            self._forwarding.forward(request, now_ms)
            return
        handler = self._handlers.get(key) or self._load(key)
        is_timed = self._throttling.is_on
        if is_timed:
            self._replies.begin(request)
        if key in CUTS and (cut := cut_of(request)) is not None:
            steps = handle_in_pieces(request, handler, cut, now_ms, replies=self._replies, refusals=self._refusals)
            self._long_requests.start(request, steps, now_ms)
            return
        try:
            outcome = handler(request, now_ms)
        except KafkaError as error:
            self._refusals.error(request, error, now_ms)
            return
        if outcome is None and not is_timed:
            return
        if isinstance(outcome, Generator):
            self._long_requests.start(request, outcome, now_ms)
        else:
            self._replies.finish(request, outcome, now_ms)

    def _load(self, key: int) -> Handler:
        handler = self._handlers[key] = self._apis[key].load(self._services)
        return handler

    def connection_closed(self, connection_id: int) -> None:
        """Forget the requests of a connection."""
        self._appends.connection_closed(connection_id)
