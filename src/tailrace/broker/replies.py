"""Replies: responses are encoded and queued until the server takes them.

    answer(request, response, now_ms)            send a response, and pause its connection if a quota is exceeded
    answer_throttled(request, response, …)       send a response whose throttle time is already known
    answer_encoded(request, encode, …)           send a response that a function encodes
    reply_nothing(request, now_ms, …)            end a request that has no response (acks=0), or close its connection
    put(reply)                                   queue an encoded reply
    parked(context, operation)                   note that a delayed operation will send the response
    take_replies()                               return the replies since the last call

If a request paused or was decoded by a chore, a chore also encodes its response. That chore then frees the memory of
the request and the response (`protocol/release.py`).
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from itertools import groupby
from typing import Any, Final

from tailrace.broker.handling.request_chores import RequestChores
from tailrace.broker.handling.round import Round
from tailrace.broker.handling.throttling import Throttling
from tailrace.broker.requests.request_context import ConnectionContext, Part, Reply, Request
from tailrace.diagnostics.internal_errors import InternalErrors
from tailrace.diagnostics.limited_log import LimitedLog
from tailrace.log.segments.position import FileSlice
from tailrace.protocol.api_keys import api
from tailrace.protocol.error_codes import error_counter
from tailrace.protocol.errors import UnwritableMessage
from tailrace.protocol.headers import write_response
from tailrace.protocol.release import release, structs_in
from tailrace.waiting.chore import FunctionChore
from tailrace.waiting.purgatory import DelayedOperation, Purgatory

_log = logging.getLogger(__name__)
_new_tuple: Final = tuple.__new__  # makes a NamedTuple in half the time


class Replies:
    def __init__(
        self,
        throttling: Throttling,
        purgatory: Purgatory,
        round_: Round,
        chores: RequestChores,
        internal_errors: InternalErrors,
    ) -> None:
        self._throttling = throttling
        self._purgatory = purgatory
        self._round = round_
        self._chores = chores
        self._long_connections = chores.connections
        self._internal_errors = internal_errors
        self._limited_log = LimitedLog(_log)
        self._replies: list[Reply] = []
        self._parked: dict[int, DelayedOperation] = {}  # by connection: the delayed operation of its request
        self.errors: dict[int, defaultdict[int, int]] = {}  # by API: how often each error code was sent, including NONE

    # The time that a request takes

    def begin(self, request: Request) -> None:
        """Note that a handler begins to work on a request, or resumes."""
        if self._throttling.is_on:
            self._throttling.begin(request.context.connection_id)

    def finish(self, request: Request, response: Any, now_ms: int) -> None:
        """Send the response that a handler has returned. None means: the response comes later, or never."""
        if response is not None:
            self.answer(request, response, now_ms)
        elif self._throttling.is_on:
            self._throttling.end()

    def handler_paused(self) -> None:
        """Note that the running handler has paused."""
        if self._throttling.is_on:
            self._throttling.end()

    # Sending

    def answer(self, request: Request, response: Any, now_ms: int, throttle_ms: int = 0) -> None:
        """Send a response. The connection pauses for the longer of `throttle_ms` and the request quota's pause."""
        if self._throttling.is_on and request.respond is None:
            throttle_ms = max(throttle_ms, self._throttling.of_request(request, now_ms))
        self.answer_throttled(request, response, now_ms, throttle_ms)

    def answer_throttled(self, request: Request, response: Any, now_ms: int, throttle_ms: int = 0) -> None:
        """Send a response whose throttle time is already known."""
        if request.respond is not None:
            request.respond(response, now_ms, throttle_ms, False)
            return
        if throttle_ms and hasattr(response, "throttle_time_ms"):
            response.throttle_time_ms = throttle_ms
        if self._long_connections and request.context.connection_id in self._long_connections:
            self._encode_message_by_chore(request, response, throttle_ms)
            return
        error_counter(response.__class__)(response, self.errors_of(request.api_key))
        try:
            parts = write_response(request.api_key, request.version, request.correlation_id, response)
        except UnwritableMessage as error:
            self._refuse_unwritable(request, error, now_ms)
            return
        self.put(Reply(request.context.connection_id, parts, throttle_ms))

    def answer_encoded(
        self, request: Request, encode: Callable[[], list[Any]], now_ms: int, throttle_ms: int = 0
    ) -> None:
        """Send a response that `encode` encodes. The caller has already counted its error codes."""
        connection_id = request.context.connection_id
        if self._long_connections and connection_id in self._long_connections:
            self._call_encoder_by_chore(request, encode, throttle_ms)
            return
        try:
            parts = encode()
        except UnwritableMessage as error:
            self._refuse_unwritable(request, error, now_ms)
            return
        self.put(_new_tuple(Reply, (connection_id, parts, throttle_ms, False)))

    def reply_nothing(self, request: Request, now_ms: int, throttle_ms: int = 0, *, close: bool = False) -> None:
        """End a request without a response. With `close`, close its connection."""
        if request.respond is not None:
            request.respond(None, now_ms, throttle_ms, close)
            return
        self.put(Reply(request.context.connection_id, None, throttle_ms, close))

    def put(self, reply: Reply) -> None:
        """Queue an encoded reply."""
        if self._parked:
            self._parked.pop(reply.connection_id, None)
        if self._long_connections:
            self._chores.ended(reply.connection_id)
        self._replies.append(reply)

    def close(self, connection_id: int) -> None:
        """Queue the closing of a connection."""
        self.put(Reply(connection_id, None, close=True))

    def take_replies(self) -> list[Reply]:
        """End the round and return the replies since the last call."""
        self._round.end()
        replies, self._replies = self._replies, []
        return replies

    def errors_of(self, api_key: int) -> defaultdict[int, int]:
        """Return how often each error code was sent in responses of an API."""
        codes = self.errors.get(api_key)
        if codes is None:
            codes = self.errors[api_key] = defaultdict(int)
        return codes

    # Waiting

    def parked(self, context: ConnectionContext, operation: DelayedOperation, client_id: str | None = None) -> None:
        """Note the delayed operation of a request. It is cancelled if the connection is closed.

        The operation must not hold a reference to the request's body.
        """
        operation.note_client(context, client_id)
        self._parked[context.connection_id] = operation

    def operation_failed(self, operation: DelayedOperation, error: Exception, now_ms: int) -> None:
        """Close the connection whose delayed operation has raised."""
        for connection_id in [one for one, parked in self._parked.items() if parked is operation]:
            self.close(connection_id)
        self._internal_errors.survive("a delayed operation", error, now_ms, operation=type(operation).__name__)

    def connection_closed(self, connection_id: int) -> None:
        """Cancel the delayed operation of a connection's request."""
        operation = self._parked.pop(connection_id, None)
        if operation is not None:
            self._purgatory.cancel(operation)

    # Long responses

    def _encode_message_by_chore(self, request: Request, response: Any, throttle_ms: int) -> None:
        """Have a chore encode the response to a long request, then send it."""
        connection_id = request.context.connection_id
        decoded = self._chores.take_decoded(connection_id)
        only_here = [response]  # so that the chore can free it

        def run() -> tuple[list[Any], Counter[int]]:
            response = only_here.pop()
            codes: defaultdict[int, int] = defaultdict(int)
            error_counter(response.__class__)(response, codes)
            parts = write_response(request.api_key, request.version, request.correlation_id, response)
            structs = structs_in(response)
            del response
            release(structs)
            release(decoded)
            return list(_merged(parts)), Counter(codes)

        def apply(encoded: tuple[list[Any], Counter[int]], now_ms: int) -> None:
            parts, codes = encoded
            of_api = self.errors_of(request.api_key)
            for code, count in codes.items():
                of_api[code] += count
            self.put(Reply(connection_id, parts, throttle_ms))

        self._chores.add(connection_id, FunctionChore(run, apply, partial(self._encoding_failed, request)))

    def _call_encoder_by_chore(self, request: Request, encode: Callable[[], list[Any]], throttle_ms: int) -> None:
        connection_id = request.context.connection_id
        decoded = self._chores.take_decoded(connection_id)

        def run() -> list[Any]:
            parts = list(_merged(encode()))
            release(decoded)
            return parts

        def apply(parts: list[Any], now_ms: int) -> None:
            self.put(Reply(connection_id, parts, throttle_ms))

        self._chores.add(connection_id, FunctionChore(run, apply, partial(self._encoding_failed, request)))

    def _encoding_failed(self, request: Request, error: BaseException, now_ms: int) -> None:
        if isinstance(error, UnwritableMessage):
            self._refuse_unwritable(request, error, now_ms)
        else:
            self.chore_failed(request.context.connection_id, error, now_ms)

    def chore_failed(self, connection_id: int, error: BaseException, now_ms: int) -> None:
        """Close the connection for which a chore has raised unexpectedly."""
        self.close(connection_id)
        if not isinstance(error, Exception):
            raise error
        self._internal_errors.survive("a long request", error, now_ms)

    def _refuse_unwritable(self, request: Request, error: UnwritableMessage, now_ms: int) -> None:
        """Close the connection, as Kafka does, because the protocol cannot express the response.

        A client causes this with long names: a string of the response then exceeds 32,767 bytes.
        """
        context = request.context
        self._limited_log.write(
            logging.WARNING,
            "unwritable",
            now_ms,
            "connection closed: the response cannot be encoded",
            client=f"{context.client_host}:{context.client_port}",
            api=api(request.api_key).name,
            error=error,
        )
        self.close(context.connection_id)


def _merged(parts: list[Part]) -> Iterator[Part]:
    """Join neighbouring parts of a response that are bytes. Slices of files stay as they are."""
    for is_slice, group in groupby(parts, lambda part: isinstance(part, FileSlice)):
        if is_slice:
            yield from group
        else:
            yield b"".join(group)  # type: ignore[arg-type]
