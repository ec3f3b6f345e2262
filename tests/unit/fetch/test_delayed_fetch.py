"""F10, F11: when a fetch is answered at once, and which events wake a waiting fetch."""

from __future__ import annotations

import pytest

from tailrace.fetch.fetch import Reason
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicPartition
from tests.simulation.node import Asked, Consumer, Node, broker, bytes_of, registration, want
from tests.support.batches import batch

WAIT = {"max_wait_ms": 500}


def reason(asked: Asked) -> Reason:
    assert asked.fetch is not None
    assert asked.fetch.reason is not None
    return asked.fetch.reason


# F10


def test_f10_a_fetch_without_max_wait_is_answered_at_once() -> None:
    node = Node()
    partition = node.lead()
    for wait in (0, -1):
        asked = node.fetch([want(partition, 0)], max_wait_ms=wait)
        assert reason(asked) is Reason.NO_WAIT


def test_f10_a_fetch_without_readable_partitions_is_answered_at_once() -> None:
    node = Node()
    assert reason(node.fetch([], **WAIT)) is Reason.NOTHING_READABLE
    unknown = node.fetch([want(TopicPartition("nowhere", 0), 0)], **WAIT)
    assert reason(unknown) is Reason.NOTHING_READABLE


def test_f10_a_fetch_with_min_bytes_available_is_answered_at_once() -> None:
    node = Node()
    partition = node.lead()
    node.append(partition, b"a")
    size = partition.log.size
    assert reason(node.fetch([want(partition, 0)], min_bytes=size, **WAIT)) is Reason.ENOUGH
    assert node.fetch([want(partition, 0)], min_bytes=size + 1, **WAIT).is_waiting
    assert reason(node.fetch([want(partition, 1)], min_bytes=0, **WAIT)) is Reason.ENOUGH


def test_f10_an_error_of_one_partition_answers_the_fetch_at_once() -> None:
    node = Node()
    first, second = node.lead("topic", 0), node.lead("topic", 1)
    assert reason(node.fetch([want(first, 0), want(second, 9)], **WAIT)) is Reason.ERROR


def test_f10_a_diverging_epoch_answers_the_fetch_at_once() -> None:
    node = Node()
    partition = node.host(state=registration(1, leader_epoch=0))
    node.append(partition, b"a")
    node.apply(partition, registration(1, leader_epoch=3, partition_epoch=1))
    assert reason(node.fetch([want(partition, 1, last_epoch=2)], **WAIT)) is Reason.DIVERGING


# F11


def test_f11_an_append_wakes_a_waiting_fetch() -> None:
    node = Node()
    partition = node.lead()
    asked = node.fetch([want(partition, 0)], **WAIT)
    assert asked.is_waiting
    node.now_ms += 3
    node.append(partition, b"a")
    assert reason(asked) is Reason.ENOUGH_NOW
    assert bytes_of(asked.only)
    assert asked.fetch.woken_by == partition.key
    assert (asked.fetch.parked_ms, asked.fetch.ready_ms) == (node.now_ms - 3, node.now_ms)
    assert len(node.purgatory) == 0


def test_f11_a_waiting_fetch_is_watched_under_every_partition_that_it_reads() -> None:
    for n in range(4):
        node = Node()
        partitions = [node.lead("topic", m) for m in range(4)]
        asked = node.fetch([want(one, 0) for one in partitions], **WAIT)
        node.append(partitions[n], b"a")
        assert [bool(one.records) for one in asked.partitions.values()] == [m == n for m in range(4)]


def test_f11_a_check_of_any_partition_of_a_session_wakes_its_fetch() -> None:
    for n in range(4):
        node = Node()
        partitions = [node.lead("topic", m) for m in range(4)]
        consumer = Consumer(node, [want(one, 0) for one in partitions])
        consumer.poll()
        asked = consumer.poll(**WAIT)
        assert asked.is_waiting
        node.append(partitions[n], b"a")
        assert list(asked.partitions) == [("topic", n)]
        assert asked.fetch.woken_by == partitions[n].key


def test_f11_a_fetch_waits_until_all_partitions_together_have_min_bytes() -> None:
    node = Node()
    first, second = node.lead("topic", 0), node.lead("topic", 1)
    node.append(first, b"a")
    size = first.log.size
    for in_session in (False, True):
        end = second.log.log_end_offset
        wants = [want(first, 0), want(second, end)]
        if in_session:
            consumer = Consumer(node, wants)
            consumer.poll()
            asked = consumer.poll(min_bytes=3 * size, **WAIT)
        else:
            asked = node.fetch(wants, min_bytes=3 * size, **WAIT)
        assert asked.is_waiting
        node.append(second, b"b")
        assert asked.is_waiting
        node.append(second, b"c")
        assert reason(asked) is Reason.ENOUGH_NOW
        assert sum(len(one.records) for one in asked.partitions.values()) == 3 * size


