"""`tailrace job export`: topics into tables, incrementally and each record once."""

from __future__ import annotations

import argparse

from tailrace.cli.jobs.job import Verbs, add_spark, spark_for
from tailrace.cli.options import described, positive
from tailrace.cli.output import count_text, json_document, say, size_text, table


def add(verbs: Verbs) -> None:
    export = described(
        verbs.add_parser("export", help="topics to Parquet, each record once"),
        """
        Append the records of topics to a table. SOURCE is a data directory (broker or no broker) or a cluster's
        address. A run takes what is there when it begins; the next one goes on where it stopped, and one that was
        killed loses nothing and doubles nothing. Aborted transactions are left out unless --uncommitted is given.

        OUT is a directory of Parquet files, which any reader of Parquet can read.

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
    export.add_argument("output", metavar="OUT", help="a directory")
    export.add_argument("--topic", action="append", required=True, help="what to export (may be repeated)")
    export.add_argument("--format", type=table_format, default="parquet", help="parquet (default: parquet)")
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
    export.set_defaults(run="tailrace.cli.jobs.export:run")


def table_format(text: str) -> str:
    """Return the name of a format that the job can write."""
    if text in ("iceberg", "delta"):
        raise argparse.ArgumentTypeError(
            f"{text} has no jar for the Spark that Tailrace needs (4.2 or newer); "
            f"export to parquet and let a Spark that {text} supports read those files"
        )
    if text != "parquet":
        raise argparse.ArgumentTypeError(f"{text} is not a format of exports; the only one is parquet")
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
