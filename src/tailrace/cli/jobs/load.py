"""`tailrace job load`: a table or files into a topic."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tailrace.cli.jobs.job import Verbs, add_spark, spark_for
from tailrace.cli.options import ENCODINGS, described, positive
from tailrace.cli.output import count_text, json_document, say, size_text, table

if TYPE_CHECKING:
    from tailrace.spark.jobs.load.target import LoadReport


def add(verbs: Verbs) -> None:
    load = described(
        verbs.add_parser("load", help="Parquet, JSON lines or CSV into a topic: bulk load, restore"),
        """
        Load files into a topic. Into a data directory that no broker serves it writes finished segments with their
        indexes, and keeps partitions, offsets and timestamps that the files have: a restore. Topics that are missing
        are made. If a Tailrace broker runs on the directory, --bootstrap says where, and it takes the segments in. Into
        any cluster (host:port) the records are produced, and get its offsets.

        Columns: value, key, headers, timestamp, topic, partition, offset; only value has to be there. The input is read
        through before anything of the target is touched.
        """,
        """
        examples:
          tailrace job load /backup/orders /var/lib/kafka
          tailrace job load lines.json /var/lib/kafka --format json --topic orders --partitions 6 --compression zstd
          tailrace job load /backup/orders localhost:9092 --topic orders-copy
        """,
    )
    load.add_argument("source", metavar="FILES", help="a file, a folder of files, or a pattern")
    load.add_argument("target", metavar="TO", help="a data directory, old or new, or host:port of a cluster")
    load.add_argument("--format", choices=("parquet", "json", "csv"), default="parquet", help="(default: parquet)")
    load.add_argument("--topic", metavar="NAME", help="where all records go (default: what the column topic says)")
    load.add_argument("--partitions", metavar="N", type=positive, help="how many a topic gets that has to be made")
    load.add_argument("--new-offsets", action="store_true", help="number the records anew, after what is there")
    load.add_argument(
        "--config",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="a setting of topics that have to be made (may be repeated)",
    )
    load.add_argument(
        "--compression", choices=("none", "gzip", "snappy", "lz4", "zstd"), default="none", help="(default: none)"
    )
    load.add_argument(
        "--batch-bytes",
        metavar="N",
        type=positive,
        default=65_536,
        help="of a batch, before compression (default: 64 KB)",
    )
    load.add_argument(
        "--encoding", choices=ENCODINGS, default="utf8", help="of keys and values in JSON and CSV (default: utf8)"
    )
    load.add_argument(
        "--staging", metavar="DIR", help="where segments are built, on the target's file system (default: TO.staging)"
    )
    load.add_argument(
        "--bootstrap",
        metavar="HOST:PORT",
        help="a Tailrace broker runs on the directory: build beside it, and let it take the segments in",
    )
    load.add_argument(
        "--state",
        metavar="DIR",
        help="remember what is loaded where: a load that was stopped goes on, run again with it",
    )
    add_spark(load)
    load.set_defaults(run="tailrace.cli.jobs.load:run")


def run(options: argparse.Namespace) -> int:
    from tailrace.cli.connecting import split_setting
    from tailrace.spark.jobs.load.load import load

    config = dict(split_setting(text) for text in options.config)
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
        )
    if options.json:
        say(json_document(found.to_json()))
    else:
        say(*report_text(found))
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
    made = f", {count_text(len(report.topics_created), 'topic')} made" if report.topics_created else ""
    before = f", {count_text(len(report.loaded_before), 'partition')} loaded before" if report.loaded_before else ""
    yield f"{count_text(sum(one.records for one in report.partitions), 'record')} loaded{made}{before}"
