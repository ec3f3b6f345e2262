"""`tailrace job profile`: statistics about the contents of a log."""

from __future__ import annotations

import argparse

from tailrace.cli.jobs.job import Verbs, add_connection, add_spark, client_of, spark_for
from tailrace.cli.output import json_document, print_lines, table
from tailrace.cli.parsing.options import described


def add(verbs: Verbs) -> None:
    profile = described(
        verbs.add_parser(
            "profile", help="show keys, sizes, skew, throughput, compression, and the bytes that compaction would free"
        ),
        """
        Show statistics about the contents of a log: distinct and most frequent keys, sizes, skew between partitions,
        records over time, compression, space that compaction would free, tombstones, aborted transactions, and
        timestamps out of order. Only committed records are read.
        """,
        """
        examples:
          tailrace job profile /var/lib/kafka --topic orders
          tailrace job profile localhost:9092 --output profile/        an HTML page with charts, and JSON
          tailrace job profile /var/lib/kafka --batches-only           fast: records are not decoded
        """,
    )
    profile.add_argument("place", metavar="WHERE", help="data directory, or host:port of a cluster")
    profile.add_argument(
        "--topic",
        metavar="TOPIC",
        action="append",
        default=[],
        help="only this topic (may be repeated; default: all but internal topics)",
    )
    profile.add_argument(
        "--batches-only", action="store_true", help="read batch headers only; no statistics about keys and records"
    )
    profile.add_argument(
        "--output", metavar="DIR", help="directory to write profile.html (with charts) and profile.json"
    )
    add_connection(profile)
    add_spark(profile)
    profile.set_defaults(run="tailrace.cli.jobs.profile:run")


def run(options: argparse.Namespace) -> int:
    from tailrace.spark.jobs.profile.page import summary, write_page
    from tailrace.spark.jobs.profile.profile import key_text, profile

    client = client_of(options)
    with spark_for(options, "profile") as spark:
        found = profile(spark, options.place, topics=options.topic, batches_only=options.batches_only, client=client)
        written = write_page(found, options.output) if options.output else []
    if options.json:
        print_lines(json_document(found.to_json()))
        return 0
    for topic in found.topics:
        print_lines(topic.name, *table(["<", "<"], summary(topic), indent="  ")[1:])
        if topic.keys is not None and topic.keys.top:
            rows = [(key_text(key), f"{records:,}", f"{total:,}") for key, records, total in topic.keys.top[:5]]
            print_lines(*table(["<KEY", "RECORDS", "BYTES"], rows, indent="  "))
    for path in written:
        print_lines(path)
    return 0
