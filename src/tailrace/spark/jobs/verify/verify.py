"""Verifies whole data directories on Spark, with the findings of `tailrace log verify` in the same order.

    plan     list the segments; small ones are packed into one task, a large one is a task of its own
    stage 1  check each segment, and record the findings (`log/inspect/recorded_check.py`)
    stage 2  for each partition, replay the recorded checks in log order: leader epochs, producers, checkpoints

The result of a partition is made by the same code as on one machine, so it is the same. With `state`, segments that
were verified before and are unchanged are not read again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from tailrace.log.directories.data_directory import DataDirectory, PartitionFolder
from tailrace.log.disk import file_names
from tailrace.log.disk.files import Files, join
from tailrace.log.disk.overlay_files import OverlayFiles
from tailrace.log.inspect.findings import Finding
from tailrace.log.inspect.recorded_check import RecordedCheck, RecordedChecks, record_check
from tailrace.log.inspect.verify import PartitionResult, verify_directory, verify_partition
from tailrace.model.ids import Offset
from tailrace.spark.jobs.directories import open_readable
from tailrace.spark.jobs.job import run_grouped
from tailrace.spark.jobs.packing import pack
from tailrace.spark.jobs.verify.state import VerifyState

TASK_BYTES = 128 * 1024 * 1024


class _Segment(NamedTuple):
    files: Files
    group: int  # index of the partition
    folder: PartitionFolder
    base_offset: Offset
    is_last: bool
    size: int


@dataclass(frozen=True, slots=True)
class VerifiedDirectory:
    directory: DataDirectory
    partitions: list[PartitionResult]
    findings: list[Finding]

    @property
    def problems(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.is_problem]


@dataclass(frozen=True, slots=True)
class Verified:
    directories: list[VerifiedDirectory]
    tasks: int
    segments_read: int
    segments_remembered: int  # verified before and unchanged; not read again

    @property
    def problems(self) -> list[Finding]:
        return [problem for found in self.directories for problem in found.problems]


class _Merged(NamedTuple):
    result: PartitionResult
    read: int
    remembered: int


def verify(
    spark: Any,
    path: str | Sequence[str],
    *,
    topics: Sequence[str] = (),
    partitions: Sequence[int] = (),
    deep: bool = False,
    state: str | None = None,
    task_bytes: int = TASK_BYTES,
) -> Verified:
    """Check one or more data directories. Only `state` is written to."""
    opened = open_readable(path, topics=topics, partitions=partitions)
    directories = [directory for _, directory in opened]
    for directory in directories:
        directory.keep_folders(lambda folder: folder.mark != "deleted")
    folders = [folder for directory in directories for folder in directory.folders]
    files = [files for files, directory in opened for _ in directory.folders]
    segments = [segment for group, folder in enumerate(folders) for segment in _segments(files[group], group, folder)]
    tasks = pack(segments, lambda segment: segment.size, task_bytes)
    work = partial(_check, deep=deep, state=None if state is None else VerifyState(state, deep=deep))
    merged = run_grouped(spark, tasks, work, _Merge(folders, files, deep), label="verify")
    # A folder without segments, or one that cannot be listed, has no task.
    results = [
        merged[group].result if group in merged else verify_partition(files[group], folder, deep=deep)
        for group, folder in enumerate(folders)
    ]
    found = []
    for directory in directories:
        own, results = results[: len(directory.folders)], results[len(directory.folders) :]
        general = verify_directory(directory, own)
        found.append(VerifiedDirectory(directory, own, [*general, *(one for result in own for one in result.findings)]))
    return Verified(
        found, len(tasks), sum(one.read for one in merged.values()), sum(one.remembered for one in merged.values())
    )


def _segments(files: Files, group: int, folder: PartitionFolder) -> list[_Segment]:
    try:
        parsed = [file_names.parse_segment_file(entry.name) for entry in files.entries(folder.path)]
    except OSError:
        return []
    bases = sorted(base for base, kind, suffix in filter(None, parsed) if kind == file_names.LOG and not suffix)
    return [_Segment(files, group, folder, base, base == bases[-1], _size(files, folder, base)) for base in bases]


def _size(files: Files, folder: PartitionFolder, base_offset: Offset) -> int:
    try:
        return files.size(join(folder.path, file_names.segment_file(base_offset, file_names.LOG)))
    except OSError:
        return 0  # the task that reads it reports the error


def _check(
    segments: Iterable[_Segment], *, deep: bool, state: VerifyState | None
) -> Iterator[tuple[int, int, tuple[Offset, RecordedCheck | None, bool]]]:
    for segment in segments:
        check, is_remembered = _check_one(segment, deep, state)
        yield segment.group, segment.base_offset, (segment.base_offset, check, is_remembered)


def _check_one(segment: _Segment, deep: bool, state: VerifyState | None) -> tuple[RecordedCheck | None, bool]:
    folder, base_offset, is_last = segment.folder, segment.base_offset, segment.is_last
    facts = None
    if state is not None and not is_last:
        known = state.read(segment.files, folder.path, base_offset)
        if known is not None:
            return known, True
        facts = state.facts(segment.files, folder.path, base_offset)
    try:
        check = record_check(
            OverlayFiles(segment.files), folder.path, base_offset, is_last=is_last, is_clean=folder.is_clean, deep=deep
        )
    except OSError:
        return None, False  # the merge reads the segment again and reports the error
    if state is not None and facts is not None:
        state.write(folder.path, base_offset, facts, check)
    return check, False


@dataclass(frozen=True, slots=True)
class _Merge:
    folders: Sequence[PartitionFolder]
    files: Sequence[Files]
    deep: bool

    def __call__(self, group: int, found: Iterator[tuple[Offset, RecordedCheck | None, bool]]) -> _Merged:
        records: dict[Offset, RecordedCheck] = {}
        read = remembered = 0
        for base_offset, check, is_remembered in found:
            remembered += is_remembered
            read += not is_remembered
            if check is not None:
                records[base_offset] = check
        result = verify_partition(self.files[group], self.folders[group], deep=self.deep, check=RecordedChecks(records))
        return _Merged(result, read, remembered)
