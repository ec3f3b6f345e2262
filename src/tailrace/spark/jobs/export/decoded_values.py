"""Exports with decoded values: JSON, Avro or Protobuf values become a struct column.

Spark decodes the values, so the records pass through it as rows. A value that does not match the schema becomes null.
The record's other columns, such as `key` and `offset`, are kept, so that the record can be found.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from tailrace.model.ids import Offset, TopicPartition
from tailrace.spark.jobs.errors import JobError
from tailrace.spark.jobs.export.export_ledger import StagedFile
from tailrace.spark.jobs.place import Place
from tailrace.spark.jobs.spark_session import first_sentence
from tailrace.spark.source.planning.offset_ranges import offsets_to_json

FORMATS = ("json", "avro", "protobuf")
SAMPLE = 1000


def _source_options(place: Place, *, read_committed: bool) -> dict[str, str]:
    options = {
        "includeHeaders": "true",
        "kafka.isolation.level": "read_committed" if read_committed else "read_uncommitted",
    }
    if place.path is not None:
        options["path"] = place.path
    if place.bootstrap is not None:
        # Spark shows the options of a source neither in a plan nor in its pages.
        options |= {"kafka.bootstrap.servers": place.bootstrap}
        options |= {f"kafka.{name}": value for name, value in place.client.items()}
    return options


def inferred_schema(spark: Any, place: Place, topics: Sequence[str], *, read_committed: bool) -> str:
    """Return a schema for JSON values, inferred from the first records."""
    options = {**_source_options(place, read_committed=read_committed), "subscribe": ",".join(topics)}
    try:
        frame = (
            spark.read.format("tailrace")
            .schema("value binary")
            .options(**{key: value for key, value in options.items() if key != "includeHeaders"})
        )
        texts = [
            bytes(row.value).decode("utf-8", "replace") for row in frame.load().limit(SAMPLE).collect() if row.value
        ]
        if not texts:
            raise JobError("no record has a value from which a schema can be inferred; give one with --schema")
        return str(spark.read.json(spark.sparkContext.parallelize(texts, 1)).schema.simpleString())
    except JobError:
        raise
    except Exception as error:
        raise JobError(f"the schema cannot be inferred: {first_sentence(error)}") from None


def _decode_values(frame: Any, value_format: str, schema: str) -> Any:
    """Return the DataFrame with decoded values."""
    from pyspark.sql import functions

    if value_format == "json":
        decoded = functions.from_json(functions.col("value").cast("string"), schema)
    elif value_format == "avro":
        from pyspark.sql.avro.functions import from_avro

        decoded = from_avro(functions.col("value"), schema)
    else:
        from pyspark.sql.protobuf.functions import from_protobuf

        message, _, descriptor = schema.partition("@")
        decoded = from_protobuf(functions.col("value"), message, descFilePath=descriptor)
    return frame.withColumn("value", decoded)


def export_rows(
    spark: Any,
    place: Place,
    starts: Mapping[TopicPartition, Offset],
    ends: Mapping[TopicPartition, Offset],
    staging: str,
    *,
    partition_by: Sequence[str],
    compression: str,
    value_format: str,
    schema: str,
    read_committed: bool,
    fail_on_data_loss: bool,
) -> list[StagedFile]:
    """Write the records between two sets of offsets as Parquet files, with their values decoded."""
    from pyspark.sql import functions

    with_new_records = {partition: end for partition, end in ends.items() if end > starts[partition]}
    options = {
        **_source_options(place, read_committed=read_committed),
        "assign": _assign(with_new_records),
        "startingOffsets": _json(offsets_to_json({partition: starts[partition] for partition in with_new_records})),
        "endingOffsets": _json(offsets_to_json(with_new_records)),
        "failOnDataLoss": str(fail_on_data_loss).lower(),
    }
    attempt = uuid.uuid4().hex
    folder = os.path.join(staging, attempt)
    try:
        frame = _decode_values(spark.read.format("tailrace").options(**options).load(), value_format, schema)
        if "date" in partition_by:
            frame = frame.withColumn("date", functions.date_format("timestamp", "yyyy-MM-dd"))
        if "hour" in partition_by:
            frame = frame.withColumn("hour", functions.hour("timestamp"))
        writer = frame.write.option("compression", compression)
        if partition_by:
            writer = writer.partitionBy(*partition_by)
        writer.parquet(folder)
    except Exception as error:
        raise JobError(f"the export failed: {first_sentence(error)}") from None
    return list(_files(folder, attempt))


def _files(folder: str, attempt: str) -> Any:
    import pyarrow.parquet as pq

    for parent, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".parquet"):
                path = os.path.join(parent, name)
                relative = os.path.relpath(path, folder)
                records = pq.read_metadata(path).num_rows
                if records:
                    yield StagedFile(os.path.join(attempt, relative), relative, records, os.path.getsize(path))


def _assign(partitions: Mapping[TopicPartition, Offset]) -> str:
    topics: dict[str, list[int]] = {}
    for topic, number in sorted(partitions):
        topics.setdefault(topic, []).append(number)
    return _json(topics)


def _json(value: Any) -> str:
    import json

    return json.dumps(value)
