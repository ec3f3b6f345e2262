"""L13: new segments take the place of old ones, one rename after the other."""

from __future__ import annotations

import pytest

from tailrace.log.disk import file_names
from tailrace.log.segments.segment import Segment
from tailrace.log.segments.segment_list import SegmentList
from tailrace.log.segments.segment_swap import swap_segments
from tailrace.model.topic_config import TopicConfig
from tests.support.memory_files import MemoryFiles
from tests.support.small_logs import FOLDER, NOW_MS, new_files, new_segment, placed, put


def cleaned_segment(files: MemoryFiles, base_offset: int) -> Segment:
    segment = Segment.create(files, FOLDER, base_offset, TopicConfig(), now_ms=NOW_MS, suffix=file_names.CLEANED)
    put(segment, placed(base_offset, b"kept"))
    segment.seal()
    segment.flush()
    return segment


def some_segments(files: MemoryFiles) -> SegmentList:
    segments = SegmentList()
    for base in (0, 10, 20, 30):
        segment = new_segment(files, base)
        put(segment, placed(base, b"a"), placed(base + 5, b"b"))
        segments.add(segment)
    return segments


def logs(files: MemoryFiles) -> list[str]:
    return [name.lstrip("0") for name in sorted(files.tree(FOLDER)) if ".log" in name]


def test_l13_a_swap_replaces_the_old_segments_by_the_new_ones() -> None:
    files = new_files()
    segments = some_segments(files)
    old = [segments[0], segments[1], segments[2]]
    new = [cleaned_segment(files, 0), cleaned_segment(files, 20)]
    swap_segments(files, FOLDER, segments, new, old)
    assert segments.base_offsets == [0, 20, 30]
    assert list(segments)[:2] == new
    assert logs(files) == [".log", ".log.deleted", "10.log.deleted", "20.log", "20.log.deleted", "30.log"]
    assert [header.base_offset for header in segments[0].headers()] == [0]


def test_readers_still_read_the_old_segments() -> None:
    files = new_files()
    segments = some_segments(files)
    old = segments[0]
    reading = old.read(0, 10**6, old.size, at_least_one=True)
    assert reading is not None
    before = reading[1].read() if reading[1] else b""
    swap_segments(files, FOLDER, segments, [cleaned_segment(files, 0)], [old])
    assert reading[1] is not None
    assert reading[1].read() == before != b""


def test_l13_a_swap_renames_the_last_segment_first_and_syncs_the_folder_between_the_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = new_files()
    segments = some_segments(files)
    old = [segments[0], segments[1]]
    new = [cleaned_segment(files, 0), cleaned_segment(files, 10)]
    steps: list[str] = []
    replace, sync = files.replace, files.sync_directory

    def noting_replace(source: str, target: str) -> None:
        if ".log" in target:
            steps.append(target.rpartition("/")[2].lstrip("0"))
        replace(source, target)

    def noting_sync(path: str) -> None:
        steps.append("sync")
        sync(path)

    monkeypatch.setattr(files, "replace", noting_replace)
    monkeypatch.setattr(files, "sync_directory", noting_sync)
    swap_segments(files, FOLDER, segments, new, old)
    assert steps == [
        *("10.log.swap", "sync", ".log.swap", "sync"),
        *(".log.deleted", "10.log.deleted", "sync"),
        *(".log", "sync", "10.log", "sync"),
    ]
