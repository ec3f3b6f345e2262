"""`tailrace job load`: loads a table or files into a topic: bulk load, or restore with the original offsets.

1. The first tasks write rows to chunks, files of record batches, in a staging folder (`chunks.py`). Errors in the input
   are found here, before the target is changed.
2. One task per partition builds a log from its chunks: segments, indexes and checkpoints (`build.py`).
3. The owner of the log adopts the segments. Without a broker, that is this process. For a cluster, the chunks are
   produced instead, each record exactly once.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from tailrace.client.offsets import latest_offsets
from tailrace.log.directories.data_directory import read_data_directory
from tailrace.log.disk.files import DiskFiles
from tailrace.log.inspect.findings import InspectionFailed
from tailrace.model.ids import TopicPartition
from tailrace.object_stores.store_address import is_remote
from tailrace.records.batch import Codec
from tailrace.spark.jobs.errors import JobError
from tailrace.spark.jobs.job import run_tasks
from tailrace.spark.jobs.load.build import BuiltLog, ChunkSlice, build_log
from tailrace.spark.jobs.load.chunks import Chunk, ChunkPlan
from tailrace.spark.jobs.load.input import read_files, record_columns
from tailrace.spark.jobs.load.propose import propose_load
from tailrace.spark.jobs.load.sink import NAME, LoadSink, plan_text, written_chunks
from tailrace.spark.jobs.load.state import LoadState, PlannedLoad, remaining_task
from tailrace.spark.jobs.load.target import (
    Loaded,
    LoadReport,
    built_report,
    created_topics,
    missing_topics,
    partition_count,
)
from tailrace.spark.jobs.place import NO_PROPERTIES, ClientProperties, Place, cluster_at
from tailrace.spark.jobs.replay.copy import ReplayTask, replay_partition
from tailrace.spark.jobs.replay.state import ReplayPoint, ReplayState
from tailrace.spark.jobs.spark_session import first_sentence
from tailrace.spark.jobs.task_progress import TaskProgress

CODECS = tuple(codec.name.lower() for codec in Codec)


def load(
    spark: Any,
    source: Any,
    target: str,
    *,
    kind: str = "parquet",
    topic: str | None = None,
    partitions: int | None = None,
    new_offsets: bool | None = None,
    config: Mapping[str, str] | None = None,
    compression: str = "none",
    batch_bytes: int = 65_536,
    encoding: str = "utf8",
    staging: str | None = None,
    bootstrap: str | None = None,
    state: str | None = None,
    client: ClientProperties = NO_PROPERTIES,
) -> LoadReport:
    """Load `source`, a DataFrame or a path of files, into `target`, a data directory or the address of a cluster.

    `kind` is the format of files: parquet, json (lines) or csv. `topic` is the topic of all rows; default: the column
    `topic`. `partitions` is the number of partitions of a new topic, if rows have no column `partition`. With
    `new_offsets`, offsets are assigned after the end of the log; default: without a column `offset`, or for a cluster.
    `config` has the configs of new topics. `staging` is a folder to build segments in, on the file system of the
    target, that every worker sees. `bootstrap` is the address of the Tailrace broker that uses the directory; it adopts
    the segments. `state` is a directory for progress, for a later run of a stopped load. `client` has client settings.
    """
    if state is not None and bootstrap is not None:
        raise JobError("a load with bootstrap cannot be resumed: give either state or bootstrap")
    place = _target(target, client)
    frame = read_files(spark, os.fspath(source), kind) if isinstance(source, str | os.PathLike) else source
    if new_offsets is None:
        new_offsets = place.bootstrap is not None or "offset" not in frame.columns
    if place.bootstrap is not None and not new_offsets:
        raise JobError("a cluster assigns its own offsets: load into a data directory, or request new offsets")
    if compression not in CODECS:
        raise JobError(f"compression is {compression!r}; it must be one of {', '.join(CODECS)}")
    with _staging(spark, place, staging) as folder:
        plan = ChunkPlan(
            folder=folder,
            topic=topic,
            partitions=None if "partition" in frame.columns else _partition_count(place, topic, partitions),
            keeps_offsets=not new_offsets,
            codec=Codec[compression.upper()],
            batch_bytes=batch_bytes,
            now_ms=int(time.time() * 1000),
        )
        rows = record_columns(frame, topic=topic, keeps_offsets=plan.keeps_offsets, encoding=encoding)
        chunks = write_chunks(spark, rows, plan)
        grouped = by_partition(chunks)
        if not grouped:
            return LoadReport()
        counts = _counts(grouped, partitions, plan)
        if place.bootstrap is not None:
            return _produce(spark, place, grouped, counts, dict(config or {}), state)
        assert place.path is not None
        if bootstrap is not None:
            return propose_load(spark, place.path, bootstrap, grouped, counts, dict(config or {}), plan, client)
        kept = None if state is None else LoadState(state, os.path.abspath(place.path))
        return _adopt(spark, place.path, grouped, counts, dict(config or {}), plan, kept)


def _target(text: str, client: ClientProperties) -> Place:
    """Parse the target. A path that does not exist is a new directory, if its parent exists."""
    if is_remote(text):
        raise JobError(f"{text} is in an object store, which is read-only: load into a local directory")
    is_new = not os.path.exists(text) and (os.sep in text or ":" not in text)
    if is_new and os.path.isdir(os.path.dirname(os.path.abspath(text))):
        return Place(path=text)
    return Place.parse(text, client)


@contextmanager
def _staging(spark: Any, place: Place, given: str | None) -> Iterator[str]:
    """Yield a folder for chunks and built logs, and remove it at the end."""
    if given is None and place.path is None:
        if not str(spark.sparkContext.master).startswith("local"):
            raise JobError("workers on other machines need a staging folder that all of them see: give --staging")
        folder = tempfile.mkdtemp(prefix="tailrace-load-")
    else:
        # Not inside the directory: Apache Kafka does not start if a data directory has an unknown folder.
        parent = given or f"{os.path.abspath(place.path or '')}.staging"
        folder = os.path.join(parent, uuid4().hex)
        try:
            os.makedirs(folder)
            _check_file_system(folder, place)
        except OSError as error:
            raise JobError(f"{folder} cannot be created: {error.strerror}") from None
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if given is None and place.path is not None and not os.listdir(os.path.dirname(folder)):
            os.rmdir(os.path.dirname(folder))


def _check_file_system(folder: str, place: Place) -> None:
    """Raise JobError if the folder is on another file system: segments are moved by renaming."""
    if place.path is not None:
        target = place.path if os.path.exists(place.path) else os.path.dirname(os.path.abspath(place.path))
        if os.stat(folder).st_dev != os.stat(target).st_dev:
            shutil.rmtree(folder)
            raise JobError(f"{folder} is on another file system than {place.path}: choose another staging folder")


def _partition_count(place: Place, topic: str | None, given: int | None) -> int:
    """Return the number of partitions for keys: that of the existing topic, or the requested one."""
    if topic is None:
        raise JobError("rows without a column 'partition' need a topic: give --topic")
    there = 0
    if place.bootstrap is not None:
        with cluster_at(place.bootstrap, place.client) as cluster:
            there = partition_count(cluster, topic)
    elif place.path is not None and os.path.isdir(place.path) and os.listdir(place.path):
        try:
            folders = read_data_directory(DiskFiles(), place.path).folders
        except InspectionFailed as error:
            raise JobError(str(error)) from None
        there = sum(folder.partition.topic == topic and not folder.mark for folder in folders)
    if there and given and there != given:
        raise JobError(f"{topic} has {there} partitions in {place}, but --partitions is {given}")
    if not there and not given:
        raise JobError(f"topic {topic} does not exist in {place}: give its number of partitions")
    return there or given or 0


def write_chunks(spark: Any, rows: Any, plan: ChunkPlan) -> list[Chunk]:
    """Run the first tasks. If offsets are kept, each partition is written by one task, in the order of offsets."""
    if plan.keeps_offsets:
        keys = ["partition", "offset"] if plan.topic is not None else ["topic", "partition", "offset"]
        rows = rows.repartition(*keys[:-1]).sortWithinPartitions(*keys)
    spark.dataSource.register(LoadSink)
    with TaskProgress(spark, "load: rows to batches"):
        try:
            rows.write.format(NAME).option("plan", plan_text(plan)).mode("append").save()
        except Exception as error:
            raise JobError(first_sentence(error)) from error
    return written_chunks(plan)


def by_partition(chunks: Sequence[Chunk]) -> dict[TopicPartition, tuple[Chunk, ...]]:
    grouped: dict[TopicPartition, list[Chunk]] = {}
    for chunk in chunks:
        grouped.setdefault(chunk.partition, []).append(chunk)
    return {partition: tuple(grouped[partition]) for partition in sorted(grouped)}


def _counts(grouped: Mapping[TopicPartition, Any], given: int | None, plan: ChunkPlan) -> dict[str, int]:
    """Return the number of partitions that each topic needs."""
    needed: dict[str, int] = {}
    for partition in grouped:
        needed[partition.topic] = max(needed.get(partition.topic, 0), partition.partition + 1)
    for name, count in needed.items():
        if given is not None and count > given:
            raise JobError(f"a row is for partition {count - 1} of {name}, but --partitions is {given}")
        needed[name] = given or plan.partitions or count
    return needed


def _adopt(
    spark: Any,
    path: str,
    grouped: Mapping[TopicPartition, tuple[Chunk, ...]],
    counts: Mapping[str, int],
    config: Mapping[str, str],
    plan: ChunkPlan,
    state: LoadState | None = None,
) -> LoadReport:
    """Load into a directory that no broker uses."""
    from tailrace.log.recovery.adoption import NotAdoptable
    from tailrace.node.offline_node import NodeRefused, OfflineNode

    try:
        with OfflineNode(path) as node:
            missing = missing_topics(node.partitions_of, counts, path)
            for name in missing:
                node.create_topic(name, counts[name], config)
            try:
                notes = {} if state is None else state.read()
                found = [
                    remaining_task(partition, chunks, node.log_end_state(partition), plan, notes.get(partition))
                    for partition, chunks in grouped.items()
                ]
                tasks = [task for task in found if task is not None]
                built: list[BuiltLog] = run_tasks(spark, tasks, build_log, label="load: batches to segments")
                if state is not None:
                    for task, one in zip(tasks, built, strict=True):
                        if not task.loaded_to:
                            notes[one.partition] = PlannedLoad(one.first_offset, one.end_offset, one.records)
                    state.write(notes)
                for one in built:
                    node.adopt(one.partition, one.folder, one.leader_epoch)
            except BaseException:
                for name in missing if state is None else ():
                    node.delete_topic(name)
                raise
    except (NodeRefused, NotAdoptable) as error:
        raise JobError(str(error)) from None
    loaded_before = [partition for partition, task in zip(grouped, found, strict=True) if task is None]
    return built_report(built, missing, loaded_before)


def _produce(
    spark: Any,
    place: Place,
    grouped: Mapping[TopicPartition, tuple[Chunk, ...]],
    counts: Mapping[str, int],
    config: Mapping[str, str],
    state: str | None = None,
) -> LoadReport:
    """Load into a cluster, which assigns the offsets."""
    kept = None if state is None else ReplayState(state)
    bootstrap = str(place)
    with (
        cluster_at(bootstrap, place.client) as cluster,
        created_topics(cluster, bootstrap, counts, config, keep=state is not None) as missing,
    ):
        ends = latest_offsets(cluster, grouped)
        tasks = []
        for partition, chunks in grouped.items():
            point = None if kept is None else kept.read(partition)
            if point is None:
                point = ReplayPoint("chunks", bootstrap, 0, 0, ends[partition])
                if kept is not None:
                    kept.write(partition, point)
            elif point.target != bootstrap:
                raise JobError(
                    f"{state} has the state of a load into {point.target}, not {bootstrap}: give another directory"
                )
            ends[partition] = point.target_next - point.source_next
            slice_ = ChunkSlice(partition, chunks, point.source_next)
            tasks.append(ReplayTask(slice_, bootstrap, partition, point, kept, None, None, place.client))
        done = run_tasks(spark, tasks, replay_partition, label="load: batches to the cluster")
    return LoadReport(
        [Loaded(one.partition, one.records, one.bytes, ends[one.partition], one.target_end) for one in done],
        list(missing),
    )
