"""Transactions in a broker: timeouts, expiry, markers that have to wait, restarts, and who is woken by an end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tailrace.broker.broker import Broker
from tailrace.coordinator.transactions.timeouts import IDS_AT_ONCE
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicPartition
from tailrace.protocol import messages as m
from tailrace.protocol.api_keys import ApiKey
from tests.support.batches import batch
from tests.support.memory_files import MemoryFiles
from tests.support.memory_node import NOW_MS, Client, start

ONE_LOG = {"transaction.state.log.num.partitions": "1", "offsets.topic.num.partitions": "1"}
INVALID_TXN_STATE, CONCURRENT, ABORTABLE = 48, 51, 120
AT_ONCE = {"add.partitions.to.txn.retry.backoff.max.ms": "0"}  # CONCURRENT_TRANSACTIONS is sent without retries


class Producer:
    def __init__(self, client: Client, transactional_id: str = "t", *, timeout_ms: int = 10_000) -> None:
        self.client = client
        self.transactional_id = transactional_id
        client.ask(m.FindCoordinatorRequest(key_type=1, coordinator_keys=[transactional_id]), 4)
        reported = self.init(timeout_ms)
        assert reported.error_code == 0
        self.producer_id, self.epoch = reported.producer_id, reported.producer_epoch
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
        reported = self.client.ask(request, 5)
        if not reported.error_code:
            self.producer_id, self.epoch = reported.producer_id, reported.producer_epoch
            self.sequences.clear()
        return int(reported.error_code)

    def state(self) -> tuple[str, int, list[tuple[str, list[int]]]]:
        (reported,) = self.client.ask(
            m.DescribeTransactionsRequest(transactional_ids=[self.transactional_id]), 0
        ).transaction_states
        return (
            reported.transaction_state,
            reported.producer_epoch,
            [(one.topic, one.partitions) for one in reported.topics],
        )


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


def test_a_transaction_above_its_timeout_is_aborted_and_its_producer_fenced() -> None:
    broker, client = opened()
    producer = Producer(client, timeout_ms=5_000)
    assert producer.write() == 0
    client.now_ms += 5_000
    broker.tick(client.now_ms)
    assert producer.state() == ("Ongoing", 0, [("orders", [0])])
    client.now_ms += 10_001  # timeouts are checked every ten seconds
    broker.tick(client.now_ms)
    assert producer.state() == ("CompleteAbort", 1, [])
    assert stable_offset(broker) == 2
    assert producer.write() == 47
    assert producer.end() == INVALID_TXN_STATE  # one epoch behind: this may be a retry, but nothing was ended
    assert producer.init().producer_epoch == 2


def test_an_idle_transactional_id_expires() -> None:
    broker, client = opened(**{"transactional.id.expiration.ms": "60000"})
    idle, busy = Producer(client, "idle"), Producer(client, "busy", timeout_ms=900_000)
    assert busy.write() == 0
    client.now_ms += 3_600_001
    broker.tick(client.now_ms)
    reported = client.ask(m.DescribeTransactionsRequest(transactional_ids=["idle", "busy"]), 0).transaction_states
    assert [one.error_code for one in reported] == [105, 0]
    assert idle.init().producer_epoch == 0


def test_many_idle_transactional_ids_expire_some_at_a_time() -> None:
    is_over = False
    broker = start(static={**ONE_LOG, "transactional.id.expiration.ms": "60000"}, is_turn_over=lambda: is_over)
    client = Client(broker)
    client.ask(m.FindCoordinatorRequest(key="idle", key_type=1), 2)
    for number in range(2 * IDS_AT_ONCE + 50):
        Producer(client, f"idle-{number}")
    client.now_ms += 3_600_001
    left = []
    for _ in range(4):
        is_over = True
        broker.tick(client.now_ms)
        is_over = False
        left.append(len(client.ask(m.ListTransactionsRequest(), 0).transaction_states))
    assert left == [IDS_AT_ONCE + 50, 50, 0, 0]


def test_a_prepared_commit_is_completed_after_a_restart() -> None:
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
    """Refuse all markers until the returned function is called."""
    writer = broker.services.transactions.marker_writer
    write = writer.write
    writer.write = lambda key, marker, answer, now_ms: answer(ErrorCode.NOT_ENOUGH_REPLICAS, now_ms)  # type: ignore[method-assign]

    def allow() -> None:
        writer.write = write  # type: ignore[method-assign]

    return allow


def test_markers_are_retried_until_they_are_written() -> None:
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
def test_a_produce_during_the_end_of_the_previous_transaction_is_retried(in_time: bool) -> None:
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


def test_a_deleted_partition_needs_no_marker() -> None:
    _, client = opened()
    producer = Producer(client)
    assert producer.write() == 0
    names = [m.DeleteTopicsRequest.DeleteTopicState(name="orders")]
    assert client.ask(m.DeleteTopicsRequest(topics=names), 6).responses[0].error_code == 0
    assert producer.end() == 0
    assert producer.state()[0] == "CompleteCommit"


@pytest.mark.parametrize(("version", "code"), [(9, INVALID_TXN_STATE), (11, ABORTABLE)])
def test_older_clients_must_add_a_partition_before_they_write_to_it(version: int, code: int) -> None:
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


def test_verification_can_be_switched_off() -> None:
    _, client = opened(**{"transaction.partition.verification.enable": "false"})
    assert Producer(client).write(version=9) == 0


def test_the_batch_after_a_refused_one_is_out_of_sequence() -> None:
    """The first batch is refused temporarily. If the next one were accepted, the sequence would have a gap."""
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


def test_the_end_of_a_transaction_completes_a_waiting_read_committed_fetch() -> None:
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


def test_init_producer_id_without_the_topic_gets_not_coordinator() -> None:
    broker = start(static=ONE_LOG)
    client = Client(broker)
    request = m.InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=1_000)
    assert client.ask(request, 4).error_code == 16
    assert client.now_ms == NOW_MS


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_an_invalid_transaction_timeout_is_refused(timeout_ms: int) -> None:
    _, client = opened()
    producer = Producer(client)
    assert producer.init(timeout_ms).error_code == 50


def test_transactional_records_without_a_transactional_id_are_refused() -> None:
    _, client = opened()
    producer = Producer(client)
    producer.transactional_id = None  # type: ignore[assignment]
    assert producer.write() == 53
