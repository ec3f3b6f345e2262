"""RequestDecoder: decodes the bodies of requests, on the loop or by a chore.

    up to ELEMENTS_AT_ONCE array elements and BYTES_AT_ONCE      decoded on the loop; records do not count
    more                                                         decoded by a chore
    more than ELEMENTS_MAX                                       refused
    more than ELEMENTS_WHOLE_MAX, if the handler cannot pause    refused
    more than ELEMENTS_OF_BROKERS_MAX, in requests of brokers    refused

An array element of one byte on the wire takes about 200 bytes in memory, so elements are limited, not only bytes. If a
handler takes flat tuples, the chore also converts the request. A broker reports all its partitions in one request, and
repeats a refused request, so its limit is that of a large cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tailrace.broker.handling.refusals import Refusals
from tailrace.broker.handling.request_chores import RequestChores
from tailrace.broker.handling.request_pieces import CUTS
from tailrace.broker.replies import Replies
from tailrace.broker.requests.request_context import ConnectionContext, Request, Respond
from tailrace.protocol.api_keys import ApiKey
from tailrace.protocol.errors import ProtocolError, TooManyElements
from tailrace.protocol.headers import RequestHeader
from tailrace.protocol.message import Struct
from tailrace.protocol.primitives import Buffer
from tailrace.protocol.registry import request_class
from tailrace.protocol.release import release, structs_in
from tailrace.waiting.chore import FunctionChore

ELEMENTS_AT_ONCE = 4_096  # a few milliseconds
BYTES_AT_ONCE = 1 << 20
ELEMENTS_MAX = 65_536
ELEMENTS_WHOLE_MAX = 20_000
ELEMENTS_OF_BROKERS_MAX = 262_144
ELEMENTS_UNAUTHENTICATED_MAX = 64
PAUSING = frozenset(
    {ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.OFFSET_COMMIT, ApiKey.DELETE_ACLS}
)  # their handlers pause by themselves, so they take requests of any allowed size
OF_BROKERS = frozenset({ApiKey.ALTER_PARTITION, ApiKey.ASSIGN_REPLICAS_TO_DIRS})


class RequestDecoder:
    def __init__(
        self,
        replies: Replies,
        refusals: Refusals,
        chores: RequestChores,
        flattened: Callable[[int, int, Any], Any],
        dispatch: Callable[[Request, int], None],
    ) -> None:
        """`flattened(api_key, version, message)` converts a message to the body that its handler takes.
        `dispatch(request, now_ms)` handles a request that a chore has decoded."""
        self._replies = replies
        self._refusals = refusals
        self._chores = chores
        self._flattened = flattened
        self._dispatch = dispatch

    def decode(
        self,
        frame: Buffer,
        header: RequestHeader,
        position: int,
        context: ConnectionContext,
        respond: Respond | None = None,
    ) -> Any | None:
        """Return a request's body, or None if a chore decodes it; the request is dispatched after that, with
        `respond`."""
        if not context.is_authenticated:
            return self._read(frame, header, position, ELEMENTS_UNAUTHENTICATED_MAX)
        if len(frame) <= BYTES_AT_ONCE or header.api_key == ApiKey.PRODUCE:
            try:
                return self._read(frame, header, position, ELEMENTS_AT_ONCE)
            except TooManyElements:
                pass
        self._decode_by_chore(frame, header, position, context, respond)
        return None

    def _read(self, frame: Buffer, header: RequestHeader, position: int, elements_max: int) -> Any:
        key, version = header.api_key, header.api_version
        return self._flattened(key, version, request_class(key).read(frame, version, position, elements_max)[0])

    def _decode_by_chore(
        self,
        frame: Buffer,
        header: RequestHeader,
        position: int,
        context: ConnectionContext,
        respond: Respond | None,
    ) -> None:
        elements_max = _elements_max(header.api_key)
        connection_id, chores = context.connection_id, self._chores

        def run() -> tuple[Any, list[Struct]]:
            message, _ = request_class(header.api_key).read(frame, header.api_version, position, elements_max)
            structs = structs_in(message)
            body = self._flattened(header.api_key, header.api_version, message)
            if body is not message:
                del message
                release(structs)
            return body, structs

        def apply(decoded: tuple[Any, list[Struct]], now_ms: int) -> None:
            body, structs = decoded
            if connection_id in chores.connections:
                chores.keep_decoded(connection_id, structs)
                self._dispatch(request_of(header, context, body, now_ms, len(frame), respond), now_ms)

        def failed(error: BaseException, now_ms: int) -> None:
            if isinstance(error, ProtocolError):
                self._refusals.malformed(context, error, now_ms)
            else:
                self._replies.chore_failed(connection_id, error, now_ms)

        chores.connections.add(connection_id)
        chores.add(connection_id, FunctionChore(run, apply, failed))


def _elements_max(api_key: int) -> int:
    if api_key in OF_BROKERS:
        return ELEMENTS_OF_BROKERS_MAX
    return ELEMENTS_MAX if api_key in CUTS or api_key in PAUSING else ELEMENTS_WHOLE_MAX


def request_of(
    header: RequestHeader,
    context: ConnectionContext,
    body: Any,
    now_ms: int,
    size: int,
    respond: Respond | None = None,
) -> Request:
    key, version = header.api_key, header.api_version
    return Request(context, key, version, header.correlation_id, header.client_id, body, now_ms, size, respond)
