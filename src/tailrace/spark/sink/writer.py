"""The writers that Spark calls: `writer()` and `streamWriter()` of the data source return them.

A task writes its rows in a transaction of its own and leaves it open. Its message to the driver identifies the
transaction. The driver's `commit` decides about the whole batch in one step, and then commits the transactions.
docs/decisions/0020-exactly-once-sink.md describes the protocol and the effect of every crash.

Spark creates a new writer on the driver for every micro-batch before its tasks start; this writer opens the ledger.
For each `commit` and `abort` Spark creates another one, which knows only the messages of the tasks.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.cluster.coordinators import Coordinators
from tailrace.client.errors import ClientError, UnknownTopic, Unreachable
from tailrace.client.producing.sequenced import SequencedProducer
from tailrace.client.producing.transactions import Transactions
from tailrace.spark.sink.decision import Decision, TaskOutput, task_id
from tailrace.spark.sink.errors import AnotherDriver, NotWritten, RowsChanged
from tailrace.spark.sink.input_columns import InputColumns
from tailrace.spark.sink.ledger import Fence, Ledger, LedgerState
from tailrace.spark.sink.options import WriteOptions
from tailrace.spark.sink.task_writer import TaskWriter
from tailrace.spark.source.errors import message_only
from tailrace.spark.worker_process import reused_cluster

QUERY_ID = "sql.streaming.queryId"
BATCH_ID = "streaming.sql.batchId"
RESTART_MS = 15_000  # long enough for a broker to restart, short enough to report a wrong address


@dataclass(frozen=True, slots=True)
class Batch:
    """The identity of a micro-batch: query and number; for a batch job with txnAppId, the version."""

    query: str
    number: int


@dataclass(frozen=True)
class TaskMessage(WriterCommitMessage):
    """The message of a task to the driver. Without an output there is nothing to commit."""

    output: TaskOutput | None = None
    topic: str = ""
    fence: Fence | None = None
    batch: Batch | None = None


class LogWriter(DataSourceArrowWriter):
    """The writer of a batch job: all or nothing, unless the driver dies during the commit."""

    def __init__(self, options: WriteOptions, columns: InputColumns) -> None:
        self._options = options
        self._columns = columns
        self._batch: Batch | None = None
        self._state: LedgerState | None = None
        with connected(options, wait_ms=0) as coordinators:
            check_topic(options, coordinators.cluster)
            if options.is_exactly_once and options.version is not None:
                self._batch = Batch("", options.version)
                self._state = ledger_of(options, coordinators).open()

    @message_only()
    def write(self, iterator: Iterator[Any]) -> TaskMessage:
        return write_task(iterator, self._options, self._columns, self._state, self._batch)

    @message_only()
    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        commit(self._options, messages)

    @message_only()
    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        if self._options.is_exactly_once:
            fence = None if self._state is None else self._state.fence
            with connected(self._options) as coordinators:
                abort_batch(ledger_of(self._options, coordinators), messages, fence)


class LogStreamWriter(DataSourceStreamArrowWriter):
    """The writer of a stream: each micro-batch exactly once, also after a crash."""

    def __init__(self, options: WriteOptions, columns: InputColumns, *, is_for_tasks: bool) -> None:
        """Create a writer. With `is_for_tasks` a micro-batch is about to start; its tasks get copies of the writer."""
        self._options = options
        self._columns = columns
        self._state: LedgerState | None = None
        if is_for_tasks:
            with connected(options, wait_ms=RESTART_MS) as coordinators:
                check_topic(options, coordinators.cluster)
                if options.is_exactly_once:
                    self._state = ledger_of(options, coordinators).open()

    @message_only()
    def write(self, iterator: Iterator[Any]) -> TaskMessage:
        batch = current_batch() if self._options.is_exactly_once else None
        if self._options.is_exactly_once and self._state is None:
            raise NotWritten("internal error; please report it: the ledger was not opened before the micro-batch")
        return write_task(iterator, self._options, self._columns, self._state, batch)

    @message_only()
    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        commit(self._options, messages)

    @message_only()
    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        # Without a message, the open transactions may belong to another run that has taken over. They are left: the
        # next run aborts them, or they time out.
        fence = next((one.fence for one in _written(messages) if one.fence is not None), None)
        if fence is not None:
            with connected(self._options) as coordinators:
                abort_batch(ledger_of(self._options, coordinators), messages, fence)


def current_batch() -> Batch:
    """Return the micro-batch of this task, from Spark's local properties."""
    context = TaskContext.get()
    assert context is not None, "this runs in a task"
    query, number = context.getLocalProperty(QUERY_ID), context.getLocalProperty(BATCH_ID)
    if query is None or number is None:
        raise NotWritten(
            "exactly-once needs the id of the micro-batch, and this Spark does not provide it; use at-least-once"
        )
    return Batch(query, int(number))


def current_attempt() -> tuple[int, int]:
    """Return the number of the task and of this attempt."""
    context = TaskContext.get()
    assert context is not None, "this runs in a task"
    return context.partitionId(), context.attemptNumber()


