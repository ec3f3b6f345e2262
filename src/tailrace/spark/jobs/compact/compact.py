"""Compacts sealed segments on Spark: writes the same bytes as the log cleaner, with many tasks.

    plan     for each partition, like the cleaner: the dirty range, and the groups of segments that become one segment
    single   a partition of up to a gigabyte is compacted by one task (`single_task.py`). Larger ones, and those whose
             keys do not fit into one map, are compacted by several tasks:
    scan     one task per segment: its keys by hash. Spark keeps the result, so that nothing is read twice
    merge    a shuffle by hash: the latest offset of each key, for every group that has the key
    write    a shuffle by group: the records to keep, written beside the log
    propose  `log/compaction/proposal.py`: a running broker swaps the segments in; without a broker, this job does

Between scan and write the driver replays the transactions in log order, to know which are open at the start of each
group. All keys of the log are compacted, while a broker's cleaner is limited by its memory.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any

from tailrace.log.compaction.cleaned_transactions import CleanedTransactions
from tailrace.log.compaction.cleaner_checkpoint import CleanerCheckpoint
from tailrace.log.compaction.proposal import PROPOSAL, Proposal, ProposedGroup, discard, is_waiting, publish
from tailrace.log.directories.data_directory import DataDirectory
from tailrace.log.disk import file_names
from tailrace.log.disk.files import DiskFiles
from tailrace.model.configs.topic_settings import parse_topic_config
from tailrace.model.topic_config import TopicConfig
from tailrace.records.batch import RecordBatch
from tailrace.spark.jobs.compact.compaction_plan import CompactionPlan, plan_compaction
from tailrace.spark.jobs.compact.directory_lock import directory_lock, job_lock
from tailrace.spark.jobs.compact.single_task import MAP_BYTES, SingleTask, compact_in_one_task
from tailrace.spark.jobs.compact.swap import swap_in
from tailrace.spark.jobs.compact.tasks import (
    ATTEMPTS,
    Scanned,
    ScanTask,
    WriteTask,
    Written,
    merge,
    move_into_place,
    scan,
    write,
)
from tailrace.spark.jobs.directories import open_directories
from tailrace.spark.jobs.errors import JobError
from tailrace.spark.jobs.job import collected, run_rdd, run_tasks

SINGLE_TASK_BYTES = 1024 * 1024 * 1024
_KEY_BYTES_A_PART = 256 * 1024 * 1024
_MAX_PARTS = 256


@dataclass(slots=True)
class CompactedPartition:
    name: str
    groups: int
    segments: int
    bytes_before: int
    bytes_after: int = 0
    records_before: int = 0
    records_after: int = 0
    clean_to: int = 0
    is_swapped: bool = False  # False: a proposal waits for the broker


@dataclass(frozen=True, slots=True)
class Compacted:
    partitions: list[CompactedPartition]
    clean_already: list[str]  # partitions without dirty segments


def compact(
    spark: Any,
    path: str | Sequence[str],
    *,
    topics: Sequence[str] = (),
    partitions: Sequence[int] = (),
    configs: Mapping[str, Mapping[str, str]] | None = None,
    only_if_due: bool = False,
    now_ms: int | None = None,
    single_task_bytes: int = SINGLE_TASK_BYTES,
    map_bytes: int = MAP_BYTES,
) -> Compacted:
    """Compact the named topics, or all topics whose `cleanup.policy` in `configs` includes compact.

    `configs` has configs by topic; missing ones have Kafka's defaults. A partition of up to `single_task_bytes` is
    compacted by one task, if its keys fit into `map_bytes`.
    """
    now_ms = int(time.time() * 1000) if now_ms is None else now_ms
    directories = open_directories(path, topics=topics, partitions=partitions)
    settings = _settings(directories, topics, configs or {})
    with ExitStack() as locks:
        for directory in directories:
            locks.enter_context(job_lock(directory))
        is_ours = {directory.path: locks.enter_context(directory_lock(directory)) for directory in directories}
        plans: list[tuple[DataDirectory, CompactionPlan]] = []
        clean_already = []
        for directory in directories:
            for folder in directory.folders:
                if folder.mark or folder.partition.topic not in settings:
                    continue
                if is_waiting(DiskFiles(), folder.path) and not is_ours[directory.path]:
                    raise JobError(
                        f"{folder.path} has a proposal ({PROPOSAL}) that waits for the broker; try again later"
                    )
                plan = plan_compaction(folder, settings[folder.partition.topic], now_ms, only_if_due=only_if_due)
                if plan is None:
                    clean_already.append(folder.name)
                else:
                    plans.append((directory, plan))
        try:
            written = _run(spark, [plan for _, plan in plans], single_task_bytes, map_bytes)
            done = [
                _propose(directory, plan, found, is_ours[directory.path])
                for (directory, plan), found in zip(plans, written, strict=True)
            ]
        finally:
            for _, plan in plans:
                shutil.rmtree(os.path.join(plan.folder.path, ATTEMPTS), ignore_errors=True)
    return Compacted(done, clean_already)


def _settings(
    directories: Iterable[DataDirectory], topics: Sequence[str], configs: Mapping[str, Mapping[str, str]]
) -> dict[str, TopicConfig]:
    present = {folder.partition.topic for directory in directories for folder in directory.folders if not folder.mark}
    found = {}
    for topic in sorted(present):
        own = configs.get(topic, {})
        if topic in topics:
            own = {"cleanup.policy": "compact", **own}
        try:
            config = parse_topic_config(own)
        except ValueError as error:
            raise JobError(f"topic {topic}: {error}") from None
        if config.is_compacted:
            found[topic] = config
        elif topic in topics:
            raise JobError(f"topic {topic} is not compacted: its cleanup.policy is {own['cleanup.policy']}")
    return found


def _run(spark: Any, plans: Sequence[CompactionPlan], single_task_bytes: int, map_bytes: int) -> list[list[Written]]:
    """Write the groups of all partitions. The result has the groups of each plan in log order."""
    for plan in plans:
        # Remove files of a killed job, and, if this job holds the directory's lock, a proposal that no broker took.
        discard(DiskFiles(), plan.folder.path)
        shutil.rmtree(os.path.join(plan.folder.path, ATTEMPTS), ignore_errors=True)
        os.makedirs(os.path.join(plan.folder.path, ATTEMPTS))
    salt = os.urandom(16)
    small = [number for number, plan in enumerate(plans) if plan.size <= single_task_bytes]
    tasks = [
        SingleTask(
            plans[number].folder.partition,
            plans[number].folder.path,
            plans[number].groups,
            plans[number].rules,
            plans[number].aborted,
            plans[number].dirty.first_dirty_offset,
        )
        for number in small
    ]
    answers = run_tasks(spark, tasks, partial(compact_in_one_task, salt=salt, map_bytes=map_bytes), label="compact")
    done = {number: written for number, written in zip(small, answers, strict=True) if written is not None}
    rest = [number for number in range(len(plans)) if number not in done]
    if rest:
        done |= zip(rest, _run_shared(spark, [plans[number] for number in rest], salt), strict=True)
    return [done[number] for number in range(len(plans))]


def _run_shared(spark: Any, plans: Sequence[CompactionPlan], salt: bytes) -> list[list[Written]]:
    """Like `_run`, but with many tasks per partition."""
    parts = min(max(sum(plan.size for plan in plans) // _KEY_BYTES_A_PART, 2), _MAX_PARTS)
    tasks = [
        ScanTask(
            number, group, plan.folder.partition, plan.folder.path, one, plan.aborted, plan.dirty.first_dirty_offset
        )
        for number, plan in enumerate(plans)
        for group, segments in enumerate(plan.groups)
        for one in segments
    ]
    # Results that do not fit into memory are kept on disk: another scan would take longer.
    scanned = run_rdd(spark, tasks, partial(scan, parts=parts, salt=salt)).persist(_storage())
    try:
        events = collected(spark, scanned.map(_events), "compact: keys")
        by_segment = {(number, base): found for number, base, found in events}
        writes = {
            (number, group): task
            for number, plan in enumerate(plans)
            for group, task in enumerate(_write_tasks(plan, number, by_segment))
        }
        latest = (
            scanned.flatMap(_by_part)
            .groupByKey(min(parts * len(plans), _MAX_PARTS))
            .flatMap(lambda row: [((row[0][0], group), found) for group, found in merge(row[1], salt)])
        )
        # A group without keys has to be written as well.
        keys = spark.sparkContext.parallelize([(key, b"") for key in writes], 1)
        slots = {key: slot for slot, key in enumerate(writes)}
        groups = latest.union(keys).groupByKey(len(writes), slots.__getitem__)
        results = dict(collected(spark, run_rdd(spark, groups, partial(_write, writes, salt)), "compact: writing"))
    finally:
        scanned.unpersist()
    return [[results[number, group] for group in range(len(plan.groups))] for number, plan in enumerate(plans)]


def _storage() -> Any:
    from pyspark import StorageLevel

    return StorageLevel.MEMORY_AND_DISK


def _events(answer: Any) -> Any:
    is_good, value = answer
    return (True, (value.number, value.base_offset, value.events)) if is_good else answer


def _by_part(answer: tuple[bool, Scanned]) -> Iterator[tuple[tuple[int, int], tuple[int, bytes, bytes]]]:
    scanned = answer[1]
    for part, (asked, known) in enumerate(zip(scanned.asked, scanned.known, strict=True)):
        if asked:
            yield (scanned.number, part), (scanned.group, asked, known)


def _write(writes: Mapping[tuple[int, int], WriteTask], salt: bytes, row: Any) -> Any:
    key, latest_offsets = row
    return key, write(writes[key], latest_offsets, salt)


def _write_tasks(
    plan: CompactionPlan, number: int, events: Mapping[tuple[int, int], list[bytes]]
) -> Iterator[WriteTask]:
    """Yield a task for each group, with the state of the transactions at the start of the group."""
    transactions = CleanedTransactions()
    for group in plan.groups:
        yield WriteTask(plan.folder.partition, plan.folder.path, group, plan.rules, deepcopy(transactions))
        for segment in group:
            transactions.add_aborted(segment.aborted)
            for event in events[number, segment.base_offset]:
                batch = RecordBatch(memoryview(event))
                if batch.is_control:
                    transactions.on_control(batch)
                else:
                    transactions.on_data(batch)
        transactions.take_retained()


def _propose(
    directory: DataDirectory, plan: CompactionPlan, written: list[Written], is_ours: bool
) -> CompactedPartition:
    folder = plan.folder.path
    groups = []
    for segments, found in zip(plan.groups, written, strict=True):
        move_into_place(folder, segments[0].base_offset, found)
        groups.append(ProposedGroup(tuple(segment.old for segment in segments), found.sizes))
    end = plan.dirty.first_uncleanable_offset
    publish(DiskFiles(), folder, Proposal(plan.folder.cleaned_to, end, tuple(groups)))
    if is_ours:
        swap_in(folder, plan.rules.config, plan.folder.cleaned_to, end)
        checkpoint = CleanerCheckpoint(DiskFiles(), directory.path)
        known = {*checkpoint.read(), plan.folder.partition}
        checkpoint.update(plan.folder.partition, end, known)
    return CompactedPartition(
        plan.folder.name,
        len(groups),
        sum(len(group.old) for group in groups),
        plan.size,
        sum(found.sizes[file_names.LOG] for found in written),
        sum(found.records_read for found in written),
        sum(found.records_written for found in written),
        end,
        is_ours,
    )
