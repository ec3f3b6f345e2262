"""`tailrace job export`: topics into tables, incrementally and each record once."""

from __future__ import annotations

import argparse

from tailrace.cli.arguments import described, positive
from tailrace.cli.errors import CommandError
from tailrace.cli.job import Verbs, add_spark, spark_for
from tailrace.cli.output import count_text, json_document, say, size_text, table


def add(verbs: Verbs) -> None:
    export = described(
        verbs.add_parser("export", help="topics to Parquet, Iceberg or Delta, each record once"),
        """
        Append the records of topics to a table. SOURCE is a data directory (broker or no broker) or a cluster's
        address. A run takes what is there when it begins; the next one goes on where it stopped, and one that was
        killed loses nothing and doubles nothing. Aborted transactions are left out unless --uncommitted is given.

        OUT is a directory of Parquet files, which any reader of Parquet can read; for Iceberg and Delta it is a table's
        name or path, --checkpoint a directory that belongs to it, and Spark has to have their packages (--conf
        spark.jars.packages=…).

        Columns: key, value, topic, partition, offset, timestamp, timestampType, headers. With --value-format the value
        is decoded: SCHEMA is a DDL string or `infer` for json, the schema in JSON for avro (needs spark-avro),
        MESSAGE@FILE.desc for protobuf (needs spark-protobuf). A value that does not fit is null.
        """,
        """
        examples:
          tailrace job export /var/lib/kafka /tables/orders --topic orders
          tailrace job export localhost:9092 /tables/orders --topic orders --partition-by date,hour
          tailrace job export /data /tables/orders --topic orders --value-format json --schema 'id int, total double'
        """,
    )
    export.add_argument("source", metavar="SOURCE", help="a data directory, or host:port of a cluster")
    export.add_argument("output", metavar="OUT", help="a directory, or a table's name or path")
    export.add_argument("--topic", action="append", required=True, help="what to export (may be repeated)")
    export.add_argument(
        "--format", choices=("parquet", "iceberg", "delta"), default="parquet", help="(default: parquet)"
    )
    export.add_argument("--checkpoint", metavar="DIR", help="where Spark keeps the offsets, for iceberg and delta")
    export.add_argument(
        "--partition-by", metavar="COLUMNS", default="", help="lay out by topic, date, hour (of the record)"
    )
    export.add_argument("--value-format", choices=("json", "avro", "protobuf"), help="what values are")
    export.add_argument("--schema", help="what is in them")
    export.add_argument("--uncommitted", action="store_true", help="records of aborted and open transactions too")
    export.add_argument(
        "--pass-over-lost",
        action="store_true",
        help="go on where records are gone before they were exported (failOnDataLoss=false); else that is an error",
    )
    export.add_argument(
        "--compression", choices=("zstd", "snappy", "gzip", "none"), default="zstd", help="of Parquet (default: zstd)"
    )
    export.add_argument(
        "--batch-offsets", metavar="N", type=positive, default=100_000_000, help="at most so many a commit"
    )
    add_spark(export)
    export.set_defaults(run="tailrace.cli.job_export:run")


def run(options: argparse.Namespace) -> int:
    columns = [name for name in options.partition_by.split(",") if name]
    if (options.format == "parquet") is bool(options.checkpoint):
        raise CommandError(
            "parquet keeps its offsets beside the files and takes no --checkpoint"
            if options.checkpoint
            else f"{options.format} needs --checkpoint, a directory where Spark keeps the offsets"
        )
    return _to_parquet(options, columns) if options.format == "parquet" else _to_table(options, columns)


def _to_parquet(options: argparse.Namespace, columns: list[str]) -> int:
    from tailrace.spark.jobs.export import export

    with spark_for(options, "export") as spark:
        found = export(
            spark,
            options.source,
            options.output,
            topics=options.topic,
            partition_by=columns,
            value_format=options.value_format,
            schema=options.schema,
            read_committed=not options.uncommitted,
            compression=options.compression,
            batch_offsets=options.batch_offsets,
            fail_on_data_loss=not options.pass_over_lost,
        )
    if options.json:
        ends: dict[str, dict[str, int]] = {}
        for (topic, number), end in found.ends.items():
            ends.setdefault(topic, {})[str(number)] = end
        say(
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
        say(*table(["<PARTITION", "EXPORTED TO"], rows), "")
    say(
        f"{count_text(found.records, 'record')} in {count_text(found.files, 'file')} "
        f"({size_text(found.bytes_written)}) added to {found.output}, {found.records_in_all:,} in all"
    )
    return 0


def _to_table(options: argparse.Namespace, columns: list[str]) -> int:
    from tailrace.spark.jobs.export_table import export_table

    with spark_for(options, "export") as spark:
        found = export_table(
            spark,
            options.source,
            options.output,
            kind=options.format,
            checkpoint=options.checkpoint,
            topics=options.topic,
            partition_by=columns,
            value_format=options.value_format,
            schema=options.schema,
            read_committed=not options.uncommitted,
            batch_offsets=options.batch_offsets,
            fail_on_data_loss=not options.pass_over_lost,
        )
    if options.json:
        say(json_document({"table": found.table, "records": found.records, "batches": found.batches}))
    else:
        say(f"{count_text(found.records, 'record')} added to {found.table}")
    return 0
