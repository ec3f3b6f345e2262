"""What an append will do, decided before a byte is written."""

from __future__ import annotations

from unittest import mock

import pytest

from tailrace.log.append_plan import (
    FollowerPlan,
    check_segment_size,
    plan_follower_append,
    plan_producers,
)
from tailrace.log.producers.producer_state import ProducerState
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import TopicPartition
from tailrace.model.topic_config import TopicConfig
from tailrace.records.batch import Buffer, CorruptBatch
from tailrace.records.checked_records import ValidatedRecords
from tailrace.records.legacy import build_messages
from tailrace.records.record import Record, TimestampType
from tailrace.records.validation import Origin, validate_produced
from tests.support.batches import batch, end_marker
from tests.support.small_logs import NOW_MS, append, open_small

PARTITION = TopicPartition("topic", 0)


def lead(data: Buffer, *, end: int = 100, epoch: int = 4, **config: object) -> ValidatedRecords:
    return validate_produced(
        data,
        partition=PARTITION,
        config=TopicConfig(**config),  # type: ignore[arg-type]
        base_offset=end,
        leader_epoch=epoch,
        now_ms=NOW_MS,
    )


def follow(data: Buffer, *, end: int = 100, epoch: int = 4) -> FollowerPlan | None:
    return plan_follower_append(data, partition=PARTITION, log_end_offset=end, leader_epoch=epoch)


def replicated(offset: int, *values: bytes, epoch: int = 4) -> bytes:
    return bytes(batch(*values, base_offset=offset, leader_epoch=epoch, timestamp=NOW_MS + offset))


def test_l2_a_leader_places_batches_at_the_logs_end_under_its_epoch() -> None:
    data = batch(b"a", b"b", timestamp=NOW_MS)
    plan = lead(data)
    assert (plan.first_offset, plan.last_offset, plan.max_timestamp) == (100, 101, NOW_MS)
    assert [(one.base_offset, one.leader_epoch) for one in plan.batches] == [(100, 4)]
    assert plan.log_append_time_ms == -1


def test_log_append_time_is_told() -> None:
    plan = lead(batch(b"a", timestamp=5), message_timestamp_type="LogAppendTime")
    assert (plan.log_append_time_ms, plan.max_timestamp) == (NOW_MS, NOW_MS)


def test_nothing_sent_is_nothing_planned() -> None:
    assert lead(b"").batches == []
    assert follow(b"") is None


def test_a_follower_takes_batches_as_they_are() -> None:
    data = replicated(100, b"a", b"b") + replicated(105, b"c", epoch=3)
    plan = follow(data)
    assert plan is not None
    assert (plan.first_offset, plan.last_offset) == (100, 105)
    assert plan.max_timestamp == NOW_MS + 105
    assert bytes(plan.data) == data


def test_a_follower_leaves_out_a_last_batch_that_is_cut_short() -> None:
    whole = replicated(100, b"a")
    for cut in (1, 11, 12, 60):
        plan = follow(whole + replicated(101, b"b")[:cut])
        assert plan is not None
        assert bytes(plan.data) == whole


def test_a_follower_stops_before_a_later_epoch() -> None:
    plan = follow(replicated(100, b"a") + replicated(101, b"b", epoch=5) + replicated(102, b"c"))
    assert plan is not None
    assert plan.last_offset == 100
    assert follow(replicated(100, b"a", epoch=5)) is None


def test_a_follower_refuses_offsets_it_already_has() -> None:
    with pytest.raises(KafkaError, match="batch at offset 99 of topic-0 lies below the next offset 100") as caught:
        follow(replicated(99, b"a"))
    assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    with pytest.raises(KafkaError, match="lies below the next offset 102"):
        follow(replicated(100, b"a", b"b") + replicated(101, b"c"))


def test_a_follower_refuses_a_damaged_batch() -> None:
    data = bytearray(replicated(100, b"abc"))
    data[-2] ^= 1
    with pytest.raises(CorruptBatch, match="checksum"):
        follow(data)


