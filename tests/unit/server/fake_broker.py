"""FakeBroker: a broker whose behaviour the request selects. The first byte of a frame is the order:

    E …                echo the rest
    W ms:4 …           echo the rest after so long
    P …                park: echo the rest when somebody sends R, from any connection
    R                  release what is parked, and echo nothing
    S position:8 size:4 …   echo the rest, then a slice of the broker's file
    B size:4           that many bytes from memory
    N                  no reply, as acks=0
    C …                echo the rest and close
    T ms:4             an empty reply, and a pause
    G …                echo the rest when the round ends or another order comes; more may follow before that
    K                  keep a view of the frame, and echo it
    X                  raise an exception, after a reply
    A                  raise a FatalError, as a broken invariant of the log does

An empty frame, or one with another order, closes its connection.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from struct import Struct
from typing import Any

from tailrace.broker.requests.request_context import ConnectionContext, Reply
from tailrace.diagnostics.internal_errors import InternalErrors
from tailrace.log.disk.files import File
from tailrace.log.segments.position import FileSlice
from tailrace.metrics.families import Family, Kind, Sample, gauge
from tailrace.model.errors import FatalError
from tailrace.waiting.outbox import Outbox

INT = Struct(">i")
RANGE = Struct(">qi")


class FakeBroker:
    def __init__(self, file: File | None = None) -> None:
        self.file = file
        self.replies: list[Reply] = []
        self.collected: list[Reply] = []
        self.parked: list[tuple[int, bytes]] = []
        self.delayed: list[tuple[int, int, bytes]] = []
        self.kept: list[memoryview] = []
        self.gone: list[int] = []
        self.contexts: dict[int, ConnectionContext] = {}
        self.handled = 0
        self.measured = 0  # number of samples in the metrics
        self.ticks = 0
        self.outbox = Outbox()
        self.internal_errors = InternalErrors(logging.getLogger("tailrace.fake"))
        self.trouble: str | None = None  # why it is not ready
        self.hold_off_ms = 0  # how long connections that come are held off
        self.closed_ms: int | None = None

    def handle_guarded(self, frame: memoryview, context: ConnectionContext, now_ms: int) -> bool:
        """Authenticate the client, unless its frame starts with N."""
        context.is_authenticated = context.is_authenticated or frame[:1] != b"N"
        return self.handle(frame, context, now_ms)

    def handle(self, frame: memoryview, context: ConnectionContext, now_ms: int) -> bool:
        self.handled += 1
        connection_id = context.connection_id
        self.contexts[connection_id] = context
        if frame[:1] == b"G":
            self.collected.append(Reply(connection_id, [bytes(frame[1:])]))
            return True
        self.run_pending()
        reply = self.replies.append
        match bytes(frame[:1]):
            case b"E":
                reply(Reply(connection_id, [bytes(frame[1:])]))
            case b"W":
                (delay_ms,) = INT.unpack_from(frame, 1)
                self.delayed.append((now_ms + delay_ms, connection_id, bytes(frame[5:])))
            case b"P":
                self.parked.append((connection_id, bytes(frame[1:])))
            case b"R":
                self.release()
                reply(Reply(connection_id, [b""]))
            case b"S":
                position, size = RANGE.unpack_from(frame, 1)
                assert self.file is not None
                reply(Reply(connection_id, [bytes(frame[13:]), FileSlice(self.file, position, size)]))
            case b"B":
                reply(Reply(connection_id, [b"b" * INT.unpack_from(frame, 1)[0]]))
            case b"N":
                reply(Reply(connection_id, None))
            case b"C":
                reply(Reply(connection_id, [bytes(frame[1:])], close=True))
            case b"T":
                reply(Reply(connection_id, [b""], throttle_ms=INT.unpack_from(frame, 1)[0]))
            case b"K":
                self.kept.append(frame)
                reply(Reply(connection_id, [bytes(frame)]))
            case b"X":
                reply(Reply(connection_id, [b"half a reply"]))
                raise RuntimeError("planned failure")
            case b"A":
                raise FatalError("planned failure")
            case _:
                reply(Reply(connection_id, None, close=True))
        return False

    def run_pending(self) -> None:
        self.replies += self.collected
        self.collected.clear()

    def release(self) -> None:
        self.replies += [Reply(connection_id, [data]) for connection_id, data in self.parked]
        self.parked.clear()

    def take_replies(self) -> list[Reply]:
        self.run_pending()
        replies, self.replies = self.replies, []
        return replies

    def tick(self, now_ms: int) -> None:
        self.ticks += 1
        self.replies += [Reply(who, [data]) for due_ms, who, data in self.delayed if due_ms <= now_ms]
        self.delayed = [entry for entry in self.delayed if entry[0] > now_ms]

    def next_deadline_ms(self) -> int | None:
        return min((due_ms for due_ms, _, _ in self.delayed), default=None)

    def metric_families(self, now_ms: int) -> list[Family]:
        many = (Sample({"number": str(number)}, number) for number in range(self.measured))
        return [
            gauge("fake_requests", "How many requests came.", self.handled),
            Family("fake_numbers", Kind.GAUGE, "As many as wanted.", many),
        ]

    def connection_hold_off_ms(self, host: str, now_ms: int) -> int:
        return self.hold_off_ms

    def not_ready_reason(self) -> str | None:
        return self.trouble

    def describe_waiting(self, now_ms: int) -> dict[str, Any]:
        return {"time": now_ms, "operations": []}

    def explain_fetch(self, query: Mapping[str, str], now_ms: int, answer: Callable[[dict[str, Any]], None]) -> None:
        answer(dict(query))

    def prepare_stop(self, now_ms: int, ready: Callable[[], None]) -> None:
        ready()

    def connection_closed(self, connection_id: int, now_ms: int) -> None:
        self.gone.append(connection_id)
        self.parked = [entry for entry in self.parked if entry[0] != connection_id]

    def close(self, now_ms: int) -> None:
        self.closed_ms = now_ms
