"""`tailrace job profile`: what is in a log."""

from __future__ import annotations

import argparse

from tailrace.cli.jobs.job import Verbs, add_spark, spark_for
from tailrace.cli.options import described
from tailrace.cli.output import json_document, say, table


def add(verbs: Verbs) -> None:
    profile = described(
        verbs.add_parser("profile", help="keys, sizes, skew, throughput, compression, what compaction would free"),
        """
        Tell what is in a log: distinct and most frequent keys, sizes, how even partitions are, records over time,
        compression, how much compaction would free, tombstones, aborted transactions, times out of order. Read is what
        is committed.
        """,
        """
        examples:
          tailrace job profile /var/lib/kafka --topic orders
          tailrace job profile localhost:9092 --output profile/        a page with pictures, and JSON
          tailrace job profile /var/lib/kafka --batches-only           quick: no record is decoded
        """,
    )
    profile.add_argument("place", metavar="WHERE", help="a data directory, or host:port of a cluster")
    profile.add_argument(
        "--topic", action="append", default=[], help="only this topic (may be repeated; default: all but Kafka's own)"
    )
    profile.add_argument(
        "--batches-only", action="store_true", help="only what the headers of batches tell: nothing of keys and records"
    )
    profile.add_argument("--output", metavar="DIR", help="write profile.html, with pictures, and profile.json")
    add_spark(profile)
    profile.set_defaults(run="tailrace.cli.jobs.profile:run")


def run(options: argparse.Namespace) -> int:
    from tailrace.spark.jobs.profile.page import summary, write_page
    from tailrace.spark.jobs.profile.profile import key_text, profile

    with spark_for(options, "profile") as spark:
        found = profile(spark, options.place, topics=options.topic, batches_only=options.batches_only)
        written = write_page(found, options.output) if options.output else []
    if options.json:
        say(json_document(found.to_json()))
        return 0
    for topic in found.topics:
        say(topic.name, *table(["<", "<"], summary(topic), indent="  ")[1:])
        if topic.keys is not None and topic.keys.top:
            rows = [(key_text(key), f"{records:,}", f"{total:,}") for key, records, total in topic.keys.top[:5]]
            say(*table(["<KEY", "RECORDS", "BYTES"], rows, indent="  "))
    for path in written:
        say(path)
    return 0
