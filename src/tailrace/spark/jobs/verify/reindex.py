"""Rebuilds the indexes of sealed segments on Spark: the same bytes that log recovery writes.

A task opens the log as recovery does, over files in memory without the indexes of its segments, and takes the indexes
that recovery builds. They are written beside the old ones and replace them when all are complete; for that the job
holds the directory's `.lock`. Or they are written to another directory, with or without a running broker.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, NamedTuple

from tailrace.log.directories.data_directory import PartitionFolder
from tailrace.log.disk import file_names
from tailrace.log.disk.files import DiskFiles, join
from tailrace.log.disk.overlay_files import OverlayFiles
from tailrace.log.recovery.recovery import RecoveryReport, open_log
from tailrace.log.segments.indexes.index_file import CorruptIndex
from tailrace.log.segments.segment import SEGMENT_KINDS
from tailrace.model.configs.topic_settings import parse_topic_config
from tailrace.model.errors import KafkaError
from tailrace.model.ids import Offset
from tailrace.model.topic_config import LONG_MAX, TopicConfig
from tailrace.records.batch import CorruptBatch
from tailrace.spark.jobs.compact.directory_lock import directory_lock
from tailrace.spark.jobs.directories import open_directories
from tailrace.spark.jobs.errors import JobError
from tailrace.spark.jobs.job import run_tasks
from tailrace.spark.jobs.packing import pack

INDEX_KINDS = (file_names.OFFSET_INDEX, file_names.TIME_INDEX, file_names.TRANSACTION_INDEX)
NEW = ".reindexed"
TASK_BYTES = 128 * 1024 * 1024


class _Segment(NamedTuple):
    folder: PartitionFolder
    base_offset: Offset
    bases: tuple[Offset, ...]  # base offsets of all segments of the partition
    size: int
    config: TopicConfig


class _Task(NamedTuple):
    segments: list[_Segment]
    output: str | None


class RebuiltIndex(NamedTuple):
    path: str  # of the index in the log
    new_path: str | None  # None: the index is removed
    size: int
    is_changed: bool


@dataclass(frozen=True, slots=True)
class Reindexed:
    segments: int
    bytes_read: int
    indexes: list[RebuiltIndex]
    output: str | None  # the directory of the new indexes; None: in the log

    @property
    def changed(self) -> list[RebuiltIndex]:
        return [index for index in self.indexes if index.is_changed]


def reindex(
    spark: Any,
    path: str | Sequence[str],
    *,
    topics: Sequence[str] = (),
    partitions: Sequence[int] = (),
    configs: Mapping[str, Mapping[str, str]] | None = None,
    output: str | None = None,
    task_bytes: int = TASK_BYTES,
) -> Reindexed:
    """Rebuild the indexes of all sealed segments, in place (no broker may run) or in the directory `output`.

    `configs` has configs by topic; `index.interval.bytes` is the distance of index entries.
    """
    directories = open_directories(path, topics=topics, partitions=partitions)
    with ExitStack() as locks:
        if output is None:
            for directory in directories:
                if not locks.enter_context(directory_lock(directory)):
                    raise JobError(
                        f"{directory.path} is in use: a broker holds its .lock. Stop the broker, or write the indexes "
                        "to another directory with --output"
                    )
        folders = [folder for directory in directories for folder in directory.folders if not folder.mark]
        segments = [segment for folder in folders for segment in _sealed(folder, configs or {})]
        packed = pack(segments, lambda segment: segment.size, task_bytes)
        tasks = [_Task(found, None if output is None else os.path.abspath(output)) for found in packed]
        try:
            rebuilt = [index for found in run_tasks(spark, tasks, _rebuild, label="reindex") for index in found]
            if output is None:
                _put_in_place(rebuilt)
        finally:
            if output is None:
                for segment in segments:
                    _remove_new(segment)
    return Reindexed(len(segments), sum(segment.size for segment in segments), rebuilt, output)


def _sealed(folder: PartitionFolder, configs: Mapping[str, Mapping[str, str]]) -> list[_Segment]:
    topic = folder.partition.topic
    try:
        config = parse_topic_config(configs.get(topic, {}))
    except ValueError as error:
        raise JobError(f"topic {topic}: {error}") from None
    try:
        parsed = [file_names.parse_segment_file(name) for name in os.listdir(folder.path)]
        bases = sorted(base for base, kind, suffix in filter(None, parsed) if kind == file_names.LOG and not suffix)
        return [
            _Segment(folder, base, tuple(bases), os.path.getsize(_path(folder, base, file_names.LOG)), config)
            for base in bases[:-1]
        ]
    except OSError as error:
        raise JobError(f"{folder.path} cannot be read: {error.strerror}") from None


def _path(folder: PartitionFolder, base_offset: Offset, kind: str) -> str:
    return join(folder.path, file_names.segment_file(base_offset, kind))


def _rebuild(task: _Task) -> list[RebuiltIndex]:
    return [index for segment in task.segments for index in _rebuild_one(segment, task.output)]


def _rebuild_one(segment: _Segment, output: str | None) -> list[RebuiltIndex]:
    folder, base_offset = segment.folder, segment.base_offset
    own = [_path(folder, base_offset, kind) for kind in INDEX_KINDS]
    # Open the log as it was when the next segment was new and empty, so that later records have no effect.
    following = segment.bases[segment.bases.index(base_offset) + 1]
    kinds = (*SEGMENT_KINDS, file_names.PRODUCER_SNAPSHOT)
    later = [_path(folder, base, kind) for base in segment.bases if base > following for kind in kinds]
    later += [_path(folder, following, kind) for kind in INDEX_KINDS]
    overlay = OverlayFiles(DiskFiles(), without=[*own, *later])
    overlay.open(_path(folder, following, file_names.LOG)).truncate(0)
    report = RecoveryReport()
    try:
        log = open_log(
            overlay,
            folder.path,
            segment.config,
            now_ms=int(time.time() * 1000),
            log_start_offset=min(folder.log_start_offset or 0, following),
            clean=True,
            recover=False,
            may_have_gaps=True,
            producer_expiration_ms=LONG_MAX,
            report=report,
        )
    except CorruptBatch as error:
        raise _damaged(folder, base_offset, str(error)) from None
    except (CorruptIndex, KafkaError) as error:
        raise JobError(f"{folder.partition} cannot be indexed: {error}", status=1) from None
    except OSError as error:
        raise JobError(
            f"{folder.partition}: {error.filename or folder.path} cannot be read: {error.strerror}"
        ) from None
    log.abandon()
    damage = [problem for problem in report.problems if not problem.endswith(" is missing")]
    if damage:
        raise _damaged(folder, base_offset, damage[0])
    if segment.base_offset not in log.segments.base_offsets or following not in log.segments.base_offsets:
        raise JobError(
            f"{folder.partition}: the segment at offset {base_offset} overflows its indexes and has to be split: "
            f"run `tailrace log repair`",
            status=1,
        )
    return [_write(overlay, path, folder, output) for path in own]


def _damaged(folder: PartitionFolder, base_offset: Offset, reason: str) -> JobError:
    return JobError(f"{folder.partition} is damaged at offset {base_offset} or after it: {reason}", status=1)


def _write(overlay: OverlayFiles, path: str, folder: PartitionFolder, output: str | None) -> RebuiltIndex:
    before = _read(path)
    if not overlay.exists(path):
        return RebuiltIndex(path, None, 0, before is not None)
    data = overlay.read(path)
    if output is None:
        target = path + NEW
    else:
        os.makedirs(os.path.join(output, folder.name), exist_ok=True)
        target = os.path.join(output, folder.name, os.path.basename(path))
    # Attempts of the same task may run in parallel; they write the same bytes.
    temporary = f"{target}.{os.getpid()}"
    DiskFiles().write(temporary, data, sync=True)
    os.replace(temporary, target)
    return RebuiltIndex(path, target, len(data), data != before)


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def _put_in_place(rebuilt: Sequence[RebuiltIndex]) -> None:
    files = DiskFiles()
    for index in rebuilt:
        if index.new_path is not None:
            files.replace(index.new_path, index.path)
        else:
            files.remove(index.path)
    for folder in {os.path.dirname(index.path) for index in rebuilt}:
        files.sync_directory(folder)


def _remove_new(segment: _Segment) -> None:
    for kind in INDEX_KINDS:
        DiskFiles().remove(_path(segment.folder, segment.base_offset, kind) + NEW)
