"""`tailrace job profile`: statistics of a log: keys, sizes, skew, throughput, compression, effect of compaction.

Each slice of a partition is a task. The counts, also those of keys, are merged by partition through a shuffle, so the
numbers are exact. Only committed records are read: up to the last stable offset, without aborted transactions. The
share of aborted records is reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tailrace.model.ids import TopicPartition
from tailrace.spark.jobs.errors import JobError
from tailrace.spark.jobs.job import run_grouped
from tailrace.spark.jobs.place import NO_PROPERTIES, ClientProperties, Place
from tailrace.spark.jobs.profile.facts import KeyFacts, LogFacts
from tailrace.spark.jobs.profile.task import ProfileTask, merge_partition, profile_slice
from tailrace.spark.source.planning.offset_ranges import OffsetRange

BYTES_PER_TASK = 134_217_728


@dataclass(slots=True)
class PartitionProfile:
    partition: TopicPartition
    start: int
    end: int
    facts: LogFacts = field(default_factory=LogFacts)
    keys: KeyFacts | None = None


@dataclass(slots=True)
class TopicProfile:
    """The statistics of a topic's partitions, and their sum."""

    name: str
    partitions: list[PartitionProfile] = field(default_factory=list)
    facts: LogFacts = field(default_factory=LogFacts)
    keys: KeyFacts | None = None

    def add(self, one: PartitionProfile) -> None:
        self.partitions.append(one)
        self.facts.merge(one.facts, is_same_partition=False)
        if one.keys is not None:
            self.keys = self.keys or KeyFacts()
            self.keys.merge(one.keys)

    @property
    def skew(self) -> float | None:
        """The size of the largest partition, as a multiple of the average."""
        total = self.facts.bytes
        return max(one.facts.bytes for one in self.partitions) * len(self.partitions) / total if total else None

    @property
    def freed_bytes(self) -> int | None:
        """The bytes that compaction would free, assuming the same compression ratio for all records."""
        if self.keys is None or not self.facts.record_bytes:
            return None
        return round(self.keys.superseded_bytes / self.facts.record_bytes * self.facts.bytes)

    def to_json(self) -> dict[str, Any]:
        return {
            "topic": self.name,
            **facts_json(self.facts),
            "skew": self.skew,
            "keys": None if self.keys is None else keys_json(self.keys),
            "compactionFreesBytes": self.freed_bytes,
            "partitions": [
                {
                    "partition": one.partition.partition,
                    "startOffset": one.start,
                    "endOffset": one.end,
                    **facts_json(one.facts),
                    "keys": None if one.keys is None else keys_json(one.keys),
                }
                for one in self.partitions
            ],
        }


@dataclass(slots=True)
class ProfileReport:
    place: str
    topics: list[TopicProfile] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return {"place": self.place, "topics": [topic.to_json() for topic in self.topics]}


def profile(
    spark: Any,
    place: str,
    *,
    topics: Sequence[str] = (),
    batches_only: bool = False,
    client: ClientProperties = NO_PROPERTIES,
) -> ProfileReport:
    """Profile a data directory or a cluster. With `batches_only`, only batch headers are read.

    `client` has the settings of a Kafka client, for a secured cluster.
    """
    parallelism = int(spark.sparkContext.defaultParallelism)
    partitions, tasks = plan_profile(
        place, topics=topics, batches_only=batches_only, parallelism=parallelism, client=client
    )
    found = run_grouped(spark, tasks, profile_slice, merge_partition, label="profile")
    return collect_profile(place, partitions, found)


def plan_profile(
    place: str,
    *,
    topics: Sequence[str] = (),
    batches_only: bool = False,
    parallelism: int = 1,
    client: ClientProperties = NO_PROPERTIES,
) -> tuple[list[PartitionProfile], list[ProfileTask]]:
    where = Place.parse(place, client)
    options = replace(
        where.options(topics, read_committed=True),
        max_bytes_per_partition=BYTES_PER_TASK,
        min_partitions=parallelism if where.path is None else None,
    )
    with where.opened(read_committed=True) as transport:
        found = transport.partitions(options.selection)
        if not found:
            raise JobError(f"there are no topics in {place}")
        starts, ends = transport.earliest(found), transport.latest(found)
        partitions = [PartitionProfile(one, starts[one], max(starts[one], ends[one])) for one in found]
        ranges = [OffsetRange(one.partition, one.start, one.end) for one in partitions if one.end > one.start]
        groups = {one.partition: number for number, one in enumerate(partitions)}
        tasks = [
            ProfileTask(
                groups[slice_.range.partition],
                slice_.range.start,
                slice_,
                slice_.range.start == starts[slice_.range.partition],
                batches_only,
            )
            for slice_ in (transport.slices(ranges, options) if ranges else ())
        ]
    return partitions, tasks


def collect_profile(
    place: str, partitions: Sequence[PartitionProfile], found: dict[int, tuple[LogFacts, KeyFacts | None]]
) -> ProfileReport:
    topics: dict[str, TopicProfile] = {}
    for number, one in enumerate(partitions):
        if number in found:
            one.facts, one.keys = found[number]
        topics.setdefault(one.partition.topic, TopicProfile(one.partition.topic)).add(one)
    return ProfileReport(place, list(topics.values()))


def facts_json(facts: LogFacts) -> dict[str, Any]:
    return {
        "batches": facts.batches,
        "bytes": facts.bytes,
        "records": facts.records,
        "recordBytes": facts.record_bytes,
        "controlBatches": facts.control_batches,
        "transactionalRecords": facts.transactional_records,
        "abortedRecords": facts.aborted_records,
        "abortedBytes": facts.aborted_bytes,
        "tombstones": facts.tombstones,
        "recordsWithoutKey": facts.keyless,
        "outOfOrder": facts.out_of_order,
        "minTimestamp": facts.min_time,
        "maxTimestamp": facts.max_time,
        "codecs": {
            name: {"batches": codec.batches, "bytes": codec.bytes, "ratio": codec.ratio}
            for name, codec in sorted(facts.codecs.items())
        },
        "keySizes": facts.key_sizes.to_json(),
        "valueSizes": facts.value_sizes.to_json(),
        "batchSizes": facts.batch_sizes.to_json(),
        "throughput": facts.times.to_json(),
    }


def keys_json(keys: KeyFacts) -> dict[str, Any]:
    return {
        "records": keys.records,
        "distinct": keys.distinct,
        "superseded": keys.superseded,
        "supersededBytes": keys.superseded_bytes,
        "keysDeleted": keys.tombstones_last,
        "top": [{"key": key_text(key), "records": records, "bytes": size} for key, records, size in keys.top],
    }


def key_text(key: bytes) -> str:
    """Return a key for people: as text, or in hex if it is not printable text."""
    try:
        text = key.decode()
    except UnicodeDecodeError:
        return f"0x{key.hex()}"
    return text if text.isprintable() else f"0x{key.hex()}"
