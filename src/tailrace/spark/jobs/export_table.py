"""Export into an Iceberg or Delta table: a stream that ends where the log ended when it began.

Spark's checkpoint keeps the offsets and the table's own log knows each batch, so that a batch that is done again is in
the table once. The checkpoint belongs to the table: lose it, and everything is exported again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tailrace.spark.jobs.errors import JobError
from tailrace.spark.jobs.export import BATCH_OFFSETS, INFER, checked_layout
from tailrace.spark.jobs.export_values import inferred_schema, source_options, with_values
from tailrace.spark.jobs.place import Place
from tailrace.spark.jobs.progress import TaskProgress
from tailrace.spark.jobs.session import first_sentence
from tailrace.spark.source.options import Selection

PACKAGES = {
    "iceberg": "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13",
    "delta": "io.delta:delta-spark_2.13",
}


@dataclass(frozen=True, slots=True)
class ExportedTable:
    table: str
    batches: int
    records: int


def export_table(
    spark: Any,
    source: str,
    table: str,
    *,
    kind: str,
    checkpoint: str,
    topics: Sequence[str],
    partition_by: Sequence[str] = (),
    value_format: str | None = None,
    schema: str | None = None,
    read_committed: bool = True,
    batch_offsets: int = BATCH_OFFSETS,
    fail_on_data_loss: bool = True,
) -> ExportedTable:
    """Append what topics have, and the last run has not exported, to a table (a name, or a path with a slash in it)."""
    place = Place.parse(source)
    layout = checked_layout(topics, partition_by, value_format, schema)
    with place.opened(read_committed=read_committed) as transport:
        transport.partitions(Selection(topics=tuple(topics)))
    if schema == INFER:
        schema = inferred_schema(spark, place, topics, read_committed=read_committed)
    options = {
        **source_options(place, read_committed=read_committed),
        "subscribe": ",".join(topics),
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": str(batch_offsets),
        "failOnDataLoss": str(fail_on_data_loss).lower(),
    }
    try:
        frame = with_values(spark.readStream.format("tailrace").options(**options).load(), value_format, schema)
        frame = _with_layout(frame, layout)
        writer = frame.writeStream.format(kind).option("checkpointLocation", checkpoint).outputMode("append")
        if layout:
            writer = writer.partitionBy(*layout)
        writer = writer.trigger(availableNow=True)
        with TaskProgress(spark, "export"):
            query = writer.start(table) if "/" in table else writer.toTable(table)
            query.awaitTermination()
    except Exception as error:
        why = first_sentence(error)
        if kind in PACKAGES and ("DATA_SOURCE_NOT_FOUND" in str(error) or "ClassNotFound" in str(error)):
            why = f"Spark has no {kind} here: give --conf spark.jars.packages={PACKAGES[kind]}:VERSION"
        raise JobError(f"the export into {table} failed: {why}") from None
    progress = [one for one in query.recentProgress if one["numInputRows"]]
    return ExportedTable(table, len(progress), sum(one["numInputRows"] for one in progress))


def _with_layout(frame: Any, layout: Sequence[str]) -> Any:
    from pyspark.sql import functions

    if "date" in layout:
        frame = frame.withColumn("date", functions.date_format("timestamp", "yyyy-MM-dd"))
    if "hour" in layout:
        frame = frame.withColumn("hour", functions.hour("timestamp"))
    return frame
