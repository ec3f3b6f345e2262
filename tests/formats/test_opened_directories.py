"""Directories that Kafka wrote, clean and crashed, opened by our log: we read what it reads, leave what it leaves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tailrace.log.disk import file_names
from tailrace.log.partition_log import PartitionLog
from tailrace.log.recovery.recovery import RecoveryReport
from tailrace.log.watermarks import Isolation
from tests.support.golden import golden, golden_names
from tests.support.our_directory import (
    aborted_of,
    batches_of,
    lookup,
    open_golden,
    producers_of,
    read_all,
    segments_of,
    shut_down,
    split,
    state_of,
)

NAMES = golden_names("partition")
CLEAN = [name for name in NAMES if golden(name).manifest["ended"] == "clean"]
CRASHED = [name for name in NAMES if golden(name).manifest["ended"] == "crashed"]


def assert_reads_as_kafka(log: PartitionLog, expected: dict[str, Any]) -> None:
    """Compare batches, records, aborted transactions, the last stable offset and lookups by time with Kafka's."""
    log.advance_high_watermark(log.log_end_offset)
    assert log.last_stable_offset == expected["stable_offset"]
    assert aborted_of(log) == expected["aborted"]
    data = read_all(log)
    mine = batches_of(data)
    assert len(mine) == len(expected["batches"])
    for ours, theirs in zip(mine, expected["batches"], strict=True):
        assert ours == {key: theirs[key] for key in ours}
    for time, answer in expected["times"]:
        assert lookup(log, time) == answer, time
    stable = [last for _, last in split(read_all(log, Isolation.READ_COMMITTED))]
    assert stable == [last for _, last in split(data) if last < expected["stable_offset"]]


@pytest.mark.parametrize("name", NAMES)
def test_an_opened_directory_has_the_state_that_kafka_recorded(name: str, tmp_path: Path) -> None:
    directory = golden(name)
    log = open_golden(directory, directory.unpack(tmp_path) / "topic-0")
    expected = directory.manifest["expected"]
    assert state_of(log) == expected["state"]
    assert segments_of(log) == expected["segments"]
    assert producers_of(log) == expected["producers"]
    assert str(log.topic_id) == "AAAAAAAAQACAAAAAAAAAAQ"
    assert_reads_as_kafka(log, expected)


@pytest.mark.parametrize("name", CRASHED)
def test_recovery_and_a_clean_stop_leave_the_files_that_kafka_leaves(name: str, tmp_path: Path) -> None:
    directory = golden(name)
    log = open_golden(directory, directory.unpack(tmp_path / "mine") / "topic-0")
    shut_down(log, directory.manifest["open"]["now_ms"])
    theirs = content(directory.unpack(tmp_path / "kafka", "recovered") / "topic-0")
    mine = content(tmp_path / "mine" / "topic-0")
    assert sorted(mine) == sorted(theirs)
    for file in theirs:
        assert mine[file].hex(" ") == theirs[file].hex(" "), file


def content(folder: Path) -> dict[str, bytes]:
    """Return every file's bytes, except those of files that are set aside or being deleted."""
    return {
        path.name: path.read_bytes() for path in folder.iterdir() if path.suffix not in (file_names.DELETED, ".broken")
    }


@pytest.mark.parametrize("name", CRASHED)
def test_a_recovered_directory_is_opened_without_another_recovery(name: str, tmp_path: Path) -> None:
    directory = golden(name)
    expected = directory.manifest["expected"]
    report = RecoveryReport()
    log = open_golden(
        directory,
        directory.unpack(tmp_path, "recovered") / "topic-0",
        report=report,
        recovery_point=expected["state"]["log_end_offset"],
        clean_shutdown=True,
    )
    assert report == RecoveryReport()
    assert_reads_as_kafka(log, expected)


@pytest.mark.parametrize("name", CLEAN)
def test_opening_and_closing_a_clean_directory_only_removes_stray_snapshots(name: str, tmp_path: Path) -> None:
    directory = golden(name)
    folder = directory.unpack(tmp_path) / "topic-0"
    before = content(folder)
    report = RecoveryReport()
    log = open_golden(directory, folder, report=report)
    assert report == RecoveryReport(), "after a clean stop nothing is scanned"
    shut_down(log, directory.manifest["open"]["now_ms"])
    after = content(folder)
    gone = sorted(set(before) - set(after))
    assert gone == STRAY_SNAPSHOTS.get(name, [])
    assert after == {file: data for file, data in before.items() if file not in gone}


# Snapshots that belong to no segment, or lie at or below the log start: Kafka drops them too when it opens the log.
STRAY_SNAPSHOTS = {
    "idempotent": ["00000000000000000043.snapshot"],
    "leader-epochs": ["00000000000000000034.snapshot"],
    "records-deleted": ["00000000000000000030.snapshot"],
    "retained": ["00000000000000000057.snapshot"],
}

# What a scan cannot find again: an aborted transaction whose records were compacted away, and that an index entry was
# left out because the batches before it had been counted before a truncation.
NOT_REBUILT = {
    "compacted-transactions": ("00000000000000000000.txnindex", "00000000000000000052.txnindex"),
    "leader-epochs": ("00000000000000000028.index",),
}


@pytest.mark.parametrize("name", CLEAN)
def test_a_scan_of_a_clean_directory_rebuilds_the_indexes_that_were_there(name: str, tmp_path: Path) -> None:
    directory = golden(name)
    folder = directory.unpack(tmp_path) / "topic-0"
    before = content(folder)
    report = RecoveryReport()
    log = open_golden(directory, folder, clean_shutdown=False, recovery_point=0, report=report)
    assert report.segments_scanned == len(log.segments)
    shut_down(log, directory.manifest["open"]["now_ms"])
    after = content(folder)
    for file in before:
        if not file.endswith(file_names.PRODUCER_SNAPSHOT) and file not in NOT_REBUILT.get(name, ()):
            assert after[file].hex(" ") == before[file].hex(" "), file


@pytest.mark.parametrize("name", CLEAN)
def test_l8_every_stored_batch_has_the_records_that_kafka_decoded(name: str, tmp_path: Path) -> None:
    """All codecs, control batches, gaps, delete horizons, log append time, and messages of formats 0 and 1."""
    directory = golden(name)
    found = []
    for path in sorted((directory.unpack(tmp_path) / "topic-0").glob("*.log")):
        data = path.read_bytes()
        for entry, _ in split(data):
            entry.check()
        found += batches_of(data)
    expected = {batch["last_offset"]: batch for batch in directory.manifest["expected"]["batches"]}
    served = [batch for batch in found if batch["last_offset"] in expected]
    assert len(served) == len(expected)
    for batch in served:
        theirs = expected[batch["last_offset"]]
        assert batch == {key: theirs[key] for key in batch}
