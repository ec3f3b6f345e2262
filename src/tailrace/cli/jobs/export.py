"""`tailrace job export`: topics to Parquet files, Iceberg tables or Delta tables, each record exactly once."""

from __future__ import annotations

import argparse

from tailrace.cli.errors import CommandError
from tailrace.cli.jobs.export_typed import FORMATS, OPTIONS, add_typed
from tailrace.cli.jobs.job import Verbs, add_connection, add_spark, client_of, spark_for
from tailrace.cli.output import count_text, json_document, print_lines, size_text, table
from tailrace.cli.parsing.options import described, natural, positive, seconds, size

TARGETS = ("parquet", "iceberg", "delta")
BATCH_OFFSETS = 100_000_000
# Options that only some targets have, by the name in the parsed options.
_ONLY = {
    "catalog": ("iceberg",),
    "catalog_property": ("iceberg",),
    "storage_option": ("delta",),
    "follow": ("iceberg", "delta"),
    "files": ("iceberg", "delta"),
    "group": ("iceberg", "delta"),
    "latest": ("iceberg", "delta"),
    "buckets": ("iceberg", "delta"),
    "target_file_size": ("iceberg", "delta"),
    "round_size": ("iceberg", "delta"),
    "keep_snapshots": ("iceberg", "delta"),
    "freshness": ("iceberg", "delta"),
    "merge_every": ("iceberg", "delta"),
    "batch_offsets": ("parquet",),
    "schema": ("parquet",),
    **dict.fromkeys(OPTIONS, ("iceberg", "delta")),
}


def add(verbs: Verbs) -> None:
    export = described(
        verbs.add_parser("export", help="export topics to Parquet, Iceberg or Delta, each record once"),
        """
        Append the records of topics to a directory of Parquet files, an Iceberg table or a Delta table, each record
        exactly once. SOURCE is a data directory (with or without a running broker) or the address of a cluster. OUT is
        a directory for parquet, NAMESPACE.TABLE for iceberg, and a directory or s3://… or gs://… for delta. A table
        that does not exist is created.

        A run exports the records that exist when it starts. The next run continues where the last one ended, also if it
        was killed: the table itself stores its offsets, in the same commit as the files. --follow does not end; it
        exports new records until SIGTERM or Ctrl-C, and merges small files. Records of aborted transactions are skipped
        unless --uncommitted is given.

        Iceberg and Delta tables are written without Java libraries: install tailrace[iceberg] or tailrace[delta].

        Columns: key, value, headers, topic, partition, offset, timestamp, timestamp_type (for parquet: timestampType).
        With --value-format, the members of a JSON, Avro or Protobuf value are columns of an Iceberg or Delta table,
        beside the columns of the record. The schema is in a file (--value-schema) or in a schema registry, and the
        table follows it: columns are added and types become wider. A record that cannot be decoded is kept with its
        bytes and the reason, see --on-error.

        For parquet, the value is one struct column, with the schema of --schema: for json a DDL string or `infer`; for
        avro the schema in JSON (needs spark-avro); for protobuf MESSAGE@FILE.desc (needs spark-protobuf). A value that
        does not match is null.
        """,
        """
        examples:
          tailrace job export /var/lib/kafka /tables/orders --topic orders
          tailrace job export localhost:9092 /tables/orders --topic orders --partition-by date,hour
          tailrace job export localhost:9092 lake.orders --topic orders --to iceberg --catalog prod
          tailrace job export localhost:9092 lake.orders --topic orders --to iceberg --catalog-property type=sql
              --catalog-property uri=sqlite:////tables/catalog.db --catalog-property warehouse=file:///tables
          tailrace job export localhost:9092 s3://lake/orders --topic orders --to delta --follow --group lake
          tailrace job export localhost:9092 s3://lake/customers --topic customers --to delta --latest
          tailrace job export localhost:9092 lake.orders --topic orders --to iceberg --catalog prod
              --value-format avro --schema-registry http://registry:8081
          tailrace job export /data /tables/orders --topic orders --value-format json --schema 'id int, total double'
        """,
    )
    _add_common(export)
    _add_tables(export)
    _add_follow(export)
    add_typed(export)
    _add_parquet(export)
    add_connection(export)
    add_spark(export)
    export.set_defaults(run="tailrace.cli.jobs.export:run")


def _add_common(export: argparse.ArgumentParser) -> None:
    export.add_argument("source", metavar="SOURCE", help="data directory, or host:port of a cluster")
    export.add_argument("output", metavar="OUT", help="directory, or for Iceberg NAMESPACE.TABLE")
    export.add_argument("--topic", action="append", required=True, help="topic to export (may be repeated)")
    export.add_argument(
        "--to", "--format", dest="to", choices=TARGETS, default="parquet", help="what OUT is (default: parquet)"
    )
    export.add_argument(
        "--partition-by",
        metavar="COLUMNS",
        default="",
        help="partitions of the output, separated by commas: topic, date, hour (of the record's timestamp), and for "
        "iceberg and delta partition",
    )
    export.add_argument(
        "--uncommitted", action="store_true", help="export records of aborted and open transactions as well"
    )
    export.add_argument(
        "--allow-loss",
        dest="allow_loss",
        action="store_true",
        help="skip records that were deleted before they were exported, and count them; by default an error",
    )
    export.add_argument(
        "--value-format",
        choices=FORMATS,
        help="decode values of this format (default: bytes); string: not for parquet",
    )
    export.add_argument(
        "--compression",
        choices=("zstd", "snappy", "gzip", "none"),
        default="zstd",
        help="compression of the Parquet files (default: zstd)",
    )


