"""`tailrace job diff`: compares two directories or clusters record by record.

A partition is cut into ranges of offsets, at index entries if there are files. A task reads one range of both copies in
parallel, so nothing is shuffled. If offsets are ignored, records are paired by their order, and a partition is one
task.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from tailrace.model.ids import Offset, TopicPartition
from tailrace.spark.jobs.diff.record_diff import FIELDS, Difference, RecordDiff, Span, compared_fields
from tailrace.spark.jobs.errors import JobError
from tailrace.spark.jobs.job import run_tasks
from tailrace.spark.jobs.place import (
    NO_PROPERTIES,
    ClientProperties,
    Place,
    as_job_errors,
    other_name,
    topic_pairs,
    whole_slice,
)
from tailrace.spark.source.options import ReadOptions
from tailrace.spark.source.planning.offset_ranges import OffsetRange
from tailrace.spark.source.slice_reader import ReadPlan, read_slice
from tailrace.spark.source.table_columns import KNOWN
from tailrace.spark.source.transports.transport import Slice, Transport

IGNORED = ("offsets", "timestamps", "headers")
BYTES_PER_TASK = 134_217_728


@dataclass(frozen=True, slots=True)
class DiffTask:
    partition: TopicPartition
    here: Slice | None
    there: Slice | None
    fields: tuple[str, ...]
    by_offset: bool
    kept: int


@dataclass(slots=True)
class DiffReport:
    """The differences by partition (with its name in `here`), and the partitions that only one side has."""

    partitions: dict[TopicPartition, Difference] = field(default_factory=dict)
    only_here: list[TopicPartition] = field(default_factory=list)
    only_there: list[TopicPartition] = field(default_factory=list)

    @property
    def is_equal(self) -> bool:
        missing = self.only_here or self.only_there
        return not missing and all(found.is_equal for found in self.partitions.values())

    def to_json(self) -> dict[str, Any]:
        return {
            "equal": self.is_equal,
            "onlyHere": [str(partition) for partition in self.only_here],
            "onlyThere": [str(partition) for partition in self.only_there],
            "partitions": [
                {"topic": partition.topic, "partition": partition.partition, **_difference_json(found)}
                for partition, found in self.partitions.items()
            ],
        }


def diff(
    spark: Any,
    here: str,
    there: str,
    *,
    topics: Sequence[str] = (),
    ignore: Iterable[str] = (),
    read_committed: bool = False,
    kept: int = 10,
    client: ClientProperties = NO_PROPERTIES,
    there_client: ClientProperties | None = None,
) -> DiffReport:
    """Compare two copies. `here` and `there` are each a data directory or the address of a cluster.

    `topics` are the topics to compare, by default all that are not internal; `orders:copy` compares orders in `here`
    with copy in `there`. `ignore` has offsets, timestamps or headers. `kept` is the maximum number of ranges and of
    differing records in the report of each partition. `client` has the settings of a Kafka client, for secured
    clusters; `there_client` those for `there`, if they differ.
    """
    report, tasks = plan_diff(
        here,
        there,
        topics=topics,
        ignore=ignore,
        read_committed=read_committed,
        kept=kept,
        parallelism=int(spark.sparkContext.defaultParallelism),
        client=client,
        there_client=there_client,
    )
    for task, found in zip(tasks, run_tasks(spark, tasks, compare, label="diff"), strict=True):
        report.partitions[task.partition].add(found)
    return report


def plan_diff(
    here: str,
    there: str,
    *,
    topics: Sequence[str] = (),
    ignore: Iterable[str] = (),
    read_committed: bool = False,
    kept: int = 10,
    parallelism: int = 1,
    client: ClientProperties = NO_PROPERTIES,
    there_client: ClientProperties | None = None,
) -> tuple[DiffReport, list[DiffTask]]:
    """Return the tasks in the order of offsets, and a report without their results."""
    ignored = set(ignore)
    if unknown := ignored - set(IGNORED):
        raise JobError(f"ignore={min(unknown)!r} is not possible; only {', '.join(IGNORED)} can be ignored")
    pairs = topic_pairs(topics)
    places = Place.parse(here, client), Place.parse(there, client if there_client is None else there_client)
    with (
        places[0].opened(read_committed=read_committed) as left,
        places[1].opened(read_committed=read_committed) as right,
    ):
        options = (
            places[0].options(tuple(pairs), read_committed=read_committed),
            places[1].options(tuple(pairs.values()), read_committed=read_committed),
        )
        found_left = left.partitions(options[0].selection, missing_ok=True)
        found_right = right.partitions(options[1].selection, missing_ok=True)
        names = {other_name(partition, pairs): partition for partition in found_left}
        for name, other in pairs.items():
            if not any(one.topic == name for one in found_left) and not any(one.topic == other for one in found_right):
                raise JobError(f"there is neither a topic {name!r} in {here} nor {other!r} in {there}")
        report = DiffReport(
            only_here=sorted(set(found_left) - {names[one] for one in found_right if one in names}),
            only_there=sorted(set(found_right) - set(names)),
        )
        both = sorted(names[one] for one in found_right if one in names)
        report.partitions = {partition: Difference(kept) for partition in both}
        planner = _Planner(left, right, options, compared_fields(ignored), "offsets" not in ignored, kept)
        others = {partition: other_name(partition, pairs) for partition in both}
        return report, planner.tasks(both, others, parallelism)


def compare(task: DiffTask) -> Difference:
    columns = tuple(KNOWN[name] for name in ("offset", *task.fields))
    plan = ReadPlan(columns, tuple(True for _ in columns))

    def rows(slice_: Slice | None) -> Iterable[Any]:
        return () if slice_ is None else read_slice(slice_, plan)

    with as_job_errors():
        return RecordDiff(task.fields, by_offset=task.by_offset, kept=task.kept).run(rows(task.here), rows(task.there))


@dataclass(frozen=True, slots=True)
class _Planner:
    here: Transport
    there: Transport
    options: tuple[ReadOptions, ReadOptions]
    fields: tuple[str, ...]
    by_offset: bool
    kept: int

    def tasks(
        self, partitions: Sequence[TopicPartition], others: dict[TopicPartition, TopicPartition], parallelism: int
    ) -> list[DiffTask]:
        here = _ranges(self.here, partitions)
        there = _ranges(self.there, [others[partition] for partition in partitions])
        tasks = []
        for partition in partitions:
            left, right = here[partition], there[others[partition]]
            edges = [min(left.start, right.start), max(left.end, right.end)]
            if self.by_offset and edges[0] < edges[1]:
                edges = sorted({*edges, *self._cuts(left, right, parallelism)})
                for start, end in pairwise(edges):
                    parts = _within(left, start, end), _within(right, start, end)
                    tasks.append(self._task(partition, *parts))
            else:
                tasks.append(self._task(partition, left if left.size else None, right if right.size else None))
        return tasks

    def _cuts(self, left: OffsetRange, right: OffsetRange, parallelism: int) -> set[Offset]:
        """Return the offsets to cut at: index entries of a copy in files, else equal numbers of offsets."""
        transport, options, whole = self.here, self.options[0], left
        if options.path is None:
            transport, options, whole = self.there, self.options[1], right
        if whole.size <= 0:
            return set()
        more = replace(
            options,
            max_bytes_per_partition=BYTES_PER_TASK,
            min_partitions=parallelism if options.path is None else None,
        )
        return {part.range.start for part in transport.slices([whole], more)}

    def _task(self, partition: TopicPartition, left: OffsetRange | None, right: OffsetRange | None) -> DiffTask:
        return DiffTask(
            partition,
            None if left is None else whole_slice(self.here, left, self.options[0]),
            None if right is None else whole_slice(self.there, right, self.options[1]),
            self.fields,
            self.by_offset,
            self.kept,
        )


def _ranges(transport: Transport, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, OffsetRange]:
    starts, ends = transport.earliest(partitions), transport.latest(partitions)
    return {one: OffsetRange(one, starts[one], max(starts[one], ends[one])) for one in partitions}


def _within(whole: OffsetRange, start: Offset, end: Offset) -> OffsetRange | None:
    part = OffsetRange(whole.partition, max(start, whole.start), min(end, whole.end))
    return part if part.size > 0 else None


def _difference_json(found: Difference) -> dict[str, Any]:
    return {
        "equal": found.is_equal,
        "recordsHere": found.here.records,
        "recordsThere": found.there.records,
        "same": found.equal,
        "differing": found.differing,
        "differingFields": {name: found.fields[name] for name in FIELDS if found.fields[name]},
        "onlyHere": found.here.only,
        "onlyThere": found.there.only,
        "rangesOnlyHere": [_span_json(span) for span in found.here.spans],
        "rangesOnlyThere": [_span_json(span) for span in found.there.spans],
        "differences": [
            {"offsetHere": one.here, "offsetThere": one.there, "fields": list(one.fields)} for one in found.mismatches
        ],
    }


def _span_json(span: Span) -> dict[str, int]:
    return {"first": span.first, "last": span.last, "records": span.records}
