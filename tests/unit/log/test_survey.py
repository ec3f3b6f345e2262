"""The facts of a partition, without reading its segments."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tailrace.log.directories.data_directory import read_data_directory
from tailrace.log.disk.files import DiskFiles
from tailrace.log.inspect.survey import PartitionFacts, survey
from tests.support.command import write_directory
from tests.support.golden import golden, golden_names

NOW_MS = 1_700_000_100_000


def survey_of(path: Path) -> PartitionFacts:
    return survey(DiskFiles(), read_data_directory(DiskFiles(), str(path)).folders[0], NOW_MS)


@pytest.mark.parametrize("name", golden_names("partition"))
def test_a_survey_has_the_sizes_and_times_of_kafkas_segments(name: str, tmp_path: Path) -> None:
    manifest = golden(name).manifest
    if manifest["ended"] == "crashed":
        pytest.skip("Kafka's own facts are those after its recovery")
    facts = survey_of(golden(name).unpack(tmp_path) / "topic-0")
    expected = manifest["expected"]["segments"]
    assert [
        (s.base_offset, s.size, s.largest_timestamp, s.offset_index_entries, s.time_index_entries)
        for s in facts.segments
    ] == [
        (
            s["base_offset"],
            s["size"],
            s["largest_timestamp"],
            s["offset_index_entries"],
            s["time_index_entries"],
        )
        for s in expected
    ]
    assert facts.log_end_offset == manifest["expected"]["state"]["log_end_offset"]
    assert [list(entry) for entry in facts.epochs] == manifest["expected"]["state"]["leader_epochs"]


def test_the_largest_time_is_found_where_the_time_index_is_behind(tmp_path: Path) -> None:
    path = write_directory(tmp_path / "data", "plain") / "plain-0"
    before = survey_of(path).largest_timestamp
    max(path.glob("*.timeindex")).write_bytes(b"")
    max(path.glob("*.index")).write_bytes(b"")
    assert survey_of(path).largest_timestamp == before


def test_a_delete_horizon_is_not_reported_as_the_first_timestamp(tmp_path: Path) -> None:
    facts = survey_of(golden("compacted").unpack(tmp_path) / "topic-0")
    assert facts.first_timestamp <= facts.largest_timestamp


def test_leftover_files_are_reported_as_one_note_per_kind(tmp_path: Path) -> None:
    path = write_directory(tmp_path / "data", "plain") / "plain-0"
    for name in ("00000000000000000000.log.deleted", "00000000000000000000.index.deleted", "notes.txt", "x.broken"):
        (path / name).touch()
    (path / "00000000000000009999.timeindex").touch()
    notes = [finding for finding in survey_of(path).findings if not finding.is_problem]
    assert sorted(finding.message for finding in notes) == [
        "2 files, 00000000000000000000.index.deleted and so on: waiting to be removed",
        "an index without its log file",
        "bytes that a recovery or repair cut off",
        "not a file of a log",
    ]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_a_finding(tmp_path: Path) -> None:
    path = write_directory(tmp_path / "data", "plain") / "plain-0"
    max(path.glob("*.log")).chmod(0)
    facts = survey_of(path)
    assert not facts.is_readable
    assert "Permission denied" in str(facts.findings[0])


def test_a_checkpoint_past_the_end_is_a_problem(tmp_path: Path) -> None:
    data = write_directory(tmp_path / "data", "plain")
    (data / "replication-offset-checkpoint").write_text("0\n1\nplain 0 100000\n")
    assert any("high watermark of 100000" in finding.message for finding in survey_of(data / "plain-0").findings)
