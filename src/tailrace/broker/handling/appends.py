"""Appends: the Produce requests of a round, written together, and answered in order.

    open ──► (place …) ──► add ──► carry_out: write, a partition at a time ──► respond, or wait for replicas (acks=all)

All requests of a round for one partition cost one write. A connection may send several Produce requests in a round, and
they may wait for replicas together. They form the connection's line: `open` gives a request its place, and responses
are sent in the order of the line. A request of another API is held until the line is empty.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from tailrace.broker.handling.round import Round
from tailrace.broker.replies import Replies
from tailrace.broker.requests.request_context import ConnectionContext
from tailrace.diagnostics.internal_errors import InternalErrors
from tailrace.model.steps import Steps
from tailrace.records.batch import Buffer
from tailrace.records.checks.checked_records import CheckedRecords
from tailrace.replication.delayed_produce import DelayedProduce, try_decide
from tailrace.replication.hosted_partitions import HostedPartitions
from tailrace.replication.partition import Partition
from tailrace.replication.produce import ProducePart
from tailrace.waiting.purgatory import Purgatory

ALL_ACKS = -1
REQUESTS_A_ROUND = 256  # then no connection hands over a second request before the round ends
PARTS_PER_STEP = 128  # a request with more partitions pauses each time after this number


class ProduceRequest(Protocol):
    """A Produce request that has no response yet."""

    context: ConnectionContext
    acks: int
    deadline_ms: int
    parts: list[ProducePart]
    is_ready: bool  # every part has its final error

    def send(self, now_ms: int) -> None:
        """Send the response."""

    @property
    def client_id(self) -> str | None: ...


class Appends:
    def __init__(
        self,
        partitions: HostedPartitions,
        purgatory: Purgatory,
        current_round: Round,
        replies: Replies,
        internal_errors: InternalErrors,
    ) -> None:
        self._partitions = partitions
        self.purgatory = purgatory
        self._round = current_round
        self._replies = replies
        self._internal_errors = internal_errors
        self._added: list[ProduceRequest] = []  # the requests of this round, in order
        self._touched: dict[Partition, None] = {}  # partitions with placed batches
        self._failed: list[tuple[Partition, OSError]] = []
        self._now_ms = 0
        self._lines: dict[int, deque[ProduceRequest]] = {}  # by connection
        self._held: dict[int, Callable[[int], object]] = {}  # by connection: the request that waits for an empty line
        self.count = 0  # requests added since the start
        self.room = REQUESTS_A_ROUND  # for more requests of this round

    # The line of a connection

    def open(self, request: ProduceRequest) -> None:
        """Give a request its place in the line of its connection."""
        connection_id = request.context.connection_id
        line = self._lines.get(connection_id)
        if line is None:
            self._lines[connection_id] = deque((request,))
        else:
            line.append(request)

    def is_in_line(self, connection_id: int) -> bool:
        """Return True if Produce requests of a connection have no response yet."""
        return connection_id in self._lines

    def hold(self, connection_id: int, handle: Callable[[int], object]) -> None:
        """Call `handle(now_ms)` when the line of a connection is empty."""
        assert connection_id not in self._held, f"connection {connection_id} already holds a request"
        self._held[connection_id] = handle

    def connection_closed(self, connection_id: int) -> None:
        """Forget the line of a connection."""
        self._lines.pop(connection_id, None)
        self._held.pop(connection_id, None)

    # A round

    def place(self, part: ProducePart, records: Buffer | CheckedRecords, acks: int, now_ms: int) -> None:
        """Place the records of one partition. If they are refused, `part` has the error."""
        failure = part.place(self._partitions, records, acks, now_ms)
        if part.partition is not None:
            self._touched[part.partition] = None
            if failure is not None:
                self._failed.append((part.partition, failure))

    def add(self, request: ProduceRequest, now_ms: int) -> None:
        """Schedule the write of a request's placed records, and its response.

        Both happen when the round ends, or before a request of another API is handled.
        """
        self._added.append(request)
        self._now_ms = now_ms
        self.count += 1
        self.room -= 1
        self._round.collect(self)

    def carry_out(self) -> None:
        """Write the placed records, a partition at a time, and respond in order."""
        added, self._added = self._added, []
        self.room = REQUESTS_A_ROUND
        now_ms, done = self._now_ms, 0
        try:
            self.write_touched(now_ms)
            for request in added:
                self._conclude(request, now_ms, self._count_parts(request.parts, request.acks))
                done += 1
        except Exception as error:
            for request in added[done:]:
                self.connection_closed(request.context.connection_id)
                self._replies.close(request.context.connection_id)
            self._internal_errors.survive("a group of appends", error, now_ms)

    def write_touched(self, now_ms: int) -> None:
        """Write the placed records. A partition whose disk fails is taken offline."""
        touched, self._touched = self._touched, {}
        failed, self._failed = self._failed, []
        for partition in touched:
            try:
                partition.write_placed(now_ms)
            except OSError as error:
                failed.append((partition, error))
            else:
                self._round.appended(partition.key, now_ms)
        for partition, failure in failed:
            self._partitions.failed(partition, failure)

    def written_in_steps(self, request: ProduceRequest, now_ms: int) -> Steps[None]:
        """Like `carry_out`, for one request with many parts whose placed records are already written."""
        parts, are_decided = request.parts, True
        for first in range(0, len(parts), PARTS_PER_STEP):
            are_decided &= self._count_parts(parts[first : first + PARTS_PER_STEP], request.acks)
            now_ms = yield
        self._conclude(request, now_ms, are_decided)

    def _count_parts(self, parts: Sequence[ProducePart], acks: int) -> bool:
        """Count the written parts in the metrics. Return True if no part waits for replicas."""
        are_decided = True
        partitions = self._partitions
        for part in parts:
            if not part.error and part.count(partitions) and acks == ALL_ACKS and not try_decide(part, partitions):
                are_decided = False
        return are_decided

    def _conclude(self, request: ProduceRequest, now_ms: int, are_decided: bool) -> None:
        """Respond to a request whose records are written, or let it wait for replicas."""
        if are_decided:
            self.respond(request, now_ms)
            return
        operation = DelayedProduce(
            request.parts, self._partitions, request.deadline_ms, lambda _, now_ms: self.respond(request, now_ms)
        )
        self.purgatory.watch(operation, operation.keys(), now_ms)
        self._replies.parked(request.context, operation, request.client_id)

    # Responses

    def respond(self, request: ProduceRequest, now_ms: int) -> None:
        """Send the response as soon as the responses before it in the line are sent."""
        request.is_ready = True
        connection_id = request.context.connection_id
        line = self._lines.get(connection_id)
        if line is None:
            return  # the client is gone
        while line and line[0].is_ready:
            line.popleft().send(now_ms)
        if not line:
            del self._lines[connection_id]
            held = self._held.pop(connection_id, None)
            if held is not None:
                held(now_ms)
