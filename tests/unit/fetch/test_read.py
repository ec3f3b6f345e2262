"""F5, F8, F9, F14, F17: reading partitions."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from tailrace.fetch.fetch import Fetch
from tailrace.fetch.read import READS_PER_STEP
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicPartition
from tailrace.model.steps import Steps, run_steps
from tailrace.records.conversion import split_any
from tests.simulation.node import Consumer, Node, ask_for, broker, bytes_of, registration, response_of, want
from tests.support.batches import batch
from tests.support.faulty_files import FaultyFiles
from tests.support.memory_files import MemoryFiles

NONE = ErrorCode.NONE


def offsets(data: bytes) -> list[int]:
    """Return the base offsets of the complete batches in an answer."""
    return [one.base_offset for one in split_any(data)]  # type: ignore[union-attr]


def replicated(node: Node | None = None, *, isr: tuple[int, ...] = (1, 2), records: int = 3, **settings):  # type: ignore[no-untyped-def]
    """Return a node that leads a partition of brokers 1 and 2."""
    node = node or Node(**settings)
    node.know(broker(2))
    partition = node.host(state=registration(1, (1, 2), isr, leader_epoch=5))
    for n in range(records):
        node.append(partition, b"value%d" % n)
    return node, partition


def by_follower(node: Node, *wants, **fields):  # type: ignore[no-untyped-def]
    return node.fetch(wants, replica=2, replica_epoch=102, **fields)


# F5


def test_f5_only_the_leader_answers_versions_without_racks() -> None:
    node = Node()
    partition = node.host(state=registration(2, (1, 2)))
    for version in range(4, 11):
        assert node.fetch([want(partition, 0)], version=version).only.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_f5_a_follower_answers_consumers_of_versions_with_racks() -> None:
    node = Node()
    partition = node.host(state=registration(2, (1, 2)))
    partition.role.append(
        bytes(batch(b"a", leader_epoch=0)), high_watermark=1, leader_log_start_offset=0, now_ms=node.now_ms
    )
    for version in range(11, 19):
        asked = node.fetch([want(partition, 0)], version=version)
        assert asked.only.error_code == NONE
        assert offsets(bytes_of(asked.only)) == [0]


def test_f5_a_follower_refuses_fetches_of_other_brokers() -> None:
    node = Node()
    partition = node.host(state=registration(2, (1, 2, 3)))
    assert node.fetch([want(partition, 0)], replica=3).only.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_f5_a_follower_answers_up_to_its_high_watermark() -> None:
    """Between the follower's high watermark and its log end the response is empty. Beyond its log end the offset is out
    of range."""
    node = Node()
    partition = node.host(state=registration(2, (1, 2)))
    data = bytes(batch(b"a", leader_epoch=0)) + bytes(batch(b"b", base_offset=1, leader_epoch=0))
    partition.role.append(data, high_watermark=1, leader_log_start_offset=0, now_ms=node.now_ms)
    assert offsets(bytes_of(node.fetch([want(partition, 0)]).only)) == [0]
    ahead = node.fetch([want(partition, 2)]).only
    assert (ahead.error_code, ahead.high_watermark, bytes_of(ahead)) == (NONE, 1, b"")
    assert node.fetch([want(partition, 3)]).only.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


# F8


@pytest.mark.parametrize(
    ("epoch", "expected"),
    [(-1, NONE), (5, NONE), (4, ErrorCode.FENCED_LEADER_EPOCH), (6, ErrorCode.UNKNOWN_LEADER_EPOCH)],
)
def test_f8_the_leader_epoch_of_a_request_is_checked(epoch: int, expected: ErrorCode) -> None:
    node, partition = replicated()
    answer = node.fetch([want(partition, 0, epoch=epoch)]).only
    assert answer.error_code == expected
    if expected:
        assert (answer.high_watermark, answer.log_start_offset, answer.last_stable_offset) == (-1, -1, -1)
        assert (answer.aborted_transactions, bytes_of(answer)) == (None, b"")


def test_f8_a_diverging_follower_gets_the_diverging_epoch() -> None:
    node, partition = replicated()
    node.apply(partition, registration(1, (1, 2), leader_epoch=7, partition_epoch=1))
    answer = by_follower(node, want(partition, 3, epoch=7, last_epoch=6)).only
    assert (answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset) == (5, 3)
    assert (answer.error_code, bytes_of(answer)) == (NONE, b"")
    assert partition.leader.followers[2].log_end_offset == -1  # unknown until the follower has truncated
    assert by_follower(node, want(partition, 3, epoch=7, last_epoch=5)).only.diverging_epoch.epoch == -1
    assert partition.leader.followers[2].log_end_offset == 3


def test_f8_an_offset_outside_the_log_is_out_of_range() -> None:
    node, partition = replicated()
    for offset in (-1, 4, 2**62):
        answer = by_follower(node, want(partition, offset)).only
        assert answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert (answer.high_watermark, answer.log_start_offset) == (-1, -1)


def test_a_fetch_in_the_middle_of_a_batch_returns_that_batch() -> None:
    node = Node()
    partition = node.lead()
    node.append(partition, b"a", b"b", b"c")
    node.append(partition, b"d")
    for offset in (0, 1, 2):
        assert offsets(bytes_of(node.fetch([want(partition, offset)]).only)) == [0, 3]
    assert offsets(bytes_of(node.fetch([want(partition, 3)]).only)) == [3]


# F9


def test_f9_an_append_after_the_read_does_not_change_the_response() -> None:
    """An append after the read does not change a response that is already built."""
    node = Node()
    partition = node.lead()
    node.append(partition, b"a")
    ready = []
    node.fetches.start(ask_for([want(partition, 0)]), 18, node.now_ms, lambda fetch, now_ms: ready.append(fetch))
    node.append(partition, b"b")
    answer = response_of(ready[0], node.now_ms).responses[0].partitions[0]
    assert (answer.high_watermark, answer.last_stable_offset) == (1, 1)
    assert offsets(bytes_of(answer)) == [0]


# F14


def test_f14_a_followers_fetch_records_its_progress() -> None:
    node, partition = replicated()
    follower = partition.leader.followers[2]
    node.now_ms += 7
    by_follower(node, want(partition, 2, log_start=1))
    assert (follower.log_end_offset, follower.log_start_offset, follower.broker_epoch) == (2, 1, 102)
    assert follower.last_fetch_ms == node.now_ms


def test_f14_the_response_has_the_high_watermark_after_the_fetch() -> None:
    node, partition = replicated()
    assert partition.log.high_watermark == 0
    assert by_follower(node, want(partition, 2)).only.high_watermark == 2
    assert partition.log.high_watermark == 2


def test_f14_a_followers_fetch_wakes_consumers_and_then_waits() -> None:
    node, partition = replicated()
    waiting = node.fetch([want(partition, 0)], max_wait_ms=500)
    assert waiting.is_waiting
    follower = by_follower(node, want(partition, 3), max_wait_ms=500)
    assert follower.is_waiting
    assert offsets(bytes_of(waiting.only)) == [0, 1, 2]


def test_f14_a_fetch_of_a_caught_up_follower_proposes_a_larger_isr() -> None:
    node, partition = replicated(isr=(1,))
    assert partition.leader.isr.pending is None
    by_follower(node, want(partition, 3))
    assert partition.leader.isr.pending.joining == {2}


def test_f14_a_broker_that_is_not_a_replica_gets_an_error() -> None:
    node, partition = replicated()
    for epoch, expected in ((5, ErrorCode.UNKNOWN_LEADER_EPOCH), (-1, ErrorCode.NOT_LEADER_OR_FOLLOWER)):
        answer = node.fetch([want(partition, 0, epoch=epoch)], replica=9).only
        assert (answer.error_code, bytes_of(answer)) == (expected, b"")
    assert set(partition.leader.followers) == {2}


def test_f14_a_fetch_with_a_stale_broker_epoch_is_refused() -> None:
    node, partition = replicated()
    answer = node.fetch([want(partition, 3)], replica=2, replica_epoch=50).only
    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert partition.leader.followers[2].log_end_offset == -1


def test_f14_the_second_read_of_a_waiting_fetch_does_not_record_progress() -> None:
    node, partition = replicated()
    waiting = by_follower(node, want(partition, 3), max_wait_ms=500)
    seen_ms = partition.leader.followers[2].last_fetch_ms
    node.now_ms += 100
    node.append(partition, b"more")
    assert offsets(bytes_of(waiting.only)) == [3]
    assert partition.leader.followers[2].last_fetch_ms == seen_ms


def test_f14_an_idle_partition_of_a_followers_session_still_counts_as_fetched() -> None:
    node, partition = replicated()
    session = Consumer(node, [want(partition, 3)], replica=2, replica_epoch=102)
    session.poll()
    for _ in range(3):
        node.now_ms += 1_000
        session.poll()
        assert partition.leader.followers[2].last_caught_up_ms == node.now_ms


# F17


def test_f17_the_response_lists_the_aborted_transactions_of_the_returned_range() -> None:
    node = Node()
    partition = node.lead(config={"internal.segment.bytes": "200"})
    for producer_id, commit in ((7, False), (8, True), (9, False)):
        node.append(partition, b"x" * 60, producer_id=producer_id, sequence=0, transactional=True)
        node.end_transaction(partition, producer_id, commit=commit)
    assert len(partition.log.segments) > 1
    asked = node.fetch([want(partition, 0)], isolation_level=1).only
    assert [(one.producer_id, one.first_offset) for one in asked.aborted_transactions] == [(7, 0)]
    # A read at 4 starts in the segment with the records of producer 9. The index of a later segment has the abort.
    asked = node.fetch([want(partition, 4)], isolation_level=1).only
    assert [(one.producer_id, one.first_offset) for one in asked.aborted_transactions] == [(9, 4)]
    assert node.fetch([want(partition, 0)]).only.aborted_transactions is None


def test_f17_without_records_the_list_of_aborted_transactions_is_empty() -> None:
    node = Node()
    partition = node.lead()
    answer = node.fetch([want(partition, 0)], isolation_level=1).only
    assert answer.aborted_transactions == []


# When the disk fails


def test_a_read_error_of_the_disk_fails_only_that_partition() -> None:
    files = FaultyFiles(MemoryFiles())
    node = Node(files=files)
    bad, good = node.lead("bad"), node.lead("good")
    for partition in (bad, good):
        node.append(partition, b"a")
        node.append(partition, b"b")
    files.fail("read", errno.EIO, path="bad-0")
    asked = node.fetch([want(bad, 1), want(good, 1)])
    assert {key: answer.error_code for key, answer in asked.partitions.items()} == {
        ("bad", 0): ErrorCode.KAFKA_STORAGE_ERROR,
        ("good", 0): NONE,
    }
    assert node.partitions.offline == {bad.key}
    assert node.fetch([want(bad, 1)]).only.error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_corrupt_batch_before_the_offset_fails_only_that_partition() -> None:
    node = Node()
    partition = node.lead()
    node.append(partition, b"a")
    node.append(partition, b"b")
    partition.log.segments.active.log.write(8, b"\x00\x00\x00\x01")  # the first batch's length
    assert node.fetch([want(partition, 1)]).only.error_code == ErrorCode.CORRUPT_MESSAGE
    assert node.partitions.offline == frozenset()


# Fetches of many partitions pause


def paused_fetch(node: Node, wanted: list[Any], ready: list[Fetch]) -> Steps[Fetch]:
    return node.fetches.begin(ask_for(wanted), 18, node.now_ms, lambda fetch, now_ms: ready.append(fetch), client=None)


def test_a_fetch_of_many_partitions_pauses_before_it_reads_and_while_it_answers() -> None:
    node = Node()
    partition = node.lead()
    unknown = [want(TopicPartition(partition.key.topic, number), 0) for number in range(1, 10_000)]
    ready: list[Fetch] = []
    steps = paused_fetch(node, [want(partition, 0), *unknown], ready)
    assert sum(1 for _ in steps) > 30  # decoding the request and planning, 512 partitions at a time
    answers = ready[0].make_answer(node.now_ms)
    assert sum(1 for _ in answers) > 15


def test_a_partition_removed_while_a_fetch_pauses_is_not_read() -> None:
    """A closed file must not be treated as a failed disk."""
    node = Node()
    partitions = [node.lead("topic", number) for number in range(READS_PER_STEP + 1)]
    node.append(partitions[-1], b"a")
    ready: list[Fetch] = []
    steps = paused_fetch(node, [want(one, 0) for one in partitions], ready)
    next(steps)
    node.partitions.remove(partitions[-1].key)
    run_steps(steps, node.now_ms)
    *_, last = response_of(ready[0], node.now_ms).responses[0].partitions
    assert last.error_code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert not last.records
