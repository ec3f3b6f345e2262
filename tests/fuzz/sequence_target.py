"""Sequences: requests whose values depend on earlier responses, with time passing, at every kind of listener.

What must hold is what `RequestTarget` checks, and also:

- a request costs processor time and memory in proportion to its size;
- the committed offsets and the transactions are the same after a restart.

Client 0 uses a plain listener as a super user. Client 1 uses a listener with SASL. Client 2 uses the plain listener as
a user whose rights end at some topics and groups.
"""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any, Final

from tailrace.broker.requests.request_context import ConnectionContext
from tailrace.broker.security.guard import SaslSession
from tailrace.protocol import messages as m
from tailrace.protocol.errors import ProtocolError
from tailrace.protocol.headers import read_request_header, write_request_header
from tailrace.protocol.message import Message, Struct
from tailrace.protocol.registry import request_class
from tests.costs.measure import memory_bytes, reset_peak
from tests.fuzz.frames import join_frames
from tests.fuzz.limits import InvariantBroken, TooLarge, TooLong
from tests.fuzz.request_target import CLIENTS, RequestTarget, Waiting, describe
from tests.fuzz.sequence_seeds import (
    GUARDED,
    LIMITED,
    LONG_NUMBER,
    MEMBER,
    NUMBER,
    TOPIC_ID,
    close,
    closed_client,
    sequences,
    wait,
    waited_ms,
)
from tests.support.secured import jaas

CPU_SECONDS_BASE: Final = 0.5  # the code is slower where its coverage is watched
CPU_SECONDS_A_BYTE: Final = 20e-6
GROWTH_BYTES_BASE: Final = 50_000_000
GROWTH_A_BYTE: Final = 300
MEASURED_BYTES_MIN: Final = 4_000  # looking at a process's memory takes longer than handling a small request
WAIT_MS_MAX: Final = 1_000_000
TICKS_A_WAIT: Final = 20
REPLY_TICKS_MAX: Final = 100
REPLY_JUMPS_MAX: Final = 5
LOAD_TICKS_MAX: Final = 50
SETTINGS: Final = {
    "listeners": "PLAINTEXT://127.0.0.1:9092,SASL_PLAINTEXT://127.0.0.1:9093",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": jaas("Plain", "x", "y", alice="secret"),
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS;User:alice",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "share.coordinator.state.topic.num.partitions": "2",
}
_WAITS: Final = (1, 50, 500, 3_000, 10_000, 46_000, 61_000, 300_000, 1_000_000)


class Learned:
    """The values that a client has learned from responses."""

    def __init__(self) -> None:
        self.member = ""
        self.numbers: dict[str, int] = {}

    def take(self, response: Any) -> None:
        member = getattr(response, "member_id", None)
        if member:
            self.member = member
        for name in ("generation_id", "member_epoch", "producer_id", "producer_epoch", "session_id"):
            value = getattr(response, name, None)
            if isinstance(value, int) and value >= 0:
                self.numbers[name] = value

    def of(self, name: str) -> int:
        if name.endswith("session_epoch"):
            self.numbers[name] = self.numbers.get(name, 0) + 1
        name = name.removeprefix("v3_and_below_")
        return self.numbers.get("generation_id" if name == "generation_id_or_member_epoch" else name, 0)


