"""`tailrace job diff`: compare two copies of a log record by record."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tailrace.cli.jobs.job import Verbs, add_connection, add_spark, client_of, other_client, spark_for
from tailrace.cli.output import count_text, json_document, print_lines, table
from tailrace.cli.parsing.options import described, positive

if TYPE_CHECKING:
    from tailrace.spark.jobs.diff.diff import DiffReport
    from tailrace.spark.jobs.diff.record_diff import Difference, Span


def add(verbs: Verbs) -> None:
    diff = described(
        verbs.add_parser("diff", help="compare two directories or clusters record by record"),
        """
        Compare two copies of topics record by record: keys, values, headers and timestamps. HERE and THERE are each a
        data directory or the address of a cluster. Records are paired by offset. With --ignore offsets they are paired
        by their order; use that for a copy made with `job replay`.

        Exit status: 0 equal, 1 different, 2 cannot be compared.
        """,
        """
        examples:
          tailrace job diff /var/lib/kafka /restored --topic orders
          tailrace job diff kafka-1:9092 kafka-2:9092 --topic orders:orders-copy --ignore offsets --ignore timestamps
          tailrace job diff /var/lib/kafka localhost:9092 --isolation read_committed --json
        """,
    )
    diff.add_argument("here", metavar="HERE", help="data directory, or host:port of a cluster")
    diff.add_argument("there", metavar="THERE", help="the other data directory or cluster")
    diff.add_argument(
        "--topic",
        metavar="NAME[:OTHER]",
        action="append",
        default=[],
        help="topic, and its name in THERE if it differs (may be repeated; default: all but internal topics)",
    )
    diff.add_argument(
        "--ignore",
        choices=("offsets", "timestamps", "headers"),
        action="append",
        default=[],
        help="do not compare these (may be repeated)",
    )
    diff.add_argument(
        "--isolation",
        choices=("read_uncommitted", "read_committed"),
        default="read_uncommitted",
        help="read_committed skips aborted and open transactions (default: read_uncommitted)",
    )
    diff.add_argument(
        "--max",
        metavar="N",
        type=positive,
        default=10,
        help="maximum number of ranges and of records to list for each partition (default: 10)",
    )
    add_connection(diff, "THERE")
    add_spark(diff)
    diff.set_defaults(run="tailrace.cli.jobs.diff:run")


def run(options: argparse.Namespace) -> int:
    from tailrace.spark.jobs.diff.diff import diff

    client, there_client = client_of(options), other_client(options, "THERE")
    with spark_for(options, "diff") as spark:
        found = diff(
            spark,
            options.here,
            options.there,
            topics=options.topic,
            ignore=options.ignore,
            read_committed=options.isolation == "read_committed",
            kept=options.max,
            client=client,
            there_client=there_client,
        )
    if options.json:
        print_lines(json_document(found.to_json()))
    else:
        print_lines(*report_text(found))
    return 0 if found.is_equal else 1


def report_text(report: DiffReport) -> Iterator[str]:
    heads = ["<TOPIC", "PARTITION", "HERE", "THERE", "SAME", "DIFFERENT", "ONLY HERE", "ONLY THERE"]
    rows = [
        (
            partition.topic,
            partition.partition,
            f"{found.here.records:,}",
            f"{found.there.records:,}",
            f"{found.equal:,}",
            f"{found.differing:,}",
            f"{found.here.only:,}",
            f"{found.there.only:,}",
        )
        for partition, found in report.partitions.items()
    ]
    if rows:
        yield from table(heads, rows)
    for partition, found in report.partitions.items():
        for line in _details(found):
            yield f"{partition}: {line}"
    for partition in report.only_here:
        yield f"{partition} is only here"
    for partition in report.only_there:
        yield f"{partition} is only there"
    yield "equal" if report.is_equal else "different"


def _details(found: Difference) -> Iterator[str]:
    for place, side in (("here", found.here), ("there", found.there)):
        for span in side.spans:
            yield f"{_span_text(span)} only {place}"
        listed = sum(span.records for span in side.spans)
        if listed < side.only:
            yield f"{count_text(side.only - listed, 'more record')} only {place}"
    for one in found.mismatches:
        where = f"offset {one.here}" if one.here == one.there else f"offset {one.here} here, {one.there} there"
        yield f"{where}: different {', '.join(one.fields)}"
    if len(found.mismatches) < found.differing:
        yield f"{count_text(found.differing - len(found.mismatches), 'more record')} with differences"


def _span_text(span: Span) -> str:
    if span.first == span.last:
        return f"offset {span.first}"
    return f"offsets {span.first} to {span.last} ({count_text(span.records, 'record')})"
