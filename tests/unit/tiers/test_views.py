"""Remote segments as a data directory, in both layouts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tailrace.log.directories.data_directory import read_data_directory
from tailrace.log.disk.files import DiskFiles
from tailrace.log.inspect.offline import open_exact
from tailrace.log.inspect.verify import verify_partition
from tailrace.model.ids import TopicId
from tailrace.tiers.stores.view.opening import open_view
from tailrace.tiers.stores.view.segment_chain import Link, Span, chain, newest
from tailrace.tiers.stores.view.tier_listing import NotATier
from tests.support.command import tailrace
from tests.support.small_logs import NOW_MS, open_small
from tests.support.tier_makers import LAYOUTS, Make, small_log
from tests.support.tiered_logs import copy_log

FILES = DiskFiles()


def lines(*arguments: str) -> list[str]:
    done = tailrace("log", *arguments)
    assert done.status == 0, done.err
    return done.out.splitlines()


@pytest.fixture(params=list(LAYOUTS))
def make(request: pytest.FixtureRequest) -> Make:
    return LAYOUTS[request.param]


def test_a_view_has_the_records_of_the_log(tmp_path: Path, make: Make) -> None:
    log = small_log(tmp_path / "data" / "topic-0")
    copied = copy_log(make(str(tmp_path / "tier")), log, FILES, str(tmp_path / "data" / "topic-0"))
    view = open_view(FILES, str(tmp_path / "tier"))
    assert view.problems == []
    (folder,) = read_data_directory(view.files, str(tmp_path / "tier")).folders
    offline = open_exact(view.files, folder, NOW_MS)
    assert [segment.base_offset for segment in offline.log.segments] == [one.start_offset for one in copied]
    assert offline.log.log_end_offset == copied[-1].end_offset + 1 == offline.log.last_stable_offset
    result = verify_partition(view.files, folder, deep=True)
    assert [finding for finding in result.findings if finding.is_problem] == []
    assert (result.batches, result.records) == (92, 92)


def test_log_commands_show_the_same_for_the_log_and_its_remote_segments(tmp_path: Path, make: Make) -> None:
    log = small_log(tmp_path / "data" / "topic-0")
    copy_log(make(str(tmp_path / "tier")), log, FILES, str(tmp_path / "data" / "topic-0"))
    log.close()
    for arguments in (["--json"], ["--json", "--isolation", "read_committed"]):
        ours = lines("cat", str(tmp_path / "tier"), *arguments)
        assert ours == lines("cat", str(tmp_path / "data"), *arguments)
        assert len(ours) in (91, 90)
    (facts,) = json.loads("\n".join(lines("ls", str(tmp_path / "tier"), "--json")))["partitions"]
    assert (facts["logStartOffset"], facts["logEndOffset"], len(facts["segments"])) == (0, 92, 3)
    assert facts["topicId"] == str(TopicId.parse("tierTopicIdTierTopicId"))
    assert "no problems in 1 partition" in lines("verify", str(tmp_path / "tier"))[-1]
    explained = lines("explain", str(tmp_path / "tier"), "--offset", "40")
    assert any("00000000000000000030.log" in line for line in explained)


def test_the_folder_of_one_partition_is_a_view_too(tmp_path: Path, make: Make) -> None:
    log = small_log(tmp_path / "data" / "topic-0")
    copy_log(make(str(tmp_path / "tier")), log, FILES, str(tmp_path / "data" / "topic-0"))
    (one,) = {path.parent for path in (tmp_path / "tier").rglob("*.log")}
    assert lines("cat", str(one)) == lines("cat", str(tmp_path / "tier"))
    assert lines("ls", f"{tmp_path}/tier", "--segments")[2:] == lines("ls", str(one), "--segments")[2:]


def test_an_incomplete_segment_is_left_out_with_a_warning(tmp_path: Path, make: Make) -> None:
    log = small_log(tmp_path / "data" / "topic-0")
    copy_log(make(str(tmp_path / "tier")), log, FILES, str(tmp_path / "data" / "topic-0"))
    last = sorted((tmp_path / "tier").rglob("*62-*"))
    for path in last:
        if path.suffix in (".snapshot", ".rsm-manifest"):
            path.unlink()
    done = tailrace("log", "ls", str(tmp_path / "tier"), "--json")
    assert "is incomplete and was left out" in done.err
    assert json.loads(done.out)["partitions"][0]["logEndOffset"] == 62


def test_segments_that_overlap_are_shown_as_one_log(tmp_path: Path, make: Make) -> None:
    """Two leaders cut the same records at other offsets."""
    first = small_log(tmp_path / "first" / "topic-0")
    second_folder = tmp_path / "second" / "topic-0"
    FILES.make_directory(str(second_folder))
    second = open_small(FILES, {"index.interval.bytes": "200"}, folder=str(second_folder))
    records = tailrace("log", "cat", str(tmp_path / "first"), "--json").out
    for segment in first.segments:
        for header, view in segment.batches():
            if header.base_offset in (20, 50, 92):
                second.roll(NOW_MS)
            second.append_as_follower(bytes(view), leader_epoch=0, now_ms=NOW_MS)
    second.roll(NOW_MS)
    store = make(str(tmp_path / "tier"))
    copy_log(store, first, FILES, str(tmp_path / "first" / "topic-0"), keep=slice(0, 2))
    copy_log(store, second, FILES, str(second_folder), keep=slice(1, None), first_number=10)
    assert tailrace("log", "cat", str(tmp_path / "tier"), "--json").out == records
    assert "no problems" in lines("verify", str(tmp_path / "tier"), "--deep")[-1]
    (facts,) = json.loads("\n".join(lines("ls", str(tmp_path / "tier"), "--json")))["partitions"]
    assert [segment["baseOffset"] for segment in facts["segments"]] == [0, 20, 30, 50]


def test_a_folder_without_remote_segments_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(NotATier, match="has no remote segments"):
        open_view(FILES, str(tmp_path / "empty"))


def links(spans: list[Span], lineage: list[tuple[int, int]] | None = None) -> list[tuple[object, int, int]]:
    top = newest(spans)
    assert top is not None
    return [(link.key, link.start, link.end) for link in chain(spans, top.epochs if lineage is None else lineage)]


def test_a_repeated_copy_of_a_segment_counts_once() -> None:
    a, b = Span("a", 0, 100, ((0, 0),)), Span("b", 0, 100, ((0, 0),))
    assert links([a, b]) == [("a", 0, 100)]


def test_records_that_an_unclean_election_removed_are_left_out() -> None:
    stale, first = Span("stale", 0, 100, ((0, 0),)), Span("first", 80, 150, ((1, 80),))
    found = chain([stale, first], [(0, 0), (1, 80)])
    assert found == [Link("stale", 0, 80, is_cut=True), Link("first", 80, 150, is_cut=False)]


def test_a_segment_of_an_unknown_epoch_is_left_out() -> None:
    spans = [Span("a", 0, 100, ((0, 0),)), Span("lost", 100, 200, ((1, 100),)), Span("b", 100, 180, ((2, 100),))]
    assert links(spans, [(0, 0), (2, 100)]) == [("a", 0, 100), ("b", 100, 180)]


def test_segments_before_the_first_known_epoch_are_left_out() -> None:
    spans = [
        Span("old", 0, 50, ((0, 0),)),
        Span("mixed", 50, 120, ((0, 50), (3, 100))),
        Span("c", 120, 180, ((3, 120),)),
    ]
    assert links(spans, [(3, 110)]) == [("mixed", 50, 120), ("c", 120, 180)]
