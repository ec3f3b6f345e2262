"""The Spark sink without Spark: a driver, its tasks and their crashes, simulated in one process.

    query = SinkQuery(bootstrap, "orders", "a query")
    query.run(0, [[b"one", b"two"], [b"three"]])       # micro-batch 0: two tasks

`Crash` can be raised at any request that changes the cluster: before it is sent, or before its response is read. The
sink cannot catch it. Afterwards a new driver is started, as after kill -9.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pyarrow as pa

from tailrace.client.batches import FetchOptions, fetch
from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.network.connection import Connection
from tailrace.client.offsets import latest_offsets
from tailrace.client.visible_batches import IsolationLevel
from tailrace.model.ids import TopicPartition
from tailrace.protocol.messages import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    OffsetCommitRequest,
    ProduceRequest,
    TxnOffsetCommitRequest,
)
from tailrace.records.batch import RecordBatch
from tailrace.records.record import iter_records
from tailrace.spark.sink import writer as sink
from tailrace.spark.sink.input_columns import input_columns
from tailrace.spark.sink.options import write_options

Rows = Sequence[bytes]
CHANGES = (
    InitProducerIdRequest,
    AddPartitionsToTxnRequest,
    AddOffsetsToTxnRequest,
    ProduceRequest,
    TxnOffsetCommitRequest,
    EndTxnRequest,
    OffsetCommitRequest,
)


class Crash(BaseException):
    """A crash of the process."""


class Doom:
    """A counter of requests that change the cluster, which raises Crash at one of them."""

    def __init__(self, at: int, *, answer_is_lost: bool) -> None:
        self.at = at
        self.answer_is_lost = answer_is_lost
        self.seen = 0

    @contextmanager
    def hangs_over(self) -> Iterator[Doom]:
        send = Connection.send

        def doomed(connection: Connection, message: Any, **bounds: Any) -> Any:
            if not isinstance(message, CHANGES):
                return send(connection, message, **bounds)
            self.seen += 1
            if self.seen != self.at:
                return send(connection, message, **bounds)
            if self.answer_is_lost:
                send(connection, message, **bounds)
            raise Crash

        with patch.object(Connection, "send", doomed):
            yield self


class SinkQuery:
    def __init__(self, bootstrap: str, topic: str, name: str, **options: str) -> None:
        given = {"kafka.bootstrap.servers": bootstrap, "topic": topic, "txnAppId": name, **options}
        self.options = write_options(given, is_stream=True)
        self.columns = input_columns([("value", "binary")], topic)
        self.query_id = name

    def begin(self) -> sink.LogStreamWriter:
        """Create the driver's writer for a micro-batch, and return the copy for tasks."""
        made = sink.LogStreamWriter(self.options, self.columns, is_for_tasks=True)
        copy: sink.LogStreamWriter = pickle.loads(pickle.dumps(made))
        return copy

    def task(
        self, writer: sink.LogStreamWriter, batch: int, number: int, rows: Rows, attempt: int = 0
    ) -> sink.TaskMessage:
        arrow = pa.record_batch([pa.array(rows, pa.binary())], names=["value"])
        with (
            patch.object(sink, "current_batch", lambda: sink.Batch(self.query_id, batch)),
            patch.object(sink, "current_attempt", lambda: (number, attempt)),
        ):
            message: sink.TaskMessage = pickle.loads(pickle.dumps(writer.write(iter([arrow] if rows else []))))
            return message

    def end(self, batch: int, messages: Sequence[sink.TaskMessage | None], *, is_commit: bool = True) -> None:
        last = sink.LogStreamWriter(self.options, self.columns, is_for_tasks=False)
        (last.commit if is_commit else last.abort)(messages, batch)

    def run(self, batch: int, tasks: Sequence[Rows]) -> None:
        """Run a micro-batch without failures."""
        writer = self.begin()
        self.end(batch, [self.task(writer, batch, number, rows) for number, rows in enumerate(tasks)])


def committed_values(bootstrap: str, topic: str) -> list[bytes]:
    """Return the values of a topic that a read_committed consumer sees now, in any order."""
    found: list[bytes] = []
    options = FetchOptions(isolation=IsolationLevel.READ_COMMITTED, partition_max_bytes=16_777_216)
    with ClusterClient(bootstrap) as cluster:
        positions = dict.fromkeys(cluster.topic(topic).topic_partitions, 0)
        ends = latest_offsets(cluster, positions, IsolationLevel.READ_COMMITTED)
        for partition, end in ends.items():
            position = 0
            while position < end:
                fetched = fetch(cluster, {partition: position}, options)[partition]
                for batch in fetched.batches():
                    assert isinstance(batch, RecordBatch)
                    found += [record.value or b"" for record in iter_records(batch)]
                position = fetched.next_position(position)
    return found


def open_end(bootstrap: str, topic: str) -> dict[TopicPartition, int]:
    """Return the number of offsets after the last stable offset of each partition."""
    with ClusterClient(bootstrap) as cluster:
        partitions = cluster.topic(topic).topic_partitions
        stable = latest_offsets(cluster, partitions, IsolationLevel.READ_COMMITTED)
        ends = latest_offsets(cluster, partitions, IsolationLevel.READ_UNCOMMITTED)
    return {partition: ends[partition] - stable[partition] for partition in partitions}
