"""A transaction with the sequence numbers of an aborted one in the same epoch, as librdkafka may send it.

Kafka takes its records for duplicates, and so do we: they are acknowledged and not written.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tailrace
from tailrace.client.network.address import Address
from tailrace.client.network.connection import Connection
from tailrace.client.settings import ClientSettings
from tailrace.model.errors import ErrorCode
from tailrace.protocol.messages import (
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    ListOffsetsRequest,
    ProduceRequest,
)
from tests.support.batches import batch
from tests.support.confluent import create_topic
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_install import KafkaInstallation

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

PATIENCE_S = 60
PASSING = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.CONCURRENT_TRANSACTIONS,
)


def error_of(ask: Callable[[], int]) -> int:
    """Return the error code, after retries of transient errors."""
    deadline = time.monotonic() + PATIENCE_S
    while (code := ask()) in PASSING and time.monotonic() < deadline:
        time.sleep(0.1)
    return code


class Transactions:
    """A transactional producer with the older protocol, in which the epoch stays the same."""

    def __init__(self, bootstrap: str) -> None:
        host, _, port = bootstrap.rpartition(":")
        self._connection = Connection(Address(host, int(port)), ClientSettings())
        self._id = self._epoch = -1
        assert error_of(self._find) == error_of(self._init) == ErrorCode.NONE

    def _ask(self, request: Any, at_most: int | None = None) -> Any:
        return self._connection.request(request, at_most=at_most)

    def _find(self) -> int:
        code: int = self._ask(FindCoordinatorRequest(key_type=1, coordinator_keys=["t"])).coordinators[0].error_code
        return code

    def _init(self) -> int:
        made = self._ask(InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=60_000))
        self._id, self._epoch = made.producer_id, made.producer_epoch
        return int(made.error_code)

    def begin(self) -> int:
        topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name="topic", partitions=[0])
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="t",
            v3_and_below_producer_id=self._id,
            v3_and_below_producer_epoch=self._epoch,
            v3_and_below_topics=[topic],
        )

        def ask() -> int:
            (answer,) = self._ask(request, 3).results_by_topic_v3_and_below
            return int(answer.results_by_partition[0].partition_error_code)

        return error_of(ask)

    def produce(self, value: bytes, sequence: int) -> tuple[int, int]:
        records = batch(value, producer_id=self._id, producer_epoch=self._epoch, sequence=sequence, transactional=True)
        part = ProduceRequest.PartitionProduceData(index=0, records=bytes(records))
        topic = ProduceRequest.TopicProduceData(name="topic", partition_data=[part])
        request = ProduceRequest(transactional_id="t", acks=-1, timeout_ms=30_000, topic_data=[topic])
        answer = self._ask(request, 11).responses[0].partition_responses[0]
        return answer.error_code, answer.base_offset

    def end(self, *, commit: bool) -> int:
        request = EndTxnRequest(
            transactional_id="t", producer_id=self._id, producer_epoch=self._epoch, committed=commit
        )
        return error_of(lambda: int(self._ask(request, 4).error_code))

    def log_end(self) -> int:
        asked = ListOffsetsRequest.ListOffsetsPartition(partition_index=0, current_leader_epoch=-1, timestamp=-1)
        topic = ListOffsetsRequest.ListOffsetsTopic(name="topic", partitions=[asked])
        return int(self._ask(ListOffsetsRequest(replica_id=-1, topics=[topic])).topics[0].partitions[0].offset)


def play(bootstrap: str) -> Iterator[object]:
    """Yield the response to each step."""
    create_topic(bootstrap, "topic")
    producer = Transactions(bootstrap)
    yield producer.begin()
    yield producer.produce(b"aborted", 0)
    yield producer.end(commit=False)
    yield producer.begin()  # after the marker is written
    yield producer.produce(b"committed", 0)
    yield producer.end(commit=True)
    yield producer.begin()
    yield producer.log_end()


def test_reused_sequence_numbers_count_as_duplicates(kafka: KafkaInstallation, tmp_path: Path) -> None:
    with KafkaBroker(kafka, tmp_path / "kafka") as theirs, tailrace.Broker(tmp_path / "ours") as ours:
        answers = list(play(theirs.bootstrap))
        assert list(play(ours.bootstrap)) == answers
        assert answers == [0, (0, 0), 0, 0, (0, 0), 0, 0, 3]
