"""F5, F8, F9, F14, F17: reading partitions."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from tailrace.fetch.fetch import Fetch
from tailrace.fetch.read import PARTITIONS_A_STEP
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
    """The base offsets of the whole batches in an answer."""
    return [one.base_offset for one in split_any(data)]  # type: ignore[union-attr]


def replicated(node: Node | None = None, *, isr: tuple[int, ...] = (1, 2), records: int = 3, **settings):  # type: ignore[no-untyped-def]
    """A node that leads a partition of brokers 1 and 2."""
    node = node or Node(**settings)
    node.know(broker(2))
    partition = node.host(state=registration(1, (1, 2), isr, leader_epoch=5))
    for n in range(records):
        node.append(partition, b"value%d" % n)
    return node, partition


def by_follower(node: Node, *wants, **fields):  # type: ignore[no-untyped-def]
    return node.fetch(wants, replica=2, replica_epoch=102, **fields)


# F5


def test_f5_only_the_leader_answers_clients_without_racks() -> None:
    node = Node()
    partition = node.host(state=registration(2, (1, 2)))
    for version in range(4, 11):
        assert node.fetch([want(partition, 0)], version=version).only.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_f5_a_follower_answers_clients_whose_version_has_racks() -> None:
    node = Node()
    partition = node.host(state=registration(2, (1, 2)))
    partition.role.append(
        bytes(batch(b"a", leader_epoch=0)), high_watermark=1, leader_log_start_offset=0, now_ms=node.now_ms
    )
    for version in range(11, 19):
        asked = node.fetch([want(partition, 0)], version=version)
        assert asked.only.error_code == NONE
        assert offsets(bytes_of(asked.only)) == [0]


def test_f5_other_brokers_fetch_from_the_leader_only() -> None:
    node = Node()
    partition = node.host(state=registration(2, (1, 2, 3)))
    assert node.fetch([want(partition, 0)], replica=3).only.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_f5_a_follower_answers_up_to_what_it_knows_to_be_committed() -> None:
    """Past its high watermark, but within its log, there is nothing yet; past its log the offset is out of range."""
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


def test_f8_a_follower_is_told_where_it_diverges() -> None:
    node, partition = replicated()
    node.apply(partition, registration(1, (1, 2), leader_epoch=7, partition_epoch=1))
    answer = by_follower(node, want(partition, 3, epoch=7, last_epoch=6)).only
    assert (answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset) == (5, 3)
    assert (answer.error_code, bytes_of(answer)) == (NONE, b"")
    assert partition.leader.followers[2].log_end_offset == -1  # where it stands is not known before it has truncated
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


def test_f9_bounds_and_records_are_of_one_moment() -> None:
    """An append after the read changes nothing in an answer that is already made."""
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


def test_f14_a_followers_fetch_tells_how_far_it_has_come() -> None:
    node, partition = replicated()
    follower = partition.leader.followers[2]
    node.now_ms += 7
    by_follower(node, want(partition, 2, log_start=1))
    assert (follower.log_end_offset, follower.log_start_offset, follower.broker_epoch) == (2, 1, 102)
    assert follower.last_fetch_ms == node.now_ms


def test_f14_the_answer_has_the_high_watermark_that_the_fetch_has_moved() -> None:
    node, partition = replicated()
    assert partition.log.high_watermark == 0
    assert by_follower(node, want(partition, 2)).only.high_watermark == 2
    assert partition.log.high_watermark == 2


def test_f14_a_followers_fetch_wakes_consumers_and_is_itself_not_in_the_way() -> None:
    node, partition = replicated()
    waiting = node.fetch([want(partition, 0)], max_wait_ms=500)
    assert waiting.is_waiting
    follower = by_follower(node, want(partition, 3), max_wait_ms=500)
    assert follower.is_waiting
    assert offsets(bytes_of(waiting.only)) == [0, 1, 2]


def test_f14_a_follower_may_widen_the_isr() -> None:
    node, partition = replicated(isr=(1,))
    assert partition.leader.isr.pending is None
    by_follower(node, want(partition, 3))
    assert partition.leader.isr.pending.joining == {2}


def test_f14_a_replica_that_is_not_assigned_gets_nothing() -> None:
    node, partition = replicated()
    for epoch, expected in ((5, ErrorCode.UNKNOWN_LEADER_EPOCH), (-1, ErrorCode.NOT_LEADER_OR_FOLLOWER)):
        answer = node.fetch([want(partition, 0, epoch=epoch)], replica=9).only
        assert (answer.error_code, bytes_of(answer)) == (expected, b"")
    assert set(partition.leader.followers) == {2}


def test_f14_a_broker_that_was_started_again_is_not_taken_for_its_earlier_self() -> None:
    node, partition = replicated()
    answer = node.fetch([want(partition, 3)], replica=2, replica_epoch=50).only
    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert partition.leader.followers[2].log_end_offset == -1


def test_f14_a_fetch_that_has_waited_says_nothing_new_of_the_follower() -> None:
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


def test_f17_aborted_transactions_come_with_the_range_that_is_returned() -> None:
    node = Node()
    partition = node.lead(config={"internal.segment.bytes": "200"})
    for producer_id, commit in ((7, False), (8, True), (9, False)):
        node.append(partition, b"x" * 60, producer_id=producer_id, sequence=0, transactional=True)
        node.end_transaction(partition, producer_id, commit=commit)
    assert len(partition.log.segments) > 1
    asked = node.fetch([want(partition, 0)], isolation_level=1).only
    assert [(one.producer_id, one.first_offset) for one in asked.aborted_transactions] == [(7, 0)]
    # A read at 4 starts in the segment of producer 9's records; the abort is in the index of a later one.
    asked = node.fetch([want(partition, 4)], isolation_level=1).only
    assert [(one.producer_id, one.first_offset) for one in asked.aborted_transactions] == [(9, 4)]
    assert node.fetch([want(partition, 0)]).only.aborted_transactions is None


def test_f17_without_records_the_list_is_empty() -> None:
    node = Node()
    partition = node.lead()
    answer = node.fetch([want(partition, 0)], isolation_level=1).only
    assert answer.aborted_transactions == []


# When the disk fails


def test_a_failing_disk_is_that_partitions_error() -> None:
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


def test_a_corrupt_batch_on_the_way_is_that_partitions_error() -> None:
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
    assert sum(1 for _ in steps) > 30  # taking the request and planning: 512 partitions at a time
    answers = ready[0].make_answer(node.now_ms)
    assert sum(1 for _ in answers) > 15


def test_a_partition_that_goes_while_a_fetch_pauses_is_not_read() -> None:
    """A closed file must not be taken for a failed disk."""
    node = Node()
    partitions = [node.lead("topic", number) for number in range(PARTITIONS_A_STEP + 1)]
    node.append(partitions[-1], b"a")
    ready: list[Fetch] = []
    steps = paused_fetch(node, [want(one, 0) for one in partitions], ready)
    next(steps)
    node.partitions.remove(partitions[-1].key)
    run_steps(steps, node.now_ms)
    *_, last = response_of(ready[0], node.now_ms).responses[0].partitions
    assert last.error_code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert not last.records
