"""The partitions of a table: `date`, `hour`, and columns of its rows, as in `--partition-by date,topic`.

An Iceberg table derives date and hour from the column timestamp. A Delta table has columns of these names. A partition
by hour includes the date.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

import pyarrow as pa

from tailrace.spark.jobs.errors import JobError

DATE, HOUR = "date", "hour"


class TimeUnit(Enum):
    """A transform of the column timestamp."""

    DAY = "day"
    HOUR = "hour"


def check_partitions(names: Sequence[str], schema: pa.Schema) -> tuple[str, ...]:
    """Return the names without duplicates. Raise JobError if rows of the schema cannot be partitioned by one."""
    for name in names:
        is_simple = name in schema.names and not pa.types.is_nested(schema.field(name).type)
        if name in (DATE, HOUR) or (is_simple and name not in ("key", "value", "timestamp")):
            continue
        simple = [field.name for field in schema if not pa.types.is_nested(field.type)]
        known = [DATE, HOUR, *(one for one in simple if one not in ("key", "value", "timestamp", DATE, HOUR))]
        raise JobError(f"a table cannot be partitioned by {name!r}, only by {', '.join(known)}")
    return tuple(dict.fromkeys(names))


def iceberg_fields(names: Sequence[str]) -> list[tuple[str, TimeUnit | None, str]]:
    """Return source column, time unit and name of each partition field. The unit is None if the column is used
    unchanged."""
    fields: list[tuple[str, TimeUnit | None, str]] = []
    for name in names:
        if name == HOUR:
            fields.append(("timestamp", TimeUnit.HOUR, HOUR))
        elif name == DATE:
            if HOUR not in names:
                fields.append(("timestamp", TimeUnit.DAY, DATE))
        else:
            fields.append((name, None, name))
    return fields


def file_columns(fields: Sequence[tuple[str, TimeUnit | None]]) -> tuple[str, ...]:
    """Return the columns by which rows are divided into files, for the fields of an Iceberg table."""
    found: list[str] = []
    for source, unit in fields:
        found += [source] if unit is None else [DATE] if unit is TimeUnit.DAY else [DATE, HOUR]
    return tuple(dict.fromkeys(found))


def delta_columns(names: Sequence[str], schema: pa.Schema) -> tuple[pa.Schema, tuple[str, ...]]:
    """Return the schema of a Delta table, with columns for date and hour, and its partition columns."""
    columns = [one for name in names for one in ((DATE, HOUR) if name == HOUR else (name,))]
    for name, kind in ((DATE, pa.date32()), (HOUR, pa.int32())):
        if name in columns and name not in schema.names:
            schema = schema.append(pa.field(name, kind))
    return schema, tuple(dict.fromkeys(columns))
