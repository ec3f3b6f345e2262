"""`tailrace job replay`: copies a range of a log, from files or a cluster, into another cluster.

Partitions, keys, values, headers and timestamps are kept; the target assigns the offsets. Only committed records are
copied. One task copies one partition, in order (`copy.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tailrace.client.admin import NewTopic, create_topic
from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.errors import UnknownTopic
from tailrace.client.offsets import latest_offsets
from tailrace.model.ids import Offset, TopicPartition
from tailrace.spark.jobs.errors import JobError
from tailrace.spark.jobs.job import run_tasks
from tailrace.spark.jobs.place import (
    NO_PROPERTIES,
    ClientProperties,
    Place,
    cluster_at,
    other_name,
    topic_pairs,
    whole_slice,
)
from tailrace.spark.jobs.replay.copy import Replayed, ReplayTask, replay_partition
from tailrace.spark.jobs.replay.state import ReplayPoint, ReplayState
from tailrace.spark.source.planning.offset_ranges import OffsetRange
from tailrace.spark.source.transports.transport import Transport


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayRange:
    """The records to copy: from an offset or time (ms) up to, but not including, another; by default all."""

    from_offset: Offset | None = None
    to_offset: Offset | None = None
    from_time: int | None = None
    to_time: int | None = None


@dataclass(slots=True)
class ReplayReport:
    partitions: list[Replayed] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return {"partitions": [one.to_json() for one in self.partitions]}


def replay(
    spark: Any,
    source: str,
    target: str,
    *,
    topics: Sequence[str],
    wanted: ReplayRange | None = None,
    state: str | None = None,
    create: bool = False,
    provenance: bool = False,
    rate: float | None = None,
    client: ClientProperties = NO_PROPERTIES,
    target_client: ClientProperties | None = None,
) -> ReplayReport:
    """Produce a range of `source` (a directory or a cluster) into the cluster `target`.

    A topic is `orders`, or `orders:copy` for another name in the target. `state` is a directory for progress: a stopped
    replay can be resumed, and a finished one can be run again for newer records. `create` creates missing topics in the
    target. `provenance` adds a header with the source of each record. `rate` is the maximum number of records per
    second, over all partitions. `client` has the settings of a Kafka client, for secured clusters; `target_client`
    those for the target, if they differ.
    """
    tasks = plan_replay(
        source,
        target,
        topics=topics,
        wanted=wanted,
        state=state,
        create=create,
        provenance=provenance,
        client=client,
        target_client=target_client,
    )
    if rate is not None:
        at_once = max(1, min(len(tasks), int(spark.sparkContext.defaultParallelism)))
        tasks = [replace(task, rate=rate / at_once) for task in tasks]
    return ReplayReport(run_tasks(spark, tasks, replay_partition, label="replay"))


def plan_replay(
    source: str,
    target: str,
    *,
    topics: Sequence[str],
    wanted: ReplayRange | None = None,
    state: str | None = None,
    create: bool = False,
    provenance: bool = False,
    client: ClientProperties = NO_PROPERTIES,
    target_client: ClientProperties | None = None,
) -> list[ReplayTask]:
    """Return a task for each partition. With `create`, missing topics are created after all other checks."""
    pairs = topic_pairs(topics)
    if not pairs:
        raise JobError("no topics: name at least one topic to replay")
    place, goal = Place.parse(source, client), Place.parse(target, client if target_client is None else target_client)
    if goal.bootstrap is None:
        raise JobError(f"{target} is a directory; the target of a replay must be a running cluster (host:port)")
    options = place.options(tuple(pairs), read_committed=True)
    notes = None if state is None else ReplayState(state)
    with place.opened(read_committed=True) as transport:
        partitions = transport.partitions(options.selection)
        ranges = _ranges(transport, partitions, wanted or ReplayRange(), source)
        points = {partition: _noted(notes, partition, source, target, ranges[partition]) for partition in partitions}
        with cluster_at(target, goal.client) as cluster:
            others = {partition: other_name(partition, pairs) for partition in partitions}
            _check_target(cluster, target, list(others.values()), create=create)
            ends = latest_offsets(cluster, others.values())
        tasks = []
        for partition in partitions:
            found, whole = points[partition], ranges[partition]
            point = found or ReplayPoint(source, target, whole.start, whole.start, ends[others[partition]])
            rest = OffsetRange(partition, point.source_next, max(point.source_next, whole.end))
            if notes is not None and found is None:
                notes.write(partition, point)
            if rest.size:
                slice_ = whole_slice(transport, rest, options)
                where = source if provenance else None
                tasks.append(ReplayTask(slice_, target, others[partition], point, notes, None, where, goal.client))
    return tasks


def _ranges(
    transport: Transport, partitions: Sequence[TopicPartition], wanted: ReplayRange, source: str
) -> dict[TopicPartition, OffsetRange]:
    starts, ends = transport.earliest(partitions), transport.latest(partitions)
    found = {}
    for partition in partitions:
        start, end = starts[partition], ends[partition]
        if wanted.from_time is not None:
            first = transport.at_times({partition: wanted.from_time})[partition]
            start = max(start, end if first is None else first)
        if wanted.from_offset is not None:
            if not start <= wanted.from_offset <= end:
                raise JobError(
                    f"{partition} in {source} has offsets {start} to {end - 1}; --from-offset is {wanted.from_offset}"
                )
            start = wanted.from_offset
        if wanted.to_time is not None:
            first = transport.at_times({partition: wanted.to_time})[partition]
            end = min(end, end if first is None else first)
        if wanted.to_offset is not None:
            end = min(end, wanted.to_offset)
        found[partition] = OffsetRange(partition, start, max(start, end))
    return found


def _noted(
    notes: ReplayState | None, partition: TopicPartition, source: str, target: str, wanted: OffsetRange
) -> ReplayPoint | None:
    found = None if notes is None else notes.read(partition)
    if found is not None and (found.source, found.target) != (source, target):
        raise JobError(
            f"the state of {partition} is for a replay from {found.source} to {found.target}: give another directory"
        )
    if found is not None and wanted.start > found.source_next:
        raise JobError(
            f"the state of {partition} continues at offset {found.source_next}, but the replay starts at {wanted.start}"
        )
    return found


def _check_target(cluster: ClusterClient, target: str, wanted: Sequence[TopicPartition], *, create: bool) -> None:
    for name in dict.fromkeys(partition.topic for partition in wanted):
        count = max(partition.partition for partition in wanted if partition.topic == name) + 1
        try:
            there = len(cluster.topic(name, fresh=True).partitions)
        except UnknownTopic:
            if not create:
                raise JobError(f"there is no topic {name!r} at {target}: create it first, or use --create") from None
            create_topic(cluster, NewTopic(name=name, partitions=count))
            continue
        if there < count:
            raise JobError(f"{name} has {there} partitions at {target}, but the source has {count}")
