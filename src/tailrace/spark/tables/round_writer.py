"""RoundWriter: writes the records of a round, and commits them. Append adds every record as a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from tailrace.spark.jobs.errors import JobError
from tailrace.spark.jobs.job import run_tasks
from tailrace.spark.source.transports.transport import Slice
from tailrace.spark.tables.files.parquet_files import FileLayout
from tailrace.spark.tables.formats.partitioning import check_partitions
from tailrace.spark.tables.formats.table import Table
from tailrace.spark.tables.row_form import RowForm
from tailrace.spark.tables.table_ends import Round
from tailrace.spark.tables.write_task import Written, write_slices, write_tasks

BUCKETS = "tailrace.buckets"  # a property of tables with one row for each key


class RoundInput(NamedTuple):
    round: Round
    slices: Sequence[Slice]
    form: RowForm
    layout: FileLayout
    task_offsets: int


class RoundWriter(Protocol):
    merges: bool  # True if rounds leave small files, which are worth a merge

    def open(self, table: Table, form: RowForm) -> RowForm:
        """Open the table, or create it. Return the form with the types of the table."""

    def write(self, spark: Any, table: Table, wanted: RoundInput) -> list[Written]:
        """Write the files of a round in tasks, and commit them."""


class Append:
    """Every record becomes a row."""

    merges = True

    def __init__(self, partition_by: tuple[str, ...] = ()) -> None:
        self._partition_by = partition_by

    def open(self, table: Table, form: RowForm) -> RowForm:
        partition_by = check_partitions(self._partition_by, form.schema)
        if BUCKETS in (table.properties() or {}):
            raise JobError(
                f"table {table.name} has one row for each key: add records with --latest, or export to another table"
            )
        return form.with_schema(table.open(form.schema, partition_by, evolves=form.evolves))

    def write(self, spark: Any, table: Table, wanted: RoundInput) -> list[Written]:
        tasks = write_tasks(wanted.slices, wanted.form, wanted.layout, wanted.task_offsets)
        written = run_tasks(spark, tasks, write_slices, label=f"export to {table.name}")
        table.add(wanted.round, [file for one in written for file in one.files])
        return written
