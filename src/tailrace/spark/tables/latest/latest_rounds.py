"""LatestRounds: the rounds of a table with one row for each key.

The table has a column `_bucket`, by which it is partitioned, and its property `tailrace.buckets` has their number. A
round replaces the files of each bucket in which it has keys, in the same commit that moves the ends.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import pyarrow as pa

from tailrace.spark.jobs.errors import JobError
from tailrace.spark.jobs.job import run_grouped
from tailrace.spark.jobs.packing import pack
from tailrace.spark.tables.formats.table import Table
from tailrace.spark.tables.latest.bucket_tasks import BUCKET, BucketPlan, SpreadTask, rewrite_bucket, spread
from tailrace.spark.tables.round_writer import BUCKETS, RoundInput
from tailrace.spark.tables.row_form import RECORD_SCHEMA, RowForm
from tailrace.spark.tables.write_task import Written

DEFAULT_BUCKETS: Final = 16
MAX_BUCKETS: Final = 4096


class LatestRounds:
    merges = False

    def __init__(self, buckets: int | None = None) -> None:
        """`buckets` is the number for a new table. Another number in an existing table is refused."""
        if buckets is not None and buckets > MAX_BUCKETS:
            raise JobError(f"a table has at most {MAX_BUCKETS:,} buckets, not {buckets:,}")
        self._wanted = buckets
        self._buckets = 0

    def open(self, table: Table, form: RowForm) -> RowForm:
        if form.schema.field("key").type != RECORD_SCHEMA.field("key").type:
            raise JobError("a table with one row for each key needs keys as bytes, without a format of keys")
        self._buckets = self._wanted or DEFAULT_BUCKETS
        there = table.properties()
        if there is not None:
            self._buckets = self._existing(table.name, there.get(BUCKETS))
        schema = form.schema.append(pa.field(BUCKET, pa.int32()))
        properties = {BUCKETS: str(self._buckets)}
        opened = table.open(schema, (BUCKET,), evolves=form.evolves, properties=properties)
        return form.with_schema(opened.remove(opened.get_field_index(BUCKET)))

    def _existing(self, name: str, there: str | None) -> int:
        """Return the number of buckets of an existing table. Raise JobError if it is of another kind."""
        if there is None:
            raise JobError(f"table {name} has all records of its topics: with --latest, export to another table")
        if self._wanted not in (None, int(there)):
            raise JobError(f"table {name} has {there} buckets, and their number cannot be changed")
        return int(there)

    def write(self, spark: Any, table: Table, wanted: RoundInput) -> list[Written]:
        packed = pack(wanted.slices, lambda slice_: slice_.range.size, wanted.task_offsets)
        tasks = [SpreadTask(tuple(some), self._buckets) for some in packed]
        stored = table.stored_files()
        plan = BucketPlan(
            wanted.form,
            wanted.layout,
            table.schema(),
            {number: [one.rows for one in found] for number, found in stored.items()},
        )
        found = run_grouped(spark, tasks, spread, partial(rewrite_bucket, plan), label=f"export to {table.name}")
        replaced = [file for number in found for file in stored.get(number, ())]
        added = [file for written in found.values() for file in written.files]
        if replaced:
            table.replace(wanted.round, replaced, added)
        else:
            table.add(wanted.round, added)
        return list(found.values())
