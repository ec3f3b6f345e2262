"""The start offset of a share group by duration: batches are searched on a worker thread, one at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import TopicPartition
from tailrace.protocol import messages as m
from tailrace.records.batch import Codec, CorruptBatch
from tailrace.replication.partition import Partition
from tailrace.shares.start_offset import StartOffsets
from tests.support.api_cases.common import batch
from tests.support.memory_node import NOW_MS, Client, start

HOUR_MS = 3_600_000


class Searches:
    """Start offsets whose searches run when the test starts them."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Callable[[], Any], Callable[[Any, int], None], Callable[[BaseException, int], None]]]
        self.waiting = []
        self.starts = StartOffsets(lambda *search: self.waiting.append(search))
        self.answers: list[int | ErrorCode] = []

    def find(self, partition: Partition, reset: str) -> None:
        def refuse(error: KafkaError, _: int) -> None:
            self.answers.append(error.code)

        self.starts.find(partition, reset, lambda offset, _: self.answers.append(offset), refuse, NOW_MS)

    def run(self) -> None:
        run, apply, _ = self.waiting.pop(0)
        apply(run(), NOW_MS)


@pytest.fixture
def partition() -> Partition:
    """Return a partition with a compressed batch of two days ago and one of half an hour ago."""
    broker = start()
    client = Client(broker)
    topic = m.CreateTopicsRequest.CreatableTopic(name="topic", num_partitions=1, replication_factor=1)
    client.ask(m.CreateTopicsRequest(topics=[topic], timeout_ms=1_000), 7)
    for age_ms in (48 * HOUR_MS, HOUR_MS // 2):
        records = batch(NOW_MS - age_ms, b"one", b"two", codec=Codec.GZIP)
        part = m.ProduceRequest.PartitionProduceData(index=0, records=records)
        data = m.ProduceRequest.TopicProduceData(name="topic", partition_data=[part])
        client.ask(m.ProduceRequest(acks=1, timeout_ms=1_000, topic_data=[data]), 9)
    return broker.services.partitions.find(TopicPartition("topic", 0))


def test_the_batch_is_searched_by_a_chore(partition: Partition) -> None:
    searches = Searches()
    searches.find(partition, "by_duration:PT1H")
    assert searches.answers == []
    searches.run()
    assert searches.answers == [2]


def test_earliest_and_latest_need_no_search(partition: Partition) -> None:
    searches = Searches()
    searches.find(partition, "earliest")
    searches.find(partition, "latest")
    assert searches.answers == [0, 4]


def test_one_batch_is_searched_at_a_time(partition: Partition) -> None:
    searches = Searches()
    for reset in ("by_duration:PT1H", "by_duration:P3D", "by_duration:PT1M"):
        searches.find(partition, reset)
    assert len(searches.waiting) == 1
    searches.run()
    assert len(searches.waiting) == 1
    searches.run()
    assert searches.answers == [2, 0, ErrorCode.OFFSET_NOT_AVAILABLE]


def test_a_corrupt_batch_fails_only_one_search(partition: Partition) -> None:
    searches = Searches()
    searches.find(partition, "by_duration:PT1H")
    searches.find(partition, "by_duration:PT1H")
    _, _, failed = searches.waiting.pop(0)
    failed(CorruptBatch("no records"), NOW_MS)
    searches.run()
    assert searches.answers == [ErrorCode.CORRUPT_MESSAGE, 2]


def test_a_duration_that_cannot_be_read_is_refused(partition: Partition) -> None:
    searches = Searches()
    searches.find(partition, "by_duration:soon")
    assert searches.answers == [ErrorCode.INVALID_CONFIG]
