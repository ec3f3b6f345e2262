"""`tailrace job compact`: the work of the broker's log cleaner, as a Spark job."""

from __future__ import annotations

import argparse

from tailrace.cli.jobs.job import Verbs, add_directories, add_settings, add_spark, spark_for
from tailrace.cli.output import count_text, json_document, print_lines, size_text, table
from tailrace.cli.parsing.options import described


def add(verbs: Verbs) -> None:
    compact = described(
        verbs.add_parser("compact", help="compact sealed segments now"),
        """
        Compact the sealed segments of compacted topics now, with all cores that Spark has: keep the latest record of
        each key. The new segments have the same bytes as those of the broker's cleaner. Tombstones, transactions and
        min.compaction.lag.ms are treated as the cleaner treats them. Topic configs are read from the metadata in the
        directory; -o overrides them.

        If no broker uses the directory, the new segments are swapped in. If one does, they are left beside the log as
        a proposal. A Tailrace broker checks the proposal and swaps it in within log.cleaner.backoff.ms; Apache Kafka
        ignores it.
        """,
        """
        examples:
          tailrace job compact /var/lib/kafka                       all topics with cleanup.policy=compact
          tailrace job compact /var/lib/kafka --topic customers
          tailrace job compact /var/lib/kafka --if-due              only logs that the cleaner would choose
        """,
    )
    add_directories(compact)
    add_settings(compact)
    compact.add_argument(
        "--if-due", action="store_true", help="compact only logs above their min.cleanable.dirty.ratio"
    )
    add_spark(compact)
    compact.set_defaults(run="tailrace.cli.jobs.compact:run")


def run(options: argparse.Namespace) -> int:
    from tailrace.cli.jobs.topic_settings import settings_of
    from tailrace.spark.jobs.compact.compact import compact

    configs = settings_of(options)
    with spark_for(options, "compact") as spark:
        found = compact(
            spark,
            options.directory,
            topics=options.topic,
            partitions=options.partition,
            configs=configs,
            only_if_due=options.if_due,
        )
    if options.json:
        print_lines(
            json_document(
                {
                    "partitions": [
                        {
                            "name": one.name,
                            "segmentsBefore": one.segments,
                            "segmentsAfter": one.groups,
                            "bytesBefore": one.bytes_before,
                            "bytesAfter": one.bytes_after,
                            "recordsBefore": one.records_before,
                            "recordsAfter": one.records_after,
                            "cleanTo": one.clean_to,
                            "swapped": one.is_swapped,
                        }
                        for one in found.partitions
                    ],
                    "cleanAlready": found.clean_already,
                }
            )
        )
        return 0
    rows = [
        [
            one.name,
            f"{one.segments} → {one.groups}",
            f"{size_text(one.bytes_before)} → {size_text(one.bytes_after)}",
            f"{one.records_before:,} → {one.records_after:,}",
            one.clean_to,
            "swapped in" if one.is_swapped else "proposed",
        ]
        for one in found.partitions
    ]
    if rows:
        print_lines(*table(["<PARTITION", "SEGMENTS", "SIZE", "RECORDS", "CLEAN TO", "<"], rows), "")
    print_lines(
        f"{count_text(len(rows), 'partition')} compacted, "
        f"{count_text(len(found.clean_already), 'partition')} had nothing to compact"
    )
    if any(not one.is_swapped for one in found.partitions):
        print_lines("a broker uses the directory: its cleaner will swap the proposed segments in on its next pass")
    return 0
