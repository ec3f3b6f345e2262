"""`tailrace job verify`: the checks of `tailrace log verify`, as a Spark job."""

from __future__ import annotations

import argparse

from tailrace.cli.jobs.job import Verbs, add_directories, add_spark, spark_for
from tailrace.cli.output import count_text, json_document, print_lines
from tailrace.cli.parsing.options import described


def add(verbs: Verbs) -> None:
    verify = described(
        verbs.add_parser("verify", help="check every batch, index and snapshot"),
        """
        Check data directories as `tailrace log verify` does, with the same findings, many segments at a time. With
        --state a stopped job can be resumed, and a later one reads only segments that have changed since.
        """,
        """
        examples:
          tailrace job verify /var/lib/kafka
          tailrace job verify /disks/1 /disks/2 --topic orders --deep
          tailrace job verify /var/lib/kafka --state /var/tmp/verified
        """,
    )
    add_directories(verify)
    verify.add_argument("--deep", action="store_true", help="decompress and decode every record")
    verify.add_argument("--state", metavar="DIR", help="directory to record verified segments in")
    add_spark(verify)
    verify.set_defaults(run="tailrace.cli.jobs.verify:run")


def run(options: argparse.Namespace) -> int:
    from tailrace.cli.jobs.small_data import hint_if_small
    from tailrace.cli.log.verify import report_document, report_text
    from tailrace.spark.jobs.verify.verify import verify

    if options.state is None:
        hint_if_small(options, "tailrace log verify", "would check them")
    with spark_for(options, "verify") as spark:
        found = verify(
            spark,
            options.directory,
            topics=options.topic,
            partitions=options.partition,
            deep=options.deep,
            state=options.state,
        )
    reports = [(one.directory, one.partitions, one.findings) for one in found.directories]
    if options.json:
        work = {
            "tasks": found.tasks,
            "segmentsRead": found.segments_read,
            "segmentsRemembered": found.segments_remembered,
        }
        print_lines(json_document({"directories": [report_document(*report) for report in reports], "job": work}))
    else:
        for report in reports:
            print_lines(*report_text(*report, is_folded=not options.topic))
        known = f", {count_text(found.segments_remembered, 'segment')} already verified" if options.state else ""
        print_lines(f"{count_text(found.segments_read, 'segment')} read in {count_text(found.tasks, 'task')}{known}")
    return 1 if found.problems else 0
