"""What Spark calls: `writer()` and `streamWriter()` of the data source give these.

A task writes its rows in a transaction of its own and leaves it open; its message to the driver says which it is. The
driver's `commit` settles the whole batch in one step and then commits the transactions; docs/decisions/
0020-exactly-once-sink.md has the protocol and what every kind of crash leads to.

Spark makes a writer anew on the driver for every micro-batch, before its tasks begin; then the ledger is opened.
Another one is made for each `commit` and `abort`, which know what tasks' messages tell them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from tailrace.client.cluster.cluster import ClusterClient
from tailrace.client.cluster.coordinators import Coordinators
from tailrace.client.errors import ClientError, UnknownTopic, Unreachable
from tailrace.client.producing.sequenced import SequencedProducer
from tailrace.client.producing.transactions import Transactions
from tailrace.spark.sink.decision import Decision, Share, task_id
from tailrace.spark.sink.errors import AnotherRun, NotWritten, RowsChanged
from tailrace.spark.sink.input_columns import InputColumns
from tailrace.spark.sink.ledger import Fence, Ledger, Standing
from tailrace.spark.sink.options import WriteOptions
from tailrace.spark.sink.task_writer import TaskWriter
from tailrace.spark.worker_process import kept_cluster

QUERY_ID = "sql.streaming.queryId"
BATCH_ID = "streaming.sql.batchId"
RESTART_MS = 15_000  # a broker that is started again is back by then; an address that is wrong is told soon enough


@dataclass(frozen=True, slots=True)
class Batch:
    """Which micro-batch of which query; of a batch job with txnAppId, which version."""

    query: str
    number: int


@dataclass(frozen=True)
class TaskMessage(WriterCommitMessage):
    """What a task tells the driver. Without a share it wrote nothing that has to be committed."""

    share: Share | None = None
    topic: str = ""
    fence: Fence | None = None
    batch: Batch | None = None


class LogWriter(DataSourceArrowWriter):
    """A batch job: all or nothing, unless the driver dies while it commits."""

    def __init__(self, options: WriteOptions, columns: InputColumns) -> None:
        self._options = options
        self._columns = columns
        self._batch: Batch | None = None
        self._standing: Standing | None = None
        with connected(options, patience_ms=0) as coordinators:
            check_topic(options, coordinators.cluster)
            if options.is_exactly_once and options.version is not None:
                self._batch = Batch("", options.version)
                self._standing = ledger_of(options, coordinators).open()

    def write(self, iterator: Iterator[Any]) -> TaskMessage:
        return write_task(iterator, self._options, self._columns, self._standing, self._batch)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        commit(self._options, messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        if self._options.is_exactly_once:
            fence = None if self._standing is None else self._standing.fence
            with connected(self._options) as coordinators:
                give_up(ledger_of(self._options, coordinators), messages, fence)


class LogStreamWriter(DataSourceStreamArrowWriter):
    """A stream: each micro-batch exactly once, whatever ends before it is done."""

    def __init__(self, options: WriteOptions, columns: InputColumns, *, is_for_tasks: bool) -> None:
        """is_for_tasks: a micro-batch is about to begin, with tasks that get copies of this writer."""
        self._options = options
        self._columns = columns
        self._standing: Standing | None = None
        if is_for_tasks:
            with connected(options, patience_ms=RESTART_MS) as coordinators:
                check_topic(options, coordinators.cluster)
                if options.is_exactly_once:
                    self._standing = ledger_of(options, coordinators).open()

    def write(self, iterator: Iterator[Any]) -> TaskMessage:
        batch = current_batch() if self._options.is_exactly_once else None
        if self._options.is_exactly_once and self._standing is None:
            raise NotWritten("exactly-once needs a driver that looks before each micro-batch, and this one did not")
        return write_task(iterator, self._options, self._columns, self._standing, batch)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        commit(self._options, messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        # Without a message there is no telling whether another run has taken over, and the transactions that are open
        # its own: then the next run aborts them, or their timeout.
        fence = next((one.fence for one in _written(messages) if one.fence is not None), None)
        if fence is not None:
            with connected(self._options) as coordinators:
                give_up(ledger_of(self._options, coordinators), messages, fence)


def current_batch() -> Batch:
    """The micro-batch that this task belongs to, as Spark tells its tasks."""
    context = TaskContext.get()
    assert context is not None, "this runs in a task"
    query, number = context.getLocalProperty(QUERY_ID), context.getLocalProperty(BATCH_ID)
    if query is None or number is None:
        raise NotWritten("exactly-once needs to know the micro-batch, and Spark does not tell; use at-least-once")
    return Batch(query, int(number))


def current_attempt() -> tuple[int, int]:
    """The task's number, and which attempt at it this is."""
    context = TaskContext.get()
    assert context is not None, "this runs in a task"
    return context.partitionId(), context.attemptNumber()


