"""TierCheck finds files without a segment and segments without files, in both layouts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tailrace.log.disk.files import DiskFiles
from tailrace.model.ids import TopicId
from tailrace.tiers.remote_segment import RemoteSegment, RemoteSegmentState
from tailrace.tiers.stores.tier_check import Kind, OpenUpload, SegmentKey, TierCheck, list_store
from tests.support.tier_makers import LAYOUTS, small_log
from tests.support.tiered_logs import TOPIC_ID, copy_log

FILES = DiskFiles()


def key_of(segment: RemoteSegment) -> SegmentKey:
    one = segment.segment_id
    return SegmentKey(one.topic_id, one.partition, one.text)


def known(segments: list[RemoteSegment], state: RemoteSegmentState) -> dict[SegmentKey, RemoteSegment]:
    return {key_of(one): replace(one, state=state) for one in segments}


FINISHED, STARTED = RemoteSegmentState.COPY_SEGMENT_FINISHED, RemoteSegmentState.COPY_SEGMENT_STARTED


@pytest.fixture(params=LAYOUTS)
def copied(request: pytest.FixtureRequest, tmp_path: Path) -> list[RemoteSegment]:
    store = LAYOUTS[request.param](str(tmp_path / "tier"))
    return copy_log(store, small_log(tmp_path / "topic-0"), FILES, str(tmp_path / "topic-0"))


def test_a_store_with_the_segments_of_the_metadata_has_no_findings(copied: list[RemoteSegment], tmp_path: Path) -> None:
    stored = list_store(FILES, str(tmp_path / "tier"))
    assert [one.key for one in stored] == [key_of(one) for one in copied]
    assert TierCheck(known(copied, FINISHED), {TOPIC_ID}).findings(stored) == []


def test_files_of_an_unknown_segment_are_an_orphan_or_foreign(copied: list[RemoteSegment], tmp_path: Path) -> None:
    stored = list_store(FILES, str(tmp_path / "tier"))
    segments = known(copied[1:], FINISHED)
    (orphan,) = TierCheck(segments, {TOPIC_ID}).findings(stored)
    assert (orphan.kind, orphan.segment_id) == (Kind.ORPHAN, copied[0].segment_id.text)
    assert orphan.names == stored[0].names
    assert {one.kind for one in TierCheck({}, set()).findings(stored)} == {Kind.FOREIGN}


def test_a_segment_that_lacks_a_file_is_missing(copied: list[RemoteSegment], tmp_path: Path) -> None:
    FILES.remove(list_store(FILES, str(tmp_path / "tier"))[1].names[0])
    stored = list_store(FILES, str(tmp_path / "tier"))
    (missing,) = TierCheck(known(copied, FINISHED), {TOPIC_ID}).findings(stored)
    assert (missing.kind, missing.start_offset) == (Kind.MISSING, copied[1].start_offset)


def test_segments_that_a_broker_copies_are_left_to_it(copied: list[RemoteSegment], tmp_path: Path) -> None:
    FILES.remove(list_store(FILES, str(tmp_path / "tier"))[0].names[0])
    stored = list_store(FILES, str(tmp_path / "tier"))
    assert TierCheck(known(copied, STARTED), {TOPIC_ID}).findings(stored) == []


def test_unfinished_files_belong_to_their_segment(tmp_path: Path) -> None:
    store = LAYOUTS["aiven"](str(tmp_path / "tier"))
    copied = copy_log(store, small_log(tmp_path / "topic-0"), FILES, str(tmp_path / "topic-0"))
    first = list_store(FILES, str(tmp_path / "tier"))[0]
    path = next(name for name in first.names if name.endswith(".log"))
    FILES.replace(path, path + ".tmp")
    (orphan, _) = TierCheck(known(copied[1:], FINISHED), {TOPIC_ID}).findings(
        [*list_store(FILES, str(tmp_path / "tier"))], [OpenUpload(path, "1")]
    )
    assert path + ".tmp" in orphan.names


def test_uploads_are_reported_unless_a_broker_makes_them(copied: list[RemoteSegment]) -> None:
    name = f"tier/topic-{TOPIC_ID}/0/{0:020d}-{copied[0].segment_id.text}.log"
    upload = OpenUpload(name, "u1")
    (found,) = TierCheck({}, {TOPIC_ID}).findings([], [upload])
    assert (found.kind, found.names) == (Kind.UPLOAD, (name, "u1"))
    assert TierCheck(known(copied, STARTED), {TOPIC_ID}).findings([], [upload]) == []
    other = TopicId.parse("otherTopicIdOtherTopicId"[:22])
    assert TierCheck({}, {other}).findings([], [upload]) == [], "perhaps of another cluster"
    assert TierCheck({}, {TOPIC_ID}).findings([], [OpenUpload("backup/photo.jpg", "u2")]) == []


def test_an_empty_store_has_no_segments(tmp_path: Path) -> None:
    assert list_store(FILES, str(tmp_path)) == []