@pytest.mark.parametrize("magic", [0, 1])
def test_a_follower_takes_messages_of_old_formats_whose_first_offset_it_does_not_know(magic: int) -> None:
    kind = TimestampType.CREATE_TIME if magic else TimestampType.NO_TIMESTAMP
    records = [Record(100 + n, NOW_MS if magic else -1, kind, None, b"v") for n in range(3)]
    data = build_messages(records, magic=magic)
    plan = follow(data)
    assert plan is not None
    assert (plan.first_offset, plan.last_offset, len(plan.batches)) == (-1, 102, 3)
    damaged = bytearray(data)
    damaged[-1] ^= 1
    with pytest.raises(CorruptBatch, match="checksum"):
        follow(damaged)


def test_an_append_larger_than_a_segment_is_refused() -> None:
    check_segment_size(1000, PARTITION, TopicConfig(internal_segment_bytes=1000))
    with pytest.raises(KafkaError, match="1001 bytes in one append to topic-0") as caught:
        check_segment_size(1001, PARTITION, TopicConfig(internal_segment_bytes=1000))
    assert caught.value.code is ErrorCode.RECORD_LIST_TOO_LARGE


def test_batches_without_a_producer_need_no_producer_plan() -> None:
    log = open_small()
    plan = lead(batch(b"a", timestamp=NOW_MS), end=0)
    assert plan_producers(plan, log.producers, Origin.CLIENT, log.segments.active) is None


def test_l9_a_duplicate_is_recognised_before_anything_is_written() -> None:
    log = open_small()
    append(log, b"a", b"b", producer_id=7, sequence=0)
    again = lead(batch(b"a", b"b", timestamp=NOW_MS, producer_id=7, sequence=0), end=2)
    found = plan_producers(again, log.producers, Origin.CLIENT, log.segments.active)
    assert found is not None
    assert found.duplicate is not None
    assert (found.duplicate.first_offset, found.duplicate.last_offset, found.appends) == (0, 1, {})


@pytest.mark.parametrize("transactional", [False, True])
def test_the_next_batch_in_sequence_changes_what_the_long_way_would_change(transactional: bool) -> None:
    log, other = open_small(), open_small()
    options = {"producer_id": 7, "transactional": transactional}
    for one in (log, other):
        append(one, b"a", b"b", sequence=0, **options)
    for sequence in range(2, 14, 2):
        append(log, b"a", b"b", sequence=sequence, **options)
        with mock.patch.object(ProducerState, "goes_on_with", return_value=False):
            append(other, b"a", b"b", sequence=sequence, **options)
    assert log.producers.producers == other.producers.producers
    assert log.producers.open_transactions == other.producers.open_transactions
    assert log.last_stable_offset == other.last_stable_offset
    assert [one.last_sequence for one in log.producers.producers[7].batches] == [5, 7, 9, 11, 13]


def test_what_does_not_just_go_on_takes_the_long_way() -> None:
    log = open_small()
    append(log, b"a", producer_id=7, sequence=0)
    for change in ({"sequence": 0}, {"sequence": 2}, {"sequence": 1, "producer_epoch": 1}, {"transactional": True}):
        data = batch(b"a", timestamp=NOW_MS, **{"producer_id": 7, "sequence": 1, **change})
        assert not log.producers.producers[7].goes_on_with(lead(data, end=1).batches[0])


def test_a_transaction_is_placed_at_the_byte_where_its_first_batch_will_lie() -> None:
    log = open_small()
    append(log, b"first")
    size = log.segments.active.size
    data = batch(b"a", timestamp=NOW_MS, producer_id=7, sequence=0, transactional=True)
    plan = lead(data, end=1)
    found = plan_producers(plan, log.producers, Origin.CLIENT, log.segments.active)
    assert found is not None
    assert [tuple(one.first) for one in found.appends[7].started] == [(1, 0, size)]


def test_a_marker_ends_a_transaction_in_the_plan() -> None:
    log = open_small()
    append(log, b"a", producer_id=7, sequence=0, transactional=True)
    marker = end_marker(7, commit=False, timestamp=NOW_MS)
    origin = Origin.COORDINATOR
    plan = validate_produced(marker, config=TopicConfig(), base_offset=1, leader_epoch=0, now_ms=NOW_MS, origin=origin)
    found = plan_producers(plan, log.producers, Origin.COORDINATOR, log.segments.active)
    assert found is not None
    assert [tuple(one) for one in found.ended] == [(7, 0, 1, True)]
