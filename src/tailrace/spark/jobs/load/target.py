"""What loads into different targets share: which topics have to be made, where logs stand, and the report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from tailrace.client.admin import NewTopic, create_topic, delete_topic
from tailrace.client.cluster.cluster import ClusterClient
from tailrace.client.errors import UnknownTopic
from tailrace.model.ids import LeaderEpoch, Offset, TopicPartition
from tailrace.model.topic_config import TopicConfig
from tailrace.spark.jobs.errors import JobError
from tailrace.spark.jobs.load.build import BuildTask, BuiltLog
from tailrace.spark.jobs.load.chunks import Chunk, ChunkPlan


class Standing(Protocol):
    """What one has to know to build segments that a log can take in."""

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
    segments: int = 0  # that were built; 0 where records were produced

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
    loaded_before: list[TopicPartition] = field(default_factory=list)  # by a run that was stopped

    def to_json(self) -> dict[str, Any]:
        return {
            "topicsCreated": self.topics_created,
            "loadedBefore": [str(partition) for partition in self.loaded_before],
            "partitions": [one.to_json() for one in self.partitions],
        }


def build_task(partition: TopicPartition, chunks: tuple[Chunk, ...], standing: Standing, plan: ChunkPlan) -> BuildTask:
    if plan.keeps_offsets and chunks[0].first_offset < standing.end_offset:
        raise JobError(
            f"{partition} ends at offset {standing.end_offset}, "
            f"and the first record to load has offset {chunks[0].first_offset}"
        )
    return BuildTask(
        partition,
        chunks,
        plan.folder,
        standing.config,
        standing.leader_epoch,
        None if plan.keeps_offsets else standing.end_offset,
        plan.now_ms,
    )


def topics_to_make(partitions_of: Callable[[str], int], counts: Mapping[str, int], where: str) -> tuple[str, ...]:
    """The topics that have to be made; those that are there have partitions enough, or it is a JobError."""
    for name, count in counts.items():
        there = partitions_of(name)
        if 0 < there < count:
            raise JobError(f"{name} has {there} partitions in {where}, and there are records for {count}")
    return tuple(name for name in counts if not partitions_of(name))


def partitions_there(cluster: ClusterClient, topic: str) -> int:
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
def made_topics(
    cluster: ClusterClient, where: str, counts: Mapping[str, int], config: Mapping[str, str], *, keep: bool = False
) -> Iterator[tuple[str, ...]]:
    """The topics that were not there, made; and gone again if what follows fails, unless a later run is to go on."""
    missing = topics_to_make(lambda name: partitions_there(cluster, name), counts, where)
    for name in missing:
        create_topic(cluster, NewTopic(name=name, partitions=counts[name], config=config))
    try:
        yield missing
    except BaseException:
        for name in () if keep else missing:
            delete_topic(cluster, name)
        raise
