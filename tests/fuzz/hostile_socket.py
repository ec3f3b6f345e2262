"""HostileSocket: a connection of the client to a broker in memory whose responses are changed on the way back.

Nothing waits: PatientClock moves on when it is read or slept on, and a silent broker costs a client its whole timeout.
"""

from __future__ import annotations

import random
import struct
from itertools import count
from typing import Any, Final

from tailrace.broker.broker import Broker
from tailrace.broker.requests.request_context import ConnectionContext
from tailrace.log.segments.position import FileSlice
from tailrace.protocol.errors import ProtocolError
from tailrace.protocol.framing import frame_length
from tailrace.protocol.headers import read_request_header, read_response_header, write_response
from tailrace.protocol.registry import response_class
from tests.fuzz.bytes_mutator import damage, with_invalid_text
from tests.fuzz.field_mutator import STRINGS, FieldMutator
from tests.fuzz.limits import InvariantBroken
from tests.support.frame_buffer import FrameBuffer
from tests.support.memory_node import NOW_MS
from tests.unit.protocol.random_messages import random_message

CONTROLS: Final = "\x1b]0;owned\x07\x1b[2J\r\x9b1m\u202e"
REQUESTS_MAX: Final = 2_000  # of one command
_TICK_MS: Final = 20
_FIELDS: Final = FieldMutator(strings=(*STRINGS, CONTROLS, CONTROLS, "localhost", "127.0.0.1"))
_LENGTHS: Final = (-1, 0, 3, 4, 5, 2**31 - 1, 300_000_000, 0x48545450, 0x15030100)


class TooManyRequests(InvariantBroken):
    """A command does not end."""


class PatientClock:
    """A clock that advances whenever it is read."""

    def __init__(self) -> None:
        self.now_ms = NOW_MS

    def monotonic(self) -> float:
        self.now_ms += 1
        return self.now_ms / 1_000

    def sleep(self, seconds: float) -> None:
        assert seconds >= 0
        self.now_ms += int(seconds * 1_000) + 1


class HostileBroker:
    """Opens connections to a broker, and changes this share of its responses."""

    def __init__(self, broker: Broker, clock: PatientClock, dice: random.Random, share: float) -> None:
        self.broker = broker
        self.clock = clock
        self.dice = dice
        self.share = share
        self._ids = count(1)
        self._requests = 0

    def open_socket(self, address: object, timeout_s: float) -> HostileSocket:
        if self.dice.random() < self.share / 10:
            raise self.dice.choice((ConnectionRefusedError(111, "Connection refused"), TimeoutError("timed out")))
        return HostileSocket(self, next(self._ids))

    def count_request(self) -> None:
        self._requests += 1
        if self._requests > REQUESTS_MAX:
            raise TooManyRequests(f"more than {REQUESTS_MAX} requests")


class HostileSocket:
    def __init__(self, peer: HostileBroker, connection_id: int) -> None:
        self._peer = peer
        self._context = ConnectionContext(connection_id)
        self._frames = FrameBuffer()
        self._asked: list[tuple[int, int, int]] = []
        self._incoming = bytearray()
        self._is_ended = False
        self._timeout_s = 0.0

    def sendall(self, data: Any) -> None:
        if self._is_ended:
            raise BrokenPipeError(32, "Broken pipe")
        self._frames.receive(bytes(data))
        while (frame := self._frames.next_frame()) is not None:
            self._peer.count_request()
            header, _ = read_request_header(frame)
            self._asked.append((header.api_key, header.api_version, header.correlation_id))
            self._peer.broker.handle(memoryview(bytearray(frame)), self._context, self._peer.clock.now_ms)
            self._take()

    def recv_into(self, view: memoryview) -> int:
        until_ms = self._peer.clock.now_ms + self._timeout_s * 1_000
        while not self._incoming and not self._is_ended:
            if self._peer.clock.now_ms >= until_ms:
                raise TimeoutError
            self._peer.clock.now_ms += _TICK_MS
            self._peer.broker.tick(self._peer.clock.now_ms)
            self._take()
        count = min(len(view), len(self._incoming))
        view[:count] = self._incoming[:count]
        del self._incoming[:count]
        return count

    def settimeout(self, seconds: float) -> None:
        assert seconds > 0
        self._timeout_s = seconds

    def has_input(self) -> bool:
        return self._is_ended or bool(self._incoming)

    def close(self) -> None:
        self._is_ended = True

    def _take(self) -> None:
        for reply in self._peer.broker.take_replies():
            if reply.connection_id == self._context.connection_id and self._asked:
                parts = reply.parts or ()
                data = b"".join(part.read() if isinstance(part, FileSlice) else bytes(part) for part in parts)
                if self._asked[0][0] or parts:  # a Produce with acks=0 has no response
                    self._incoming += self._framed(data, *self._asked.pop(0))

    def _framed(self, data: bytes, api_key: int, version: int, correlation_id: int) -> bytes:
        """Return a response with its length, honest or not."""
        dice = self._peer.dice
        if dice.random() >= self._peer.share:
            return frame_length([data]) + data
        match dice.randrange(20):
            case 0:
                return struct.pack(">i", dice.choice(_LENGTHS)) + data
            case 1:
                data = struct.pack(">i", dice.choice((0, -1, correlation_id + 1))) + data[4:]
            case 2 | 3:
                data = data[:4] + damage(data[4:], dice, dice.choice((1, 1, 4)))
            case 4:
                data = data[: dice.choice((4, 5, 6, 8, dice.randrange(len(data) + 1)))]
            case 5:
                self._is_ended = True
                return b""
            case 6:
                return b""
            case 7:
                message = random_message(response_class(api_key).SCHEMA.name, version, dice.getrandbits(32))
                data = b"".join(map(bytes, write_response(api_key, version, correlation_id, message)))
            case _:
                data = self._with_odd_fields(data, api_key, version, correlation_id)
        return frame_length([data]) + data

    def _with_odd_fields(self, data: bytes, api_key: int, version: int, correlation_id: int) -> bytes:
        dice = self._peer.dice
        try:
            message = response_class(api_key).decode(data, version, read_response_header(api_key, version, data)[1])
            for _ in range(dice.choice((1, 1, 1, 2, 5))):
                _FIELDS.change(message, version, dice)
            return with_invalid_text(b"".join(map(bytes, write_response(api_key, version, correlation_id, message))))
        except ProtocolError:
            return damage(data, dice)
