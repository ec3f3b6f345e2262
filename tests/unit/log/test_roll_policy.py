"""L3: when the active segment is sealed."""

from __future__ import annotations

import pytest

from tailrace.log.segments.roll_policy import RollReason, check_segment_size, room_in
from tailrace.log.segments.segment import Segment
from tailrace.model.configs.topic_settings import parse_topic_config
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import TopicPartition
from tailrace.model.topic_config import TopicConfig
from tests.support.small_logs import FOLDER, NOW_MS, new_files, placed, put

SIZE = placed(0, b"a").size
HOUR_MS = 3_600_000


def segment_of(settings: dict[str, str], *timestamps: int, jitter_ms: int = 0) -> Segment:
    config = parse_topic_config(settings)
    segment = Segment.create(new_files(), FOLDER, 0, config, now_ms=NOW_MS, jitter_ms=jitter_ms)
    for offset, timestamp in enumerate(timestamps):
        put(segment, placed(offset, b"a", timestamp=timestamp))
    return segment


def reason(
    segment: Segment,
    *,
    size: int = SIZE,
    timestamp: int = NOW_MS,
    last_offset: int = 10,
    now_ms: int = NOW_MS,
) -> RollReason | None:
    return room_in(segment, now_ms).roll_reason(segment.size + size, timestamp, last_offset)


def test_l3_a_segment_rolls_when_its_size_would_pass_segment_bytes() -> None:
    segment = segment_of({"internal.segment.bytes": str(3 * SIZE)}, NOW_MS, NOW_MS)
    assert reason(segment) is None
    assert reason(segment, size=SIZE + 1) is RollReason.SIZE


def test_l3_an_empty_segment_accepts_a_batch_of_exactly_its_size() -> None:
    segment = segment_of({"internal.segment.bytes": str(SIZE)})
    assert reason(segment) is None


def test_l3_a_segment_rolls_when_its_records_are_older_than_segment_ms() -> None:
    segment = segment_of({"segment.ms": str(HOUR_MS)}, NOW_MS, NOW_MS + 5)
    assert reason(segment, timestamp=NOW_MS + HOUR_MS, now_ms=0) is None
    assert reason(segment, timestamp=NOW_MS + HOUR_MS + 1, now_ms=0) is RollReason.AGE


def test_l3_the_age_of_a_segment_without_timestamps_is_taken_from_the_clock() -> None:
    segment = segment_of({"segment.ms": str(HOUR_MS)}, -1)
    assert reason(segment, timestamp=-1, now_ms=NOW_MS + HOUR_MS) is None
    assert reason(segment, timestamp=-1, now_ms=NOW_MS + HOUR_MS + 1) is RollReason.AGE


def test_l3_an_empty_segment_never_rolls_by_age() -> None:
    segment = segment_of({"segment.ms": "1"})
    assert reason(segment, timestamp=NOW_MS + 10**9, now_ms=NOW_MS + 10**9) is None


def test_l3_jitter_makes_segments_of_the_same_age_roll_at_different_times() -> None:
    punctual = segment_of({"segment.ms": str(HOUR_MS)}, NOW_MS)
    early = segment_of({"segment.ms": str(HOUR_MS)}, NOW_MS, jitter_ms=1000)
    at = NOW_MS + HOUR_MS - 500
    assert reason(punctual, timestamp=at) is None
    assert reason(early, timestamp=at) is RollReason.AGE


def test_l3_a_compacted_topic_rolls_in_time_for_its_max_compaction_lag() -> None:
    settings = {"segment.ms": str(HOUR_MS), "max.compaction.lag.ms": "60000"}
    kept = segment_of(settings, NOW_MS)
    assert reason(kept, timestamp=NOW_MS + 60_001) is None
    compacted = segment_of({**settings, "cleanup.policy": "compact"}, NOW_MS)
    assert reason(compacted, timestamp=NOW_MS + 60_001) is RollReason.AGE


def test_l3_a_segment_rolls_when_an_index_is_full() -> None:
    settings = {"segment.index.bytes": "36", "index.interval.bytes": "0"}
    segment = segment_of(settings, NOW_MS, NOW_MS + 1)
    assert reason(segment) is None
    segment = segment_of(settings, NOW_MS, NOW_MS + 1, NOW_MS + 2)
    assert reason(segment) is RollReason.FULL_INDEX


def test_l3_a_segment_rolls_when_the_relative_offset_would_overflow() -> None:
    segment = segment_of({}, NOW_MS)
    assert reason(segment, last_offset=2**31 - 1) is None
    assert reason(segment, last_offset=2**31) is RollReason.OFFSET_OVERFLOW


def test_a_roll_reason_is_the_text_of_the_log_line() -> None:
    assert [one.value for one in RollReason] == [
        "segment.bytes reached",
        "segment.ms passed",
        "index is full",
        "offset does not fit the segment",
    ]


def test_an_append_larger_than_a_segment_is_refused() -> None:
    partition = TopicPartition("topic", 0)
    check_segment_size(1000, partition, TopicConfig(internal_segment_bytes=1000))
    with pytest.raises(KafkaError, match="1001 bytes in one append to topic-0") as caught:
        check_segment_size(1001, partition, TopicConfig(internal_segment_bytes=1000))
    assert caught.value.code is ErrorCode.RECORD_LIST_TOO_LARGE


def test_the_age_of_a_segment_is_taken_from_its_timestamps_or_else_from_the_clock() -> None:
    segment = segment_of({"segment.ms": "40"}, 50, 10)
    assert room_in(segment, NOW_MS + 99).timestamp_max == 90
    untimed = segment_of({"segment.ms": "7"}, -1)
    assert room_in(untimed, NOW_MS + 7).roll_reason(SIZE + 1, 90, 1) is None
    assert room_in(untimed, NOW_MS + 8).roll_reason(SIZE + 1, 90, 1) is RollReason.AGE


@pytest.mark.parametrize("timestamps", [(), (-1,)], ids=["empty", "without timestamps"])
def test_a_segment_without_timestamps_has_room_for_one_batch_before_the_next_check(
    timestamps: tuple[int, ...],
) -> None:
    assert room_in(segment_of({}, *timestamps), NOW_MS).batches == 1
    assert room_in(segment_of({}, NOW_MS), NOW_MS).batches > 1
