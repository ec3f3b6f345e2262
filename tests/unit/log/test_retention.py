"""L12: which segments may go."""

from __future__ import annotations

import pytest

from tailrace.log.segments.position import LogPosition
from tailrace.log.segments.segment import Segment
from tailrace.log.segments.segment_list import SegmentList
from tailrace.log.upkeep.retention import below_log_start, beyond_age, beyond_size, limits_of
from tailrace.log.watermarks import Watermarks
from tailrace.model.topic_config import TopicConfig
from tests.support.small_logs import NOW_MS, new_files, new_segment, placed, put

SIZE = placed(0, b"a").size
AGE_MS = 60_000


def three_segments() -> SegmentList:
    """Return segments of ten, ten and five batches, with ages of an hour, ten minutes and zero."""
    files = new_files()
    segments = SegmentList()
    for base, count, age_ms in ((0, 10, 3_600_000), (10, 10, 600_000), (20, 5, 0)):
        segment = new_segment(files, base)
        put(segment, *(placed(base + n, b"a", timestamp=NOW_MS - age_ms) for n in range(count)))
        segments.add(segment)
    return segments


def marks(*, start: int = 0, high_watermark: int = 25) -> Watermarks:
    return Watermarks(start, LogPosition(25), LogPosition(high_watermark))


def bases(segments: list[Segment]) -> list[int]:
    return [segment.base_offset for segment in segments]


def test_l12_segments_wholly_below_the_log_start_are_deleted() -> None:
    segments = three_segments()
    assert below_log_start(segments, marks(start=9)) == []
    assert bases(below_log_start(segments, marks(start=10))) == [0]
    assert bases(below_log_start(segments, marks(start=19))) == [0]
    assert bases(below_log_start(segments, marks(start=25))) == [0, 10], "the active one starts the next log"


def test_l12_oldest_segments_are_deleted_while_the_rest_has_retention_bytes() -> None:
    segments = three_segments()

    def going(kept_bytes: int) -> list[int]:
        return bases(beyond_size(segments, marks(), limits_of(TopicConfig(retention_bytes=kept_bytes))))

    assert going(-1) == []
    assert going(25 * SIZE) == []
    assert going(15 * SIZE + 1) == []
    assert going(15 * SIZE) == [0]
    assert going(5 * SIZE) == [0, 10]
    assert going(5 * SIZE - 1) == [0, 10]
    assert going(0) == [0, 10, 20]


def test_l12_segments_whose_latest_record_is_too_old_are_deleted() -> None:
    segments = three_segments()

    def going(retention_ms: int) -> list[int]:
        return bases(beyond_age(segments, marks(), limits_of(TopicConfig(retention_ms=retention_ms)), NOW_MS))

    assert going(-1) == []
    assert going(3_600_000) == []
    assert going(3_599_999) == [0]
    assert going(AGE_MS) == [0, 10]
    assert bases(beyond_age(segments, marks(), limits_of(TopicConfig(retention_ms=0)), NOW_MS + 1)) == [0, 10, 20]


def test_l12_segments_past_the_high_watermark_are_not_deleted() -> None:
    segments, config = three_segments(), TopicConfig(retention_ms=AGE_MS, retention_bytes=0)
    assert bases(beyond_age(segments, marks(high_watermark=19), limits_of(config), NOW_MS)) == [0]
    assert bases(beyond_size(segments, marks(high_watermark=9), limits_of(config))) == []
    assert bases(beyond_size(segments, marks(high_watermark=24), limits_of(config))) == [0, 10]


def test_l12_an_old_segment_after_a_younger_one_is_not_deleted() -> None:
    files = new_files()
    segments = three_segments()
    young = new_segment(files, 10)
    put(young, placed(10, b"a", timestamp=NOW_MS))
    segments.add(young)
    old = new_segment(files, 20)
    put(old, placed(20, b"a", timestamp=0))
    segments.add(old)
    assert bases(beyond_age(segments, marks(), limits_of(TopicConfig(retention_ms=AGE_MS)), NOW_MS)) == [0]


def test_l12_an_empty_active_segment_stays() -> None:
    files = new_files()
    segments = SegmentList([new_segment(files, 0)])
    config = TopicConfig(retention_ms=0, retention_bytes=0)
    empty = Watermarks(0, LogPosition(0), LogPosition(0))
    assert beyond_age(segments, empty, limits_of(config), NOW_MS + 10**9) == []
    assert beyond_size(segments, empty, limits_of(config)) == []


def test_retention_looks_only_at_the_segments_that_it_may_delete(monkeypatch: pytest.MonkeyPatch) -> None:
    """The timestamp of a segment that was opened is read from a file."""
    segments = three_segments()
    looked_at: list[int] = []
    timestamp_of = Segment.retention_timestamp_ms

    def noting(segment: Segment) -> int:
        looked_at.append(segment.base_offset)
        return timestamp_of(segment)

    monkeypatch.setattr(Segment, "retention_timestamp_ms", noting)
    assert bases(beyond_age(segments, marks(), limits_of(TopicConfig(retention_ms=AGE_MS)), NOW_MS, 1)) == [0]
    assert looked_at == [0]


def test_a_copied_log_keeps_segments_that_are_not_in_the_remote_store() -> None:
    segments = three_segments()
    config = TopicConfig(retention_ms=-1, retention_bytes=-1, local_retention_bytes=0)

    def deleted(highest_remote_offset: int, start: int = 0) -> list[int]:
        limits = limits_of(config, highest_remote_offset)
        return bases(beyond_size(segments, marks(start=start), limits))

    assert deleted(-1) == []
    assert deleted(8) == []
    assert deleted(9) == [0]
    assert deleted(19) == [0, 10, 20], "the caller seals the active segment"
    assert deleted(-1, start=10) == [0], "the log starts after it"


def test_local_limits_replace_the_limits_only_while_segments_are_copied() -> None:
    config = TopicConfig(retention_ms=9, retention_bytes=8, local_retention_ms=7, local_retention_bytes=6)
    assert limits_of(config) == (8, 9, None)
    assert limits_of(config, 0) == (6, 7, 0)
    assert limits_of(TopicConfig(retention_ms=9, retention_bytes=8), 0) == (8, 9, 0)
