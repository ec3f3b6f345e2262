"""Checks recorded of single segments, replayed in order, find the same as a check of the whole log."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tailrace.log.directories.data_directory import PartitionFolder, read_data_directory
from tailrace.log.disk import file_names
from tailrace.log.disk.files import DiskFiles
from tailrace.log.inspect.recorded_check import RecordedCheck, RecordedChecks, record_check
from tailrace.log.inspect.verify import verify_partition
from tests.support.damaged_logs import all_logs, damage

FILES = DiskFiles()


def recorded(folder: PartitionFolder, *, deep: bool) -> RecordedChecks:
    """Return the checks of all segments, the last one first, each converted to JSON and back."""
    parsed = [file_names.parse_segment_file(entry.name) for entry in FILES.entries(folder.path)]
    bases = sorted(base for base, kind, suffix in filter(None, parsed) if kind == file_names.LOG and not suffix)
    found = {}
    for base in reversed(bases):
        check = record_check(FILES, folder.path, base, is_last=base == bases[-1], is_clean=folder.is_clean, deep=deep)
        found[base] = RecordedCheck.from_json(json.loads(json.dumps(check.to_json())))
    return RecordedChecks(found)


@pytest.mark.parametrize("seed", [None, 1, 2, 3, 4, 5])
def test_recorded_checks_find_the_same_as_a_walk_through_the_log(seed: int | None, tmp_path: Path) -> None:
    path = all_logs(tmp_path / "data")
    if seed is not None:
        damage(path, seed)
    problems = 0
    for folder in read_data_directory(FILES, str(path)).folders:
        for deep in (False, True):
            straight = verify_partition(FILES, folder, deep=deep)
            assert verify_partition(FILES, folder, deep=deep, check=recorded(folder, deep=deep)) == straight
            problems += len(straight.problems)
    assert problems > (0 if seed is None else 50)
