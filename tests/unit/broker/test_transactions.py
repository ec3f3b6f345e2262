"""Transactions in a broker: timeouts, expiry, markers that have to wait, restarts, and who is woken by an end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tailrace.broker.broker import Broker
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicPartition
from tailrace.protocol import messages as m
from tailrace.protocol.api_keys import ApiKey
from tests.support.batches import batch
from tests.support.memory_files import MemoryFiles
from tests.support.memory_node import NOW_MS, Client, start

ONE_LOG = {"transaction.state.log.num.partitions": "1", "offsets.topic.num.partitions": "1"}
INVALID_TXN_STATE, CONCURRENT, ABORTABLE = 48, 51, 120
AT_ONCE = {"add.partitions.to.txn.retry.backoff.max.ms": "0"}  # whoever has to wait is told so


class Producer:
    def __init__(self, client: Client, transactional_id: str = "t", *, timeout_ms: int = 10_000) -> None:
        self.client = client
        self.transactional_id = transactional_id
        client.ask(m.FindCoordinatorRequest(key_type=1, coordinator_keys=[transactional_id]), 4)
        told = self.init(timeout_ms)
        assert told.error_code == 0
        self.producer_id, self.epoch = told.producer_id, told.producer_epoch
        self.sequences: dict[int, int] = {}

    def init(self, timeout_ms: int = 10_000) -> Any:
        request = m.InitProducerIdRequest(transactional_id=self.transactional_id, transaction_timeout_ms=timeout_ms)
        return self.client.ask(request, 5)

    def writing(self, topic: str = "orders", partition: int = 0) -> m.ProduceRequest:
        records = batch(
            b"v",
            timestamp=self.client.now_ms,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            sequence=self.sequences.get(partition, 0),
            transactional=True,
        )
        data = m.ProduceRequest.TopicProduceData(
            name=topic, partition_data=[m.ProduceRequest.PartitionProduceData(index=partition, records=records)]
        )
        return m.ProduceRequest(transactional_id=self.transactional_id, acks=-1, timeout_ms=1, topic_data=[data])

    def write(self, topic: str = "orders", partition: int = 0, version: int = 12) -> int:
        request = self.writing(topic, partition)
        code = int(self.client.ask(request, version).responses[0].partition_responses[0].error_code)
        self.sequences[partition] = self.sequences.get(partition, 0) + (not code)
        return code

    def end(self, *, commit: bool = True) -> int:
        request = m.EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=commit,
        )
        told = self.client.ask(request, 5)
        if not told.error_code:
            self.producer_id, self.epoch = told.producer_id, told.producer_epoch
            self.sequences.clear()
        return int(told.error_code)

    def state(self) -> tuple[str, int, list[tuple[str, list[int]]]]:
        (told,) = self.client.ask(
            m.DescribeTransactionsRequest(transactional_ids=[self.transactional_id]), 0
        ).transaction_states
        return told.transaction_state, told.producer_epoch, [(one.topic, one.partitions) for one in told.topics]


def opened(files: MemoryFiles | None = None, **settings: str) -> tuple[Broker, Client]:
    broker = start(files, {**ONE_LOG, **settings})
    client = Client(broker)
    if "orders" not in broker.services.controller.image.topics:
        topic = m.CreateTopicsRequest.CreatableTopic(name="orders", num_partitions=2, replication_factor=1)
        client.ask(m.CreateTopicsRequest(topics=[topic]), 7)
    return broker, client


def stable_offset(broker: Broker, partition: int = 0) -> int:
    log = broker.services.partitions.find(TopicPartition("orders", partition)).log
    return log.snapshot_marks().last_stable.offset


def test_a_transaction_that_takes_too_long_is_aborted_and_its_producer_fenced() -> None:
    broker, client = opened()
    producer = Producer(client, timeout_ms=5_000)
    assert producer.write() == 0
    client.now_ms += 5_000
    broker.tick(client.now_ms)
    assert producer.state() == ("Ongoing", 0, [("orders", [0])])
    client.now_ms += 10_001  # looked at every ten seconds
    broker.tick(client.now_ms)
    assert producer.state() == ("CompleteAbort", 1, [])
    assert stable_offset(broker) == 2
    assert producer.write() == 47
    assert producer.end() == INVALID_TXN_STATE  # one epoch behind: it may be a retry, of an end that was none
    assert producer.init().producer_epoch == 2


def test_an_id_that_nobody_uses_is_forgotten() -> None:
    broker, client = opened(**{"transactional.id.expiration.ms": "60000"})
    idle, busy = Producer(client, "idle"), Producer(client, "busy", timeout_ms=900_000)
    assert busy.write() == 0
    client.now_ms += 3_600_001
    broker.tick(client.now_ms)
    told = client.ask(m.DescribeTransactionsRequest(transactional_ids=["idle", "busy"]), 0).transaction_states
    assert [one.error_code for one in told] == [105, 0]
    assert idle.init().producer_epoch == 0


def test_what_was_decided_is_carried_out_after_a_restart() -> None:
    files = MemoryFiles()
    broker, client = opened(files)
    producer = Producer(client)
    assert producer.write() == 0
    assert producer.write(partition=1) == 0
    refuse_markers(broker)
    assert producer.end() == 0
    assert producer.state() == ("PrepareCommit", 1, [("orders", [0, 1])])
    assert stable_offset(broker) == 0
    broker.close(client.now_ms)

    broker, client = opened(files)
    producer.client = client
    for _ in range(2):
        client.now_ms += 200
        broker.tick(client.now_ms)
    assert producer.state() == ("CompleteCommit", 1, [])
    assert (stable_offset(broker, 0), stable_offset(broker, 1)) == (2, 2)


def refuse_markers(broker: Broker) -> Callable[[], None]:
    """From now on no marker can be written, until what is returned is called."""
    writer = broker.services.transactions.marker_writer
    write = writer.write
    writer.write = lambda key, marker, answer, now_ms: answer(ErrorCode.NOT_ENOUGH_REPLICAS, now_ms)  # type: ignore[method-assign]

    def allow() -> None:
        writer.write = write  # type: ignore[method-assign]

    return allow


def test_markers_are_tried_until_they_are_written() -> None:
    broker, client = opened(**AT_ONCE)
    producer = Producer(client)
    assert producer.write() == 0
    allow = refuse_markers(broker)
    assert producer.end(commit=False) == 0
    for _ in range(3):
        client.now_ms += 150
        broker.tick(client.now_ms)
    assert producer.state()[0] == "PrepareAbort"
    assert producer.init().error_code == CONCURRENT
    assert producer.write(version=12) == CONCURRENT
    allow()
    client.now_ms += 150
    broker.tick(client.now_ms)
    assert producer.state()[0] == "CompleteAbort"
    assert producer.write() == 0


@pytest.mark.parametrize("in_time", [True, False])
def test_who_begins_while_the_transaction_before_still_ends_waits_a_little(in_time: bool) -> None:
    broker, client = opened(**{"add.partitions.to.txn.retry.backoff.max.ms": "200"})
    producer = Producer(client)
    assert producer.write() == 0
    allow = refuse_markers(broker)
    assert producer.end() == 0
    assert client.send(producer.writing(), 12) == []
    if in_time:
        allow()
    began_ms = client.now_ms
    while not (replies := broker.take_replies()):
        client.now_ms += 20
        broker.tick(client.now_ms)
        assert client.now_ms <= began_ms + 200
    (reply,) = replies
    answer = Client.decode(reply, 0, 12).responses[0].partition_responses[0]
    if in_time:
        assert answer.error_code == 0
        assert client.now_ms < began_ms + 200
    else:
        assert answer.error_code == CONCURRENT
        assert client.now_ms == began_ms + 200


def test_a_partition_that_is_gone_needs_no_marker() -> None:
    _, client = opened()
    producer = Producer(client)
    assert producer.write() == 0
    names = [m.DeleteTopicsRequest.DeleteTopicState(name="orders")]
    assert client.ask(m.DeleteTopicsRequest(topics=names), 6).responses[0].error_code == 0
    assert producer.end() == 0
    assert producer.state()[0] == "CompleteCommit"


@pytest.mark.parametrize(("version", "code"), [(9, INVALID_TXN_STATE), (11, ABORTABLE)])
def test_a_partition_has_to_be_added_first_by_older_clients(version: int, code: int) -> None:
    _, client = opened()
    producer = Producer(client)
    assert producer.write(version=version) == code
    topics = [m.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name="orders", partitions=[0])]
    added = client.ask(
        m.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="t",
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.epoch,
            v3_and_below_topics=topics,
        ),
        3,
    )
    assert added.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code == 0
    assert producer.write(version=version) == 0
    assert producer.write(partition=1, version=version) == code


def test_verification_can_be_left_out() -> None:
    _, client = opened(**{"transaction.partition.verification.enable": "false"})
    assert Producer(client).write(version=9) == 0


def test_a_batch_that_had_to_wait_is_not_overtaken_by_the_next() -> None:
    """The first is refused for the moment; the one behind it would be taken, and its place in the sequence lost."""
    broker, client = opened(**AT_ONCE)
    producer = Producer(client)
    assert producer.write() == 0
    allow = refuse_markers(broker)
    assert producer.end() == 0
    assert producer.write(partition=1) == CONCURRENT
    allow()
    client.now_ms += 150
    broker.tick(client.now_ms)
    producer.sequences[1] = 1
    assert producer.write(partition=1) == 45
    producer.sequences[1] = 0
    assert producer.write(partition=1) == 0
    assert producer.write(partition=1) == 0


def test_a_consumer_of_committed_records_is_woken_by_the_end() -> None:
    broker, client = opened()
    producer = Producer(client)
    assert producer.write() == 0
    consumer = Client(broker, connection_id=2)
    part = m.FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1_000_000)
    fetch = m.FetchRequest(
        replica_id=-1,
        max_wait_ms=30_000,
        min_bytes=1,
        max_bytes=1_000_000,
        isolation_level=1,
        session_epoch=-1,
        topics=[m.FetchRequest.FetchTopic(topic="orders", partitions=[part])],
    )
    assert consumer.send(fetch, 11) == []
    end = m.EndTxnRequest(
        transactional_id="t", producer_id=producer.producer_id, producer_epoch=producer.epoch, committed=True
    )
    replies = {reply.connection_id: reply for reply in client.send(end, 5)}
    assert set(replies) == {1, 2}
    found = Client.decode(replies[2], ApiKey.FETCH, 11).responses[0].partitions[0]
    assert (found.last_stable_offset, bool(found.records), found.aborted_transactions) == (2, True, [])


def test_without_the_topic_nothing_is_coordinated() -> None:
    broker = start(static=ONE_LOG)
    client = Client(broker)
    request = m.InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=1_000)
    assert client.ask(request, 4).error_code == 16
    assert client.now_ms == NOW_MS


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_a_timeout_that_is_not_allowed(timeout_ms: int) -> None:
    _, client = opened()
    producer = Producer(client)
    assert producer.init(timeout_ms).error_code == 50


def test_transactional_records_need_an_id() -> None:
    _, client = opened()
    producer = Producer(client)
    producer.transactional_id = None  # type: ignore[assignment]
    assert producer.write() == 53
