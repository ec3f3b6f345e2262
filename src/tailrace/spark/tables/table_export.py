"""TableExport: adds the records of topics to a table, round by round. Each record is added once.

A round reads from the table where it ends, writes the next records as Parquet files in Spark tasks, and adds the files
in one commit that also moves the ends. Files of a round that was killed are in a folder of their own; the table never
names them. A later round deletes them as soon as that round can no longer be committed.
"""

from __future__ import annotations

import uuid
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from tailrace.model.ids import Offset, TopicPartition
from tailrace.spark.jobs.errors import JobError, TasksFailed
from tailrace.spark.tables.formats.table import Merged, Table
from tailrace.spark.tables.round_files import RoundFiles
from tailrace.spark.tables.round_plan import RoundPlan, plan_round
from tailrace.spark.tables.round_writer import Append, RoundInput, RoundWriter
from tailrace.spark.tables.row_form import PlainRows, RowForm
from tailrace.spark.tables.table_ends import CommitUnknown, ConcurrentChange, Round
from tailrace.spark.tables.throughput import Throughput
from tailrace.spark.tables.topic_source import Offsets, TopicSource
from tailrace.spark.tables.write_task import RecordsLost, Written

TARGET_BYTES = 256 * 1024 * 1024
ROUND_BYTES = 16 * 1024 * 1024 * 1024
_ATTEMPTS = 10  # to plan a round again after another program or the retention has changed its offsets


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportSettings:
    form: RowForm = field(default_factory=PlainRows)
    rounds: RoundWriter = field(default_factory=Append)
    target_bytes: int = TARGET_BYTES
    compression: str = "zstd"
    allow_loss: bool = False
    round_bytes: int = ROUND_BYTES  # of decoded records, approximately


@dataclass(slots=True)
class Exported:
    """The result of one or more rounds."""

    table: str
    commits: int = 0
    records: int = 0
    files: int = 0
    bytes_written: int = 0
    broken: int = 0  # records that could not be decoded
    lost: int = 0  # offsets that retention deleted before they were exported
    ends: dict[TopicPartition, Offset] | None = None
    lag: int = 0  # offsets that the topics had after the last round

    def add(self, other: Exported) -> None:
        self.commits += other.commits
        self.records += other.records
        self.files += other.files
        self.bytes_written += other.bytes_written
        self.broken += other.broken
        self.lost += other.lost
        self.ends, self.lag = other.ends, other.lag