class SequenceTarget(RequestTarget):
    def __init__(self) -> None:
        self._learned = {number: Learned() for number in range(CLIENTS)}
        self._pid = int(Path("/proc/self").readlink().name)
        super().__init__(SETTINGS)
        self._sequences = sequences()

    def _create_topics(self) -> None:
        """Create the coordinators' topics, too, and give the limited client some rights."""
        super()._create_topics()
        for key_type, key in enumerate(("group", "transaction")):
            self._ask_well(m.FindCoordinatorRequest(key=key, key_type=key_type), 3)
        acls = m.CreateAclsRequest()
        for resource, name, operations in ((2, "orders", (3, 4, 8)), (3, "group", (3, 8)), (3, "modern", (3, 8))):
            for operation in operations:
                acls.creations.append(
                    acls.AclCreation(
                        resource_type=resource,
                        resource_name=name,
                        principal="User:limited",
                        host="*",
                        operation=operation,
                        permission_type=3,
                    )
                )
        assert not any(one.error_code for one in self._ask_well(acls, 3).results)

    def renew(self) -> None:
        super().renew()
        self._learned = {number: Learned() for number in range(CLIENTS)}
        for number, client in self._clients.items():
            self.connected(number, client)

    def connected(self, number: int, client: Waiting) -> None:
        """Put a new connection on its listener."""
        if number == GUARDED:
            client.context.listener, client.context.is_authenticated = "SASL_PLAINTEXT", False
        elif number == LIMITED:
            client.context.principal = "User:limited"

    def seeds(self) -> list[bytes]:
        return [join_frames(steps) for steps in self._sequences]

    def mutate(self, data: bytes, dice: random.Random) -> bytes:
        choice = dice.random()
        if choice < 0.1:
            return data + join_frames([wait(dice.choice(_WAITS))])
        if choice < 0.13:
            return data + join_frames([close(dice.randrange(CLIENTS))])
        if choice < 0.25:
            steps = dice.choice(self._sequences)
            at = dice.randrange(len(steps))
            return data + join_frames(steps[at : at + dice.choice((1, 2, 5))])
        return super().mutate(data, dice)

    def _send(self, frame: bytes) -> None:
        milliseconds = waited_ms(frame)
        if milliseconds is not None:
            self._pass_time(min(milliseconds, WAIT_MS_MAX))
            return
        closed = closed_client(frame)
        if closed is not None:
            self._close(closed % CLIENTS)
            return
        number = int.from_bytes(frame[4:8], "big") % CLIENTS
        self._await_reply(self._clients[number])  # the next request may contain what that response says
        self._send_measured(number, self._bound(frame, self._learned[number]))

    def _send_measured(self, number: int, frame: bytes) -> None:
        watched = len(frame) >= MEASURED_BYTES_MIN
        if watched:
            reset_peak(self._pid)
        before = memory_bytes(self._pid) if watched else 0
        began = time.process_time()
        super()._send(frame)
        took = time.process_time() - began
        if took > CPU_SECONDS_BASE + CPU_SECONDS_A_BYTE * len(frame):
            raise TooLong(f"{describe(frame)} of {len(frame)} bytes takes {took:.3f} s of processor time")
        growth = memory_bytes(self._pid, "VmHWM") - before if watched else 0
        if growth > GROWTH_BYTES_BASE + GROWTH_A_BYTE * len(frame):
            raise TooLarge(f"{describe(frame)} of {len(frame)} bytes takes {growth} bytes of memory")

    def _hand_over(self, frame: bytes, client: Waiting) -> None:
        if client is self._clients[GUARDED]:
            session = client.context.session
            client.sends_bare_token = isinstance(session, SaslSession) and session.expects_bare_token
            self._broker.handle_guarded(memoryview(bytearray(frame)), client.context, self._now_ms)
        else:
            super()._hand_over(frame, client)

    def _await_reply(self, client: Waiting) -> None:
        for turn in range(REPLY_TICKS_MAX + REPLY_JUMPS_MAX):
            if client.frame is None:
                return
            deadline = self._broker.next_deadline_ms() or 0
            if turn >= REPLY_TICKS_MAX:  # a client may choose its timeout, up to 2,147,483,647 ms
                deadline = self._now_ms + 2**31
            self._now_ms = max(self._now_ms + 1, deadline)
            self._broker.tick(self._now_ms)
            self._take_replies()
        raise InvariantBroken(f"{describe(client.frame)} is never answered")

    def _pass_time(self, milliseconds: int) -> None:
        end = self._now_ms + milliseconds
        for _ in range(TICKS_A_WAIT):
            deadline = self._broker.next_deadline_ms()
            if deadline is None or deadline > end:
                break
            self._now_ms = max(self._now_ms + 1, deadline)
            self._broker.tick(self._now_ms)
            self._take_replies()
        self._now_ms = max(self._now_ms, end)
        self._broker.tick(self._now_ms)
        self._take_replies()

    def _close(self, number: int) -> None:
        client = self._clients[number]
        self._broker.connection_closed(client.context.connection_id, self._now_ms)
        self._gone.add(client.context.connection_id)
        client.frame = None
        client.context = ConnectionContext(next(self._connection_ids))
        self._replaced(client)

    def _replaced(self, client: Waiting) -> None:
        number = next(number for number, one in self._clients.items() if one is client)
        self.connected(number, client)

    def _answered(self, client: Waiting, response: Any) -> None:
        number = next(number for number, one in self._clients.items() if one is client)
        self._learned[number].take(response)

    # Marks

    def _bound(self, frame: bytes, learned: Learned) -> bytes:
        """Return the frame with marks replaced by what the client has learned."""
        try:
            header, position = read_request_header(frame)
            message = request_class(header.api_key).decode(frame, header.api_version, position)
            self._bind(message, message, header.api_version, learned)
            return write_request_header(header) + message.encode(header.api_version)
        except ProtocolError:
            return frame  # not a request: it is sent as it is

    def _bind(self, message: Message, struct: Struct, version: int, learned: Learned) -> None:
        for field in struct.SCHEMA.fields:
            value = getattr(struct, field.attribute)
            if field.struct is not None:
                inside = value if field.is_array else [value]
                for one in inside or ():
                    if one is not None and one is not getattr(type(one), "DEFAULT", None):
                        self._bind(message, one, version, learned)
            elif value == MEMBER:
                setattr(struct, field.attribute, learned.member)
            elif value == TOPIC_ID:
                setattr(struct, field.attribute, self.topic_id("orders"))
            elif value in (NUMBER, LONG_NUMBER) and not isinstance(value, bool):
                setattr(struct, field.attribute, learned.of(field.attribute))

    # A restart

    def _restart(self) -> None:
        self._pass_time(600_000)
        self._pass_time(10_000)
        before = self._state()
        super()._restart()
        after = self._state()
        if before != after:
            raise InvariantBroken(f"the state before a restart and after it: {before} and {after}")

    def _ask_when_loaded(self, request: Any, version: int) -> Any:
        for _ in range(LOAD_TICKS_MAX):
            response = self._ask_well(request, version)
            if not response.error_code:
                return response
            self._pass_time(10)
        raise InvariantBroken(f"a coordinator is refused with {response.error_code} after a restart")

    def _state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the committed offsets by group, and the transactions by id."""
        offsets: dict[str, Any] = {}
        for group in self._ask_when_loaded(m.ListGroupsRequest(), 4).groups:
            if group.protocol_type != "share":
                fetched = m.OffsetFetchRequest()
                fetched.groups = [fetched.OffsetFetchRequestGroup(group_id=group.group_id, topics=None)]
                (found,) = self._ask_well(fetched, 9).groups
                kept = [
                    (topic.name, one.partition_index, one.committed_offset, one.metadata)
                    for topic in found.topics
                    for one in topic.partitions
                ]
                if kept:
                    offsets[group.group_id] = sorted(kept)
        listed = self._ask_when_loaded(m.ListTransactionsRequest(), 0).transaction_states
        return offsets, {one.transactional_id: (one.producer_id, one.transaction_state) for one in listed}
