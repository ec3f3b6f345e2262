"""append_produced: one partition's part of a Produce answer."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicPartition
from tailrace.protocol.flat.produce import message_of
from tailrace.records.checks.validation import Origin
from tailrace.replication.produce import ProducePart
from tests.simulation.node import Node, registration
from tests.support.batches import batch, end_marker
from tests.support.faulty_files import FaultyFiles
from tests.support.memory_files import MemoryFiles
from tests.support.produced import append_produced


def produce(node: Node, key: TopicPartition, data: bytearray, **fields: Any) -> ProducePart:
    part = append_produced(node.partitions, key, data, required_acks=-1, now_ms=node.now_ms, **fields)
    message_of([("t", [part])], 0, {}).encode(12)  # it can be sent
    return part


def test_an_append_is_answered_with_its_offsets() -> None:
    node = Node()
    partition = node.host(config={"message.timestamp.type": "LogAppendTime"})
    node.append(partition, b"before")
    part = produce(node, partition.key, batch(b"a", b"b"))
    assert part.is_appended
    assert partition.log.high_watermark == 3
    assert part.required_offset == 3
    response = part
    assert (response.error, response.first_offset, response.append_time_ms) == (0, 1, node.now_ms)
    assert response.log_start == 0


def test_a_retried_batch_is_answered_with_the_offset_it_has() -> None:
    node = Node()
    partition = node.host()
    first = produce(node, partition.key, batch(b"a", producer_id=7, sequence=0, timestamp=node.now_ms))
    node.append(partition, b"between")
    again = produce(node, partition.key, batch(b"a", producer_id=7, sequence=0, timestamp=node.now_ms))
    assert again.first_offset == first.first_offset == 0
    assert again.required_offset == first.required_offset == 1
    assert partition.log.log_end_offset == 2


@pytest.mark.parametrize(
    ("what", "expected", "has_log_start"),
    [
        ("unknown", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, False),
        ("not led here", ErrorCode.NOT_LEADER_OR_FOLLOWER, False),
        ("corrupt", ErrorCode.CORRUPT_MESSAGE, False),
        ("too large", ErrorCode.MESSAGE_TOO_LARGE, False),
        ("out of order", ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, True),
        ("not enough replicas", ErrorCode.NOT_ENOUGH_REPLICAS, True),
    ],
)
def test_a_response_to_refused_records_has_kafkas_fields(what: str, expected: ErrorCode, has_log_start: bool) -> None:
    node = Node()
    config = {"max.message.bytes": "1000", "min.insync.replicas": "2"}
    state = registration(2, (1, 2)) if what == "not led here" else None
    if what == "not enough replicas":
        state = registration(1, (1, 2), (1,))
    partition = node.host("topic", state=state, config=config)
    if state is None:
        node.append(partition, b"a")
        partition.delete_records(1, node.now_ms)
    data = batch(b"x" * 2_000 if what == "too large" else b"x")
    if what == "corrupt":
        data[-1] ^= 1
    if what == "out of order":
        node.append(partition, b"a", producer_id=7, sequence=0)
        data = batch(b"b", producer_id=7, sequence=5)
    key = TopicPartition("other" if what == "unknown" else "topic", 0)
    part = produce(node, key, data)
    assert not part.is_appended
    response = part
    assert response.error == expected
    assert (response.first_offset, response.append_time_ms) == (-1, -1)
    assert response.log_start == (partition.log.log_start_offset if has_log_start else -1)
    assert response.message is None


def test_records_that_are_refused_one_by_one_are_listed() -> None:
    node = Node()
    partition = node.host(config={"cleanup.policy": "compact"})
    part = produce(node, partition.key, batch((b"k", b"v"), (None, b"v"), (None, b"w")))
    assert part.error == ErrorCode.INVALID_RECORD
    assert part.message
    assert [index for index, _ in part.record_errors] == [1, 2]
    assert part.log_start == 0


def test_a_full_disk_takes_the_partition_offline() -> None:
    files = FaultyFiles(MemoryFiles())
    node = Node(files=files)
    partition = node.host()
    files.fail("write", errno.ENOSPC, path=".log")
    part = produce(node, partition.key, batch(b"a"))
    assert part.error == ErrorCode.KAFKA_STORAGE_ERROR
    assert node.partitions.offline == {partition.key}
    assert produce(node, partition.key, batch(b"a")).error == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_coordinator_may_append_markers_and_a_client_may_not() -> None:
    node = Node()
    partition = node.host()
    node.append(partition, b"a", producer_id=7, sequence=0, transactional=True)
    assert not produce(node, partition.key, end_marker(7, commit=True)).is_appended
    assert produce(node, partition.key, end_marker(7, commit=True), origin=Origin.COORDINATOR).is_appended
