"""Exports topics to Parquet, incrementally and each record exactly once, from files or over the network.

The output is a directory of Parquet files with a ledger of offsets (`export_ledger.py`). Raw records are written by the
workers themselves (`slice_export.py`), decoded values by Spark (`decoded_values.py`).

A run exports the records that exist at its start, in commits of at most `batch_offsets` offsets. The next run continues
after the last commit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

from tailrace.model.ids import Offset, TopicPartition
from tailrace.spark.jobs.errors import JobError
from tailrace.spark.jobs.export.decoded_values import FORMATS, export_rows, inferred_schema
from tailrace.spark.jobs.export.export_ledger import ExportLedger, StagedFile
from tailrace.spark.jobs.export.slice_export import SliceExport, SliceLayout, check_partition_columns, export_slice
from tailrace.spark.jobs.job import run_tasks
from tailrace.spark.jobs.place import NO_PROPERTIES, ClientProperties, Place
from tailrace.spark.source.options import ReadOptions, Selection
from tailrace.spark.source.planning.admission import admitted
from tailrace.spark.source.planning.data_loss import readable_ranges
from tailrace.spark.source.transports.transport import Transport

SLICE_BYTES = 128 * 1024 * 1024
BATCH_OFFSETS = 100_000_000
INFER = "infer"
Offsets: TypeAlias = Mapping[TopicPartition, Offset]


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
    client: ClientProperties = NO_PROPERTIES,
) -> Exported:
    """Append the records of topics that are not exported yet to a directory of Parquet files.

    `source` is a data directory or the address of a cluster. With `value_format` (json, avro, protobuf) values are
    decoded by `schema`: a DDL string or "infer" for JSON, a schema in JSON for Avro, `Message@descriptor.desc` for
    Protobuf. If retention deleted records before they were exported, an error is raised; with
    fail_on_data_loss=False they are skipped. `client` has the settings of a Kafka client, for a secured cluster.
    """
    place = Place.parse(source, client)
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
        selection = Selection(topics=tuple(topics))
        partitions = transport.partitions(selection)
        identities = transport.identities(selection)
        target = transport.latest(partitions)
        earliest = transport.earliest(partitions)
        ledger.open(settings)
        ledger.check(identities, target)
        batch = _Batch(
            spark, place, transport, layout, compression, value_format, schema, read_committed, fail_on_data_loss
        )

        def commit(ends: Offsets, files: list[StagedFile]) -> None:
            ledger.check(transport.identities(selection), {}, identities)  # a topic may be a new one by now
            ledger.commit(ends, files, identities)

        return _export_new(ledger, batch.write, commit, _Bounds(earliest, target, batch_offsets))


@dataclass(frozen=True, slots=True)
class _Batch:
    """Writes the records between two sets of offsets to Parquet files."""

    spark: Any
    place: Place
    transport: Transport
    layout: tuple[str, ...]
    compression: str
    value_format: str | None
    schema: str | None
    read_committed: bool
    fail_on_data_loss: bool

    def write(self, starts: Offsets, ends: Offsets, staging: str) -> list[StagedFile]:
        if self.value_format is None:
            options = replace(
                self.place.options(read_committed=self.read_committed),
                max_bytes_per_partition=SLICE_BYTES,
                fail_on_data_loss=self.fail_on_data_loss,
            )
            slices = SliceLayout(staging, self.layout, self.compression, self.fail_on_data_loss)
            return _export_raw(self.spark, self.transport, options, starts, ends, slices)
        assert self.schema is not None
        return export_rows(
            self.spark,
            self.place,
            starts,
            ends,
            staging,
            partition_by=self.layout,
            compression=self.compression,
            value_format=self.value_format,
            schema=self.schema,
            read_committed=self.read_committed,
            fail_on_data_loss=self.fail_on_data_loss,
        )


class _Bounds(NamedTuple):
    earliest: Offsets
    target: Offsets
    most: int  # offsets of a commit


def _export_new(
    ledger: ExportLedger,
    write: Callable[[Offsets, Offsets, str], list[StagedFile]],
    commit: Callable[[Offsets, list[StagedFile]], None],
    bounds: _Bounds,
) -> Exported:
    """Export the new records. `write` gets starts, ends and a folder for files."""
    first, before = ledger.commits, ledger.records
    files: list[StagedFile] = []
    while True:
        starts = {partition: ledger.ends.get(partition, offset) for partition, offset in bounds.earliest.items()}
        ends = admitted(starts, bounds.target, bounds.most)
        if all(ends[partition] <= start for partition, start in starts.items()):
            break
        written = write(starts, ends, ledger.stage())
        commit(ends, written)
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
        raise JobError(f"value_format is {value_format!r}; it must be one of {', '.join(FORMATS)}")
    if value_format is not None and schema is None:
        raise JobError(f"{value_format} values need a schema" + (" (or `infer`)" if value_format == "json" else ""))
    if schema is not None and value_format is None:
        raise JobError("a schema needs a value format: json, avro or protobuf")
    if schema == INFER and value_format != "json":
        raise JobError(f"a schema can be inferred for json values only, not for {value_format}")
    try:
        return check_partition_columns(partition_by)
    except ValueError as error:
        raise JobError(str(error)) from None


def _export_raw(
    spark: Any,
    transport: Transport,
    options: ReadOptions,
    starts: Offsets,
    ends: Offsets,
    layout: SliceLayout,
) -> list[StagedFile]:
    ranges = readable_ranges(starts, ends, transport, fail_on_data_loss=options.fail_on_data_loss)
    tasks = [SliceExport(slice_, layout) for slice_ in transport.slices(ranges, options)]
    return [file for found in run_tasks(spark, tasks, export_slice, label="export") for file in found]
