"""`tailrace job load`: load a table or files into a topic."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tailrace.cli.jobs.job import Verbs, add_connection, add_spark, client_of, spark_for
from tailrace.cli.output import count_text, json_document, print_lines, size_text, table
from tailrace.cli.parsing.options import ENCODINGS, described, positive

if TYPE_CHECKING:
    from tailrace.spark.jobs.load.target import LoadReport


def add(verbs: Verbs) -> None:
    load = described(
        verbs.add_parser("load", help="load Parquet, JSON lines or CSV into a topic: bulk load, restore"),
        """
        Load files into topics. Missing topics are created. TO is one of:

          a data directory without a broker    The job writes segments and indexes. It keeps the partitions, offsets and
                                               timestamps of the files, so it can restore a backup.
          a data directory of a running        The same, and the broker takes the segments over. Give its address with
          Tailrace broker                      --bootstrap.
          host:port of any cluster             The records are produced and get new offsets.

        Columns: value, key, headers, timestamp, topic, partition, offset; only value is required. The whole input is
        checked before the target is changed.
        """,
        """
        examples:
          tailrace job load /backup/orders /var/lib/kafka
          tailrace job load lines.json /var/lib/kafka --format json --topic orders --partitions 6 --compression zstd
          tailrace job load /backup/orders localhost:9092 --topic orders-copy
        """,
    )
    load.add_argument("source", metavar="FILES", help="file, folder of files, or glob pattern")
    load.add_argument("target", metavar="TO", help="data directory (existing or new), or host:port of a cluster")
    load.add_argument(
        "--format", choices=("parquet", "json", "csv"), default="parquet", help="format of the files (default: parquet)"
    )
    load.add_argument("--topic", metavar="TOPIC", help="topic for all records (default: the column topic)")
    load.add_argument("--partitions", metavar="N", type=positive, help="number of partitions of topics to create")
    load.add_argument(
        "--new-offsets",
        action="store_true",
        help="assign new offsets after the end of the log, ignore those of the files",
    )
    _add_writing_options(load)
    add_connection(load)
    add_spark(load)
    load.set_defaults(run="tailrace.cli.jobs.load:run")


def _add_writing_options(load: argparse.ArgumentParser) -> None:
    load.add_argument(
        "--config",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="config of topics to create (may be repeated)",
    )
    load.add_argument(
        "--compression",
        choices=("none", "gzip", "snappy", "lz4", "zstd"),
        default="none",
        help="compression of record batches (default: none)",
    )
    load.add_argument(
        "--batch-bytes",
        metavar="N",
        type=positive,
        default=65_536,
        help="largest size of a batch before compression, in bytes (default: 65,536)",
    )
    load.add_argument(
        "--encoding",
        choices=ENCODINGS,
        default="utf8",
        help="encoding of keys and values in JSON and CSV (default: utf8)",
    )
    load.add_argument(
        "--staging",
        metavar="DIR",
        help="directory to build segments in, on the same file system as TO (default: TO.staging)",
    )
    load.add_argument(
        "--bootstrap",
        metavar="HOST:PORT",
        help="address of the Tailrace broker that uses the data directory; it takes the finished segments over",
    )
    load.add_argument(
        "--state",
        metavar="DIR",
        help="directory to save progress in; run a stopped load again with it to resume",
    )


def run(options: argparse.Namespace) -> int:
    from tailrace.cli.connection.connecting import split_setting
    from tailrace.spark.jobs.load.load import load

    config = dict(split_setting(text) for text in options.config)
    client = client_of(options)
    with spark_for(options, "load") as spark:
        found = load(
            spark,
            options.source,
            options.target,
            kind=options.format,
            topic=options.topic,
            partitions=options.partitions,
            new_offsets=True if options.new_offsets else None,
            config=config,
            compression=options.compression,
            batch_bytes=options.batch_bytes,
            encoding=options.encoding,
            staging=options.staging,
            bootstrap=options.bootstrap,
            state=options.state,
            client=client,
        )
    if options.json:
        print_lines(json_document(found.to_json()))
    else:
        print_lines(*report_text(found))
    return 0


def report_text(report: LoadReport) -> Iterator[str]:
    heads = ["<TOPIC", "PARTITION", "RECORDS", "SIZE", "FIRST OFFSET", "END OFFSET", "SEGMENTS"]
    rows = [
        (
            one.partition.topic,
            one.partition.partition,
            f"{one.records:,}",
            size_text(one.bytes),
            one.first_offset,
            one.end_offset,
            one.segments or None,
        )
        for one in report.partitions
    ]
    if rows:
        yield from table(heads, rows)
    made = f", {count_text(len(report.topics_created), 'topic')} created" if report.topics_created else ""
    before = f", {count_text(len(report.loaded_before), 'partition')} loaded before" if report.loaded_before else ""
    yield f"{count_text(sum(one.records for one in report.partitions), 'record')} loaded{made}{before}"
