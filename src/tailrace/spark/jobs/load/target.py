"""Common parts of loads into different targets: topics to create, log ends, and the report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from tailrace.client.admin import NewTopic, create_topic, delete_topic
from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.errors import UnknownTopic
from tailrace.model.ids import LeaderEpoch, Offset, TopicPartition
from tailrace.model.topic_config import TopicConfig
from tailrace.spark.jobs.errors import JobError
from tailrace.spark.jobs.load.build import BuildTask, BuiltLog
from tailrace.spark.jobs.load.chunks import Chunk, ChunkPlan


class LogEnd(Protocol):
    """The state of a log that is needed to build segments for it."""

    @property
    def end_offset(self) -> Offset: ...
    @property
    def leader_epoch(self) -> LeaderEpoch: ...
    @property
    def config(self) -> TopicConfig: ...


@dataclass(frozen=True, slots=True)
class Loaded:
    partition: TopicPartition
    records: int
    bytes: int
    first_offset: Offset
    end_offset: Offset
    segments: int = 0  # built segments; 0 if records were produced

    def to_json(self) -> dict[str, Any]:
        return {
            "topic": self.partition.topic,
            "partition": self.partition.partition,
            "records": self.records,
            "bytes": self.bytes,
            "firstOffset": self.first_offset,
            "endOffset": self.end_offset,
            "segments": self.segments,
        }


@dataclass(slots=True)
class LoadReport:
    partitions: list[Loaded] = field(default_factory=list)
    topics_created: list[str] = field(default_factory=list)
    loaded_before: list[TopicPartition] = field(default_factory=list)  # by an earlier, stopped run

    def to_json(self) -> dict[str, Any]:
        return {
            "topicsCreated": self.topics_created,
            "loadedBefore": [str(partition) for partition in self.loaded_before],
            "partitions": [one.to_json() for one in self.partitions],
        }


def build_task(
    partition: TopicPartition, chunks: tuple[Chunk, ...], log_end_state: LogEnd, plan: ChunkPlan
) -> BuildTask:
    if plan.keeps_offsets and chunks[0].first_offset < log_end_state.end_offset:
        raise JobError(
            f"{partition} ends at offset {log_end_state.end_offset}, "
            f"but the first record to load has offset {chunks[0].first_offset}: request new offsets, or load elsewhere"
        )
    return BuildTask(
        partition,
        chunks,
        plan.folder,
        log_end_state.config,
        log_end_state.leader_epoch,
        None if plan.keeps_offsets else log_end_state.end_offset,
        plan.now_ms,
    )


def missing_topics(partitions_of: Callable[[str], int], counts: Mapping[str, int], where: str) -> tuple[str, ...]:
    """Return the topics to create. Raise JobError if an existing topic has too few partitions."""
    for name, count in counts.items():
        there = partitions_of(name)
        if 0 < there < count:
            raise JobError(f"{name} has {there} partitions in {where}, but records need {count}")
    return tuple(name for name in counts if not partitions_of(name))


def partition_count(cluster: ClusterClient, topic: str) -> int:
    try:
        return len(cluster.topic(topic, fresh=True).partitions)
    except UnknownTopic:
        return 0


def built_report(
    built: list[BuiltLog], made: tuple[str, ...], loaded_before: Sequence[TopicPartition] = ()
) -> LoadReport:
    loaded = [
        Loaded(one.partition, one.records, one.bytes, one.first_offset, one.end_offset, one.segments) for one in built
    ]
    return LoadReport(loaded, list(made), list(loaded_before))


@contextmanager
def created_topics(
    cluster: ClusterClient, where: str, counts: Mapping[str, int], config: Mapping[str, str], *, keep: bool = False
) -> Iterator[tuple[str, ...]]:
    """Create missing topics, and delete them again on failure, unless `keep` is set for a later run."""
    missing = missing_topics(lambda name: partition_count(cluster, name), counts, where)
    for name in missing:
        create_topic(cluster, NewTopic(name=name, partitions=counts[name], config=config))
    try:
        yield missing
    except BaseException:
        for name in () if keep else missing:
            delete_topic(cluster, name)
        raise