def test_f11_a_partition_counts_up_to_partition_max_bytes() -> None:
    node = Node()
    first, second = node.lead("topic", 0), node.lead("topic", 1)
    node.append(first, b"a")
    size = first.log.size
    asked = node.fetch([want(first, 1, max_bytes=size), want(second, 0)], min_bytes=2 * size, **WAIT)
    node.append(first, b"b")
    node.append(first, b"c")
    assert asked.is_waiting
    node.append(second, b"d")
    assert not asked.is_waiting


def test_f11_a_new_high_watermark_wakes_a_consumers_fetch() -> None:
    node = Node()
    node.know(broker(2))
    partition = node.host(state=registration(1, (1, 2)))
    asked = node.fetch([want(partition, 0)], **WAIT)
    node.append(partition, b"a")
    assert asked.is_waiting
    node.fetch([want(partition, 1)], replica=2, replica_epoch=102)
    assert bytes_of(asked.only)


def test_f11_a_new_last_stable_offset_wakes_a_read_committed_fetch() -> None:
    node = Node()
    partition = node.lead()
    asked = node.fetch([want(partition, 0)], isolation_level=1, **WAIT)
    node.append(partition, b"a", producer_id=7, sequence=0, transactional=True)
    assert asked.is_waiting
    node.end_transaction(partition, 7, commit=True)
    assert bytes_of(asked.only)


def test_f11_an_uncommitted_append_wakes_a_followers_fetch() -> None:
    node = Node()
    node.know(broker(2))
    partition = node.host(state=registration(1, (1, 2)))
    asked = node.fetch([want(partition, 0)], replica=2, replica_epoch=102, **WAIT)
    assert asked.is_waiting
    node.append(partition, b"a")
    assert bytes_of(asked.only)


def test_f11_a_fetch_returns_the_available_records_at_its_deadline() -> None:
    node = Node()
    first, second = node.lead("topic", 0), node.lead("topic", 1)
    node.append(first, b"a")
    asked = node.fetch([want(first, 0), want(second, 0)], min_bytes=10_000, **WAIT)
    node.pass_ms(499)
    assert asked.is_waiting
    node.pass_ms(1)
    assert reason(asked) is Reason.DEADLINE
    assert [bool(one.records) for one in asked.partitions.values()] == [True, False]


