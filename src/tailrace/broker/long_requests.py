"""LongRequests: requests that would hold the loop, done in turns and partly beside it.

    decode   up to ELEMENTS_AT_ONCE array elements and BYTES_AT_ONCE on the loop, apart from records; a request with
             more is decoded by a chore
    handle   a handler that may take long is a generator, and `now_ms = yield` marks where it can pause. It runs until
             the turn is over and resumes in the next turn; several paused requests take turns
    encode   the response to a request that paused, or was decoded by a chore, is encoded by a chore, which also frees
             the request and the response (`protocol/release.py`)

One chore at a time decodes or encodes, so that the other chores and the memory for large requests are not used up. The
connection waits meanwhile as it does for any pending reply. A request with more than ELEMENTS_MAX array elements is
refused: an element of one byte on the wire takes some two hundred in memory. So is a request with more than
ELEMENTS_WHOLE_MAX of an API whose handler cannot pause.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any

from tailrace.broker.request_context import ConnectionContext, Part, Reply, Request
from tailrace.broker.request_pieces import CUTS
from tailrace.broker.storage.cleaning import Step, Work
from tailrace.log.position import FileSlice
from tailrace.model.steps import Steps
from tailrace.protocol.api_keys import ApiKey
from tailrace.protocol.error_codes import error_counter
from tailrace.protocol.errors import ProtocolError, TooManyElements, UnwritableMessage
from tailrace.protocol.headers import RequestHeader, write_response
from tailrace.protocol.message import Struct
from tailrace.protocol.primitives import Buffer
from tailrace.protocol.registry import request_class
from tailrace.protocol.release import release, structs_in

if TYPE_CHECKING:
    from tailrace.broker.broker import Broker

ELEMENTS_AT_ONCE = 4_096  # a few milliseconds
BYTES_AT_ONCE = 1 << 20
ELEMENTS_MAX = 65_536
ELEMENTS_WHOLE_MAX = 20_000
ELEMENTS_UNAUTHENTICATED_MAX = 64


class _Paused:
    """A request whose handler has not ended."""

    __slots__ = ("is_started", "request", "steps")

    def __init__(self, request: Request, steps: Steps[Any]) -> None:
        self.request = request
        self.steps = steps
        self.is_started = False


class LongRequests:
    def __init__(self, broker: Broker, submit: Callable[[Work], None], is_turn_over: Callable[[], bool]) -> None:
        self._broker = broker
        self._submit = submit
        self._is_turn_over = is_turn_over
        self._paused: deque[_Paused] = deque()
        self.connections: set[int] = set()  # those whose request has paused or was decoded by a chore
        self._decoded: dict[int, list[Struct]] = {}  # the structs of requests that chores have decoded, by connection
        self._chores: deque[tuple[int, Step]] = deque()  # with their connections
        self._is_chore_running = False

    # Decoding

    def decode(self, frame: Buffer, header: RequestHeader, position: int, context: ConnectionContext) -> Any | None:
        """Return a request's body; None if a chore decodes it first, and then has it handled."""
        read = request_class(header.api_key).read
        if not context.is_authenticated:
            return read(frame, header.api_version, position, ELEMENTS_UNAUTHENTICATED_MAX)[0]
        if len(frame) <= BYTES_AT_ONCE or header.api_key == ApiKey.PRODUCE:
            try:
                return read(frame, header.api_version, position, ELEMENTS_AT_ONCE)[0]
            except TooManyElements:
                pass
        self._decode_beside(frame, header, position, context)
        return None

    def _decode_beside(self, frame: Buffer, header: RequestHeader, position: int, context: ConnectionContext) -> None:
        can_pause = header.api_key in CUTS or header.api_key == ApiKey.FETCH
        elements_max = ELEMENTS_MAX if can_pause else ELEMENTS_WHOLE_MAX

        def run() -> tuple[Any, list[Struct]]:
            body, _ = request_class(header.api_key).read(frame, header.api_version, position, elements_max)
            return body, structs_in(body)

        def apply(decoded: tuple[Any, list[Struct]], now_ms: int) -> None:
            body, structs = decoded
            if context.connection_id in self.connections:
                self._decoded[context.connection_id] = structs
                self._broker.dispatch(request_of(header, context, body, now_ms, len(frame)), now_ms)

        def failed(error: BaseException, now_ms: int) -> None:
            if isinstance(error, ProtocolError):
                self._broker.refusals.malformed(context, error, now_ms)
            else:
                self._fail(context.connection_id, error, now_ms)

        self.connections.add(context.connection_id)
        self._queue(context.connection_id, Step(run, apply, failed))

    # Handling

    def start(self, request: Request, steps: Steps[Any], now_ms: int) -> None:
        """Run a handler, or let it wait for the next turn."""
        paused = _Paused(request, steps)
        if self._is_turn_over():
            self._pause(paused)
        else:
            self._run(paused, now_ms)

    def tick(self, now_ms: int) -> None:
        """Resume paused requests until the turn is over."""
        for _ in range(len(self._paused)):
            if not self._paused or self._is_turn_over():
                return
            self._run(self._paused.popleft(), now_ms)

    def next_deadline_ms(self) -> int | None:
        return 0 if self._paused else None

    def _run(self, paused: _Paused, now_ms: int) -> None:
        request, steps = paused.request, paused.steps
        broker = self._broker
        broker.begin_request(request, now_ms)
        try:
            if not paused.is_started:
                paused.is_started = True
                next(steps)
            while not self._is_turn_over():
                steps.send(now_ms)
        except StopIteration as end:
            broker.finish(request, end.value, now_ms)
            return
        except Exception as error:
            broker.request_failed(request, error, now_ms)
            return
        if broker.throttling.is_on:
            broker.throttling.end()
        self._pause(paused)

    def _pause(self, paused: _Paused) -> None:
        self.connections.add(paused.request.context.connection_id)
        self._paused.append(paused)

    # Encoding

    def encode(self, request: Request, response: Any, throttle_ms: int) -> None:
        """Encode the response to a long request beside the loop, and send it."""
        connection_id = request.context.connection_id
        decoded = self._decoded.pop(connection_id, [])
        only_here = [response]

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
            of_api = self._broker.errors_of(request.api_key)
            for code, count in codes.items():
                of_api[code] += count
            self._broker.put(Reply(connection_id, parts, throttle_ms))

        def failed(error: BaseException, now_ms: int) -> None:
            if isinstance(error, UnwritableMessage):
                self._broker.refusals.unwritable(request, error, now_ms)
            else:
                self._fail(connection_id, error, now_ms)

        self._queue(connection_id, Step(run, apply, failed))

    # Chores

    def _queue(self, connection_id: int, step: Step) -> None:
        self._chores.append((connection_id, step))
        if not self._is_chore_running:
            self._next_chore()

    def _next_chore(self) -> None:
        if not self._chores:
            self._is_chore_running = False
            return
        self._is_chore_running = True
        _, step = self._chores.popleft()

        def apply(result: Any, now_ms: int) -> None:
            self._next_chore()
            step.apply(result, now_ms)

        def failed(error: BaseException, now_ms: int) -> None:
            self._next_chore()
            step.failed(error, now_ms)

        self._submit(Step(step.run, apply, failed))

    def _fail(self, connection_id: int, error: BaseException, now_ms: int) -> None:
        """A chore met a bug: its connection is closed."""
        self._broker.put(Reply(connection_id, None, close=True))
        if not isinstance(error, Exception):
            raise error
        self._broker.internal_errors.survive("a long request", error, now_ms)

    def ended(self, connection_id: int) -> None:
        """A request of a connection is answered, or nobody waits for its response any more."""
        self.connections.discard(connection_id)
        self._decoded.pop(connection_id, None)

    def connection_closed(self, connection_id: int) -> None:
        if connection_id not in self.connections:
            return
        self.ended(connection_id)
        for paused in self._paused:
            if paused.request.context.connection_id == connection_id:
                paused.steps.close()
        self._paused = deque(one for one in self._paused if one.request.context.connection_id != connection_id)
        self._chores = deque(one for one in self._chores if one[0] != connection_id)


def _merged(parts: list[Part]) -> Iterator[Part]:
    """Join the parts of a response that are next to each other in memory; slices of files stay as they are."""
    for is_slice, group in groupby(parts, lambda part: isinstance(part, FileSlice)):
        if is_slice:
            yield from group
        else:
            yield b"".join(group)  # type: ignore[arg-type]


def request_of(header: RequestHeader, context: ConnectionContext, body: Any, now_ms: int, size: int) -> Request:
    return Request(
        context, header.api_key, header.api_version, header.correlation_id, header.client_id, body, now_ms, size
    )
