"""Export topics to Parquet: incremental, each record once. From files or over the wire.

The output is a directory of Parquet files with a ledger of offsets (`export_ledger.py`). Raw records are written by the
workers themselves (`export_files.py`), decoded values by Spark (`export_values.py`).

A run takes what is there when it begins, in commits of at most `batch_offsets` offsets, and the next one goes on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from tailrace.model.ids import Offset, TopicPartition
from tailrace.spark.jobs.errors import JobError
from tailrace.spark.jobs.export.files import SliceExport, SliceLayout, check_partition_columns, export_slice
from tailrace.spark.jobs.export.ledger import ExportLedger, StagedFile
from tailrace.spark.jobs.export.values import FORMATS, export_rows, inferred_schema
from tailrace.spark.jobs.job import run_tasks
from tailrace.spark.jobs.place import Place
from tailrace.spark.source.options import ReadOptions, Selection
from tailrace.spark.source.planning.admission import admitted
from tailrace.spark.source.planning.offset_ranges import readable_ranges
from tailrace.spark.source.transports.transport import Transport

SLICE_BYTES = 128 * 1024 * 1024
BATCH_OFFSETS = 100_000_000
INFER = "infer"


@dataclass(frozen=True, slots=True)
class Exported:
    output: str
    commits: int  # of this run
    files: int
    records: int
    bytes_written: int
    ends: dict[TopicPartition, Offset]
    records_in_all: int


def export(
    spark: Any,
    source: str,
    output: str,
    *,
    topics: Sequence[str],
    partition_by: Sequence[str] = (),
    value_format: str | None = None,
    schema: str | None = None,
    read_committed: bool = True,
    compression: str = "zstd",
    batch_offsets: int = BATCH_OFFSETS,
    fail_on_data_loss: bool = True,
) -> Exported:
    """Append what topics have, and the last run has not exported, to a directory of Parquet files.

    `source` is a data directory or a cluster's address. With `value_format` (json, avro, protobuf) values are decoded
    by `schema`: a DDL string or "infer" for JSON, a schema in JSON for Avro, `Message@descriptor.desc` for Protobuf.
    Records that retention took before they were exported are an error, or with fail_on_data_loss=False passed over.
    """
    place = Place.parse(source)
    layout = _checked_layout(topics, partition_by, value_format, schema)
    ledger = ExportLedger(output)
    if schema == INFER:
        known = ledger.settings.get("schema")
        schema = known or inferred_schema(spark, place, topics, read_committed=read_committed)
    settings = {
        "topics": sorted(topics),
        "partitionBy": list(layout),
        "valueFormat": value_format,
        "schema": schema,
        "readCommitted": read_committed,
    }
    with place.opened(read_committed=read_committed) as transport, closing(ledger):
        partitions = transport.partitions(Selection(topics=tuple(topics)))
        target = transport.latest(partitions)
        earliest = transport.earliest(partitions)
        ledger.open(settings)
        first, before = ledger.commits, ledger.records
        files: list[StagedFile] = []
        while True:
            starts = {partition: ledger.ends.get(partition, earliest[partition]) for partition in partitions}
            ends = admitted(starts, target, batch_offsets)
            if all(ends[partition] <= starts[partition] for partition in partitions):
                break
            staging = ledger.stage()
            if value_format is None:
                written = _export_raw(
                    spark,
                    transport,
                    replace(
                        place.options(read_committed=read_committed),
                        max_bytes_per_partition=SLICE_BYTES,
                        fail_on_data_loss=fail_on_data_loss,
                    ),
                    starts,
                    ends,
                    SliceLayout(staging, layout, compression, fail_on_data_loss),
                )
            else:
                assert schema is not None
                written = export_rows(
                    spark,
                    place,
                    starts,
                    ends,
                    staging,
                    partition_by=layout,
                    compression=compression,
                    value_format=value_format,
                    schema=schema,
                    read_committed=read_committed,
                    fail_on_data_loss=fail_on_data_loss,
                )
            ledger.commit(ends, written)
            files += written
        return Exported(
            ledger.path,
            ledger.commits - first,
            len(files),
            ledger.records - before,
            sum(file.size for file in files),
            dict(ledger.ends),
            ledger.records,
        )


def _checked_layout(
    topics: Sequence[str], partition_by: Sequence[str], value_format: str | None, schema: str | None
) -> tuple[str, ...]:
    if not topics:
        raise JobError("no topic was given")
    if value_format is not None and value_format not in FORMATS:
        raise JobError(f"values can be {', '.join(FORMATS)}, not {value_format!r}")
    if value_format is not None and schema is None:
        raise JobError(f"{value_format} values need a schema" + (" (or `infer`)" if value_format == "json" else ""))
    if schema is not None and value_format is None:
        raise JobError("a schema was given, but not what the values are: json, avro or protobuf")
    if schema == INFER and value_format != "json":
        raise JobError(f"a schema can be inferred of json values, not of {value_format}")
    try:
        return check_partition_columns(partition_by)
    except ValueError as error:
        raise JobError(str(error)) from None


def _export_raw(
    spark: Any,
    transport: Transport,
    options: ReadOptions,
    starts: Mapping[TopicPartition, Offset],
    ends: Mapping[TopicPartition, Offset],
    layout: SliceLayout,
) -> list[StagedFile]:
    ranges = readable_ranges(starts, ends, transport, fail_on_data_loss=options.fail_on_data_loss)
    tasks = [SliceExport(slice_, layout) for slice_ in transport.slices(ranges, options)]
    return [file for found in run_tasks(spark, tasks, export_slice, label="export") for file in found]
