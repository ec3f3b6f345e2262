"""RowForm: converts the decoded records of a slice into the rows of a table.

The input has the columns of RECORD_SCHEMA, in this order, and some thousand records of one topic partition. The plain
form returns it unchanged. Other forms may replace columns, for example the value by typed columns, or leave out rows.
A form is pickled and sent to the workers, so it must not hold open files or connections.

Every form keeps the columns topic, partition, offset and timestamp: tables are partitioned and merged by them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from tailrace.spark.source.arrow_batches import arrow_schema
from tailrace.spark.source.table_columns import default_columns

SOURCE_COLUMNS = default_columns(headers=True, batch_facts=False)
NULLABLE = tuple(column.name in ("key", "value", "headers") for column in SOURCE_COLUMNS)
_SOURCE_SCHEMA = arrow_schema(SOURCE_COLUMNS, NULLABLE)
# The columns in the order of the table, with the name of each in the source.
_SOURCE_NAMES = {
    "key": "key",
    "value": "value",
    "headers": "headers",
    "topic": "topic",
    "partition": "partition",
    "offset": "offset",
    "timestamp": "timestamp",
    "timestamp_type": "timestampType",
}
RECORD_SCHEMA: Any = pa.schema([_SOURCE_SCHEMA.field(source).with_name(name) for name, source in _SOURCE_NAMES.items()])


class RowForm(Protocol):
    @property
    def schema(self) -> Any:
        """The pyarrow.Schema of the table's rows."""

    @property
    def evolves(self) -> bool:
        """True if the schema of the table follows that of the form."""

    @property
    def broken(self) -> int:
        """The number of records that `convert` of this copy could not decode."""

    def convert(self, table: Any) -> Any:
        """Convert a pyarrow.Table of records (RECORD_SCHEMA) into rows (`schema`)."""

    def with_schema(self, schema: Any) -> RowForm:
        """Return a form with the same columns and the types of a table."""

    def latest(self) -> RowForm:
        """Return the form for the newest schema of the topic; the form itself if there is no newer one."""


@dataclass(frozen=True, slots=True)
class PlainRows:
    """Rows with key and value as bytes."""

    @property
    def schema(self) -> Any:
        return RECORD_SCHEMA

    @property
    def evolves(self) -> bool:
        return False

    @property
    def broken(self) -> int:
        return 0

    def with_schema(self, schema: Any) -> RowForm:
        return self

    def latest(self) -> RowForm:
        return self

    def convert(self, table: Any) -> Any:
        return table


def record_table(batch: Any) -> Any:
    """Return a batch of `read_slice` with SOURCE_COLUMNS as a table of RECORD_SCHEMA."""
    columns = [batch.column(source) for source in _SOURCE_NAMES.values()]
    return pa.Table.from_arrays(columns, schema=RECORD_SCHEMA)
