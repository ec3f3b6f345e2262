from __future__ import annotations

from typing import Any

import pytest

from tailrace.client.batches import FetchOptions, fetch, fetch_range
from tailrace.client.errors import EndNotReached, InvalidAnswer, OffsetOutOfRange, Refused
from tailrace.client.visible_batches import IsolationLevel
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicPartition
from tailrace.protocol.api_keys import ApiKey
from tailrace.protocol.messages import FetchRequest, FetchResponse
from tailrace.records.batch import RecordBatch
from tests.support.batches import batch, end_marker
from tests.unit.client.fakes import FakeCluster

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
COMMITTED = FetchOptions(isolation=IsolationLevel.READ_COMMITTED)


class FakeLog:
    """A partition that returns a limited number of batches per response."""

    def __init__(self, *batches: bytearray, first: int = 0, per_answer: int = 100) -> None:
        self.batches: list[RecordBatch] = []
        self.start = self.end = first
        self.per_answer = per_answer
        self.aborted: list[tuple[int, int]] = []
        self.last_stable_offset: int | None = None
        self.tail = b""
        self.throttled = 0  # number of empty responses
        self.error_codes: list[int] = []
        for data in batches:
            self.append(data)

    def append(self, data: bytearray, *, gap: int = 0) -> None:
        one = RecordBatch(memoryview(data))
        one.set_offset_and_epoch(self.end + gap, 0)
        self.end = one.next_offset
        self.batches.append(one)

    def read(self, request: FetchRequest.FetchPartition) -> FetchResponse.PartitionData:
        stable = self.end if self.last_stable_offset is None else self.last_stable_offset
        answer = FetchResponse.PartitionData(
            partition_index=request.partition,
            high_watermark=self.end,
            last_stable_offset=stable,
            log_start_offset=self.start,
            aborted_transactions=[
                FetchResponse.AbortedTransaction(producer_id=producer_id, first_offset=first)
                for producer_id, first in self.aborted
            ],
        )
        if self.error_codes:
            answer.error_code = self.error_codes.pop(0)
        elif not self.start <= request.fetch_offset <= self.end:
            answer.error_code = ErrorCode.OFFSET_OUT_OF_RANGE
        elif not self.throttled:
            found = [one for one in self.batches if one.last_offset >= request.fetch_offset][: self.per_answer]
            answer.records = b"".join(bytes(one.view) for one in found) + self.tail
        return answer


class Reading:
    def __init__(self, *logs: FakeLog, **settings: Any) -> None:
        self.logs = logs
        self.fake = FakeCluster()
        self.topic = self.fake.add_topic("t", *([1] * len(logs)))
        self.fake.handle(ApiKey.FETCH, self.answer)
        self.cluster = self.fake.client(**settings)

    def answer(self, request: FetchRequest, version: int) -> FetchResponse:
        (topic,) = request.topics
        assert topic.topic_id == self.topic.topic_id
        throttle_time_ms = 0
        for one in topic.partitions:
            log = self.logs[one.partition]
            if log.throttled:
                throttle_time_ms = 10
        partitions = [self.logs[one.partition].read(one) for one in topic.partitions]
        for one in topic.partitions:
            self.logs[one.partition].throttled = max(0, self.logs[one.partition].throttled - 1)
        topics = [FetchResponse.FetchableTopicResponse(topic_id=topic.topic_id, partitions=partitions)]
        return FetchResponse(throttle_time_ms=throttle_time_ms, responses=topics)

    def range(self, start: int, end: int, options: FetchOptions | None = None) -> list[int]:
        return [one.base_offset for one in fetch_range(self.cluster, T0, start, end, options)]

    @property
    def positions(self) -> list[int]:
        return [one.message.topics[0].partitions[0].fetch_offset for one in self.fake.asked]


def five(**settings: Any) -> FakeLog:
    return FakeLog(*(batch(b"a", b"b") for _ in range(5)), **settings)  # offsets 0, 2, 4, 6, 8


def test_a_range_is_read_in_whole_batches() -> None:
    assert Reading(five()).range(0, 10) == [0, 2, 4, 6, 8]
    assert Reading(five()).range(3, 7) == [2, 4, 6]
    assert Reading(five()).range(3, 3) == []
    reading = Reading(five(per_answer=2))
    assert reading.range(1, 10) == [0, 2, 4, 6, 8]
    assert reading.positions == [1, 4, 8]