def write_task(
    rows: Iterator[Any],
    options: WriteOptions,
    columns: InputColumns,
    standing: Standing | None,
    batch: Batch | None,
) -> TaskMessage:
    task, attempt = current_attempt()
    fence = None if standing is None else standing.fence
    again = None
    if standing is not None and batch is not None:
        again = _share_to_write_again(standing, batch, task)
        if again is _NOTHING:
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
            written = Share(task, attempt, -1, -1, 0, 0)
        else:
            writer.finish()
            written = Share(task, attempt, producer.producer_id, producer.epoch, writer.rows, writer.digest)
        if again is not None and (again.rows, again.digest) != (written.rows, written.digest):
            raise RowsChanged(
                f"task {task} has to write its rows of batch {batch.number if batch else ''} again, and got others: "
                f"{written.rows} rows instead of {again.rows}; with the same sources, partitions and settings it gets "
                "the same ones"
            )
        if not options.is_exactly_once or writer is None or not writer.rows:
            return TaskMessage()
        return TaskMessage(written, writer.topics[0], fence, batch)


_NOTHING = Share(-1, -1, -1, -1, 0, 0)


def _share_to_write_again(standing: Standing, batch: Batch, task: int) -> Share | None:
    """_NOTHING for a batch that is written; a share for what it lacks; None for a batch that is new."""
    last = standing.last
    if last is None or last.query != batch.query:
        return None
    lost = {share.task: share for share in standing.lost}
    if batch.number == last.batch:
        return lost.get(task, _NOTHING)
    if batch.number < last.batch:
        raise AnotherRun(
            f"batch {batch.number} was written before, and batches up to {last.batch} after it: the checkpoint is "
            "older than the topic; use a new checkpoint, or another txnAppId, to write them again"
        )
    if lost:
        tasks = ", ".join(map(str, sorted(lost)))
        raise AnotherRun(f"batch {last.batch} lacks the rows of task {tasks}, and batch {batch.number} comes after it")
    return None


def _written(messages: Sequence[WriterCommitMessage | None]) -> list[TaskMessage]:
    return [one for one in messages if isinstance(one, TaskMessage) and one.share is not None]


def _shares(messages: Sequence[WriterCommitMessage | None]) -> tuple[Share, ...]:
    return tuple(one.share for one in _written(messages) if one.share is not None)


def commit(options: WriteOptions, messages: Sequence[WriterCommitMessage | None]) -> None:
    written, shares = _written(messages), _shares(messages)
    if not written:
        return
    first = written[0]
    with connected(options) as coordinators:
        ledger = ledger_of(options, coordinators)
        if first.fence is None or first.batch is None:
            lost = ledger.commit(shares)
            if lost:
                tasks = ", ".join(str(share.task) for share in lost)
                raise NotWritten(f"the rows of task {tasks} are not written: their transactions were aborted before")
            ledger.abort_leftovers()
            return
        number, topic = first.fence.number + 1, min(one.topic for one in written)
        decision = Decision(number, first.batch.query, first.batch.number, topic, shares)
        ledger.decide(first.fence, decision)
        ledger.carry_out(decision)


def give_up(ledger: Ledger, messages: Sequence[WriterCommitMessage | None], fence: Fence | None) -> None:
    if fence is None:
        ledger.abort(_shares(messages))
    else:
        ledger.give_up(fence, _shares(messages))


def ledger_of(options: WriteOptions, coordinators: Coordinators) -> Ledger:
    return Ledger(coordinators, options.transactional_id, options.transaction_timeout_ms)


def check_topic(options: WriteOptions, cluster: ClusterClient) -> None:
    """A topic that is not there is told before a job begins."""
    if options.topic is not None:
        try:
            cluster.topic(options.topic)
        except UnknownTopic:
            raise NotWritten(f"there is no topic {options.topic!r} at {options.bootstrap}") from None


@contextmanager
def connected(options: WriteOptions, patience_ms: int | None = None) -> Iterator[Coordinators]:
    """A cluster that answers, waited for if need be: a broker may be about to start. Errors are one sentence."""
    try:
        with kept_cluster(options.bootstrap, options.settings) as coordinators:
            patience = coordinators.cluster.patience(patience_ms)
            while not coordinators.cluster.is_connected:
                try:
                    coordinators.cluster.refresh(())
                    break
                except Unreachable as error:
                    if not error.is_retriable or not patience.pause():
                        raise
            yield coordinators
    except ClientError as error:
        raise NotWritten(f"the cluster at {options.bootstrap} cannot be written to: {error}") from None