@pytest.mark.parametrize("session", [False, True])
@pytest.mark.parametrize(
    ("case", "expected", "error"),
    [
        ("A", Reason.NOT_LEADER, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        ("B", Reason.NO_REPLICA, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        ("C", Reason.UNKNOWN, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("D", Reason.OFFLINE, ErrorCode.KAFKA_STORAGE_ERROR),
        ("E", Reason.FENCED, ErrorCode.FENCED_LEADER_EPOCH),
    ],
)
def test_f11_an_error_of_a_partition_answers_a_waiting_fetch_at_once(
    case: str, expected: Reason, error: ErrorCode, session: bool
) -> None:
    node = Node()
    node.know(broker(2))
    partition, other = node.host("topic", 0, state=registration(1, (1, 2))), node.lead("topic", 1)
    wants = [want(partition, 0, epoch=0 if case == "E" else -1), want(other, 0)]
    version = 10 if case == "A" else 12
    if session:
        consumer = Consumer(node, wants, version=version)
        consumer.poll()
        asked = consumer.poll(**WAIT)
    else:
        asked = node.fetch(wants, version=version, **WAIT)
    assert asked.is_waiting
    if case == "A":
        node.apply(partition, registration(2, (1, 2), leader_epoch=1, partition_epoch=1))
    elif case == "E":
        node.apply(partition, registration(1, (1, 2), leader_epoch=1, partition_epoch=1))
    else:
        if case == "D":
            node.partitions.mark_offline(partition.key)
        else:
            node.partitions.remove(partition.key)
        if case == "C":
            node.unpublish("topic")
            node.publish(other.key, registration())
        node.check(partition)
    assert reason(asked) is expected
    assert asked.partitions["topic", 0].error_code == error
    if not session:
        assert asked.partitions["topic", 1].error_code == ErrorCode.NONE


def test_f11_a_rolled_segment_wakes_a_fetch_behind_it() -> None:
    """Case F: the segment of the fetch offset is sealed, so bytes are not counted."""
    node = Node()
    partition = node.lead()
    node.append(partition, b"a")
    behind = node.fetch([want(partition, 0)], min_bytes=10_000, **WAIT)
    at_end = node.fetch([want(partition, 1)], min_bytes=10_000, **WAIT)
    partition.log.roll(node.now_ms)
    node.check(partition)
    assert reason(behind) is Reason.OTHER_SEGMENT
    assert len(behind.only.records) > 0
    assert at_end.is_waiting  # the bound is in the new segment at the same offset, so there is nothing to read
    node.append(partition, b"b")
    assert reason(at_end) is Reason.OTHER_SEGMENT
    assert len(at_end.only.records) > 0


def test_f11_a_fetch_behind_the_active_segment_never_waits() -> None:
    node = Node()
    partition = node.lead()
    node.append(partition, b"a")
    partition.log.roll(node.now_ms)
    node.append(partition, b"b")
    asked = node.fetch([want(partition, 0)], min_bytes=10_000, **WAIT)
    assert reason(asked) is Reason.OTHER_SEGMENT


def test_f11_a_truncation_wakes_a_fetch_beyond_the_new_end() -> None:
    """Case F: the log now ends before the fetch offset."""
    node = Node()
    partition = node.host(state=registration(2, (1, 2)))
    data = bytes(batch(b"a", leader_epoch=0)) + bytes(batch(b"b", base_offset=1, leader_epoch=0))
    partition.role.append(data, high_watermark=2, leader_log_start_offset=0, now_ms=node.now_ms)
    asked = node.fetch([want(partition, 2)], **WAIT)
    assert asked.is_waiting
    partition.log.truncate_to(1, node.now_ms)
    node.check(partition)
    assert reason(asked) is Reason.OTHER_SEGMENT
    assert asked.only.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_f11_a_fetch_past_the_bound_never_waits() -> None:
    """Case F: a consumer beyond a lagging high watermark has to ask again."""
    node = Node()
    node.know(broker(2))
    partition = node.host(state=registration(1, (1, 2)))
    node.append(partition, b"a")
    assert reason(node.fetch([want(partition, 1)], **WAIT)) is Reason.OTHER_SEGMENT


def test_f11_a_newly_diverging_epoch_wakes_a_waiting_fetch() -> None:
    """Case H: while the reader waited at the log end, the log was truncated and written again under another epoch."""
    node = Node()
    partition = node.host(state=registration(2, (1, 2), leader_epoch=0))

    def take(*base_offsets: int, epoch: int) -> None:
        data = b"".join(bytes(batch(b"a", base_offset=offset, leader_epoch=epoch)) for offset in base_offsets)
        partition.role.append(data, high_watermark=base_offsets[-1] + 1, leader_log_start_offset=0, now_ms=node.now_ms)

    take(0, 1, epoch=0)
    asked = node.fetch([want(partition, 2, last_epoch=0)], min_bytes=10_000, **WAIT)
    assert asked.is_waiting
    node.apply(partition, registration(3, (1, 2, 3), leader_epoch=4, partition_epoch=1))
    assert asked.is_waiting
    partition.log.truncate_to(1, node.now_ms)
    take(1, 2, epoch=4)
    node.check(partition)
    assert reason(asked) is Reason.DIVERGING_NOW
    diverging = asked.only.diverging_epoch
    assert (diverging.epoch, diverging.end_offset) == (0, 1)


def test_f11_a_check_during_the_first_try_is_not_missed() -> None:
    """A follower's own fetch advances the high watermark while it is read. The waiting consumer is answered. The
    follower's fetch waits, because there are no new records for it."""
    node = Node()
    node.know(broker(2))
    partition = node.host(state=registration(1, (1, 2)))
    node.append(partition, b"a")
    consumer = node.fetch([want(partition, 0)], **WAIT)
    follower = node.fetch([want(partition, 1)], replica=2, replica_epoch=102, **WAIT)
    assert (consumer.is_waiting, follower.is_waiting) == (False, True)


def test_a_cancelled_fetch_is_never_answered() -> None:
    node = Node()
    partition = node.lead()
    asked = node.fetch([want(partition, 0)], **WAIT)
    assert asked.fetch.operation is not None
    node.purgatory.cancel(asked.fetch.operation)
    node.append(partition, b"a")
    node.pass_ms(1_000)
    assert asked.is_waiting


def test_a_partition_that_recovers_from_an_error_wakes_the_sessions_fetch() -> None:
    node = Node()
    first, second = node.lead("topic", 0), node.lead("topic", 1)
    consumer = Consumer(node, [want(first, 5), want(second, 0)])
    assert consumer.poll().partitions["topic", 0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    consumer.move(first, 0)
    assert list(consumer.poll().partitions) == [("topic", 0)]
    asked = consumer.poll(**WAIT)
    assert asked.is_waiting
    node.append(first, b"a")
    assert asked.only.records


def test_a_waiting_session_fetch_notices_added_and_removed_replicas() -> None:
    node = Node()
    first, second = node.lead("topic", 0), node.lead("topic", 1)
    consumer = Consumer(node, [want(first, 0), want(second, 0)])
    consumer.poll()
    consumer.poll()
    asked = consumer.poll(**WAIT)
    node.partitions.mark_offline(first.key)  # without a check of the purgatory
    node.append(second, b"a")
    assert {key: one.error_code for key, one in asked.partitions.items()} == {
        ("topic", 0): ErrorCode.KAFKA_STORAGE_ERROR,
        ("topic", 1): ErrorCode.NONE,
    }