def test_an_incomplete_batch_is_fetched_again() -> None:
    log = five(per_answer=2)
    log.tail = bytes(log.batches[0].view)[:40]
    assert Reading(log).range(0, 10) == [0, 2, 4, 6, 8]


def test_a_range_ends_before_records_that_compaction_removed() -> None:
    log = five()
    log.end = 15
    reading = Reading(log)
    assert reading.range(0, 15) == [0, 2, 4, 6, 8]
    assert reading.positions == [0, 10]
    assert reading.fake.clock.pauses == []


def test_an_empty_response_of_a_throttled_broker_is_retried() -> None:
    log = five()
    log.throttled = 2
    assert Reading(log).range(0, 10) == [0, 2, 4, 6, 8]


def test_a_range_past_the_log_end_raises_end_not_reached() -> None:
    reading = Reading(five(), total_timeout_ms=2000)
    with pytest.raises(EndNotReached, match="t-0 can be read up to offset 10 only; the range ends at 11"):
        reading.range(0, 11)
    log = five()
    log.last_stable_offset = 4
    log.batches = log.batches[:2]
    reading = Reading(log, total_timeout_ms=2000)
    with pytest.raises(EndNotReached, match="up to offset 4"):
        reading.range(0, 10, COMMITTED)


def test_an_offset_before_the_log_start_raises_offset_out_of_range() -> None:
    with pytest.raises(OffsetOutOfRange, match="t-0: offset 3 is out of range; the log starts at 5") as raised:
        Reading(five(first=5)).range(3, 7)
    assert (raised.value.offset, raised.value.log_start_offset) == (3, 5)


def test_control_batches_and_aborted_transactions_are_skipped() -> None:
    log = FakeLog(
        batch(b"a", producer_id=7, sequence=0, transactional=True),
        batch(b"b"),
        end_marker(7, commit=False),
        per_answer=2,
    )
    assert Reading(log).range(0, 3) == [0, 1]
    log.aborted = [(7, 0)]
    reading = Reading(log)
    assert reading.range(0, 3, COMMITTED) == [1]
    assert reading.positions == [0, 2]


def test_a_damaged_batch_is_reported() -> None:
    log = five()
    log.batches[1].view[70] ^= 1
    with pytest.raises(InvalidAnswer, match="damaged batch of t-0: checksum"):
        Reading(log).range(0, 10)
    assert Reading(log).range(0, 10, FetchOptions(check_crcs=False)) == [0, 2, 4, 6, 8]


def test_a_fetch_follows_a_leader_change() -> None:
    log = five(per_answer=2)
    log.error_codes = [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.FENCED_LEADER_EPOCH]
    reading = Reading(log)
    assert reading.range(0, 10) == [0, 2, 4, 6, 8]
    assert reading.positions == [0, 0, 0, 0, 4, 8]


def test_one_fetch_reads_several_partitions() -> None:
    reading = Reading(five(), five())
    found = fetch(reading.cluster, {T0: 4, T1: 10}, FetchOptions(max_wait_ms=7, max_bytes=99, partition_max_bytes=5))
    assert [one.base_offset for one in found[T0].batches()] == [4, 6, 8]
    assert list(found[T1].batches()) == []
    assert (found[T0].next_position(4), found[T1].next_position(10)) == (10, 10)
    assert (found[T0].high_watermark, found[T0].log_start_offset) == (10, 0)
    (request,) = [one.message for one in reading.fake.asked]
    assert (request.max_wait_ms, request.max_bytes, request.session_epoch) == (7, 99, -1)
    assert [one.partition_max_bytes for one in request.topics[0].partitions] == [5, 5]


def test_batches_are_views_of_the_response() -> None:
    found = fetch(Reading(five()).cluster, {T0: 0})[T0]
    first = next(found.batches())
    assert first.view.obj is found.records.obj


def test_an_error_of_the_whole_fetch_is_raised() -> None:
    reading = Reading(five())
    reading.fake.handle(ApiKey.FETCH, lambda request, version: FetchResponse(error_code=ErrorCode.INVALID_REQUEST))
    with pytest.raises(Refused, match="INVALID_REQUEST"):
        reading.range(0, 10)
