"""`tailrace job export`: append topics to Parquet tables, incrementally and each record exactly once."""

from __future__ import annotations

import argparse

from tailrace.cli.jobs.job import Verbs, add_spark, spark_for
from tailrace.cli.options import described, positive
from tailrace.cli.output import count_text, json_document, print_lines, size_text, table


def add(verbs: Verbs) -> None:
    export = described(
        verbs.add_parser("export", help="export topics to Parquet, each record once"),
        """
        Append the records of topics to a directory of Parquet files, each record exactly once. SOURCE is a data
        directory (with or without a running broker) or the address of a cluster.

        A run exports the records that exist when it starts. The next run continues where the last one ended, also if it
        was killed. Records of aborted transactions are skipped unless --uncommitted is given.

        Columns: key, value, topic, partition, offset, timestamp, timestampType, headers. --value-format decodes the
        value with the schema of --schema: for json a DDL string or `infer`; for avro the schema in JSON (needs
        spark-avro); for protobuf MESSAGE@FILE.desc (needs spark-protobuf). A value that does not match is null.
        """,
        """
        examples:
          tailrace job export /var/lib/kafka /tables/orders --topic orders
          tailrace job export localhost:9092 /tables/orders --topic orders --partition-by date,hour
          tailrace job export /data /tables/orders --topic orders --value-format json --schema 'id int, total double'
        """,
    )
    export.add_argument("source", metavar="SOURCE", help="data directory, or host:port of a cluster")
    export.add_argument("output", metavar="OUT", help="directory for the Parquet files")
    export.add_argument("--topic", action="append", required=True, help="topic to export (may be repeated)")
    export.add_argument(
        "--format", type=table_format, default="parquet", help="format of the files; only parquet (default: parquet)"
    )
    export.add_argument(
        "--partition-by",
        metavar="COLUMNS",
        default="",
        help="directory levels of the output, separated by commas: topic, date, hour (of the record's timestamp)",
    )
    export.add_argument(
        "--value-format", choices=("json", "avro", "protobuf"), help="decode values of this format (default: bytes)"
    )
    export.add_argument("--schema", help="schema of the values, for --value-format")
    export.add_argument(
        "--uncommitted", action="store_true", help="export records of aborted and open transactions as well"
    )
    export.add_argument(
        "--pass-over-lost",
        action="store_true",
        help="skip records that were deleted before they were exported (failOnDataLoss=false); by default an error",
    )
    export.add_argument(
        "--compression",
        choices=("zstd", "snappy", "gzip", "none"),
        default="zstd",
        help="compression of the Parquet files (default: zstd)",
    )
    export.add_argument(
        "--batch-offsets",
        metavar="N",
        type=positive,
        default=100_000_000,
        help="maximum number of offsets per commit (default: 100,000,000)",
    )
    add_spark(export)
    export.set_defaults(run="tailrace.cli.jobs.export:run")


def table_format(text: str) -> str:
    """Return the name of a format that the job can write."""
    if text in ("iceberg", "delta"):
        raise argparse.ArgumentTypeError(
            f"{text} has no release for the Spark that Tailrace needs (4.2 or newer); "
            f"export to parquet, and read those files with a Spark version that {text} supports"
        )
    if text != "parquet":
        raise argparse.ArgumentTypeError(f"{text} is not a supported format; the only one is parquet")
    return text


def run(options: argparse.Namespace) -> int:
    from tailrace.spark.jobs.export.export import export

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
            batch_offsets=options.batch_offsets,
            fail_on_data_loss=not options.pass_over_lost,
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
