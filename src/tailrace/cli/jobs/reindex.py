"""`tailrace job reindex`: rebuild the indexes of sealed segments on Spark."""

from __future__ import annotations

import argparse

from tailrace.cli.jobs.job import Verbs, add_directories, add_settings, add_spark, spark_for
from tailrace.cli.output import count_text, json_document, print_lines, size_text
from tailrace.cli.parsing.options import described


def add(verbs: Verbs) -> None:
    reindex = described(
        verbs.add_parser("reindex", help="rebuild .index, .timeindex and .txnindex of sealed segments"),
        """
        Read every sealed segment and rebuild its indexes as log recovery does. The new indexes replace the old ones
        when all of them are complete; no broker may use the directory. With --output they are written to another
        directory, laid out like the data directory, and the log is not changed. A damaged batch ends the job before
        anything is changed.
        """,
        """
        examples:
          tailrace job reindex /var/lib/kafka --topic orders
          tailrace job reindex /var/lib/kafka --output /var/tmp/indexes
        """,
    )
    add_directories(reindex)
    add_settings(reindex)
    reindex.add_argument(
        "--output", metavar="DIR", help="directory to write the indexes to, instead of replacing the old ones"
    )
    add_spark(reindex)
    reindex.set_defaults(run="tailrace.cli.jobs.reindex:run")


def run(options: argparse.Namespace) -> int:
    from tailrace.cli.jobs.small_data import hint_if_small
    from tailrace.cli.jobs.topic_settings import settings_of
    from tailrace.spark.jobs.verify.reindex import reindex

    configs = settings_of(options)
    if options.output is None:
        hint_if_small(options, "tailrace log repair", "would rebuild missing and damaged indexes")
    with spark_for(options, "reindex") as spark:
        found = reindex(
            spark,
            options.directory,
            topics=options.topic,
            partitions=options.partition,
            configs=configs,
            output=options.output,
        )
    if options.json:
        changed = [{"file": one.path, "size": one.size, "removed": one.new_path is None} for one in found.changed]
        print_lines(
            json_document(
                {
                    "segments": found.segments,
                    "bytesRead": found.bytes_read,
                    "indexes": sum(one.new_path is not None for one in found.indexes),
                    "output": found.output,
                    "changed": changed,
                }
            )
        )
        return 0
    for one in found.changed:
        print_lines(f"{one.path}: {'removed' if one.new_path is None else f'changed, {size_text(one.size)}'}")
    where = f"written to {found.output}" if found.output else "replaced"
    print_lines(
        f"indexes of {count_text(found.segments, 'segment')} ({size_text(found.bytes_read)} read) {where}, "
        f"{count_text(len(found.changed), 'file')} {'differs' if len(found.changed) == 1 else 'differ'} from before"
    )
    return 0