class TableExport:
    def __init__(self, spark: Any, source: TopicSource, table: Table, settings: ExportSettings) -> None:
        self._spark = spark
        self._source = source
        self.table = table
        self.settings = settings
        self._throughput = Throughput()
        self._files: RoundFiles | None = None
        self._form = settings.form

    def open(self) -> None:
        """Open the table, or create it. Raise JobError if it cannot take the records."""
        self._source.identities()
        self._form = self.settings.rounds.open(self.table, self.settings.form)
        self._files = RoundFiles(self.table.storage)
        self._files.sweep(self.table)

    def _follow_schema(self) -> None:
        """Use the newest schema of the topic.

        The offsets of the round are known before, so a record of the round has no newer schema.
        """
        newest = self._form.latest()
        if newest is not self._form:
            self._form = newest.with_schema(self.table.evolve(newest.schema))

    def latest(self) -> dict[TopicPartition, Offset]:
        self._source.refresh()
        return self._source.latest(self._source.partitions())

    def starts(self, latest: Offsets) -> dict[TopicPartition, Offset]:
        """Return the offsets with which the next round starts, without lost records."""
        partitions = list(latest)
        there, earliest = self.table.ends(partitions), self._source.earliest(partitions)
        return {one: max(there.next_offset(one) or 0, earliest[one]) for one in partitions}

    def fills_a_file(self, offsets: int) -> bool:
        """Return True if this number of offsets gives a file of the target size, as measured in earlier rounds."""
        return self._throughput.file_bytes(offsets) >= self.settings.target_bytes

    def merge(self) -> Merged:
        """Merge small files of the table."""
        if not self.settings.rounds.merges:
            return Merged()
        try:
            return self.table.merge(
                self._spark, target_bytes=self.settings.target_bytes, compression=self.settings.compression
            )
        except ConcurrentChange:
            return Merged()  # another program has changed the files

    def run_round(self, target: Offsets | None = None) -> Exported | None:
        """Export the next records, up to `target` or the ends of the topics. Return None if there are none."""
        for _ in range(_ATTEMPTS):
            try:
                return self._run_round(target)
            except ConcurrentChange:
                continue  # the next plan starts where the other program ended
            except RecordsLost:
                if not self.settings.allow_loss:
                    raise  # with allow_loss, the next plan skips and counts the lost records
        raise JobError(
            f"other programs have changed table {self.table.name} during {_ATTEMPTS} rounds in a row; "
            "let only one export write each topic"
        )

    def _run_round(self, target: Offsets | None) -> Exported | None:
        self._source.refresh()
        partitions = self._source.partitions()
        there = self.table.ends(partitions)
        identities = self._source.identities()
        there.check(self.table.name, identities)
        latest = self._source.latest(partitions)
        plan = plan_round(
            there,
            self._source.earliest(partitions),
            latest,
            latest if target is None else target,
            max_offsets=self._throughput.round_offsets(self.settings.round_bytes),
            allow_loss=self.settings.allow_loss,
            table=self.table.name,
        )
        if not plan.moved:
            return None
        round_ = Round(
            uuid.uuid4().hex,
            {partition: there.end_of(partition) for partition in plan.moved},
            {partition: plan.starts[partition] for partition in plan.moved},
            {partition: plan.ends[partition] for partition in plan.moved},
            {partition.topic: identities[partition.topic] for partition in plan.moved},
        )
        self._follow_schema()
        written = self._write(round_, plan)
        if not self._source.has_file_ranges(plan.ends):
            self._source.drop_files()
        assert self._files is not None
        self._files.sweep(self.table)
        after = {**plan.starts, **round_.ends}
        return Exported(
            self.table.name,
            1,
            sum(one.records for one in written),
            sum(len(one.files) for one in written),
            sum(file.size for one in written for file in one.files),
            sum(one.broken for one in written),
            plan.lost,
            after,
            sum(max(0, end - after[partition]) for partition, end in latest.items()),
        )

    def _write(self, round_: Round, plan: RoundPlan) -> list[Written]:
        assert self._files is not None, "the export is not open"
        settings = self.settings
        layout = self.table.layout(round_.id, target_bytes=settings.target_bytes, compression=settings.compression)
        size = self._throughput.task_offsets(
            settings.target_bytes, sum(wanted.size for wanted in plan.ranges), _parallelism(self._spark)
        )
        slices = self._source.slices(
            plan.ranges, task_offsets=size, task_bytes=self._throughput.task_bytes(settings.target_bytes)
        )
        self._files.begin(round_)
        try:
            wanted = RoundInput(round_, slices, self._form, layout, size)
            written = settings.rounds.write(self._spark, self.table, wanted)
        except (CommitUnknown, TasksFailed):
            raise  # the round may be committed, or its tasks may still write: a later round deletes the files
        except JobError:
            with suppress(JobError):  # the first error is the interesting one
                self._files.discard(round_)
            raise
        files = [file for one in written for file in one.files]
        self._files.end(round_, files)
        self._throughput.note(
            sum(wanted.size for wanted in plan.ranges),
            sum(one.source_bytes for one in written),
            sum(file.size for file in files),
        )
        return written


def export_once(export: TableExport) -> Exported:
    """Export the records that exist now, in as many rounds as needed."""
    export.open()
    target = export.latest()
    total = Exported(export.table.name)
    while (done := export.run_round(target)) is not None:
        total.add(done)
    if total.ends is None:
        total.ends = {
            partition: end
            for partition in target
            if (end := export.table.ends(list(target)).end_of(partition)) is not None
        }
    return total


def _parallelism(spark: Any) -> int:
    return int(getattr(spark.sparkContext, "defaultParallelism", 1))