def _add_parquet(export: argparse.ArgumentParser) -> None:
    only_parquet = export.add_argument_group("only --to parquet")
    only_parquet.add_argument("--schema", help="schema of the values, for --value-format")
    only_parquet.add_argument(
        "--batch-offsets",
        metavar="N",
        type=positive,
        help=f"maximum number of offsets per commit (default: {BATCH_OFFSETS:,})",
    )


def _add_tables(export: argparse.ArgumentParser) -> None:
    tables = export.add_argument_group("Iceberg and Delta")
    tables.add_argument(
        "--catalog", metavar="NAME", help="Iceberg catalog; its properties can be in pyiceberg's .pyiceberg.yaml"
    )
    tables.add_argument(
        "--catalog-property",
        metavar="KEY=VALUE",
        action="append",
        help="property of the Iceberg catalog, such as type=rest or uri=https://… (may be repeated)",
    )
    tables.add_argument(
        "--storage-option",
        metavar="KEY=VALUE",
        action="append",
        help="storage option of a Delta table, such as AWS_ENDPOINT_URL=… (may be repeated; default: environment)",
    )
    tables.add_argument(
        "--target-file-size", metavar="SIZE", type=size, help="size of the Parquet files, such as 64m (default: 256m)"
    )
    tables.add_argument(
        "--round-size",
        metavar="SIZE",
        type=size,
        help="maximum size of the records of one commit, uncompressed (default: 16g, with --follow or --latest 2g)",
    )
    tables.add_argument(
        "--latest",
        action="store_true",
        default=None,
        help="one row for each key, with its newest value, as in a compacted topic; a record without value deletes it",
    )
    tables.add_argument(
        "--buckets",
        metavar="N",
        type=positive,
        help="number of buckets of a new table with --latest; a commit rewrites those with changed keys (default: 16)",
    )
    tables.add_argument(
        "--path",
        dest="files",
        metavar="DIR",
        help="directory with segments of the cluster SOURCE: sealed ones are read from here, the rest over the network",
    )


def _add_follow(export: argparse.ArgumentParser) -> None:
    follow = export.add_argument_group("continuous export")
    follow.add_argument(
        "--follow", action="store_true", default=None, help="export new records until SIGTERM or Ctrl-C"
    )
    follow.add_argument(
        "--freshness",
        metavar="SECONDS",
        type=seconds,
        help="commit records at the latest after this time (default: 60)",
    )
    follow.add_argument(
        "--group", metavar="NAME", help="consumer group to commit the exported offsets to, so that lag tools show them"
    )
    follow.add_argument(
        "--merge-every",
        metavar="N",
        type=natural,
        help="look for small files to merge after every N commits; 0: never (default: 8)",
    )
    follow.add_argument(
        "--keep-snapshots",
        metavar="HOURS",
        type=_hours,
        help="remove snapshots older than this, and the files that only they need; all: keep all (default: for iceberg "
        "24, for delta 168, with --latest 1)",
    )


def _hours(text: str) -> int:
    """Return a number of hours; 0 for `all`."""
    return 0 if text == "all" else positive(text)


def run(options: argparse.Namespace) -> int:
    for name, targets in _ONLY.items():
        if getattr(options, name) is not None and options.to not in targets:
            option = {"files": "path"}.get(name, name).replace("_", "-")
            raise CommandError(f"--{option} is for --to {' and '.join(targets)}, not for --to {options.to}")
    if options.to != "parquet":
        from tailrace.cli.jobs.export_tables import run_tables

        return run_tables(options)
    if options.value_format == "string":
        raise CommandError("--value-format string is for --to iceberg and delta, not for --to parquet")
    if "partition" in options.partition_by.split(","):
        raise CommandError(
            "an export to parquet cannot be partitioned by partition, only by topic, date and hour: each file has "
            "records of one partition, which its name begins with"
        )
    return _run_parquet(options)


def _run_parquet(options: argparse.Namespace) -> int:
    from tailrace.spark.jobs.export.export import export

    client = client_of(options)
    with spark_for(options, "export") as spark:
        found = export(
            spark,
            options.source,
            options.output,
            topics=options.topic,
            partition_by=[name for name in options.partition_by.split(",") if name],
            value_format=options.value_format,
            schema=options.schema,
            read_committed=not options.uncommitted,
            compression=options.compression,
            batch_offsets=options.batch_offsets or BATCH_OFFSETS,
            fail_on_data_loss=not options.allow_loss,
            client=client,
        )
    if options.json:
        ends: dict[str, dict[str, int]] = {}
        for (topic, number), end in found.ends.items():
            ends.setdefault(topic, {})[str(number)] = end
        print_lines(
            json_document(
                {
                    "output": found.output,
                    "records": found.records,
                    "files": found.files,
                    "bytes": found.bytes_written,
                    "commits": found.commits,
                    "recordsInAll": found.records_in_all,
                    "offsets": ends,
                }
            )
        )
        return 0
    rows = [[str(partition), end] for partition, end in sorted(found.ends.items())]
    if rows:
        print_lines(*table(["<PARTITION", "EXPORTED TO"], rows), "")
    print_lines(
        f"{count_text(found.records, 'record')} in {count_text(found.files, 'file')} "
        f"({size_text(found.bytes_written)}) added to {found.output}, {found.records_in_all:,} in total"
    )
    return 0
