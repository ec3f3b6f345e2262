"""The input of a load: converts a DataFrame, or files, to the columns of records.

    value      binary or string; null is a tombstone
    key        binary or string
    headers    array<struct<key, value>>, or a map
    timestamp  timestamp, or milliseconds since 1970; default: the time of the load
    topic      string; not needed if the load has one topic
    partition  partition of the record; default: the partition that Kafka's clients choose for the key
    offset     kept, unless new offsets are requested

Other columns are ignored. Text in JSON lines and CSV is UTF-8, or base64 or hex with the option `encoding`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tailrace.spark.jobs.errors import JobError
from tailrace.spark.jobs.spark_session import first_sentence

FORMATS = ("parquet", "json", "csv")
ENCODINGS = ("utf8", "base64", "hex")
_CSV = "topic string, partition int, offset bigint, timestamp string, key string, value string"
_JSON = f"{_CSV}, headers array<struct<key:string,value:string>>"


def read_files(spark: Any, path: str, kind: str) -> Any:
    """Read files of one format as a DataFrame. The first line of a CSV file has the column names."""
    if kind not in FORMATS:
        raise JobError(f"files of the format {kind!r} cannot be loaded, only {', '.join(FORMATS)}")
    from pyspark.errors import AnalysisException

    try:
        return _frame_of(spark, path, kind)
    except AnalysisException as error:  # no such file, or no file of this format
        raise JobError(f"{path} cannot be loaded: {first_sentence(error)}") from error


def _frame_of(spark: Any, path: str, kind: str) -> Any:
    if kind == "json":
        frame = spark.read.schema(_JSON).option("mode", "FAILFAST").json(path)
        return _without_missing(frame, spark.read.json(path).columns)
    if kind == "csv":
        frame = spark.read.option("header", "true").option("mode", "FAILFAST").csv(path)
        wanted = [field.split()[0] for field in _CSV.split(", ")]
        return frame.select(*[name for name in frame.columns if name in wanted])
    return spark.read.parquet(path)


def _without_missing(frame: Any, present: list[str]) -> Any:
    """Drop columns that the files do not have. With only nulls they would look like existing columns."""
    return frame.select(*[name for name in frame.columns if name in present])


def record_columns(frame: Any, *, topic: str | None, keeps_offsets: bool, encoding: str = "utf8") -> Any:
    """Return the DataFrame with the columns of records and their types. Raise JobError for a wrong column."""
    from pyspark.sql import functions as sql

    if encoding not in ENCODINGS:
        raise JobError(f"encoding is {encoding!r}; it must be one of {', '.join(ENCODINGS)}")
    types: Mapping[str, str] = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
    if "value" not in types:
        raise JobError(f"the column 'value' is missing; the columns are: {', '.join(types) or 'none'}")
    chosen = []
    for name in ("key", "value"):
        if name in types:
            chosen.append(_binary(sql, name, types[name], encoding).alias(name))
    if "headers" in types:
        chosen.append(_headers(sql, types["headers"], encoding).alias("headers"))
    if "timestamp" in types:
        chosen.append(_timestamp(sql, types["timestamp"]).alias("timestamp"))
    if topic is None:
        _require(types, "topic", "string", "give one topic for all rows")
        chosen.append(sql.col("topic"))
    if "partition" in types:
        chosen.append(sql.col("partition").cast("int").alias("partition"))
    if keeps_offsets:
        if "offset" not in types or "partition" not in types:
            raise JobError("to keep offsets, the input needs the columns 'partition' and 'offset'")
        chosen.append(sql.col("offset").cast("bigint").alias("offset"))
    return frame.select(*chosen)


def _require(types: Mapping[str, str], name: str, kind: str, otherwise: str) -> None:
    if types.get(name) != kind:
        problem = f"has type {types[name]}, not {kind}" if name in types else "is missing"
        raise JobError(f"column {name!r} {problem}: {otherwise}")


def _binary(sql: Any, name: str, kind: str, encoding: str) -> Any:
    if kind == "binary":
        return sql.col(name)
    if kind != "string":
        raise JobError(f"column {name!r} has type {kind}; it must be binary or string")
    return _decoded(sql, sql.col(name), encoding)


def _decoded(sql: Any, column: Any, encoding: str) -> Any:
    if encoding == "base64":
        return sql.unbase64(column)
    return sql.unhex(column) if encoding == "hex" else column.cast("binary")


def _headers(sql: Any, kind: str, encoding: str) -> Any:
    column = sql.col("headers")
    if kind.startswith("map<string,"):
        column, kind = sql.map_entries(column), f"array<struct<key:string,value:{kind[11:-1]}>>"
    if kind == "array<struct<key:string,value:binary>>":
        return column
    if kind == "array<struct<key:string,value:string>>":
        return sql.transform(
            column,
            lambda one: sql.struct(one["key"].alias("key"), _decoded(sql, one["value"], encoding).alias("value")),
        )
    raise JobError(f"column 'headers' has type {kind}; it must be array<struct<key:string,value:binary>>")


def _timestamp(sql: Any, kind: str) -> Any:
    column = sql.col("timestamp")
    if kind == "timestamp":
        return column
    if kind in ("bigint", "int"):
        return sql.timestamp_millis(column.cast("bigint"))
    if kind == "string":
        millis = sql.timestamp_millis(sql.when(column.rlike("^-?[0-9]+$"), column).cast("bigint"))
        return sql.coalesce(millis, sql.when(~column.rlike("^-?[0-9]+$"), column).cast("timestamp"))
    raise JobError(f"column 'timestamp' has type {kind}; it must be timestamp, or bigint with milliseconds")
