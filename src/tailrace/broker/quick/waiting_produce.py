"""WaitingProduce: a plain Produce with acks=all whose batch is written, until the replicas in sync have it.

Its answer is made already, for the case that all goes well. If its partition is led elsewhere meanwhile, too few are in
sync, or the time is over, `apis/produce.py` puts together what is said then.

A producer sends several requests before the first is answered. Those that came together for one partition are written
one after the other and wait together, as a Run: followers fetch them in one go. They are answered in order, since the
high watermark reaches them in order, and none has an earlier deadline than the one before it. Whatever else came behind
them on that connection is kept until they are answered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tailrace.broker.request_context import ConnectionContext, Reply, Request
from tailrace.broker.services import Services
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import Offset
from tailrace.protocol.headers import read_request_header
from tailrace.protocol.primitives import Buffer
from tailrace.replication.partition import Partition
from tailrace.replication.produce import ProducedPartition
from tailrace.waiting.purgatory import DelayedOperation

_PRODUCE: Final = 0


class Run:
    """The requests of one connection that wait for the replicas of one partition."""

    __slots__ = ("_context", "_handle", "_handle_generally", "_next", "_runs", "_throttling", "count", "deadline_ms",
                 "partition")  # fmt: skip

    def __init__(
        self,
        services: Services,
        runs: dict[int, Run],
        context: ConnectionContext,
        partition: Partition,
        handle: Callable[[Buffer, ConnectionContext, int], bool],
        handle_generally: Callable[[Buffer, ConnectionContext, int], None],
    ) -> None:
        """`handle` is the short way of Produce, for what may be another one of the run."""
        self._throttling = services.throttling
        self._runs = runs
        self._context = context
        self._handle = handle
        self._handle_generally = handle_generally
        self._next: bytearray | None = None  # what came behind it
        self.partition = partition
        self.count = 0
        self.deadline_ms = 0

    def take(self, frame: Buffer, now_ms: int) -> bool:
        """Take what comes next on the connection: into the run, or to be handled after it. Whether more may follow."""
        if frame[1] == _PRODUCE and not self._throttling.is_on and self._handle(frame, self._context, now_ms):
            return True
        assert self._next is None, f"{self._context} has not been held"
        self._next = bytearray(frame)
        return False

    def leave(self) -> None:
        """End the run: nothing waits."""
        self._runs.pop(self._context.connection_id, None)

    def answered(self, now_ms: int) -> None:
        self.count -= 1
        if self.count:
            return
        was_there = self._runs.pop(self._context.connection_id, None) is not None
        if was_there and self._next is not None:
            self._handle_generally(memoryview(self._next), self._context, now_ms)


class WaitingProduce(DelayedOperation):
    __slots__ = ("_answer", "_context", "_first_offset", "_head", "_log_start", "_required", "_run", "_services")

    def __init__(
        self,
        services: Services,
        context: ConnectionContext,
        head: bytes,
        run: Run,
        offsets: tuple[Offset, Offset],
        answer: bytes,
        deadline_ms: int,
    ) -> None:
        """`head`: the request up to its topic; `offsets`: of its first record, and one past its last."""
        super().__init__(deadline_ms)
        self._services = services
        self._context = context
        self._head = head
        self._run = run
        self._first_offset, self._required = offsets
        self._log_start = run.partition.log.log_start_offset
        self._answer = answer

    def leaves_run(self) -> bool:
        """It could not be written and does not wait; says whether it was the only one of its run."""
        run = self._run
        is_only = run.count == 1
        run.count -= 1
        if is_only:
            run.leave()
        return is_only

    def try_complete(self, now_ms: int) -> bool:
        partition, partitions = self._run.partition, self._services.partitions
        if partitions.get(partition.key) is not partition:
            self._refuse(partitions.error_of(partition.key), now_ms)
            return True
        error = partition.acks_error(self._required)
        if error is None:
            return False
        if error is ErrorCode.NONE and not self._services.throttling.is_on:
            self._services.replies.errors_of(0)[0] += 1
            self._services.replies.put(Reply(self._context.connection_id, [self._answer]))
            self._run.answered(now_ms)
        else:
            self._refuse(error, now_ms)
        return True

    def expire(self, now_ms: int) -> None:
        self._refuse(ErrorCode.REQUEST_TIMED_OUT, now_ms)

    def _refuse(self, error: ErrorCode, now_ms: int) -> None:
        """Answer with whatever else became of it."""
        from tailrace.broker.requests.data.produce import answer_part

        header, _ = read_request_header(self._head)
        part = ProducedPartition(self._run.partition.key)
        part.response.base_offset = self._first_offset
        part.response.log_append_time_ms = -1
        part.response.log_start_offset = self._log_start
        part.response.error_code = error
        request = Request(
            self._context, header.api_key, header.api_version, header.correlation_id, header.client_id, None, now_ms
        )
        services = self._services
        answer_part(
            request,
            self._run.partition.topic_id,
            part,
            now_ms,
            controller=services.controller,
            replies=services.replies,
            throttling=services.throttling,
        )
        self._run.answered(now_ms)
