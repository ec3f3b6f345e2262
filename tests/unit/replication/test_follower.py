"""FollowerRole: append, follow, truncate where epochs diverge."""

from __future__ import annotations

import pytest

from tailrace.log.leader_epochs import UNKNOWN_END, EpochEnd, EpochStart
from tailrace.model.errors import KafkaError
from tailrace.records.batch import CorruptBatch
from tailrace.replication.follower import FollowerRole
from tailrace.replication.partition import Partition
from tests.simulation.node import NOW_MS, Node, registration
from tests.support.batches import batch, stored_batches


def following(leader_epoch: int = 9) -> tuple[Partition, FollowerRole]:
    partition = Node().host(state=registration(2, (1, 2), leader_epoch=leader_epoch))
    assert isinstance(partition.role, FollowerRole)
    return partition, partition.role


def records(base_offset: int, *values: bytes, epoch: int = 0) -> bytes:
    return bytes(batch(*values, base_offset=base_offset, leader_epoch=epoch))


def take(role: FollowerRole, data: bytes, *, high_watermark: int = 0, log_start: int = 0):  # type: ignore[no-untyped-def]
    return role.append(data, high_watermark=high_watermark, leader_log_start_offset=log_start, now_ms=NOW_MS)


def with_epochs(*ends: tuple[int, int]) -> tuple[Partition, FollowerRole]:
    """Return a follower's log whose epochs end at these offsets."""
    partition, role = following()
    offset = 0
    for epoch, end in ends:
        take(role, records(offset, *([b"x"] * (end - offset)), epoch=epoch))
        offset = end
    return partition, role


def test_records_are_appended_with_the_leaders_offsets_and_epochs() -> None:
    partition, role = following()
    assert (role.fetch_offset, role.last_fetched_epoch) == (0, -1)
    sent = records(0, b"a", b"b", epoch=3)
    assert take(role, sent).log_end_offset == 2
    assert [stored.data for stored in stored_batches(partition.log)] == [sent]
    assert (role.fetch_offset, role.last_fetched_epoch) == (2, 3)
    assert partition.log.epochs.entries == [EpochStart(3, 0)]


def test_a_followers_high_watermark_is_at_most_its_log_end() -> None:
    partition, role = following()
    assert not take(role, records(0, b"a", b"b"), high_watermark=0).high_watermark_moved
    assert take(role, b"", high_watermark=1).high_watermark_moved
    assert take(role, records(2, b"c"), high_watermark=10).high_watermark_moved
    assert partition.log.high_watermark == 3
    assert not take(role, b"", high_watermark=2).high_watermark_moved
    assert partition.log.high_watermark == 3


def test_the_log_start_follows_the_leaders_but_not_past_the_high_watermark() -> None:
    partition, role = following()
    take(role, records(0, b"a") + records(1, b"b"), high_watermark=1)
    assert not take(role, b"", high_watermark=1, log_start=2).log_start_moved
    assert partition.log.log_start_offset == 0
    assert take(role, b"", high_watermark=2, log_start=2).log_start_moved
    assert partition.log.log_start_offset == 2


def test_records_of_a_later_epoch_are_not_appended() -> None:
    partition, role = following(leader_epoch=1)
    take(role, records(0, b"a", epoch=1) + records(1, b"b", epoch=2))
    assert partition.log.log_end_offset == 1


def test_an_empty_log_may_begin_within_the_leaders_first_batch() -> None:
    """After DeleteRecords the leader's log starts in the middle of a batch, and that batch is what it sends."""
    partition, role = following()
    role.restart_at(7, 20, NOW_MS)
    assert (partition.log.log_start_offset, partition.log.log_end_offset) == (7, 7)
    take(role, records(5, b"f", b"g", b"h", b"i"), high_watermark=9, log_start=7)
    assert (partition.log.log_start_offset, partition.log.log_end_offset) == (7, 9)
    assert [stored.base_offset for stored in stored_batches(partition.log)] == [5]


@pytest.mark.parametrize(
    ("own", "leader_end", "expected"),
    [
        # The leader's end of an epoch that both know: the smaller one of the two.
        ([(0, 4), (2, 9)], EpochEnd(2, 6), 6),
        ([(0, 4), (2, 9)], EpochEnd(0, 3), 3),
        ([(0, 4), (2, 9)], EpochEnd(0, 6), 4),
        # An epoch that the follower does not know: the end of its own largest one below, and it asks again.
        ([(0, 4), (2, 9)], EpochEnd(1, 7), 4),
        ([(0, 4), (2, 9)], EpochEnd(1, 2), 4),
        # Newer than all it has: nothing of its own to go by.
        ([(0, 4)], EpochEnd(3, 2), 2),
        ([(0, 4)], EpochEnd(3, 8), 4),
        # Older than all it has.
        ([(3, 4)], EpochEnd(1, 2), 0),
        # Only an offset, or nothing at all: then the high watermark is what is sure.
        ([(0, 4)], EpochEnd(-1, 3), 3),
        ([(0, 4)], UNKNOWN_END, 0),
    ],
)
def test_the_truncation_offset_follows_from_both_epoch_histories(
    own: list[tuple[int, int]], leader_end: EpochEnd, expected: int
) -> None:
    _, role = with_epochs(*own)
    assert role.truncation_offset(leader_end) == expected


def test_truncation_cuts_records_and_epochs() -> None:
    partition, role = with_epochs((0, 4), (2, 9))
    assert role.truncate_at(EpochEnd(0, 4), NOW_MS) == 4
    assert (role.fetch_offset, role.last_fetched_epoch) == (4, 0)
    assert partition.log.epochs.entries == [EpochStart(0, 0)]


def test_a_follower_beyond_the_leaders_log_end_truncates_to_it() -> None:
    partition, role = with_epochs((0, 4), (1, 9))
    assert role.restart_at(0, 4, NOW_MS) == 4
    assert partition.log.log_end_offset == 4


def test_a_follower_below_the_leaders_log_start_restarts_there() -> None:
    partition, role = with_epochs((0, 4))
    assert role.restart_at(100, 200, NOW_MS) == 100
    assert (partition.log.log_start_offset, partition.log.log_end_offset) == (100, 100)


def test_a_follower_within_the_leaders_log_fetches_again() -> None:
    _, role = with_epochs((0, 4))
    assert role.restart_at(0, 200, NOW_MS) == 4


@pytest.mark.parametrize("damaged", ["cut short", "before all offsets", "of no epoch"])
def test_records_that_a_leader_would_never_send_are_refused_and_change_nothing(damaged: str) -> None:
    partition, role = following()
    sent = bytearray(records(0, b"a"))
    if damaged == "cut short":
        del sent[5:]
        take(role, bytes(sent))
    else:
        if damaged == "of no epoch":
            sent[12:16] = b"\xff" * 4
        else:
            sent[0] = 0xFF
        with pytest.raises((CorruptBatch, KafkaError)):
            take(role, bytes(sent))
    assert partition.log.log_end_offset == 0
    assert take(role, records(0, b"a")).log_end_offset == 1
