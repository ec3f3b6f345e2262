"""Kafka and Tailrace take turns on one directory: each ends the transactions that the other has opened.

Some producers are near their last epoch, which no test has the time to reach: their state is written to the log
beforehand.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tailrace.coordinator.transactions.transaction import Facts, TransactionState
from tailrace.coordinator.transactions.transaction_records import transaction_record
from tailrace.protocol import messages as m
from tailrace.protocol.internal_records.coordinator_records import encode_key, encode_value
from tailrace.records.batch import RecordBatch
from tailrace.records.conversion import split_any
from tailrace.records.record import iter_records
from tests.support.batches import batch
from tests.support.confluent import create_topic
from tests.support.kafka_broker import KafkaBroker, free_port
from tests.support.raw_client import RawClient
from tests.support.tailrace_process import TailraceProcess

pytestmark = pytest.mark.kafka

STATE = "__transaction_state"
SETTINGS = {"transaction.state.log.num.partitions": "1", "offsets.topic.num.partitions": "1"}
_AGAIN = {14, 15, 16, 51}  # loading, not available, elsewhere, concurrent


class Producer:
    """A transactional producer that can be stopped with an open transaction and continue with another broker."""

    def __init__(self, bootstrap: str, transactional_id: str) -> None:
        self.bootstrap = bootstrap
        self.transactional_id = transactional_id
        self.producer_id, self.epoch = -1, -1
        self._sequence = 0

    def ask(self, request: Any, version: int, code: Callable[[Any], int] = lambda answer: answer.error_code) -> Any:
        until = time.monotonic() + 30
        while True:
            with RawClient(self.bootstrap) as client:
                answer = client.ask(request, version)
            if code(answer) not in _AGAIN or time.monotonic() > until:
                return answer
            time.sleep(0.1)

    def init(self) -> None:
        find = m.FindCoordinatorRequest(key_type=1, coordinator_keys=[self.transactional_id])
        assert self.ask(find, 4, lambda answer: answer.coordinators[0].error_code).coordinators[0].error_code == 0
        reported = self.ask(
            m.InitProducerIdRequest(transactional_id=self.transactional_id, transaction_timeout_ms=900_000), 5
        )
        assert reported.error_code == 0, reported
        self.producer_id, self.epoch, self._sequence = reported.producer_id, reported.producer_epoch, 0

    def write(self, topic: str, value: bytes) -> int:
        records = batch(
            value,
            timestamp=int(time.time() * 1000),
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            sequence=self._sequence,
            transactional=True,
        )
        data = m.ProduceRequest.TopicProduceData(
            name=topic, partition_data=[m.ProduceRequest.PartitionProduceData(index=0, records=records)]
        )
        request = m.ProduceRequest(
            transactional_id=self.transactional_id, acks=-1, timeout_ms=10_000, topic_data=[data]
        )
        reported = self.ask(request, 12, lambda answer: answer.responses[0].partition_responses[0].error_code)
        (part,) = reported.responses[0].partition_responses
        if not part.error_code:
            self._sequence += 1
        return int(part.error_code)

    def end(self, *, commit: bool) -> int:
        reported = self.ask(
            m.EndTxnRequest(
                transactional_id=self.transactional_id,
                producer_id=self.producer_id,
                producer_epoch=self.epoch,
                committed=commit,
            ),
            5,
        )
        if not reported.error_code:
            self.producer_id, self.epoch, self._sequence = reported.producer_id, reported.producer_epoch, 0
        return int(reported.error_code)

    def committed(self, topic: str) -> list[bytes | None]:
        """Return the records that a read_committed consumer sees."""
        part = m.FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=10_000_000)
        request = m.FetchRequest(
            replica_id=-1,
            max_wait_ms=100,
            min_bytes=1,
            max_bytes=10_000_000,
            isolation_level=1,
            session_epoch=-1,
            topics=[m.FetchRequest.FetchTopic(topic=topic, partitions=[part])],
        )
        found = self.ask(request, 11).responses[0].partitions[0]
        aborted = [(one.first_offset, one.producer_id) for one in found.aborted_transactions or ()]
        skipped: set[int] = set()
        values: list[bytes | None] = []
        for one in split_any(found.records or b""):
            assert isinstance(one, RecordBatch)
            if one.is_control:
                skipped.discard(one.producer_id)
                continue
            if (one.base_offset, one.producer_id) in aborted:
                skipped.add(one.producer_id)
            if one.producer_id not in skipped:
                values += [record.value for record in iter_records(one)]
        return values


@pytest.fixture
def place(tmp_path: Path, kafka_broker: Callable[..., KafkaBroker]) -> Iterator[tuple[TailraceProcess, KafkaBroker]]:
    port = free_port()
    while True:
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port + 1))
            break
        port = free_port()
    options = [word for name, value in SETTINGS.items() for word in ("-o", f"{name}={value}")]
    ours = TailraceProcess(tmp_path / "node" / "data", *options, port=port)
    addresses = {
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{port + 1}",
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{port + 1}",
    }
    kafkas = kafka_broker(tmp_path / "node", port=port, properties=addresses)
    yield ours, kafkas
    if ours.process is not None:
        ours.kill()


@pytest.mark.slow
def test_each_broker_ends_the_open_transactions_of_the_other(place: tuple[TailraceProcess, KafkaBroker]) -> None:
    ours, kafkas = place
    ours.start()
    create_topic(ours.bootstrap, "t")
    first, second, third = (Producer(ours.bootstrap, one) for one in ("first", "second", "third"))
    for producer in (first, second):
        producer.init()
        assert producer.write("t", producer.transactional_id.encode()) == 0
    assert first.committed("t") == []
    assert ours.stop() == 0

    kafkas.start()
    assert first.end(commit=True) == 0
    assert second.end(commit=False) == 0
    third.init()
    assert third.write("t", b"third") == 0
    assert second.write("t", b"second again") == 0
    assert first.write("t", b"first again") == 0
    assert _until(lambda: first.committed("t") == [b"first"])
    kafkas.stop()

    ours.start()
    assert third.end(commit=True) == 0
    assert second.end(commit=True) == 0
    assert first.committed("t") == [b"first", b"third", b"second again"]
    first.init()  # a new instance: the old one's open transaction is aborted
    assert first.committed("t") == [b"first", b"third", b"second again"]
    assert first.write("t", b"at last") == 0
    assert first.end(commit=True) == 0
    assert first.committed("t")[-1] == b"at last"
    assert ours.stop() == 0
    assert ours.errors == ""


def _until(condition: Callable[[], bool]) -> bool:
    until = time.monotonic() + 20
    while not condition() and time.monotonic() < until:
        time.sleep(0.1)
    return condition()


@pytest.mark.slow
def test_producers_near_their_last_epoch_get_new_ids_as_at_kafka(
    tmp_path: Path, kafka_broker: Callable[..., KafkaBroker]
) -> None:
    options = [word for name, value in SETTINGS.items() for word in ("-o", f"{name}={value}")]
    ours = TailraceProcess(tmp_path / "ours" / "data", *options)
    reported = []
    for broker in (kafka_broker(), ours):
        broker.start()
        create_topic(broker.bootstrap, "t")
        _put_into_the_log(broker.bootstrap, {"old": 32_764, "last": 32_766, "ends": 32_765})
        if isinstance(broker, TailraceProcess):
            broker.stop()
            broker.start()
        else:
            broker.restart()
        reported.append(_at_the_end_of_epochs(broker.bootstrap))
        broker.stop()
    assert reported[1] == reported[0]
    assert sum(producer_id < 500_000 for _, code, producer_id, _ in reported[0][:-1] if not code) > 10, (
        "new ids were given"
    )
    assert ours.errors == ""


def _put_into_the_log(bootstrap: str, epochs: dict[str, int]) -> None:
    Producer(bootstrap, "nobody").init()  # creates the topic
    for number, (transactional_id, epoch) in enumerate(epochs.items()):
        facts = Facts(
            TransactionState.EMPTY, 500_000 + number, epoch, timeout_ms=60_000, last_update_ms=int(time.time() * 1000)
        )
        record = transaction_record(transactional_id, facts, 2)
        assert record.value is not None
        records = batch((encode_key(record.key), encode_value(record.value, 1)), timestamp=int(time.time() * 1000))
        data = m.ProduceRequest.TopicProduceData(
            name=STATE, partition_data=[m.ProduceRequest.PartitionProduceData(index=0, records=records)]
        )
        with RawClient(bootstrap, client_id="__admin_client") as client:  # the client id that may write to such topics
            answer = client.ask(m.ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[data]), 9)
        assert answer.responses[0].partition_responses[0].error_code == 0


def _at_the_end_of_epochs(bootstrap: str) -> list[Any]:
    """Return the ids and epochs after each step, with new ids as numbers."""
    reported: list[Any] = []
    new: list[int] = []

    def note(what: str, producer: Producer, code: int = 0) -> None:
        if producer.producer_id < 500_000 and producer.producer_id not in new:
            new.append(producer.producer_id)
        known = producer.producer_id if producer.producer_id >= 500_000 else new.index(producer.producer_id)
        reported.append((what, code, known, producer.epoch))

    for transactional_id in ("old", "last", "ends"):
        producer = Producer(bootstrap, transactional_id)
        for number in range(4):
            producer.init()
            note(f"{transactional_id} init {number}", producer)
            for commit in (True, False):
                before = (producer.producer_id, producer.epoch)
                note("write", producer, producer.write("t", b"v"))
                note(f"end {commit}", producer, producer.end(commit=commit))
                after = (producer.producer_id, producer.epoch)
                producer.producer_id, producer.epoch = before
                note("the same EndTxn again", producer, producer.end(commit=commit))
                producer.producer_id, producer.epoch = after
            note("left open", producer, producer.write("t", b"open"))
    reported.append(len(Producer(bootstrap, "x").committed("t")))
    return reported
