"""The protocol of the Spark sink, with Apache Kafka and with Tailrace: each micro-batch is written exactly once.

tests/support/sink_run.py simulates the driver and its tasks without Spark, and lets them crash at every request that
changes state. tests/spark/test_sink.py tests the sink inside Spark, test_sink_kills.py with killed processes.
"""

from __future__ import annotations

import random
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import PropertyMock, patch

import pytest

import tailrace
from tailrace.client.admin import NewTopic, create_topic
from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.cluster.coordinators import Coordinators
from tailrace.client.producing.transactions import Transactions
from tailrace.spark.sink.errors import AnotherDriver, NotWritten, RowsChanged
from tailrace.spark.sink.ledger import Ledger
from tests.support.kafka_broker import KafkaBroker
from tests.support.sink_run import Crash, Doom, SinkQuery, committed_values, open_end

TOPIC = "out"


@pytest.fixture(scope="module", params=[pytest.param("kafka", marks=pytest.mark.kafka), "tailrace"])
def bootstrap(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory: Path = tmp_path_factory.mktemp("sink")
    if request.param == "tailrace":
        with tailrace.Broker(directory / "data") as ours:
            ours.create_topic(TOPIC, partitions=2)
            yield ours.bootstrap
    else:
        with KafkaBroker(request.getfixturevalue("kafka"), directory) as theirs:
            with ClusterClient(theirs.bootstrap) as cluster:
                create_topic(cluster, NewTopic(name=TOPIC, partitions=2, replication_factor=1))
            yield theirs.bootstrap


@pytest.fixture(params=["newer transactions", pytest.param("older transactions", marks=pytest.mark.slow)])
def protocol(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.param == "newer transactions":
        yield
        return
    with patch.object(Coordinators, "has_transaction_version_2", PropertyMock(return_value=False)):
        yield


@pytest.fixture
def query(bootstrap: str) -> SinkQuery:
    return SinkQuery(bootstrap, TOPIC, f"q{uuid.uuid4().hex[:8]}")


def rows(query: SinkQuery, batch: int) -> list[list[bytes]]:
    """Return the rows of two tasks, two for the first."""
    start = f"{query.query_id} {batch} "
    return [[f"{start}{task}{row}".encode() for row in range(2 - task)] for task in range(2)]


def seen(query: SinkQuery) -> Counter[bytes]:
    everything = committed_values(query.options.bootstrap, TOPIC)
    return Counter(value for value in everything if value.startswith(query.query_id.encode()))


def expected(query: SinkQuery, *batches: int) -> Counter[bytes]:
    return Counter(value for batch in batches for task in rows(query, batch) for value in task)


def play(query: SinkQuery, batch: int, doom: Doom, how: str) -> None:
    """Run a micro-batch with a crash of a task, of the commit, or of the driver."""
    with doom.hangs_over():
        writer = query.begin()
        messages = []
        for number, values in enumerate(rows(query, batch)):
            try:
                messages.append(query.task(writer, batch, number, values))
            except Crash:
                if how != "task":
                    raise
                messages.append(query.task(writer, batch, number, values, attempt=1))
        try:
            query.end(batch, messages)
        except Crash:
            if how == "commit":
                query.end(batch, messages, is_commit=False)  # Spark's driver survives and aborts
            raise


DEATHS = [
    pytest.param(
        how, lost, id=f"{how} {'after' if lost else 'before'} a request", marks=[] if quick else pytest.mark.slow
    )
    for how, lost, quick in (
        ("driver", True, True),
        ("commit", False, True),
        ("task", True, False),
        ("driver", False, False),
        ("commit", True, False),
        ("task", False, False),
    )
]


@pytest.mark.parametrize(("how", "answer_is_lost"), DEATHS)
def test_each_batch_is_written_once_after_a_crash_at_any_request(
    bootstrap: str, protocol: None, how: str, answer_is_lost: bool
) -> None:
    queries = []
    for at in range(1, 100):
        query = SinkQuery(bootstrap, TOPIC, f"q{uuid.uuid4().hex[:8]}")
        doom = Doom(at, answer_is_lost=answer_is_lost)
        try:
            play(query, 0, doom, how)
        except Crash:
            query.run(0, rows(query, 0))  # Spark restarts with the batch whose commit it does not know
        queries.append(query)
        query.run(1, rows(query, 1))
        if doom.seen < at:
            break
    assert len(queries) > 9
    found = Counter(committed_values(bootstrap, TOPIC))
    for query in queries:
        mine = {value: count for value, count in found.items() if value.startswith(query.query_id.encode())}
        assert mine == expected(query, 0, 1), query.query_id
    assert set(open_end(bootstrap, TOPIC).values()) == {0}


def test_a_repeated_batch_is_written_once(query: SinkQuery) -> None:
    query.run(0, rows(query, 0))
    query.run(0, rows(query, 0))
    query.run(1, rows(query, 1))
    query.run(1, [["with other rows", "in other tasks"], [], []])
    assert seen(query) == expected(query, 0, 1)


def test_a_replaced_driver_cannot_commit(query: SinkQuery) -> None:
    zombie = query.begin()
    late = [query.task(zombie, 0, number, values) for number, values in enumerate(rows(query, 0))]
    query.run(0, rows(query, 0))
    with pytest.raises(AnotherDriver, match="is the same query running twice"):
        query.end(0, late)
    query.end(0, late, is_commit=False)
    query.run(1, rows(query, 1))
    assert seen(query) == expected(query, 0, 1)


def test_a_driver_replaced_before_its_tasks_wrote_cannot_commit(query: SinkQuery) -> None:
    zombie, successor = query.begin(), query.begin()
    late = [query.task(zombie, 0, number, values, attempt=1) for number, values in enumerate(rows(query, 0))]
    query.end(0, [query.task(successor, 0, number, values) for number, values in enumerate(rows(query, 0))])
    with pytest.raises(AnotherDriver):
        query.end(0, late)
    assert seen(query) == expected(query, 0)


def test_parallel_attempts_of_a_task_write_rows_once(query: SinkQuery) -> None:
    writer = query.begin()
    first, second = rows(query, 0)
    slow = query.task(writer, 0, 0, first)
    speculative = query.task(writer, 0, 0, first, attempt=1)
    assert speculative != slow
    query.end(0, [slow, query.task(writer, 0, 1, second)])
    assert seen(query) == expected(query, 0)
    assert set(open_end(query.options.bootstrap, TOPIC).values()) == {0}


def test_a_failed_batch_leaves_no_visible_records(query: SinkQuery) -> None:
    writer = query.begin()
    message = query.task(writer, 0, 0, rows(query, 0)[0])
    query.task(writer, 0, 1, rows(query, 0)[1])  # the message of the task was lost with its executor
    query.end(0, [message, None], is_commit=False)
    assert seen(query) == Counter()
    assert set(open_end(query.options.bootstrap, TOPIC).values()) == {0}


def lose(query: SinkQuery, message: Any) -> None:
    """Abort a task's transaction as a timeout does, by taking over its transactional id."""
    with ClusterClient(query.options.bootstrap) as cluster:
        transaction = message.output.transaction(query.options.transactional_id)
        Transactions(Coordinators(cluster)).begin(transaction.transactional_id, 60_000)


def half_committed(query: SinkQuery) -> None:
    """Commit batch 0 after one of its two transactions was aborted, so that only the other one is visible."""
    writer = query.begin()
    messages = [query.task(writer, 0, number, values) for number, values in enumerate(rows(query, 0))]
    lose(query, messages[1])
    with pytest.raises(NotWritten, match="lacks the rows of task 1"):
        query.end(0, messages)
    query.end(0, messages, is_commit=False)
    assert seen(query) == Counter(rows(query, 0)[0])


def test_a_transaction_that_timed_out_after_the_decision_is_written_again(query: SinkQuery) -> None:
    half_committed(query)
    query.run(0, rows(query, 0))
    query.run(0, rows(query, 0))
    query.run(1, rows(query, 1))
    assert seen(query) == expected(query, 0, 1)


def test_different_rows_for_a_lost_transaction_are_refused(query: SinkQuery) -> None:
    half_committed(query)
    with pytest.raises(RowsChanged, match="task 1 has to write its rows of batch 0 again, but got different"):
        query.run(0, [rows(query, 0)[0], [b"something else"]])
    with pytest.raises(
        AnotherDriver, match="batch 1 cannot be written: restart the query from a checkpoint that ends before batch 0"
    ):
        query.run(1, rows(query, 1))
    query.run(0, rows(query, 0))
    assert seen(query) == expected(query, 0)


def test_a_checkpoint_older_than_the_topic_is_refused(query: SinkQuery) -> None:
    for batch in range(3):
        query.run(batch, rows(query, batch))
    with pytest.raises(AnotherDriver, match="batch 1 was written before, as were all batches up to 2"):
        query.run(1, rows(query, 1))
    assert seen(query) == expected(query, 0, 1, 2)


@pytest.mark.slow
def test_a_decision_of_many_tasks_is_split_over_several_groups(query: SinkQuery) -> None:
    tasks = [[f"{query.query_id} {task}".encode()] for task in range(260)]
    query.run(0, tasks)
    query.run(0, tasks)
    assert seen(query) == Counter(value for values in tasks for value in values)


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_batches_above_max_message_bytes_are_split(bootstrap: str, codec: str) -> None:
    topic = f"small-{codec}"
    with ClusterClient(bootstrap) as cluster:
        small = NewTopic(name=topic, partitions=1, replication_factor=1, config={"max.message.bytes": "1000"})
        create_topic(cluster, small)
    query = SinkQuery(bootstrap, topic, f"q{uuid.uuid4().hex[:8]}", **{"kafka.compression.type": codec})
    dice = random.Random(1)
    values = [b"%05d" % number + dice.randbytes(100) for number in range(300)]
    query.run(0, [values])
    assert committed_values(bootstrap, topic) == values
    with pytest.raises(NotWritten, match=rf"{topic}-0 at .* refused a batch of .* bytes: .*MESSAGE_TOO_LARGE"):
        query.run(1, [[dice.randbytes(2_000)]])
    query.run(2, [[b"last"]])
    assert committed_values(bootstrap, topic) == [*values, b"last"]


def test_a_decided_batch_is_committed_although_spark_aborts(query: SinkQuery) -> None:
    writer = query.begin()
    messages = [query.task(writer, 0, number, values) for number, values in enumerate(rows(query, 0))]
    with patch.object(Ledger, "carry_out", side_effect=NotWritten("the broker is gone")), pytest.raises(NotWritten):
        query.end(0, messages)
    query.end(0, messages, is_commit=False)
    assert seen(query) == expected(query, 0)


class OldTransactions(KafkaBroker):
    """A cluster whose transaction.version was not upgraded."""

    def _format(self, settings: Path) -> None:
        arguments = ("--cluster-id=4L6g3nShT-eMCtK--X86sw", "-c", str(settings), "--standalone", "--ignore-formatted")
        self.installation.tool("kafka.tools.StorageTool", "format", *arguments, "--feature", "transaction.version=0")


@pytest.mark.slow
@pytest.mark.kafka
def test_the_sink_works_without_transaction_version_2(kafka: Any, tmp_path: Path) -> None:
    with OldTransactions(kafka, tmp_path / "kafka") as broker, ClusterClient(broker.bootstrap) as cluster:
        create_topic(cluster, NewTopic(name=TOPIC, partitions=2, replication_factor=1))
        assert not Coordinators(cluster).has_transaction_version_2
        query = SinkQuery(broker.bootstrap, TOPIC, "older")
        for batch in range(3):
            query.run(batch, rows(query, batch))
            query.run(batch, rows(query, batch))
        half_committed(SinkQuery(broker.bootstrap, TOPIC, "half"))
        test_each_batch_is_written_once_after_a_crash_at_any_request(broker.bootstrap, None, "driver", True)
        assert seen(query) == expected(query, 0, 1, 2)
