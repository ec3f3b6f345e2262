"""`tailrace job replay`: copy a range of a log into another cluster."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tailrace.cli.jobs.job import Verbs, add_connection, add_spark, client_of, other_client, spark_for
from tailrace.cli.output import count_text, json_document, print_lines, size_text, table
from tailrace.cli.parsing.options import described, natural, positive, timestamp

if TYPE_CHECKING:
    from tailrace.spark.jobs.replay.replay import ReplayReport


def add(verbs: Verbs) -> None:
    replay = described(
        verbs.add_parser("replay", help="copy a range of a log into another cluster"),
        """
        Copy the records of topics, or a range of them, into another cluster. Partitions and the order of records are
        kept, as are keys, values, headers and timestamps. Only committed records are copied. Each record is written
        exactly once, if no other producer writes to the target partitions; if one does, the job stops with an error.

        With --state a stopped replay can be resumed, and a finished one can be run again for newer records.
        """,
        """
        examples:
          tailrace job replay kafka-1:9092 kafka-2:9092 --topic orders --create --state /shared/replay
          tailrace job replay /var/lib/kafka localhost:9092 --topic orders:orders-copy --rate 50000
          tailrace job replay kafka-1:9092 kafka-2:9092 --topic orders --from-time 2026-01-31T12:00:00Z
        """,
    )
    replay.add_argument("source", metavar="FROM", help="data directory, or host:port of a cluster")
    replay.add_argument("target", metavar="TO", help="host:port of the target cluster")
    replay.add_argument(
        "--topic",
        metavar="NAME[:OTHER]",
        action="append",
        required=True,
        help="topic to copy, and its name in the target if it differs (may be repeated)",
    )
    replay.add_argument("--from-offset", metavar="N", type=natural, help="start at this offset")
    replay.add_argument("--to-offset", metavar="N", type=natural, help="stop before this offset")
    replay.add_argument(
        "--from-time", metavar="TIME", type=timestamp, help="start at the first record at or after this time"
    )
    replay.add_argument(
        "--to-time", metavar="TIME", type=timestamp, help="stop before the first record at or after this time"
    )
    replay.add_argument("--state", metavar="DIR", help="directory to save progress in; every Spark worker must see it")
    replay.add_argument("--create", action="store_true", help="create missing topics in the target")
    replay.add_argument(
        "--provenance", action="store_true", help="add a header tailrace.source: FROM/topic-partition@offset"
    )
    replay.add_argument("--rate", metavar="N", type=positive, help="maximum records per second, over all partitions")
    add_connection(replay, "TO")
    add_spark(replay)
    replay.set_defaults(run="tailrace.cli.jobs.replay:run")


def run(options: argparse.Namespace) -> int:
    from tailrace.spark.jobs.replay.replay import ReplayRange, replay

    client, target_client = client_of(options), other_client(options, "TO")
    with spark_for(options, "replay") as spark:
        found = replay(
            spark,
            options.source,
            options.target,
            topics=options.topic,
            wanted=ReplayRange(
                from_offset=options.from_offset,
                to_offset=options.to_offset,
                from_time=options.from_time,
                to_time=options.to_time,
            ),
            state=options.state,
            create=options.create,
            provenance=options.provenance,
            rate=options.rate,
            client=client,
            target_client=target_client,
        )
    if options.json:
        print_lines(json_document(found.to_json()))
    else:
        print_lines(*report_text(found))
    return 0


def report_text(report: ReplayReport) -> Iterator[str]:
    heads = [
        "<TOPIC",
        "PARTITION",
        "<TO",
        "FROM OFFSET",
        "TO OFFSET",
        "RECORDS",
        "SIZE",
        "BATCHES COPIED",
        "RE-ENCODED",
    ]
    rows = [
        (
            one.source.topic,
            one.source.partition,
            one.partition.topic,
            one.start,
            one.end,
            f"{one.records:,}",
            size_text(one.bytes),
            f"{one.batches_copied:,}",
            f"{one.batches_decoded:,}",
        )
        for one in report.partitions
    ]
    if rows:
        yield from table(heads, rows)
    records = sum(one.records for one in report.partitions)
    found = sum(one.records_found for one in report.partitions)
    there = f", {count_text(found, 'more')} had been copied before" if found else ""
    yield f"{count_text(records, 'record')} replayed{there}" if records or found else "no records to replay"