def write_task(
    rows: Iterator[Any],
    options: WriteOptions,
    columns: InputColumns,
    state: LedgerState | None,
    batch: Batch | None,
) -> TaskMessage:
    task, attempt = current_attempt()
    fence = None if state is None else state.fence
    lost = None
    if state is not None and batch is not None:
        lost = _output_to_repeat(state, batch, task)
        if lost is _ALREADY_WRITTEN:
            for _ in rows:
                pass
            return TaskMessage()
    with connected(options) as coordinators:
        cluster, transactions = coordinators.cluster, Transactions(coordinators)
        writer: TaskWriter | None = None
        producer: SequencedProducer | None = None
        for arrow in rows:
            if writer is None or producer is None:
                transaction = None
                if options.is_exactly_once:
                    name = task_id(options.transactional_id, task, attempt)
                    transaction = transactions.begin(name, options.transaction_timeout_ms)
                producer = SequencedProducer(cluster, transactions, transaction)
                writer = TaskWriter(cluster, producer, options, columns, first_partition=task)
            writer.write(arrow)
        if writer is None or producer is None:
            written = TaskOutput(task, attempt, -1, -1, 0, 0)
        else:
            writer.finish()
            written = TaskOutput(task, attempt, producer.producer_id, producer.epoch, writer.rows, writer.digest)
        if lost is not None and (lost.rows, lost.digest) != (written.rows, written.digest):
            raise RowsChanged(
                f"task {task} has to write its rows of batch {batch.number if batch else ''} again, but got different "
                f"ones ({written.rows} rows instead of {lost.rows}): use the same sources, partitions and settings as "
                "before"
            )
        if not options.is_exactly_once or writer is None or not writer.rows:
            return TaskMessage()
        return TaskMessage(written, writer.topics[0], fence, batch)


_ALREADY_WRITTEN = TaskOutput(-1, -1, -1, -1, 0, 0)


def _output_to_repeat(state: LedgerState, batch: Batch, task: int) -> TaskOutput | None:
    """Return None for a new batch, _ALREADY_WRITTEN if the task's rows are committed, or the lost output, which the
    task must write again."""
    last = state.last
    if last is None or last.query != batch.query:
        return None
    lost = {output.task: output for output in state.lost}
    if batch.number == last.batch:
        return lost.get(task, _ALREADY_WRITTEN)
    if batch.number < last.batch:
        raise AnotherDriver(
            f"batch {batch.number} was written before, as were all batches up to {last.batch}: the checkpoint is "
            "older than the topic; use a new checkpoint, or another txnAppId, to write them again"
        )
    if lost:
        tasks = ", ".join(map(str, sorted(lost)))
        remedy = f"restart the query from a checkpoint that ends before batch {last.batch}"
        if not batch.query:
            remedy = f"run the job with txnVersion {last.batch} first"
        raise AnotherDriver(
            f"batch {last.batch} lacks the rows of task {tasks}, so batch {batch.number} cannot be written: {remedy}"
        )
    return None


def _written(messages: Sequence[WriterCommitMessage | None]) -> list[TaskMessage]:
    return [one for one in messages if isinstance(one, TaskMessage) and one.output is not None]


def _outputs(messages: Sequence[WriterCommitMessage | None]) -> tuple[TaskOutput, ...]:
    return tuple(one.output for one in _written(messages) if one.output is not None)


def commit(options: WriteOptions, messages: Sequence[WriterCommitMessage | None]) -> None:
    written, outputs = _written(messages), _outputs(messages)
    if not written:
        return
    first = written[0]
    with connected(options) as coordinators:
        ledger = ledger_of(options, coordinators)
        if first.fence is None or first.batch is None:
            lost = ledger.commit(outputs)
            if lost:
                tasks = ", ".join(str(output.task) for output in lost)
                raise NotWritten(
                    f"the rows of task {tasks} are not written: their transactions were aborted before the commit"
                )
            ledger.abort_leftovers()
            return
        number, topic = first.fence.number + 1, min(one.topic for one in written)
        decision = Decision(number, first.batch.query, first.batch.number, topic, outputs, int(time.time() * 1_000))
        ledger.decide(first.fence, decision)
        ledger.carry_out(decision)


def abort_batch(ledger: Ledger, messages: Sequence[WriterCommitMessage | None], fence: Fence | None) -> None:
    if fence is None:
        ledger.abort(_outputs(messages))
    else:
        ledger.abort_batch(fence, _outputs(messages))


def ledger_of(options: WriteOptions, coordinators: Coordinators) -> Ledger:
    return Ledger(coordinators, options.transactional_id, options.transaction_timeout_ms)


def check_topic(options: WriteOptions, cluster: ClusterClient) -> None:
    """Raise NotWritten before the job starts if its topic does not exist."""
    if options.topic is not None:
        try:
            cluster.topic(options.topic)
        except UnknownTopic:
            raise NotWritten(f"there is no topic {options.topic!r} at {options.bootstrap}") from None


@contextmanager
def connected(options: WriteOptions, wait_ms: int | None = None) -> Iterator[Coordinators]:
    """Yield a connected cluster, after waiting for it if needed, because a broker may be starting.

    Client errors are raised as NotWritten.
    """
    try:
        with reused_cluster(options.bootstrap, options.settings) as coordinators:
            budget = coordinators.cluster.retry_budget(wait_ms)
            while not coordinators.cluster.is_connected:
                try:
                    coordinators.cluster.refresh(())
                    break
                except Unreachable as error:
                    if not error.is_retriable or not budget.pause():
                        raise
            yield coordinators
    except ClientError as error:
        raise NotWritten(f"the cluster at {options.bootstrap} cannot be written to: {error}") from None
